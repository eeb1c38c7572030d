import { describe, expect, test } from 'bun:test'
import { clientIp, type Network, network } from '../../src/adapters/http/client-ip.ts'

function networks(...texts: readonly string[]): Network[] {
  return texts.map((text) => {
    const parsed = network(text)
    if (!parsed) throw new Error(`not a network: ${text}`)
    return parsed
  })
}

describe('the client IP (D21)', () => {
  const proxies = ['10.0.0.0/8', '192.0.2.1', '2001:db8:aaaa::/48']
  const rows: readonly {
    name: string
    peer: string
    forwardedFor: string | null
    trusted: readonly string[]
    client: string
  }[] = [
    {
      name: 'without proxies, the peer',
      peer: '203.0.113.7',
      forwardedFor: null,
      trusted: [],
      client: '203.0.113.7',
    },
    {
      name: 'without proxies, the peer whatever the header says',
      peer: '203.0.113.7',
      forwardedFor: '198.51.100.1',
      trusted: [],
      client: '203.0.113.7',
    },
    {
      name: 'of a peer that is no proxy, the peer',
      peer: '203.0.113.7',
      forwardedFor: '198.51.100.1',
      trusted: proxies,
      client: '203.0.113.7',
    },
    {
      name: 'of a proxy of a network, what it forwards',
      peer: '10.1.2.3',
      forwardedFor: '198.51.100.1',
      trusted: proxies,
      client: '198.51.100.1',
    },
    {
      name: 'of a proxy by address, what it forwards',
      peer: '192.0.2.1',
      forwardedFor: '198.51.100.1',
      trusted: proxies,
      client: '198.51.100.1',
    },
    {
      name: 'of an address beside the proxy, the peer',
      peer: '192.0.2.2',
      forwardedFor: '198.51.100.1',
      trusted: proxies,
      client: '192.0.2.2',
    },
    {
      name: 'the last forwarded, not what the client wrote before it',
      peer: '10.1.2.3',
      forwardedFor: '1.1.1.1, 198.51.100.1',
      trusted: proxies,
      client: '198.51.100.1',
    },
    {
      name: 'past a chain of proxies',
      peer: '10.1.2.3',
      forwardedFor: '198.51.100.1, 192.0.2.1, 10.9.9.9',
      trusted: proxies,
      client: '198.51.100.1',
    },
    {
      name: 'not past a stranger in the chain',
      peer: '10.1.2.3',
      forwardedFor: '198.51.100.1, 203.0.113.9, 10.9.9.9',
      trusted: proxies,
      client: '203.0.113.9',
    },
    {
      name: 'of a proxy that forwards nothing, the proxy',
      peer: '10.1.2.3',
      forwardedFor: null,
      trusted: proxies,
      client: '10.1.2.3',
    },
    {
      name: 'of a proxy with an empty header, the proxy',
      peer: '10.1.2.3',
      forwardedFor: '',
      trusted: proxies,
      client: '10.1.2.3',
    },
    {
      name: 'of a proxy that forwards no address, the proxy',
      peer: '10.1.2.3',
      forwardedFor: 'unknown',
      trusted: proxies,
      client: '10.1.2.3',
    },
    {
      name: 'never what stands before something that is no address',
      peer: '10.1.2.3',
      forwardedFor: '198.51.100.1, unknown',
      trusted: proxies,
      client: '10.1.2.3',
    },
    {
      name: 'without blanks',
      peer: '10.1.2.3',
      forwardedFor: '1.1.1.1,198.51.100.1',
      trusted: proxies,
      client: '198.51.100.1',
    },
    {
      name: 'with more blanks',
      peer: '10.1.2.3',
      forwardedFor: ' 1.1.1.1 ,\t198.51.100.1 ',
      trusted: proxies,
      client: '198.51.100.1',
    },
    {
      name: 'with a port, as some proxies write it',
      peer: '10.1.2.3',
      forwardedFor: '198.51.100.1:4711',
      trusted: proxies,
      client: '198.51.100.1',
    },
    {
      name: 'before an empty entry',
      peer: '10.1.2.3',
      forwardedFor: '198.51.100.1, ',
      trusted: proxies,
      client: '198.51.100.1',
    },
    {
      name: 'of an IPv4 peer on an IPv6 socket, the IPv4 address',
      peer: '::ffff:203.0.113.7',
      forwardedFor: null,
      trusted: proxies,
      client: '203.0.113.7',
    },
    {
      name: 'of an IPv4 proxy on an IPv6 socket, what it forwards',
      peer: '::ffff:10.1.2.3',
      forwardedFor: '198.51.100.1',
      trusted: proxies,
      client: '198.51.100.1',
    },
    {
      name: 'of an IPv6 proxy, what it forwards',
      peer: '2001:db8:aaaa::1',
      forwardedFor: '198.51.100.1',
      trusted: proxies,
      client: '198.51.100.1',
    },
  ]
  for (const { name, peer, forwardedFor, trusted, client } of rows) {
    test(`is ${name}`, () => {
      expect(clientIp(peer, forwardedFor, networks(...trusted))).toBe(client)
    })
  }

  const ipv6: readonly { name: string; one: string; other: string; same: boolean }[] = [
    { name: 'in two spellings', one: '2001:DB8:0:1:0:0:0:1', other: '2001:db8:0:1::1', same: true },
    {
      name: 'of one customer, in the first 64 bits',
      one: '2001:db8:0:1::1',
      other: '2001:db8:0:1:ffff::9',
      same: true,
    },
    { name: 'of two customers', one: '2001:db8:0:1::1', other: '2001:db8:0:2::1', same: false },
  ]
  for (const { name, one, other, same } of ipv6) {
    test(`counts IPv6 addresses ${name} as ${same ? 'one' : 'two'}`, () => {
      expect(clientIp(one, null, []) === clientIp(other, null, [])).toBe(same)
      const proxy = networks('10.0.0.1')
      expect(clientIp('10.0.0.1', one, proxy) === clientIp(other, null, [])).toBe(same)
    })
  }

  test('is one name for all requests that came over no socket', () => {
    expect(clientIp(undefined, '198.51.100.1', networks('0.0.0.0/0'))).toBe(clientIp(undefined, null, []))
  })

  test('is found in any header without an error, and is never a text of the header', () => {
    const trusted = networks('10.0.0.0/8', '::/0')
    const hostile = [
      ',',
      ',,,,',
      '<script>',
      '__proto__',
      "'; drop table windows; --",
      '10.0.0.1.',
      '999.999.999.999',
      '[2001:db8::1]:443',
      '2001:db8::1%eth0',
      ':::',
      '\u0000',
      '10.0.0.1, '.repeat(5000),
      'x'.repeat(100_000),
    ]
    for (const forwardedFor of hostile) {
      expect(clientIp('10.0.0.1', forwardedFor, trusted)).toMatch(/^[0-9a-f.:]+(\/64)?$/)
    }
  })
})

describe('a trusted network', () => {
  const rows: readonly { text: string; valid: boolean }[] = [
    { text: '10.0.0.1', valid: true },
    { text: '10.0.0.0/8', valid: true },
    { text: '0.0.0.0/0', valid: true },
    { text: '::1', valid: true },
    { text: '2001:db8::/32', valid: true },
    { text: '10.0.0.0/33', valid: false },
    { text: '2001:db8::/129', valid: false },
    { text: '10.0.0.0/', valid: false },
    { text: '10.0.0.0/x', valid: false },
    { text: '10.0.0.256', valid: false },
    { text: 'localhost', valid: false },
    { text: '', valid: false },
  ]
  for (const { text, valid } of rows) {
    test(`${JSON.stringify(text)} is ${valid ? 'read' : 'refused'}`, () => {
      expect(network(text) !== undefined).toBe(valid)
    })
  }

  test('of IPv4 addresses written as IPv6 holds the peers it names, unless it is refused', () => {
    const mapped = network('::ffff:10.0.0.0/104')
    if (mapped) expect(clientIp('10.1.2.3', '198.51.100.1', [mapped])).toBe('198.51.100.1')
  })
})
