import { isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
export type Network = readonly [Address, number]

/** Parses a CIDR network or an IP address. */
export function network(text: string): Network | undefined {
  try {
    const single = text.includes('/') ? text : `${text}/${ipaddr.parse(text).kind() === 'ipv4' ? 32 : 128}`
    const [base, bits] = ipaddr.parseCIDR(single)
    if (base.kind() === 'ipv4' || !(base as ipaddr.IPv6).isIPv4MappedAddress()) return [base, bits]
    // IPv4-mapped peers are compared as IPv4.
    return bits < 96 ? undefined : [(base as ipaddr.IPv6).toIPv4Address(), bits - 96]
  } catch {
    return undefined
  }
}

/**
 * The client IP address (design D21): the peer or, behind a trusted proxy, the last untrusted entry of X-Forwarded-For.
 * Clients can forge the entries before it. An IPv6 client counts by its /64.
 */
export function clientIp(
  peer: string | undefined,
  forwardedFor: string | null,
  trusted: readonly Network[],
): string {
  let client = parse(peer)
  if (client === undefined) return 'unknown'
  const hops = (forwardedFor ?? '')
    .split(',')
    .map((hop) => hop.trim())
    .filter((hop) => hop !== '')
    .reverse()
  for (const hop of hops) {
    if (!isTrusted(client, trusted)) break
    const before = parse(withoutPort(hop))
    if (before === undefined) break
    client = before
  }
  return identityOf(client)
}

/** As limits count it: the IPv4 address, or the /64 of an IPv6 address. Undefined: not an IP address. */
export function ipIdentity(text: string): string | undefined {
  // The parser takes 5 µs, and isIPv4 accepts one spelling only.
  if (isIPv4(text)) return text
  // A zone, as in fe80::1%eth0, has a meaning only on one machine.
  const address = isIPv6(text) && !text.includes('%') ? parse(text) : undefined
  return address && identityOf(address)
}

function identityOf(address: Address): string {
  return address.kind() === 'ipv4' ? address.toString() : prefix64(address as ipaddr.IPv6)
}

export function isTrustedProxy(peer: string | undefined, trusted: readonly Network[]): boolean {
  const address = parse(peer)
  return address !== undefined && isTrusted(address, trusted)
}

/** The /24 or /64 of a peer that is not a trusted proxy. */
export function untrustedNetwork(peer: string | undefined, trusted: readonly Network[]): string | undefined {
  const address = parse(peer)
  if (address === undefined || isTrusted(address, trusted)) return undefined
  if (address.kind() === 'ipv6') return prefix64(address as ipaddr.IPv6)
  return `${address.toString().replace(/\d+$/, '0')}/24`
}

/** Some proxies add the port: `192.0.2.1:5555`, `[2001:db8::1]:5555`. */
function withoutPort(hop: string): string {
  const [, bracketed, dotted] = /^\[(.+)\](?::\d+)?$|^([0-9.]+):\d+$/.exec(hop) ?? []
  return bracketed ?? dotted ?? hop
}

function parse(text: string | undefined): Address | undefined {
  if (text === undefined || !ipaddr.isValid(text)) return undefined
  // Dual-stack sockets report IPv4 peers as ::ffff:a.b.c.d.
  return ipaddr.process(text)
}

function isTrusted(address: Address, trusted: readonly Network[]): boolean {
  return trusted.some(
    ([base, bits]) => base.kind() === address.kind() && address.match([base, bits] as never),
  )
}

function prefix64(address: ipaddr.IPv6): string {
  return `${address.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}
