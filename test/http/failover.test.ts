import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { type Answer, codeIn, createTestApp, type TestApp } from '../support/app.ts'
import { policyOf } from '../support/policy.ts'
import { freePorts } from '../support/ports.ts'
import { expectError, expectSuccess, freshPhone } from '../support/rows.ts'

// Failover from a failing gateway, tested through the HTTP API.

interface Asked {
  readonly id: string
  readonly route: string
  readonly text: string
}

/** An SMS gateway on its own port, which refuses connections until it is started. */
function newGateway() {
  const listen = (port: number) =>
    Bun.serve({
      hostname: '127.0.0.1',
      port,
      idleTimeout: 0,
      fetch: async (request) => {
        const body: Asked = JSON.parse(await request.text())
        asked.push(body)
        return reply(body)
      },
    })
  const asked: Asked[] = []
  const taken = () => new Response(null, { status: 204 })
  let reply: (body: Asked) => Response | Promise<Response> = taken
  let server: ReturnType<typeof listen> | undefined
  const [port = 0] = freePorts(1)
  return {
    env: {
      SMS_WEBHOOK_URL: `http://127.0.0.1:${port}/sms`,
      SMS_WEBHOOK_SECRET: 'a secret of the test, 32 bytes..',
    },
    asked,
    start(): void {
      server = listen(port)
    },
    answer(next: typeof reply): void {
      reply = next
    },
    stop: () => server?.stop(true),
  }
}

let gateway: ReturnType<typeof newGateway>
let app: TestApp
let stopwatch: number
let url: URL

beforeEach(() => {
  gateway = newGateway()
  stopwatch = 0
})
afterEach(async () => {
  await app.close()
  await gateway.stop()
})

async function start(env: Readonly<Record<string, string>>): Promise<void> {
  app = await createTestApp({ ...env, ...gateway.env, PORT: '0' }, { stopwatch: () => stopwatch })
  await app.brand('dlt', { displayName: 'Dlt Shop', dltEnabled: true })
  url = app.app.listen()
}

/** Advances both clocks: of this process, and of the database that shares the circuit breakers' state. */
function pass(ms: number): void {
  stopwatch += ms
  app.clock.now += ms
}

/** A send over a socket, to a new phone. */
async function send(fields: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
  const response = await fetch(new URL('/otp/send', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      appId: 'shop',
      apiKey: 'key-of-the-shop',
      brandId: 'acme',
      phone: freshPhone(),
      ...fields,
    }),
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

/** The attempts of each request, in order. */
async function tried(...answers: readonly Answer[]): Promise<string[]> {
  const eventLogs = await Promise.all(answers.map((answer) => app.eventsOf(answer)))
  return eventLogs.map(({ deliveries }) =>
    deliveries.map(({ provider, route, outcome }) => `${provider}/${route} ${outcome}`).join(', '),
  )
}

test('a dead gateway fails no request, is skipped after five failures, and is probed after its open period', async () => {
  await start({ SMS_PLAIN: 'webhook,outbox' })
  const first: Answer[] = []
  for (let count = 0; count < 7; count++) first.push(await send())
  for (const answer of first) expectSuccess(answer, ['expiresIn'])
  const refused = 'webhook/plain retryable, outbox/plain accepted'
  const skipped = 'outbox/plain accepted, webhook/plain skipped'
  expect(await tried(...first)).toEqual([...Array(5).fill(refused), skipped, skipped])

  gateway.start()
  pass(9999)
  const before = await send()
  pass(1)
  const probe = await send()
  const after = await send()
  for (const answer of [before, probe, after]) expectSuccess(answer, ['expiresIn'])
  const used = 'webhook/plain accepted'
  expect(await tried(before, probe, after)).toEqual([skipped, used, used])
  expect(gateway.asked).toHaveLength(2)
  const { deliveries } = await app.eventsOf(before)
  expect(deliveries.map(({ attempt, durationMs }) => [attempt, durationMs])).toEqual([
    [1, 0],
    [2, 0],
  ])
})

test('a half-open circuit gets one probe at a time', async () => {
  await start({ SMS_PLAIN: 'webhook,outbox' })
  await Promise.all(Array.from({ length: 5 }, () => send()))
  gateway.start()
  pass(10_000)
  const [arrived, reply] = [Promise.withResolvers<void>(), Promise.withResolvers<Response>()]
  gateway.answer(() => {
    arrived.resolve()
    return reply.promise
  })
  const probe = send()
  await arrived.promise
  const beside = await send()
  reply.resolve(new Response(null, { status: 204 }))
  expect(await tried(await probe, beside)).toEqual([
    'webhook/plain accepted',
    'outbox/plain accepted, webhook/plain skipped',
  ])
})

test('a provider with an open circuit is still used if no other is configured', async () => {
  await start({ SMS_PLAIN: 'webhook' })
  for (let count = 0; count < 6; count++) expectError(await send(), 502, 'sms_failed')
  gateway.start()
  gateway.answer(() => {
    pass(1234)
    return new Response(null, { status: 204 })
  })
  const answer = await send()
  expectSuccess(answer, ['expiresIn'])
  expect(await tried(answer)).toEqual(['webhook/plain accepted'])
  expect((await app.eventsOf(answer)).deliveries).toMatchObject([{ durationMs: 1234 }])
})

test('a restart begins with closed circuits, and brands share the circuit state', async () => {
  await start({ SMS_PLAIN: 'webhook,outbox' })
  for (let count = 0; count < 5; count++) await send()
  const other = await send({ brandId: 'dlt' })
  expect(await tried(other)).toEqual(['outbox/plain accepted, webhook/plain skipped'])
  await app.close()
  await start({ SMS_PLAIN: 'webhook,outbox' })
  expect(await tried(await send())).toEqual(['webhook/plain retryable, outbox/plain accepted'])
})

describe('a failing gateway in hybrid mode', () => {
  const never = () => new Promise<Response>(() => {})
  const status = (code: number) => () => new Response(null, { status: code })
  const failsByTemplate =
    (code: number) =>
    ({ route }: Asked) =>
      status(route === 'template' ? code : 204)()
  type Row = readonly [
    gateway: string,
    template: string,
    plain: string,
    tried: string,
    status: number,
    answers: (body: Asked) => Response | Promise<Response>,
  ]
  const both = 'webhook,outbox'
  const rows: readonly Row[] = [
    [
      'fails on the template route alone',
      'webhook',
      both,
      'webhook/template retryable, outbox/plain accepted',
      200,
      failsByTemplate(503),
    ],
    [
      'may have sent the template',
      'webhook',
      'webhook',
      'webhook/template unknown, webhook/plain accepted',
      200,
      failsByTemplate(500),
    ],
    [
      'fails on both routes',
      'webhook',
      both,
      'webhook/template rejected, webhook/plain rejected, outbox/plain accepted',
      200,
      status(400),
    ],
    ['never answers', both, both, 'webhook/template unknown, outbox/template accepted', 200, never],
    [
      'never answers and is all there is',
      'webhook',
      'webhook',
      'webhook/template unknown, webhook/plain unknown',
      502,
      never,
    ],
  ]
  test('fails over to the next provider of the route for every error status', async () => {
    gateway.start()
    await start({ OTP_SMS_MODE: 'hybrid', SMS_TEMPLATE: 'webhook,outbox', SMS_PLAIN: 'outbox' })
    const answers: Answer[] = []
    // Provider failures alternate with rejections of the message, so that the circuit stays closed.
    const codes = [401, 404, 302, 400, 500, 502, 422, 503, 504, 400, 429, 408]
    for (const code of codes) {
      gateway.answer(status(code))
      answers.push(await send({ brandId: 'dlt' }))
    }
    const kinds = codes.map((code) =>
      [500, 502, 504].includes(code) ? 'unknown' : [503, 429, 408].includes(code) ? 'retryable' : 'rejected',
    )
    expect(answers.map((answer) => answer.status)).toEqual(codes.map(() => 200))
    expect(await tried(...answers)).toEqual(
      kinds.map((kind) => `webhook/template ${kind}, outbox/template accepted`),
    )
  })

  test.each(rows)(
    'that %s, with SMS_TEMPLATE=%s and SMS_PLAIN=%s',
    async (_, template, plain, wanted, code, answers) => {
      gateway.start()
      gateway.answer(answers)
      await start({
        OTP_SMS_MODE: 'hybrid',
        SMS_TEMPLATE: template,
        SMS_PLAIN: plain,
        // Long enough that the message arrives before the time-out on a busy machine.
        PROVIDER_TIMEOUT_MS: answers === never ? '2000' : '30000',
      })
      const answer = await send({ brandId: 'dlt', phone: '919812345678' })
      expect(answer.status).toBe(code)
      expect(await tried(answer)).toEqual([wanted])
      // Every attempt has the same message and code.
      const texts = [...gateway.asked, ...(await app.outbox('919812345678'))].map(({ text }) => codeIn(text))
      expect(new Set(texts).size).toBe(1)
      expect(new Set(gateway.asked.map(({ id }) => id)).size).toBe(1)
    },
  )
})

test('an asynchronous notification whose gateway answers 500 sends one SMS to each recipient, and each is paid', async () => {
  gateway.start()
  gateway.answer(() => new Response(null, { status: 500 }))
  await start({ SMS_PLAIN: 'webhook' })
  const operate = policyOf(app)
  await operate.prices('91 0.01')
  await operate.budget('server', '1')
  const to = Array.from({ length: 8 }, freshPhone)
  const answer = await app.post('/notify', {
    channel: 'SMS',
    brandId: 'acme',
    to,
    message: 'Hi',
    async: true,
  })
  expectSuccess(answer, ['channel', 'recipients'], 202)
  for (let times = 0; times < 20; times++) {
    pass(300_000)
    app.app.queue.tick()
    await app.app.queue.idle()
  }
  const jobs = await app.app.context.jobs.ofRequest(answer.body.requestId)
  expect(jobs.map(({ state, tries, reason }) => `${state} ${tries} ${reason}`)).toEqual(
    Array(8).fill('unknown 1 HTTP 500'),
  )
  expect(gateway.asked).toHaveLength(8)
  expect(await operate.spent()).toEqual({ server: 80 })
})
