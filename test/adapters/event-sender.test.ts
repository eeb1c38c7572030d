import { afterAll, describe, expect, test } from 'bun:test'
import { hostKind } from '../../src/adapters/events/host-kind.ts'
import { createEventSender, type SenderSettings } from '../../src/adapters/events/sender.ts'
import { webhookUrlProblem } from '../../src/domain/events/webhook-url.ts'
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

function send(url: string, settings: Partial<SenderSettings> = {}) {
  const webhook = {
    appId: 'shop',
    url,
    secret: receiver.secret,
    eventTypes: [],
    createdAt: 0,
    disabledAt: null,
  } as const
  const sender = createEventSender({ isProduction: false, timeoutMs: 5000, ...settings })
  return sender(webhook, 'id', '{}', Date.now())
}

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
    expect(await send(url, { addressesOf })).toEqual({ httpStatus: 204, error: null })
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
      expect(await send(receiver.url)).toEqual({ httpStatus: status, error: `HTTP ${status}` })
    }
    expect(other.received).toEqual([])
    other.stop()
    for (const status of [400, 410, 500]) {
      receiver.answer(() => new Response(null, { status }))
      expect(await send(receiver.url)).toEqual({ httpStatus: status, error: `HTTP ${status}` })
    }
    const { promise, release } = held()
    receiver.answer(() => promise)
    expect(await send(receiver.url, { timeoutMs: 20 })).toEqual({
      httpStatus: null,
      error: 'no answer in time',
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
    expect(await send(receiver.url)).toEqual({ httpStatus: 200, error: null })
    await cancelled
  })

  test('to a URL that was allowed without NODE_ENV=production is refused with it', async () => {
    const before = receiver.received.length
    expect((await send(receiver.url, { isProduction: true })).error).toBe('The URL must begin with https://.')
    expect(receiver.received.length).toBe(before)
  })
})
