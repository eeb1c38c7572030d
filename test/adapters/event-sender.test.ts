import { afterAll, describe, expect, test } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { hostKindWith } from '../../src/adapters/events/host-kind.ts'
import { createEventSender, type SenderSettings } from '../../src/adapters/events/sender.ts'
import { readConfig } from '../../src/config/config.ts'
import type { Webhook } from '../../src/domain/ground/webhook-events.ts'
import { webhookUrlProblem } from '../../src/domain/integration/webhook-url.ts'
import { held, startReceiver } from '../support/receiver.ts'
import { selfSigned } from '../support/smtp.ts'

const receiver = startReceiver()
const port = new URL(receiver.url).port
const hosts: (string | null)[] = []
const secure = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  tls: selfSigned,
  fetch: (request) => {
    hosts.push(request.headers.get('host'))
    return new Response()
  },
})
afterAll(() => {
  receiver.stop()
  secure.stop(true)
})

const hostKind = hostKindWith([])

const webhook = (url: string): Webhook => ({
  appId: 'shop',
  url,
  secret: receiver.secret,
  previousSecrets: [],
  eventTypes: [],
  createdAt: 0,
  disabledAt: null,
})

function send(url: string, settings: Partial<SenderSettings> = {}) {
  const sender = createEventSender({ isProduction: false, hostKind, timeoutMs: 5000, ...settings })
  return sender(webhook(url), 'id', '{}', Date.now())
}

function chunks(): ReadableStream {
  return new ReadableStream({
    start(controller) {
      for (const chunk of ['no ', 'tenant']) controller.enqueue(new TextEncoder().encode(chunk))
      controller.close()
    },
  })
}

test.each<[string, () => Response, string | null]>([
  ['without a body', () => new Response(null, { status: 500 }), null],
  [
    'with a body',
    () => new Response('no tenant for ada@example.com', { status: 500 }),
    'no tenant for [hidden]',
  ],
  ['in chunks', () => new Response(chunks(), { status: 500 }), 'no tenant'],
  ['that is large', () => new Response('x '.repeat(100_000), { status: 500 }), `${'x '.repeat(249)}x…`],
  ['that has the secret', () => new Response(`not ${receiver.secret}?`, { status: 500 }), 'not [hidden]?'],
])('an answer %s is read as far as operators need it', async (_, reply, answer) => {
  receiver.answer(reply)
  expect(await send(receiver.url)).toEqual({ httpStatus: 500, error: 'HTTP 500', answer })
  receiver.answer(() => new Response(null, { status: 204 }))
})

describe('a webhook URL', () => {
  test.each([
    ['https://shop.example/otpost?key=1', 'production development'],
    ['https://8.8.8.8/', 'production development'],
    ['https://[2606:4700::1]:8443/', 'production development'],
    ['http://localhost:3000/', 'development'],
    ['http://api.localhost/', 'development'],
    ['http://127.0.0.1:3000/', 'development'],
    ['http://[::1]/', 'development'],
    ['https://localhost/', 'development'],
    ['https://10.1.2.3/', 'development'],
    ['https://127.1/', 'development'],
    ['https://0x7f000001/', 'development'],
    ['https://2130706433/', 'development'],
    ['https://0177.0.0.1/', 'development'],
    ['https://①②⑦.0.0.1/', 'development'],
    ['https://127.0.0.1./', 'development'],
    ['https://192.168.0.1/', 'development'],
    ['https://172.16.0.1/', 'development'],
    ['https://169.254.169.254/', 'development'],
    ['https://168.63.129.16/', 'development'],
    ['https://100.64.0.1/', 'development'],
    ['https://100.100.100.200/', 'development'],
    ['https://0.0.0.0/', 'development'],
    ['https://192.0.2.1/', 'development'],
    ['https://198.18.0.1/', 'development'],
    ['https://224.0.0.1/', 'development'],
    ['https://255.255.255.255/', 'development'],
    ['https://[::]/', 'development'],
    ['https://[::ffff:8.8.8.8]/', 'development'],
    ['https://[::ffff:127.0.0.1]/', 'development'],
    ['https://[::127.0.0.1]/', 'development'],
    ['https://[fe00::1]/', 'development'],
    ['https://[fe80::1]/', 'development'],
    ['https://[fc00::1]/', 'development'],
    ['https://[fd00:ec2::254]/', 'development'],
    ['https://[fec0::1]/', 'development'],
    ['https://[ff02::1]/', 'development'],
    ['https://[64:ff9b::7f00:1]/', 'development'],
    ['https://[2002:7f00:1::]/', 'development'],
    ['https://[2001::1]/', 'development'],
    ['https://[2001:db8::1]/', 'development'],
    ['http://shop.example/', 'nowhere'],
    ['http://10.1.2.3/', 'nowhere'],
    ['http://localhost.shop.example/', 'nowhere'],
    ['https://user@shop.example/', 'nowhere'],
    ['https://:secret@shop.example/', 'nowhere'],
    ['https://shop.example/#part', 'nowhere'],
    ['https://shop.example/#', 'nowhere'],
    ['ftp://shop.example/', 'nowhere'],
    ['file:///etc/passwd', 'nowhere'],
    ['shop.example', 'nowhere'],
    ['https://', 'nowhere'],
    ['https://shop.example/a b', 'nowhere'],
    ['https:\\\\shop.example', 'nowhere'],
    [`https://shop.example/${'a'.repeat(2000)}`, 'nowhere'],
    ['', 'nowhere'],
  ])('%p is allowed in %s', (url, where) => {
    expect([url, webhookUrlProblem(url, true, hostKind) === undefined]).toEqual([
      url,
      where.includes('production'),
    ])
    expect([url, webhookUrlProblem(url, false, hostKind) === undefined]).toEqual([
      url,
      where.includes('development'),
    ])
  })
})

/** With NODE_ENV=production. */
describe('EVENTS_ALLOWED_NETWORKS', () => {
  test.each([
    ['10.20.0.0/16', 'https://10.20.3.4/', true],
    ['10.20.0.0/16', 'https://[::ffff:10.20.3.4]/', true],
    ['10.20.0.0/16', 'https://10.21.3.4/', false],
    ['10.20.0.0/16', 'http://10.20.3.4/', false],
    ['192.168.0.0/16,fd00::/8', 'https://[fd12::1]/', true],
    ['192.168.0.0/16,fd00::/8', 'https://[fe80::1]/', false],
    ['10.20.3.4', 'https://10.20.3.4/', true],
    ['127.0.0.0/8', 'https://localhost/', true],
    ['169.254.0.0/16', 'https://169.254.7.7/', true],
    ['169.254.0.0/16', 'https://169.254.169.254/', false],
    ['169.254.0.0/16', 'https://[::ffff:169.254.169.254]/', false],
    ['169.254.169.254', 'https://169.254.169.254/', true],
    ['fd00::/8', 'https://[fd00:ec2::254]/', false],
    ['100.64.0.0/10', 'https://100.100.100.200/', false],
  ])('%s: %s is allowed: %p', (EVENTS_ALLOWED_NETWORKS, url, isAllowed) => {
    const config = readConfig({
      NODE_ENV: 'production',
      OUTBOX_IN_PRODUCTION: '1',
      EVENTS_ALLOWED_NETWORKS,
    })
    expect(webhookUrlProblem(url, true, config.hostKind) === undefined).toBe(isAllowed)
  })

  test.each(['0.0.0.0/0', '::/0', '10.0.0.0/33', 'intranet', '10.0.0.0/8,x'])(
    '%s is refused at the start',
    (EVENTS_ALLOWED_NETWORKS) => {
      expect(() => readConfig({ EVENTS_ALLOWED_NETWORKS })).toThrow('EVENTS_ALLOWED_NETWORKS must be')
    },
  )

  test('applies to the IP addresses of a name, of which each must be allowed', async () => {
    const settings = {
      isProduction: true,
      hostKind: hostKindWith([[ipaddr.parse('127.0.0.0'), 8]]),
      ca: selfSigned.cert,
    }
    const url = `https://localhost:${secure.port}/`
    const addressesOf = async () => ['127.0.0.1']
    expect(await send(url, { ...settings, addressesOf })).toEqual({
      httpStatus: 200,
      error: null,
      answer: null,
    })
    const both = async () => ['127.0.0.1', '10.0.0.1']
    expect((await send(url, { ...settings, addressesOf: both })).error).toContain('resolves to 10.0.0.1')
    hosts.length = 0
  })
})

/** On 127.0.0.2, at the port of another server on 127.0.0.1. */
async function besides(port: number | string | undefined, onConnection: (socket: Socket) => void) {
  const server = createServer(onConnection)
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(Number(port), '127.0.0.2', resolve)
  await promise
  return server
}

describe('a host with several IP addresses', () => {
  const addressesOf = async () => ['127.0.0.2', '127.0.0.1']

  test('is reached although the first refuses the connection', async () => {
    const before = receiver.received.length
    const result = await send(`http://shop.localhost:${port}/`, { addressesOf })
    expect(result).toEqual({ httpStatus: 204, error: null, answer: null })
    expect(receiver.received.length).toBe(before + 1)
  })

  test('is reached although the first does not answer', async () => {
    const sockets: Socket[] = []
    const silent = await besides(secure.port, (socket) => sockets.push(socket))
    const settings = { addressesOf, ca: selfSigned.cert, connectMs: 20, timeoutMs: 60_000 }
    expect((await send(`https://localhost:${secure.port}/`, settings)).httpStatus).toBe(200)
    expect(sockets.length).toBe(1)
    for (const socket of sockets) socket.destroy()
    silent.close()
    hosts.length = 0
  })

  test('gets an event once: no other is tried after the request was sent', async () => {
    const before = receiver.received.length
    const lost = await besides(port, (socket) => socket.once('data', () => socket.destroy()))
    const result = await send(`http://shop.localhost:${port}/`, { addressesOf })
    expect(result).toEqual({ httpStatus: null, error: 'ECONNRESET', answer: null })
    expect(receiver.received.length).toBe(before)
    lost.close()
  })
})

describe('an answer', () => {
  const now = Date.parse('2026-01-01T12:00:00Z')

  test.each([
    ['final', 'HTTP/1.1 204 No Content\r\n\r\n', { httpStatus: 204, error: null, answer: null }],
    [
      'after an informational one',
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
      { httpStatus: 200, error: null, answer: null },
    ],
    [
      'without a reason phrase',
      'HTTP/1.0 200\r\nRetry-After: 5\r\n\r\n',
      { httpStatus: 200, error: null, answer: null },
    ],
    ['429 with seconds', 'HTTP/1.1 429 -\r\nretry-after:  90 \r\n\r\n', { retryAfterMs: 90_000 }],
    [
      '503 with a date',
      'HTTP/1.1 503 -\r\nRetry-After: Thu, 01 Jan 2026 12:02:00 GMT\r\n\r\n',
      { retryAfterMs: 120_000 },
    ],
    [
      '503 with a past date',
      'HTTP/1.1 503 -\r\nRetry-After: Thu, 01 Jan 2026 11:00:00 GMT\r\n\r\n',
      { retryAfterMs: 0 },
    ],
    ['503 with a negative number', 'HTTP/1.1 503 -\r\nRetry-After: -1\r\n\r\n', { retryAfterMs: 0 }],
    [
      '503 without Retry-After',
      'HTTP/1.1 503 -\r\n\r\n',
      { httpStatus: 503, error: 'HTTP 503', answer: null },
    ],
    [
      '500 with Retry-After',
      'HTTP/1.1 500 -\r\nRetry-After: 90\r\n\r\n',
      { httpStatus: 500, error: 'HTTP 500', answer: null },
    ],
    [
      'that is not HTTP',
      'SSH-2.0-OpenSSH\r\n\r\n',
      { httpStatus: null, error: 'connection failed', answer: null },
    ],
    ['without an end', 'x'.repeat(70_000), { httpStatus: null, error: 'connection failed', answer: null }],
  ])('%s is read', async (_, text, expected) => {
    const server = await besides(0, (socket) => {
      socket.on('error', () => {})
      // In two parts, as networks may split it.
      socket.once('data', () => socket.write(text.slice(0, 3), () => socket.write(text.slice(3))))
    })
    const address = server.address()
    const at = typeof address === 'object' ? address?.port : undefined
    const sent = await createEventSender({ isProduction: false, hostKind, timeoutMs: 60_000 })(
      webhook(`http://127.0.0.2:${at}/`),
      'id',
      '{}',
      now,
    )
    expect(sent).toMatchObject(expected)
    expect('retryAfterMs' in sent).toBe('retryAfterMs' in expected)
    server.close()
  })
})

describe('a delivery', () => {
  test.each([
    '127.0.0.1',
    '10.0.0.1',
    '169.254.169.254',
    '::1',
    '::ffff:127.0.0.1',
    'fd00:ec2::254',
    'unreadable',
    '8.8.8.8 127.0.0.1',
  ])('in production to a name that resolves to %s is refused', async (resolved) => {
    const addresses = resolved.split(' ')
    const before = receiver.received.length
    const result = await send(`https://shop.example:${port}/`, {
      isProduction: true,
      addressesOf: async () => addresses,
    })
    const refused = addresses.at(-1)
    expect(result).toEqual({
      httpStatus: null,
      error: `the host resolves to ${refused}, which is not allowed`,
      answer: null,
    })
    expect(receiver.received.length).toBe(before)
  })

  test('resolves the name once, and connects to the IP address that was checked', async () => {
    const resolved: string[] = []
    const answers = [['127.0.0.1'], ['10.0.0.7']]
    const addressesOf = async (host: string) => {
      resolved.push(host)
      return answers.shift() ?? []
    }
    const url = `http://rebound.localhost:${port}/hook?key=1`
    expect(await send(url, { addressesOf })).toEqual({ httpStatus: 204, error: null, answer: null })
    expect(resolved).toEqual(['rebound.localhost'])
    expect(receiver.received.at(-1)?.headers.get('host')).toBe(`rebound.localhost:${port}`)
    expect((await send(url, { addressesOf })).error).toBe(
      'the host resolves to 10.0.0.7, which is not allowed',
    )
    expect((await send(url, { addressesOf })).error).toBe('the host has no IP address')
  })

  test('sends the name of the URL in TLS, and checks the certificate against it', async () => {
    const addressesOf = async () => ['127.0.0.1']
    const settings = { addressesOf, ca: selfSigned.cert }
    expect(await send(`https://localhost:${secure.port}/`, settings)).toEqual({
      httpStatus: 200,
      error: null,
      answer: null,
    })
    expect(hosts).toEqual([`localhost:${secure.port}`])
    expect((await send(`https://shop.example:${secure.port}/`, settings)).error).toBe(
      'ERR_TLS_CERT_ALTNAME_INVALID',
    )
    expect((await send(`https://localhost:${secure.port}/`, { addressesOf })).error).toBe(
      'DEPTH_ZERO_SELF_SIGNED_CERT',
    )
    expect(hosts.length).toBe(1)
  })

  test('follows no redirect, and needs an answer from 200 to 299 in time', async () => {
    const other = startReceiver()
    const location = other.url
    for (const status of [301, 302, 307, 308]) {
      receiver.answer(() => new Response(null, { status, headers: { location } }))
      expect(await send(receiver.url)).toEqual({ httpStatus: status, error: `HTTP ${status}`, answer: null })
    }
    expect(other.received).toEqual([])
    other.stop()
    for (const status of [400, 410, 500]) {
      receiver.answer(() => new Response(null, { status }))
      expect(await send(receiver.url)).toEqual({ httpStatus: status, error: `HTTP ${status}`, answer: null })
    }
    const { promise, release } = held()
    receiver.answer(() => promise)
    expect(await send(receiver.url, { timeoutMs: 20 })).toEqual({
      httpStatus: null,
      error: 'no answer in time',
      answer: null,
    })
    release(new Response())
    expect((await send('http://127.0.0.1:1/?key=secret')).error).toBe('ECONNREFUSED')
  })

  test('does not read the body of the answer', async () => {
    const { promise: cancelled, resolve } = Promise.withResolvers<void>()
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
      cancel: () => resolve(),
    })
    receiver.answer(() => new Response(endless, { status: 200 }))
    expect(await send(receiver.url)).toEqual({ httpStatus: 200, error: null, answer: null })
    await cancelled
  })

  test('to a URL that was allowed without NODE_ENV=production is refused with it', async () => {
    const before = receiver.received.length
    expect((await send(receiver.url, { isProduction: true })).error).toBe('The URL must begin with https://.')
    expect(receiver.received.length).toBe(before)
  })
})
