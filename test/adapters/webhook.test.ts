import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { Socket } from 'bun'
import { Webhook } from 'standardwebhooks'
import { discard } from '../../src/adapters/sms/discard.ts'
import { webhook } from '../../src/adapters/sms/webhook.ts'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import { Settings } from '../../src/config/settings.ts'
import type { Outcome, Sms, SmsRoute } from '../../src/domain/ground/providers.ts'
import { sqliteStores } from '../support/operator.ts'
import { held, type Received, startReceiver } from '../support/receiver.ts'
import { selfSigned } from '../support/smtp.ts'

const message = {
  id: '0b54a5a2-6a3c-4d8e-9a39-0f6a3f0d7c11',
  requestId: 'd2a0b3f6-70ff-4a9c-9c05-1d1f5c6c8e77',
  brandSlug: 'acme',
  brandName: 'Acme',
  to: '12025550143',
  text: 'Grüße aus Köln: "1 €" 🎁',
  code: null,
  senderId: null,
  validitySeconds: null,
  expectsFeedback: false,
  callbackUrl: null,
} satisfies Partial<Sms>

const template = {
  key: 'ORDER_PLACED',
  variables: { customerName: 'Jürgen', orderId: 'A/17#b' },
  id: '1107',
  entityId: '1101',
}

const accepted: Outcome = { kind: 'accepted', providerMessageId: message.id }

const { outbox } = sqliteStores(openDatabase(':memory:'))

/** Longer than any response on this machine takes; reaching it is a test failure. */
const patienceMs = 10_000

/** A time-out that the test waits for, long enough for the call to arrive on a busy machine. */
const passingMs = 2000

let receiver: ReturnType<typeof startReceiver>

beforeEach(() => {
  receiver = startReceiver()
})

afterEach(async () => {
  await receiver.stop()
})

function send(
  route: SmsRoute = 'plain',
  { timeoutMs = patienceMs, url = receiver.url, secret = receiver.secret, now = Date.now } = {},
): Promise<Outcome> {
  const settings = new Settings({ SMS_WEBHOOK_URL: url, SMS_WEBHOOK_SECRET: secret })
  const provider = webhook.configure(settings, route)({ now, outbox, reportLater: () => {} })
  expect(settings.problems).toEqual([])
  return provider.send({ ...message, route, template: route === 'template' ? template : null }, timeoutMs)
}

/** The only call that the receiver got. */
function onlyCall(): Received {
  expect(receiver.received).toHaveLength(1)
  const [call] = receiver.received
  if (!call) throw new Error('nothing was received')
  return call
}

test.each<[code: string, status: number, outcome: Outcome]>([
  ['ok', 200, accepted],
  ['other', 200, accepted],
  ['invalid_phone_number', 200, { kind: 'rejected', scope: 'recipient', reason: 'invalid_phone_number' }],
  ['delivery_rejected', 500, { kind: 'rejected', scope: 'recipient', reason: 'delivery_rejected' }],
  ['authentication_failed', 200, { kind: 'rejected', scope: 'account', reason: 'authentication_failed' }],
  ['rate_limited', 400, { kind: 'retryable', reason: 'rate_limited' }],
  ['timeout', 200, { kind: 'unknown', reason: 'timeout', providerMessageId: message.id }],
])('the result %s of an answer %i decides', async (code, status, outcome) => {
  receiver.answer(() => Response.json({ code }, { status }))
  expect(await send()).toEqual(outcome)
})

describe('the payload', () => {
  test('of the plain route has the text and its purpose', async () => {
    await send('plain')
    expect(onlyCall().body).toEqual({
      id: message.id,
      to: '12025550143',
      route: 'plain',
      text: message.text,
      brandId: 'acme',
      requestId: message.requestId,
    })
  })

  test('of the template route also has the template and its variables', async () => {
    await send('template')
    expect(onlyCall().body).toEqual({
      id: message.id,
      to: '12025550143',
      route: 'template',
      text: message.text,
      templateKey: 'ORDER_PLACED',
      variables: { customerName: 'Jürgen', orderId: 'A/17#b' },
      brandId: 'acme',
      requestId: message.requestId,
    })
  })

  test('is JSON', async () => {
    await send()
    expect(onlyCall().headers.get('content-type')).toMatch(/^application\/json\b/)
  })
})

describe('the signature', () => {
  test.each(['plain', 'template'] as const)(
    'of the %s route is valid for Standard Webhooks',
    async (route) => {
      await send(route)
      const { raw, headers } = onlyCall()
      expect(headers.get('webhook-id')).toBe(message.id)
      expect(new Webhook(receiver.secret).verify(raw, Object.fromEntries(headers))).toEqual(JSON.parse(raw))
    },
  )

  test('covers the secret, the body, the id and the time', async () => {
    await send()
    const { raw, headers } = onlyCall()
    const signed = Object.fromEntries(headers)
    const verify = (text: string, given: Record<string, string>) => () =>
      new Webhook(receiver.secret).verify(text, { ...signed, ...given })
    const later = String(Number(signed['webhook-timestamp']) + 1)
    expect(verify(raw, {})).not.toThrow()
    expect(verify(raw.replace('12025550143', '12025550144'), {})).toThrow()
    expect(verify(raw, { 'webhook-id': 'another' })).toThrow()
    expect(verify(raw, { 'webhook-timestamp': later })).toThrow()
    const stranger = new Webhook(
      `whsec_${Buffer.from('another secret of 32 bytes......').toString('base64')}`,
    )
    expect(() => stranger.verify(raw, signed)).toThrow()
  })

  test('has the time in whole seconds', async () => {
    await send('plain', { now: () => 1_767_268_800_999 })
    expect(onlyCall().headers.get('webhook-timestamp')).toBe('1767268800')
  })

  test('may use the secret without its prefix', async () => {
    await send('plain', { secret: receiver.secret.replace('whsec_', '') })
    const { raw, headers } = onlyCall()
    expect(() => new Webhook(receiver.secret).verify(raw, Object.fromEntries(headers))).not.toThrow()
  })

  test('does not send the secret', async () => {
    await send('template')
    const { raw, headers } = onlyCall()
    expect(raw + JSON.stringify(Object.fromEntries(headers))).not.toContain(receiver.secret.slice(6))
  })
})

describe('the response', () => {
  test.each<[number, Outcome]>([
    [200, accepted],
    [201, accepted],
    [202, accepted],
    [204, accepted],
    [299, accepted],
  ])('%i has the right outcome', async (status, outcome) => {
    receiver.answer(() => new Response(null, { status }))
    expect(await send()).toEqual(outcome)
    expect(receiver.received).toHaveLength(1)
  })

  test('has a body that is neither repeated nor evaluated', async () => {
    receiver.answer(() => Response.json({ accepted: true, echo: message.text }, { status: 500 }))
    expect(await send()).toEqual({ kind: 'unknown', reason: 'HTTP 500', providerMessageId: message.id })
  })

  test('with an endless body is classified by its status, and the connection is closed', async () => {
    const givenUp = Promise.withResolvers<void>()
    receiver.answer(() => {
      const endless = new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
        cancel: () => givenUp.resolve(),
      })
      return new Response(endless)
    })
    expect(await send()).toEqual(accepted)
    await givenUp.promise
  })
})

describe('no response', () => {
  test('within the time-out leaves the outcome unknown, and the call is abandoned', async () => {
    const never = held()
    receiver.answer(() => never.promise)
    const startedAt = performance.now()
    expect(await send('plain', { timeoutMs: passingMs })).toEqual({
      kind: 'unknown',
      reason: 'time-out',
      providerMessageId: message.id,
    })
    const tookMs = performance.now() - startedAt
    never.release(new Response())
    expect(tookMs).toBeGreaterThanOrEqual(passingMs - 5)
    expect(tookMs).toBeLessThan(patienceMs)
    expect(receiver.received).toHaveLength(1)
  })

  test('because a proxy rejects the connection is a temporary failure: the receiver got nothing', async () => {
    await using proxy = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => new Response(null, { status: 502 }),
    })
    process.env.HTTPS_PROXY = proxy.url.href
    try {
      const url = receiver.url.replace('http:', 'https:')
      expect(await send('plain', { url })).toMatchObject({ kind: 'retryable', reason: 'ERR_PROXY_TUNNEL' })
    } finally {
      delete process.env.HTTPS_PROXY
    }
    expect(receiver.received).toHaveLength(0)
  })

  test('because the receiver does not support TLS is a temporary failure', async () => {
    const url = receiver.url.replace('http:', 'https:')
    expect(await send('plain', { url })).toMatchObject({ kind: 'retryable' })
    expect(receiver.received).toHaveLength(0)
  })

  test('because its certificate is untrusted is a temporary failure, and nothing is sent, even with NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
    let requests = 0
    await using impostor = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      tls: selfSigned,
      fetch: () => {
        requests++
        return new Response(null, { status: 204 })
      },
    })
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      const outcome = await send('plain', { url: impostor.url.href })
      expect(outcome).toMatchObject({ kind: 'retryable', reason: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    }
    expect(requests).toBe(0)
  })

  test.each<[string, (socket: Socket) => void]>([
    ['is reset', (socket) => socket.terminate()],
    ['is closed', (socket) => socket.end()],
    ['returns something other than HTTP', (socket) => socket.end('250 OK\r\n')],
    ['breaks off within the headers', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-')],
  ])('because the connection %s after the message was sent leaves the outcome unknown', async (_, reply) => {
    const gateway = startGateway(reply)
    expect((await send('plain', { url: gateway.url })).kind).toBe('unknown')
    gateway.stop()
    expect(gateway.requests).toBe(1)
  })

  test('with endless headers is a failure within the time-out', async () => {
    const gateway = startGateway((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx-one: 1\r\n')
    })
    const outcome = await send('plain', { url: gateway.url, timeoutMs: 60 })
    gateway.stop()
    expect(outcome).toEqual({ kind: 'unknown', reason: 'time-out', providerMessageId: message.id })
  })

  // An HTTP client may repeat a request on a new connection when an idle one was closed; a message must not
  // be repeated.
  test('on a reused connection does not cause a second call', async () => {
    let calls = 0
    const gateway = startGateway((socket) => {
      if (++calls === 1) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
      else socket.terminate()
    })
    expect(await send('plain', { url: gateway.url })).toEqual(accepted)
    expect((await send('plain', { url: gateway.url })).kind).toBe('unknown')
    gateway.stop()
    expect(gateway.requests).toBe(2)
  })
})

describe('the settings', () => {
  test.each([
    'https://sms.example/in',
    'http://127.0.0.1:9/in',
    'http://localhost:9/in',
    'http://[::1]:9/in',
  ])('may be %s', (url) => {
    const settings = new Settings({ SMS_WEBHOOK_URL: url, SMS_WEBHOOK_SECRET: receiver.secret })
    webhook.configure(settings, 'plain')
    expect(settings.problems).toEqual([])
  })
})

test('the provider discard accepts everything without a call', async () => {
  const provider = discard.configure(
    new Settings({}),
    'plain',
  )({ now: Date.now, outbox, reportLater: () => {} })
  expect(await provider.send({ ...message, route: 'plain', template: null }, patienceMs)).toEqual({
    kind: 'accepted',
  })
  expect(await outbox.list({ limit: 1 })).toEqual([])
  expect(receiver.received).toHaveLength(0)
})

/** A gateway that reads one request and then handles the connection as the test says. */
function startGateway(reply: (socket: Socket) => void) {
  const gateway = { requests: 0, url: '', stop: () => server.stop(true) }
  const server = Bun.listen<{ text: string }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open: (socket) => {
        socket.data = { text: '' }
      },
      data: (socket, bytes) => {
        socket.data.text += bytes.toString()
        if (!isWhole(socket.data.text)) return
        socket.data.text = ''
        gateway.requests++
        reply(socket as unknown as Socket)
      },
    },
  })
  gateway.url = `http://127.0.0.1:${server.port}/sms`
  return gateway
}

function isWhole(request: string): boolean {
  const end = request.indexOf('\r\n\r\n')
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(request)?.[1])
  return end >= 0 && Buffer.byteLength(request) >= Buffer.byteLength(request.slice(0, end + 4)) + length
}
