import { describe, expect, test } from 'bun:test'
import { clientIp, type Network, network, untrustedNetwork } from '../../src/adapters/http/client-ip.ts'

function networks(...texts: readonly string[]): Network[] {
  return texts.map((text) => {
    const parsed = network(text)
    if (!parsed) throw new Error(`not a network: ${text}`)
    return parsed
  })
}

describe('the client IP (D21)', () => {
  const proxies = ['10.0.0.0/8', '192.0.2.1', '2001:db8:aaaa::/48']
  type Row = readonly [
    name: string,
    peer: string,
    forwardedFor: string | null,
    client: string,
    trusted?: string[],
  ]
  const rows: readonly Row[] = [
    ['without proxies, the peer', '203.0.113.7', null, '203.0.113.7', []],
    ['without proxies, the peer whatever the header says', '203.0.113.7', '198.51.100.1', '203.0.113.7', []],
    ['of a peer that is no proxy, the peer', '203.0.113.7', '198.51.100.1', '203.0.113.7'],
    ['of a proxy of a network, what it forwards', '10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['of a proxy by address, what it forwards', '192.0.2.1', '198.51.100.1', '198.51.100.1'],
    ['of an address beside the proxy, the peer', '192.0.2.2', '198.51.100.1', '192.0.2.2'],
    [
      'the last forwarded, not what the client wrote before it',
      '10.1.2.3',
      '1.1.1.1, 198.51.100.1',
      '198.51.100.1',
    ],
    ['past a chain of proxies', '10.1.2.3', '198.51.100.1, 192.0.2.1, 10.9.9.9', '198.51.100.1'],
    ['not past a stranger in the chain', '10.1.2.3', '198.51.100.1, 203.0.113.9, 10.9.9.9', '203.0.113.9'],
    ['of a proxy that forwards nothing, the proxy', '10.1.2.3', null, '10.1.2.3'],
    ['of a proxy with an empty header, the proxy', '10.1.2.3', '', '10.1.2.3'],
    ['of a proxy that forwards no address, the proxy', '10.1.2.3', 'unknown', '10.1.2.3'],
    [
      'never what stands before something that is no address',
      '10.1.2.3',
      '198.51.100.1, unknown',
      '10.1.2.3',
    ],
    ['without blanks', '10.1.2.3', '1.1.1.1,198.51.100.1', '198.51.100.1'],
    ['with more blanks', '10.1.2.3', ' 1.1.1.1 ,\t198.51.100.1 ', '198.51.100.1'],
    ['with a port, as some proxies write it', '10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
    ['before an empty entry', '10.1.2.3', '198.51.100.1, ', '198.51.100.1'],
    ['of an IPv4 peer on an IPv6 socket, the IPv4 address', '::ffff:203.0.113.7', null, '203.0.113.7'],
    [
      'of an IPv4 proxy on an IPv6 socket, what it forwards',
      '::ffff:10.1.2.3',
      '198.51.100.1',
      '198.51.100.1',
    ],
    ['of an IPv6 proxy, what it forwards', '2001:db8:aaaa::1', '198.51.100.1', '198.51.100.1'],
  ]
  test.each(rows)('is %s', (_, peer, forwardedFor, client, trusted = proxies) => {
    expect(clientIp(peer, forwardedFor, networks(...trusted))).toBe(client)
  })

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

test('the network of a peer that is no proxy', () => {
  const proxies = [network('10.0.0.0/8'), network('2001:db8::/32')].filter((each) => each !== undefined)
  for (const [peer, expected] of [
    ['172.18.0.5', '172.18.0.0/24'],
    ['::ffff:172.18.0.5', '172.18.0.0/24'],
    ['2001:db9:1:2:3::4', '2001:db9:1:2::/64'],
    ['10.1.2.3', undefined],
    ['2001:db8::1', undefined],
    [undefined, undefined],
  ] as const) {
    expect(untrustedNetwork(peer, proxies)).toBe(expected)
  }
})

describe('a trusted network', () => {
  test.each(['10.0.0.1', '10.0.0.0/8', '0.0.0.0/0', '::1', '2001:db8::/32'])('%j is read', (text) => {
    expect(network(text)).toBeDefined()
  })

  test.each(['10.0.0.0/33', '2001:db8::/129', '10.0.0.0/', '10.0.0.0/x', '10.0.0.256', 'localhost', ''])(
    '%j is refused',
    (text) => expect(network(text)).toBeUndefined(),
  )

  test('of IPv4 addresses written as IPv6 holds the peers it names, unless it is refused', () => {
    const mapped = network('::ffff:10.0.0.0/104')
    if (mapped) expect(clientIp('10.1.2.3', '198.51.100.1', [mapped])).toBe('198.51.100.1')
  })
})
