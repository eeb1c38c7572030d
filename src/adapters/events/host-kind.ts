import ipaddr from 'ipaddr.js'
import type { HostKindOf } from '../../domain/events/webhook-url.ts'

/** Microsoft Azure's metadata and DNS, the only such service with an IP address that is otherwise public. */
const azureMetadata = '168.63.129.16'

/** The only IPv6 addresses that are assigned as global unicast. */
const globalIpv6 = ipaddr.parseCIDR('2000::/3')

export const hostKind: HostKindOf = (host) => {
  const name = host.toLowerCase().replace(/\.$/, '')
  if (name === 'localhost' || name.endsWith('.localhost')) return 'loopback'
  if (!ipaddr.isValid(name)) return undefined
  // IPv6 addresses that contain an IPv4 address have their own ranges, except those of ::/96.
  const address = ipaddr.parse(name)
  const range = address.range()
  if (range === 'loopback') return 'loopback'
  const isGlobal = address.kind() === 'ipv4' || address.match(globalIpv6)
  return range === 'unicast' && isGlobal && name !== azureMetadata ? 'public' : 'private'
}
