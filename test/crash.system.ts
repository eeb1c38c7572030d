import { expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { createApp } from '../src/app.ts'
import { readConfig } from '../src/config/config.ts'
import { openContext } from '../src/context.ts'
import { codeIn, credentials, otherThan, verdict } from './support/app.ts'
import { store } from './support/database.ts'
import { contradictions, History, load, randomNumbers, readBack } from './support/history.ts'
import { policyOf } from './support/policy.ts'
import { held, startReceiver } from './support/receiver.ts'
import { otpost, type TestServer } from './support/server.ts'
import { serverScene } from './support/server-scene.ts'

const phone = '12025550143'

/** A database with brands `acme` and `globex`, a gateway, and servers on them one after another. All end with the scene. */
async function scene(env: Readonly<Record<string, string>> = {}) {
  const base = await serverScene(env, ['acme', 'globex'])
  const { settings, ending } = base
  return {
    ...base,
    env: settings,
    /** What an operator does, in this process and on the same database. */
    async operate<T>(work: (policy: ReturnType<typeof policyOf>) => Promise<T>): Promise<T> {
      const context = await openContext(readConfig(settings))
      try {
        return await work(policyOf({ app: { context } }))
      } finally {
        await context.close()
      }
    },
    /** The service in this process, on the same database, with another clock. */
    async later(seconds: number) {
      const config = readConfig({
        ...settings,
        APP_CREDENTIALS: JSON.stringify({ [credentials.appId]: credentials.apiKey }),
        GLOBAL_LIMIT_PER_MINUTE: '1000000',
      })
      const app = await createApp(config, { now: () => Date.now() + seconds * 1000 })
      ending.defer(() => app.close())
      const post = async (path: string, fields: object): Promise<string> => {
        const response = await app.handle(
          new Request(`http://localhost${path}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ ...credentials, brandId: 'acme', ...fields }),
          }),
        )
        return verdict({ status: response.status, body: await response.json() })
      }
      return { app, post }
    },
  }
}

type Scene = Awaited<ReturnType<typeof scene>>

// With CRASH_SEED, the same clients send the same requests again, as far as a busy machine allows.
test('a server that is killed under load and restarted repeatedly keeps every answered change', async () => {
  const seed = Number(process.env.CRASH_SEED ?? Date.now() % 1_000_000)
  const random = randomNumbers(seed)
  const limits = { cooldownMs: 1000, phonePerMinute: 3 }
  await using trace = await scene({ SMS_COOLDOWN_SECONDS: '1' })
  const history = new History(trace.receiver)

  for (let round = 1; round <= 3; round++) {
    const server = await trace.start()
    // Some phones are from earlier rounds, whose codes, guesses and cooldowns are still live.
    const phones = Array.from({ length: 100 }, (_, index) => `1${2_000_000_000 + 35 * round + index}`)
    let answersLeft = 300 + Math.floor(500 * random())
    await load(
      history,
      () => server.post,
      { seed: seed + round, clients: 24, phones },
      () => {
        if (--answersLeft === 0) server.child.kill('SIGKILL')
      },
    )
    expect(await server.exited).toBe(137)
  }
  const last = await trace.start()
  await readBack(history, last.post)
  await last.stop()

  const problems = contradictions(history, limits)
  if (problems.length > 0) throw new Error(`CRASH_SEED=${seed}\n${problems.join('\n')}`)
  // Enough events of each kind have happened for a meaningful check.
  for (const answer of ['200', '401 mismatch', '404 not_found', '429 max_attempts', '429 cooldown_active']) {
    if (history.answers(answer) <= 20) throw new Error(`CRASH_SEED=${seed}: too few answers are ${answer}`)
  }
  expect(await trace.database.isWhole()).toBe(true)
})

test('a server that is killed while sends spend a budget counts every message, and never exceeds the amount', async () => {
  await using trace = await scene({ GUARD: 'off' })
  const { received } = trace.receiver
  // An SMS to Latvia costs 2 units.
  const messages = 200
  await trace.operate(({ budget }) => budget('server', String(2 * messages), { period: 'month' }))
  const paid = () => trace.operate(async ({ spent }) => ((await spent()).server ?? 0) / 2000)
  let index = 0
  // On PostgreSQL, a lease is lost at most once: later, too little remains for one.
  let cutOff = store === 'postgres' ? messages / 16 : 0
  for (const killedAt of [50, 100, 150, Number.POSITIVE_INFINITY]) {
    const server = await trace.start()
    trace.receiver.answer(() => {
      if (received.length >= killedAt) server.child.kill('SIGKILL')
      return new Response(null, { status: 204 })
    })
    const client = async () => {
      for (;;) {
        const phone = `3712${String(index++).padStart(7, '0')}`
        const answer = await server.post('/otp/send', { phone }).then(verdict, () => 'no answer')
        if (answer !== '200') return answer
      }
    }
    const last = killedAt < messages ? 'no answer' : '429 rate_limited'
    expect(await Promise.all(Array.from({ length: 8 }, client))).toEqual(Array(8).fill(last))
    await server.stop('SIGKILL')
    if (killedAt < messages) cutOff += 8
    expect(await paid()).toBeWithin(received.length, Math.min(received.length + cutOff, messages) + 1)
  }
  // The remaining units pay no message: a lease can end within one.
  expect(await paid()).toBeWithin(messages - 1, messages + 0.1)
})

/** How long a send with an unknown result reserves its phone: both its provider calls and a margin. */
const leaseSeconds = 62

const crashPoints: readonly {
  readonly name: string
  readonly delivered: boolean
  /** The answer to the next send to the phone. */
  readonly next: '200' | '429 cooldown_active'
  /** Runs a send to this point, kills the server and waits for its exit. */
  reach(trace: Scene): Promise<void>
}[] = [
  {
    name: 'half of it has come',
    delivered: false,
    next: '200',
    async reach(trace) {
      const server = await trace.start()
      const socket = await Bun.connect({
        hostname: server.url.hostname,
        port: Number(server.url.port),
        socket: { data: () => {} },
      })
      const body = JSON.stringify({ ...credentials, brandId: 'acme', phone })
      const head = `POST /otp/send HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
      socket.write(`${head}\r\n\r\n${body.slice(0, -1)}`)
      socket.flush()
      // The server accepts connections in order: once a later one is answered, this one is with the server.
      await server.get('/health')
      await server.stop('SIGKILL')
    },
  },
  {
    name: 'its code is stored and the gateway has not got a byte of it',
    delivered: false,
    next: '429 cooldown_active',
    async reach(trace) {
      const connected = Promise.withResolvers<void>()
      // The gateway does not read: a new connection means that the call is about to begin.
      const gateway = Bun.listen({
        hostname: '127.0.0.1',
        port: 0,
        socket: {
          open: (socket) => {
            socket.pause()
            connected.resolve()
          },
          data: () => {},
        },
      })
      const server = await trace.start({ SMS_WEBHOOK_URL: `http://127.0.0.1:${gateway.port}` })
      const sending = server.post('/otp/send', { phone }).then(verdict, () => 'no answer')
      await connected.promise
      await server.stop('SIGKILL')
      expect(await sending).toBe('no answer')
      gateway.stop(true)
    },
  },
  {
    name: 'the gateway has it and has not answered',
    delivered: true,
    next: '429 cooldown_active',
    async reach(trace) {
      const received = Promise.withResolvers<void>()
      trace.receiver.answer(() => {
        received.resolve()
        return held().promise
      })
      const server = await trace.start()
      const sending = server.post('/otp/send', { phone }).then(verdict, () => 'no answer')
      await received.promise
      await server.stop('SIGKILL')
      expect(await sending).toBe('no answer')
      trace.receiver.answer(() => new Response())
    },
  },
]

test.concurrent.each(crashPoints)('a server is killed in the middle of a send: $name', async (point) => {
  await using trace = await scene({ PHONE_LIMIT_PER_MINUTE: '1' })
  await point.reach(trace)
  const server = await trace.start()
  // An SMS is sent within its request or not at all.
  expect(trace.receiver.received).toHaveLength(point.delivered ? 1 : 0)
  expect(verdict(await server.post('/otp/send', { phone }))).toBe(point.next)
  if (point.delivered) {
    const other = await server.post('/otp/send', { phone, brandId: 'globex' })
    expect(verdict(other)).toBe('429 rate_limited')
  }
  if (point.next === '429 cooldown_active') {
    expect(await (await trace.later(leaseSeconds - 20)).post('/otp/send', { phone })).toBe(
      '429 cooldown_active',
    )
  }
  // The user can request another code when the delivery that was under way can not arrive any more.
  const { post: ask } =
    point.next === '200' || point.delivered ? await trace.later(0) : await trace.later(leaseSeconds + 1)
  if (trace.receiver.received.length === 0) expect(await ask('/otp/send', { phone })).toBe('200')

  expect(trace.receiver.received).toHaveLength(1)
  const otp = codeIn(trace.receiver.received[0]?.body.text)
  expect(await ask('/otp/verify', { phone, otp: otherThan(otp) })).toBe('401 mismatch')
  expect(await ask('/otp/verify', { phone, otp })).toBe('200')
  expect(await ask('/otp/verify', { phone, otp })).toBe('404 not_found')
})

test('a server is killed in the middle of a request with an Idempotency-Key: the key is free, and a kept answer stays', async () => {
  await using trace = await scene()
  const { received } = trace.receiver
  const requests = [
    ['/notify', { channel: 'SMS', brandId: 'acme', to: [phone], message: 'Hello' }],
    ['/otp/send', { phone }],
  ] as const
  const arrived = Promise.withResolvers<void>()
  trace.receiver.answer(() => {
    if (received.length === requests.length) arrived.resolve()
    return held().promise
  })
  const withKey = (server: TestServer) =>
    requests.map(([path, fields]) => server.post(path, fields, { 'idempotency-key': 'key-1' }))
  const killed = await trace.start({ SMS_COOLDOWN_SECONDS: '0' })
  const lost = withKey(killed).map((answer) => answer.then(verdict, () => 'no answer'))
  await arrived.promise
  const inProgress = await Promise.all(withKey(killed))
  expect(inProgress.map(verdict)).toEqual(Array(2).fill('409 idempotency_in_progress'))
  await killed.stop('SIGKILL')
  expect(await Promise.all(lost)).toEqual(['no answer', 'no answer'])

  trace.receiver.answer(() => new Response())
  const second = await trace.start()
  const answers = await Promise.all(withKey(second))
  // The cooldown of the killed send does not count.
  expect(answers.map(verdict)).toEqual(['200', '200'])
  expect(received).toHaveLength(4)
  const otp = codeIn(received.findLast(({ body }) => body.text !== 'Hello')?.body.text)
  const verify = async (server: TestServer) => [
    await server.post('/otp/verify', { phone, otp: otherThan(otp) }, { 'idempotency-key': 'wrong' }),
    await server.post('/otp/verify', { phone, otp }, { 'idempotency-key': 'right' }),
  ]
  const guesses = await verify(second)
  expect(guesses.map(verdict)).toEqual(['401 mismatch', '200'])
  await second.stop('SIGKILL')

  const third = await trace.start()
  const replays = [...(await Promise.all(withKey(third))), ...(await verify(third))]
  const firsts = [...answers, ...guesses]
  expect(replays.map(({ body }) => body.requestId)).toEqual(firsts.map(({ body }) => body.requestId))
  expect(replays.map(({ headers }) => headers.get('idempotency-replayed'))).toEqual(Array(4).fill('true'))
  expect(received).toHaveLength(4)
})

test('a server is killed as the gateway answers: a delivered code verifies once and is not sent again', async () => {
  await using trace = await scene({ SMS_COOLDOWN_SECONDS: '60' })
  // The gateway answers half of the sends first, so that the code is warm for the others. Then each round kills the
  // server some event-loop turns later.
  for (const [index, turns] of [0, 200, 400, 800].entries()) {
    const server = await trace.start()
    const phones = Array.from({ length: 8 }, (_, place) => `1${2_000_000_000 + 10 * index + place}`)
    const halves = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const all = Promise.withResolvers<void>()
    trace.receiver.answer(async () => {
      const place = trace.receiver.received.length - phones.length * index
      if (place === phones.length) all.resolve()
      await halves[place <= 4 ? 0 : 1].promise
      return new Response()
    })
    const sends = phones.map((to) => server.post('/otp/send', { phone: to }).then(verdict, () => 'no answer'))
    await all.promise
    halves[0].resolve()
    await Promise.any(sends)
    halves[1].resolve()
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
    server.child.kill('SIGKILL')
    expect(await server.exited).toBe(137)
    for (const answer of await Promise.all(sends)) expect(['200', 'no answer']).toContain(answer)
  }

  const server = await trace.start()
  const ask = async (path: string, fields: Readonly<Record<string, unknown>>) =>
    verdict(await server.post(path, fields))
  const deliveries = trace.receiver.received.map(({ body }) => ({ phone: body.to, otp: codeIn(body.text) }))
  expect(deliveries).toHaveLength(32)
  expect(new Set(deliveries.map((delivery) => delivery.phone)).size).toBe(32)
  for (const { phone, otp } of deliveries) {
    expect(await ask('/otp/send', { phone })).toBe('429 cooldown_active')
    expect(await ask('/otp/verify', { phone, otp })).toBe('200')
    expect(await ask('/otp/verify', { phone, otp })).toBe('404 not_found')
  }
  expect(trace.receiver.received).toHaveLength(32)
})

test('a server is killed while an event is on its way: the next server delivers it, with the same webhook-id', async () => {
  const keys = { [credentials.appId]: credentials.apiKey }
  // Outside production, events may go to this machine.
  await using trace = await scene({ APP_CREDENTIALS: JSON.stringify(keys), NODE_ENV: 'development' })
  const hook = startReceiver(() => held().promise)
  await trace.operate((policy) => policy.webhook(hook.url))
  const server = await trace.start()
  trace.receiver.answer(() => new Response(null, { status: 500 }))
  const { status, body } = await server.post('/otp/send', { phone })
  expect(status).toBe(502)
  while (hook.received.length === 0) await Bun.sleep(20)
  server.child.kill('SIGKILL')
  expect(await server.exited).toBe(137)

  hook.answer(() => new Response())
  const { app } = await trace.later(60)
  app.events.tick()
  await app.events.idle()
  expect(hook.received.map((call) => [call.body.type, call.body.data.requestId])).toEqual([
    ['message.failed', body.requestId],
    ['message.failed', body.requestId],
  ])
  expect(new Set(hook.received.map(({ headers }) => headers.get('webhook-id'))).size).toBe(1)
  hook.stop()
})

test('a server is killed as it answers a delivery report: the next server has the report, and delivers its event', async () => {
  const keys = { [credentials.appId]: credentials.apiKey }
  const publicUrl = 'https://otp.example'
  await using trace = await scene({
    APP_CREDENTIALS: JSON.stringify(keys),
    NODE_ENV: 'development',
    PUBLIC_URL: publicUrl,
  })
  const hook = startReceiver(() => held().promise)
  await trace.operate((policy) => policy.webhook(hook.url, ['message.delivered']))
  const callbacks = await otpost(['callbacks'], trace.env)
  const [, path = ''] = /^webhook: https:\/\/otp\.example(\S+)$/m.exec(callbacks.stdout) ?? []
  const answered: string[] = []
  for (let round = 0; round < 6; round++) {
    const server = await trace.start()
    const killed = Promise.withResolvers<void>()
    trace.receiver.answer(({ body }) => {
      // The report follows the answer to the message at once, and the crash the answer to the report.
      setImmediate(async () => {
        // On a busy machine, the server would otherwise read the report before the answer of the gateway. The crash
        // that follows another message's report can interrupt each of these calls.
        const report = async () => {
          for (let turn = 0; turn < 3; turn++) await server.get('/health/live')
          return server.request(
            'POST',
            path,
            signedReport(trace.receiver.secret, { id: body.id, status: 'delivered' }),
          )
        }
        const answer = await report().catch(() => undefined)
        server.child.kill('SIGKILL')
        if (answer?.status === 200) answered.push(body.requestId)
        killed.resolve()
      })
      return new Response()
    })
    const phones = Array.from({ length: 1 + round }, (_, place) => `1${2_000_000_000 + 10 * round + place}`)
    const sends = phones.map((to) => server.post('/otp/send', { phone: to }).catch(() => undefined))
    await killed.promise
    await Promise.all(sends)
    expect(await server.exited).toBe(137)
  }
  expect(answered.length).toBeGreaterThanOrEqual(6)

  hook.answer(() => new Response())
  const { app } = await trace.later(60)
  const { events, context } = app
  do {
    events.tick()
    await events.idle()
  } while (events.waiting > 0)
  const told = new Set(hook.received.map(({ body }) => body.data.requestId))
  for (const requestId of answered) {
    const deliveries = await context.eventLog.deliveries({ requestId, limit: 9 })
    expect(deliveries.map(({ report }) => report?.status)).toEqual(['delivered'])
    expect(told).toContain(requestId)
  }
  hook.stop()
})

/** As an SMS gateway behind the provider `webhook` sends it. */
function signedReport(secret: string, fields: object): RequestInit {
  const body = JSON.stringify(fields)
  const at = new Date()
  const signature = new Webhook(secret).sign('msg_1', at, body)
  const timestamp = String(Math.floor(at.getTime() / 1000))
  return {
    headers: { 'webhook-id': 'msg_1', 'webhook-timestamp': timestamp, 'webhook-signature': signature },
    body,
  }
}
