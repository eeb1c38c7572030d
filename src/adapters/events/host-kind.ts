import ipaddr from 'ipaddr.js'
import type { HostKindOf } from '../../domain/integration/webhook-url.ts'

/** Its base and the length of its prefix. */
type Network = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/** Microsoft Azure's metadata and DNS, the only such service with an IP address that is otherwise public. */
const azureMetadata = '168.63.129.16'

/** They give credentials of the machine. AWS, Google Cloud and others; AWS for containers; Alibaba Cloud; AWS and Google Cloud by IPv6. */
const metadata: ReadonlySet<string> = new Set([
  azureMetadata,
  '169.254.169.254',
  '169.254.170.2',
  '169.254.170.23',
  '100.100.100.200',
  'fd00:ec2::23',
  'fd00:ec2::254',
  'fd20:ce::254',
])

/** The only IPv6 addresses that are assigned as global unicast. */
const globalIpv6 = ipaddr.parseCIDR('2000::/3')

/**
 * @param allowed count as public (EVENTS_ALLOWED_NETWORKS). The IP address of a metadata service only counts as public if a network is
 *   this IP address alone.
 */
export function hostKindWith(allowed: readonly Network[]): HostKindOf {
  const isAllowed = (name: string) => {
    const address = ipaddr.process(name)
    const longest = metadata.has(address.toString()) ? (address.kind() === 'ipv4' ? 32 : 128) : 0
    return allowed.some(
      ([base, bits]) => bits >= longest && base.kind() === address.kind() && address.match(base, bits),
    )
  }
  return (host) => {
    const name = host.toLowerCase().replace(/\.$/, '')
    const isLocal = name === 'localhost' || name.endsWith('.localhost')
    if (!isLocal && !ipaddr.isValid(name)) return undefined
    if (isAllowed(isLocal ? '127.0.0.1' : name)) return 'public'
    if (isLocal) return 'loopback'
    // IPv6 addresses that contain an IPv4 address have their own ranges, except those of ::/96.
    const address = ipaddr.parse(name)
    const range = address.range()
    if (range === 'loopback') return 'loopback'
    const isGlobal = address.kind() === 'ipv4' || address.match(globalIpv6)
    return range === 'unicast' && isGlobal && name !== azureMetadata ? 'public' : 'private'
  }
}
