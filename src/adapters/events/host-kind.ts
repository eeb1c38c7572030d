import ipaddr from 'ipaddr.js'
import type { HostKindOf } from '../../domain/events/webhook-url.ts'

/** Microsoft Azure's metadata and DNS, the only such service with an IP address that is otherwise public. */
const azureMetadata = '168.63.129.16'

export const hostKind: HostKindOf = (host) => {
  const name = host.toLowerCase().replace(/\.$/, '')
  if (name === 'localhost' || name.endsWith('.localhost')) return 'loopback'
  if (!ipaddr.isValid(name)) return undefined
  // IPv6 addresses that contain an IPv4 address have their own ranges.
  const range = ipaddr.parse(name).range()
  if (range === 'loopback') return 'loopback'
  return range === 'unicast' && name !== azureMetadata ? 'public' : 'private'
}
