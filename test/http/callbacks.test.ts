import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { maxCallbackBytes } from '../../src/adapters/http/callbacks.ts'
import { providerPath } from '../../src/domain/delivery/delivery-reports.ts'
import { statusOf } from '../../src/domain/log/event-log.ts'
import { type Answer, createTestApp, type TestApp } from '../support/app.ts'
import { openTestDatabase } from '../support/database.ts'
import { held, startReceiver } from '../support/receiver.ts'
import { expectError, expectNoFault, freshPhone } from '../support/rows.ts'

const publicUrl = 'https://otp.example/base'
const receiver = startReceiver()
const gateway = startKannel()
afterAll(async () => {
  await receiver.stop()
  await gateway.stop()
})

/** A mock Kannel server that records the delivery report URLs it gets. */
function startKannel() {
  const state = { status: 202, text: '0: Accepted for delivery', urls: [] as string[] }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ headers }) {
      state.urls.push(headers.get('x-kannel-dlr-url') ?? '')
      return new Response(state.text, { status: state.status })
    },
  })
  return {
    env: {
      KANNEL_URL: `http://127.0.0.1:${server.port}`,
      KANNEL_USERNAME: 'user',
      KANNEL_PASSWORD: 'password',
      KANNEL_FROM: 'ACME',
    },
    answer(status: number, text: string): void {
      Object.assign(state, { status, text })
    },
    /** The path and query of the last delivery report URL, with this report type filled in as Kannel does. */
    path(type: number): string {
      const url = state.urls.at(-1) ?? ''
      expect(url).toStartWith(`${publicUrl}/`)
      return url
        .slice(publicUrl.length)
        .replaceAll('%d', String(type))
        .replaceAll('%k', '')
        .replaceAll(/%#[^#]*#/g, '')
    },
    stop: () => server.stop(true),
  }
}

const receiving = { ...receiver.env, ...gateway.env, PUBLIC_URL: publicUrl }
const overWebhook = { ...receiving, SMS_PLAIN: 'webhook' }
const overKannel = { ...receiving, SMS_PLAIN: 'kannel' }

/** The callback path of a provider. */
function pathOf({ app }: TestApp, provider: string): string {
  return providerPath(app.context.secrets, provider)
}

/** A signed delivery report, as an SMS gateway behind the `webhook` provider sends it. */
function signed(app: TestApp, body: unknown, secret = receiver.secret): RequestInit {
  const raw = JSON.stringify(body)
  const at = new Date(app.clock.now)
  return {
    headers: {
      'content-type': 'application/json',
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(at.getTime() / 1000),
      'webhook-signature': new Webhook(secret).sign('msg_1', at, raw),
    },
    body: raw,
  }
}

function expectTaken({ status, body }: Answer): void {
  expect({ status, body }).toEqual({ status: 200, body: { success: true, requestId: expect.any(String) } })
}

/** The status of the only message of a request. */
async function limitStatus(app: TestApp, sent: Answer): Promise<string> {
  const { deliveries } = await app.eventsOf(sent)
  expect(deliveries).toHaveLength(1)
  const [row] = deliveries
  return row ? statusOf(row) : ''
}

let app: TestApp
let send: () => Promise<Answer>

async function start(env: Readonly<Record<string, string>>): Promise<TestApp> {
  app = await createTestApp(env)
  send = () => app.post('/otp/send', { phone: freshPhone() })
  return app
}
beforeEach(() => {
  receiver.received.length = 0
  receiver.answer(() => new Response(null, { status: 204 }))
  gateway.answer(202, '0: Accepted for delivery')
})
afterEach(() => app.close())

test('without PUBLIC_URL the callback path returns 404', async () => {
  await start({ ...overWebhook, PUBLIC_URL: '' })
  const path = '/callbacks/webhook/AAAAAAAAAAAAAAAAAAAAAA'
  for (const method of ['GET', 'POST', 'PUT']) expectError(await app.request(method, path), 404, 'not_found')
})

test("a signed delivery report to the provider's callback path marks the message as delivered", async () => {
  await start(overWebhook)
  const sent = await send()
  expect(await limitStatus(app, sent)).toBe('accepted')
  const { id } = receiver.received[0]?.body ?? {}
  const report = signed(app, { id, status: 'delivered' })
  expectTaken(await app.request('POST', pathOf(app, 'webhook'), report))
  expect(await limitStatus(app, sent)).toBe('delivered')
})

test("a delivery report to the attempt's callback path marks the message as delivered or failed", async () => {
  await start(overKannel)
  const sent = await send()
  expectTaken(await app.get(gateway.path(1)))
  expect(await limitStatus(app, sent)).toBe('delivered')
  const other = await send()
  expectTaken(await app.request('POST', gateway.path(2)))
  expect([await limitStatus(app, sent), await limitStatus(app, other)]).toEqual(['delivered', 'failed'])
})

test('delivery reports give the same final status in every order and when repeated', async () => {
  await start(overKannel)
  const [delivered, failed, pending] = [1, 2, 8] as const
  const orders = [
    [delivered, failed, pending],
    [delivered, pending, failed],
    [failed, delivered, pending],
    [failed, pending, delivered],
    [pending, delivered, failed],
    [pending, failed, delivered],
    [failed, pending],
    [pending, failed],
    [pending],
  ]
  const sent: Answer[] = []
  for (const order of orders) {
    sent.push(await send())
    for (const type of [...order, ...order]) expectTaken(await app.get(gateway.path(type)))
  }
  const stands = await Promise.all(sent.map((answer) => limitStatus(app, answer)))
  expect(stands).toEqual([...Array(6).fill('delivered'), 'failed', 'failed', 'accepted'])
})

test("a delivery report that arrives before the provider's response is still matched to the message", async () => {
  await start(overWebhook)
  const reply = held()
  receiver.answer(async ({ body: { id } }) => {
    const report = signed(app, { id, status: 'delivered' })
    expectTaken(await app.request('POST', pathOf(app, 'webhook'), report))
    return reply.promise
  })
  const sending = send()
  reply.release(new Response(null, { status: 204 }))
  expect(await limitStatus(app, await sending)).toBe('delivered')
})

test('a delivery report does not change a rejected message, but resolves an unknown one', async () => {
  await start({ ...overKannel, SMS_PLAIN: 'kannel,webhook' })
  gateway.answer(403, 'Authorization failed for sendsms')
  const sent = await send()
  expectTaken(await app.get(gateway.path(1)))
  const { deliveries } = await app.eventsOf(sent)
  expect(deliveries.map((row) => [row.provider, statusOf(row), row.report?.status])).toEqual([
    ['kannel', 'rejected', 'delivered'],
    ['webhook', 'accepted', undefined],
  ])
  gateway.answer(202, '3: Queued for later delivery')
  const queued = await send()
  const states = async () => (await app.eventsOf(queued)).deliveries.map(statusOf)
  expect(await states()).toEqual(['unknown', 'accepted'])
  await app.get(gateway.path(1))
  expect(await states()).toEqual(['delivered', 'accepted'])
})

test('a callback accepts form fields like query parameters', async () => {
  await start(overKannel)
  const sent = await send()
  const [path = '', query = ''] = gateway.path(1).split('?')
  const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }
  expectTaken(await app.request('POST', path, { headers, body: query }))
  expect(await limitStatus(app, sent)).toBe('delivered')
})

test('a Twilio signature is checked against the public URL with its query, not the internal URL', async () => {
  const [token, account] = ['0123456789abcdef0123456789abcdef', `AC${'0'.repeat(32)}`]
  const callbacks: string[] = []
  const double = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      callbacks.push(new URLSearchParams(await request.text()).get('StatusCallback') ?? '')
      return Response.json(
        { sid: `SM${'0'.repeat(32)}`, status: 'queued', error_code: null },
        { status: 201 },
      )
    },
  })
  await start({
    ...receiving,
    SMS_PLAIN: 'twilio',
    TWILIO_ACCOUNT_SID: account,
    TWILIO_AUTH_TOKEN: token,
    TWILIO_FROM: '+12025550100',
    TWILIO_BASE_URL: `http://127.0.0.1:${double.port}`,
  })
  const sent = await send()
  const called = `${callbacks[0]}?bodySHA=1`
  expect(called).toStartWith(`${publicUrl}/callbacks/twilio/`)
  const path = called.slice(publicUrl.length)
  const report = (signed: string) => ({
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-twilio-signature': createHmac('sha1', token)
        .update(`${signed}MessageStatusdelivered`)
        .digest('base64'),
    },
    body: 'MessageStatus=delivered',
  })
  expectError(await app.request('POST', path, report(`http://localhost${path}`)), 403, 'forbidden')
  expectTaken(await app.request('POST', path, report(called)))
  expect(await limitStatus(app, sent)).toBe('delivered')
  await double.stop(true)
})

test('rejected reports log at most a line a minute for each provider, with their number', async () => {
  let milliseconds = 0
  app = await createTestApp(
    { ...overWebhook, SMS_PLAIN: 'webhook,kannel' },
    { stopwatch: () => milliseconds },
  )
  const forge = (provider: string) => app.request('POST', `/callbacks/${provider}/forged`, { body: '{}' })
  const logged = () => app.lines.filter((line) => 'rejected' in line)
  for (let count = 0; count < 50; count++) await forge('webhook')
  await forge('kannel')
  await forge('nobody')
  expect(logged()).toMatchObject([
    { provider: 'webhook', rejected: 1 },
    { provider: 'kannel', rejected: 1 },
  ])
  milliseconds += 60_000
  await forge('webhook')
  expect(logged().slice(2)).toMatchObject([{ provider: 'webhook', rejected: 50 }])
})

test('a callback path created with a previous secret key is still accepted', async () => {
  const database = await openTestDatabase()
  const [oldKey, newKey] = ['the-old-secret-of-32-bytes-or-more', 'the-new-secret-of-32-bytes-or-more']
  const env = { ...database.env, ...receiving, SMS_PLAIN: 'kannel,webhook' }
  await start({ ...env, SECRET_KEY: oldKey })
  const sent = await send()
  const oldPath = pathOf(app, 'webhook')
  await app.close()
  await start({ ...env, SECRET_KEY: `${newKey},${oldKey}` })
  expect(pathOf(app, 'webhook')).not.toBe(oldPath)
  expectTaken(await app.get(gateway.path(1)))
  expect(await limitStatus(app, sent)).toBe('delivered')
  const report = { id: 'of before', status: 'delivered' }
  expectTaken(await app.request('POST', oldPath, signed(app, report)))
  await app.close()
  await start({ ...env, SECRET_KEY: newKey })
  expectError(await app.get(gateway.path(1)), 404, 'not_found')
  await app.close()
  await database.remove()
})

test('rejected delivery reports are counted by provider and cause', async () => {
  await start(overWebhook)
  const path = pathOf(app, 'webhook')
  const report = { id: 'x', status: 'delivered' }
  const other = `whsec_${Buffer.from('another secret, also of 32 bytes').toString('base64')}`
  await app.request('POST', path, signed(app, report, other))
  for (const body of [{}, []]) await app.request('POST', path, signed(app, body))
  for (const wrong of [`${path}A`, path.replace('webhook', 'gone')]) {
    await app.get(wrong)
    await app.request('POST', wrong, signed(app, report))
  }
  await app.request('POST', path, signed(app, report))
  await app.get('/elsewhere')
  await app.app.context.eventLog.flush()
  const counted = await app.database.query(
    "SELECT provider, detail, count FROM stats WHERE kind = 'report-rejected' AND step_ms = 3600000",
  )
  expect(counted.map(({ provider, detail, count }) => `${provider} ${detail} ${count}`).sort()).toEqual([
    ' url 2',
    'webhook form 2',
    'webhook signature 1',
    'webhook url 2',
  ])
})

describe('a callback', () => {
  beforeEach(() => start({ ...receiving, SMS_PLAIN: 'webhook,kannel' }))

  test('with a wrong token, or the token of another provider or attempt, returns 404 and stores nothing', async () => {
    receiver.answer(() => new Response(null, { status: 503 }))
    const sent = await send()
    const { deliveries } = await app.eventsOf(sent)
    expect(deliveries.map(({ provider, attempt }) => [provider, attempt])).toEqual([
      ['webhook', 1],
      ['kannel', 2],
    ])
    const right = gateway.path(1)
    const ofWebhook = pathOf(app, 'webhook')
    const [, , , token = ''] = right.split('/')
    const wrong = [
      right.replace('.2.', '.1.'),
      right.replace('/kannel/', '/webhook/'),
      right.replace('?', 'A?'),
      right.replace(token, ofWebhook.slice('/callbacks/webhook/'.length)),
      ofWebhook.replace('/webhook/', '/kannel/'),
      ofWebhook.replace('/webhook/', '/outbox/'),
      `${ofWebhook}A`,
      `${ofWebhook}/`,
      `${ofWebhook}/x`,
      '/callbacks/webhook/%ff',
      '/callbacks/%ff/%ff',
    ]
    for (const path of wrong) {
      expectError(await app.get(path), 404, 'not_found')
      const report = signed(app, { id: deliveries[0]?.providerMessageId ?? 'x', status: 'delivered' })
      expectError(await app.request('POST', path, report), 404, 'not_found')
    }
    expect((await app.eventsOf(sent)).deliveries).toEqual(deliveries)
  })

  test('with a wrong signature returns 403 and stores nothing', async () => {
    const sent = await send()
    const { id } = receiver.received[0]?.body ?? {}
    const path = pathOf(app, 'webhook')
    const other = `whsec_${Buffer.from('another secret, also of 32 bytes').toString('base64')}`
    const report = { id, status: 'delivered' }
    expectError(await app.request('POST', path, signed(app, report, other)), 403, 'forbidden')
    const { body, ...unsigned } = signed(app, report)
    expectError(await app.request('POST', path, { body: body ?? '' }), 403, 'forbidden')
    expectError(await app.request('POST', path, { ...unsigned, body: `${body} ` }), 403, 'forbidden')
    expectError(await app.get(path), 403, 'forbidden')
    expect(await limitStatus(app, sent)).toBe('accepted')
  })

  test('with an invalid delivery report returns 400', async () => {
    const path = pathOf(app, 'webhook')
    for (const body of [null, [], 1, {}, { id: 1, status: 'delivered' }, { id: 'x' }]) {
      expectError(await app.request('POST', path, signed(app, body)), 400, 'validation_error')
    }
    receiver.answer(() => new Response(null, { status: 503 }))
    await send()
    for (const type of [0, 3, 99]) expectError(await app.get(gateway.path(type)), 400, 'validation_error')
  })

  test('with a body over the size limit returns 413, with or without Content-Length', async () => {
    const path = pathOf(app, 'webhook')
    const most = maxCallbackBytes
    for (const [size, status] of [
      [most, 403],
      [most + 1, 413],
    ] as const) {
      const body = 'x'.repeat(size)
      const told = { body, headers: { 'content-length': String(size) } }
      expect((await app.request('POST', path, told)).status).toBe(status)
      const stream = new Blob([body]).stream()
      expect((await app.request('POST', path, { body: stream })).status).toBe(status)
    }
  })

  test('with another method returns 405; HEAD is handled as GET without a body', async () => {
    const path = pathOf(app, 'webhook')
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const answer = await app.request(method, path)
      expectError(answer, 405, 'method_not_allowed')
      expect(answer.headers.get('allow')).toBe('GET, HEAD, POST')
    }
    // This callback has no effect, so no signature is required.
    const head = await app.request('HEAD', path)
    expect([head.status, head.body]).toEqual([200, ''])
  })
})

describe('invalid callback input', () => {
  beforeAll(() => gateway.answer(202, '0: Accepted for delivery'))

  test('never causes a server error, and its path is not logged', async () => {
    await start({ ...receiving, SMS_PLAIN: 'kannel,webhook' })
    await send()
    const right = gateway.path(1)
    const ofWebhook = pathOf(app, 'webhook')
    const word = fc.oneof(
      fc.webSegment(),
      fc.string({ maxLength: 30 }).map(encodeURIComponentLoosely),
      fc.constantFrom(
        'kannel',
        'webhook',
        '__proto__',
        'constructor',
        '%ff',
        '%',
        '%00',
        '.',
        '..',
        '%2e%2e',
      ),
    )
    const path = fc.oneof(
      fc.constantFrom(right, ofWebhook, right.split('?')[0] ?? ''),
      fc.tuple(word, word).map(([provider, token]) => `/callbacks/${provider}/${token}`),
    )
    const query = fc.oneof(
      fc.constant(''),
      fc.webQueryParameters().map((text) => `?${text}`),
      word.map((text) => `?type=${text}`),
    )
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.json().map((text) => Buffer.from(text)),
      fc.constantFrom('data=%ff', 'type=1&type=2', '__proto__=1', '%').map((text) => Buffer.from(text)),
    )
    const type = fc.constantFrom(
      '',
      'application/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'nonsense',
    )
    await fc.assert(
      fc.asyncProperty(
        path,
        query,
        body,
        type,
        fc.boolean(),
        async (given, search, bytes, contentType, isPost) => {
          const url = given.includes('?') ? given : given + search
          const answer = await app.request(isPost ? 'POST' : 'GET', url, {
            ...(isPost ? { body: Buffer.from(bytes) } : {}),
            headers: contentType === '' ? {} : { 'content-type': contentType },
          })
          // `/callbacks/../..` resolves to GET /, which has its own response.
          if (new URL(url, 'http://localhost').pathname === '/') expect(answer.status).toBeLessThan(500)
          else if (answer.status === 200) expectTaken(answer)
          else expectNoFault(answer)
        },
      ),
      { numRuns: 200 },
    )
    const log = JSON.stringify(app.lines)
    for (const secret of [right, ofWebhook].map((each) => each.split(/[/?]/)[3] ?? '')) {
      expect(secret).toMatch(/[\w-]{16}$/)
      expect(log).not.toContain(secret)
    }
  })
})

function encodeURIComponentLoosely(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ed%a0%80'
}
