import { describe, expect, test } from 'bun:test'
import { clientIp, type Network, network, untrustedNetwork } from '../../src/adapters/http/client-ip.ts'
import { HttpRequests } from '../../src/adapters/http/http-request.ts'

function networks(...texts: readonly string[]): Network[] {
  return texts.map((text) => {
    const parsed = network(text)
    if (!parsed) throw new Error(`not a network: ${text}`)
    return parsed
  })
}

describe('the client IP address (D21)', () => {
  const proxies = ['10.0.0.0/8', '192.0.2.1', '2001:db8:aaaa::/48']
  type Row = readonly [
    name: string,
    peer: string,
    forwardedFor: string | null,
    client: string,
    trusted?: string[],
  ]
  const rows: readonly Row[] = [
    ['the peer without trusted proxies', '203.0.113.7', null, '203.0.113.7', []],
    [
      'the peer without trusted proxies, even with X-Forwarded-For',
      '203.0.113.7',
      '198.51.100.1',
      '203.0.113.7',
      [],
    ],
    ['the peer if it is not a trusted proxy', '203.0.113.7', '198.51.100.1', '203.0.113.7'],
    [
      'the forwarded IP address behind a proxy in a trusted network',
      '10.1.2.3',
      '198.51.100.1',
      '198.51.100.1',
    ],
    [
      'the forwarded IP address behind a proxy with a trusted IP address',
      '192.0.2.1',
      '198.51.100.1',
      '198.51.100.1',
    ],
    ['the peer if its IP address differs from the proxy', '192.0.2.2', '198.51.100.1', '192.0.2.2'],
    [
      'the last forwarded IP address, not one sent by the client',
      '10.1.2.3',
      '1.1.1.1, 198.51.100.1',
      '198.51.100.1',
    ],
    [
      'the IP address before a chain of trusted proxies',
      '10.1.2.3',
      '198.51.100.1, 192.0.2.1, 10.9.9.9',
      '198.51.100.1',
    ],
    [
      'the last untrusted IP address of a chain',
      '10.1.2.3',
      '198.51.100.1, 203.0.113.9, 10.9.9.9',
      '203.0.113.9',
    ],
    ['the proxy if it forwards nothing', '10.1.2.3', null, '10.1.2.3'],
    ['the proxy if the header is empty', '10.1.2.3', '', '10.1.2.3'],
    ['the proxy if the header has no IP address', '10.1.2.3', 'unknown', '10.1.2.3'],
    ['never an IP address before an invalid entry', '10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
    ['found without blanks between entries', '10.1.2.3', '1.1.1.1,198.51.100.1', '198.51.100.1'],
    ['found with extra blanks between entries', '10.1.2.3', ' 1.1.1.1 ,\t198.51.100.1 ', '198.51.100.1'],
    ['found with a port, as some proxies write it', '10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
    ['found before an empty entry', '10.1.2.3', '198.51.100.1, ', '198.51.100.1'],
    ['the IPv4 form of an IPv4 peer on an IPv6 socket', '::ffff:203.0.113.7', null, '203.0.113.7'],
    [
      'the forwarded IP address behind an IPv4 proxy on an IPv6 socket',
      '::ffff:10.1.2.3',
      '198.51.100.1',
      '198.51.100.1',
    ],
    ['the forwarded IP address behind an IPv6 proxy', '2001:db8:aaaa::1', '198.51.100.1', '198.51.100.1'],
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
    test(`counts IPv6 addresses ${name} as ${same ? 'one client' : 'two clients'}`, () => {
      expect(clientIp(one, null, []) === clientIp(other, null, [])).toBe(same)
      const proxy = networks('10.0.0.1')
      expect(clientIp('10.0.0.1', one, proxy) === clientIp(other, null, [])).toBe(same)
    })
  }

  test('is the same for all requests without a socket', () => {
    expect(clientIp(undefined, '198.51.100.1', networks('0.0.0.0/0'))).toBe(clientIp(undefined, null, []))
  })

  test('is a valid IP address for any header value', () => {
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

test('untrustedNetwork returns the network of a peer that is not a trusted proxy', () => {
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
  test.each(['10.0.0.1', '10.0.0.0/8', '0.0.0.0/0', '::1', '2001:db8::/32'])('accepts %j', (text) => {
    expect(network(text)).toBeDefined()
  })

  test.each(['10.0.0.0/33', '2001:db8::/129', '10.0.0.0/', '10.0.0.0/x', '10.0.0.256', 'localhost', ''])(
    'rejects %j',
    (text) => expect(network(text)).toBeUndefined(),
  )

  test('in IPv4-mapped IPv6 form, if accepted, contains the IPv4 peers it names', () => {
    const mapped = network('::ffff:10.0.0.0/104')
    if (mapped) expect(clientIp('10.1.2.3', '198.51.100.1', [mapped])).toBe('198.51.100.1')
  })
})

test('the X-Request-Id of a trusted proxy is that of the request, for the log', () => {
  const id = '3f2b8f0e-6c1d-4a53-9f57-0d6a2c9e41b7'
  for (const [trusted, peer, given, expected] of [
    [['10.0.0.0/8'], '10.1.2.3', id, id],
    [['10.0.0.0/8'], '203.0.113.7', id, undefined],
    [['10.0.0.0/8'], undefined, id, undefined],
    [[], '10.1.2.3', id, undefined],
    [['10.0.0.0/8'], '10.1.2.3', id.replaceAll('-', ''), id.replaceAll('-', '')],
    [['10.0.0.0/8'], '10.1.2.3', 'a'.repeat(33), undefined],
    [['10.0.0.0/8'], '10.1.2.3', 'key-of-pat', undefined],
  ] as const) {
    const request = new Request('http://localhost/health', { headers: { 'x-request-id': given } })
    const { proxyRequestId, requestId } = new HttpRequests(networks(...trusted), () => 0).begin(request, peer)
    expect(proxyRequestId).toBe(expected)
    expect(requestId).not.toBe(id)
  }
})
