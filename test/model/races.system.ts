import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { destinationOf } from '../../src/adapters/phone/destination.ts'
import { readConfig } from '../../src/config/config.ts'
import { readStoreConfig } from '../../src/config/store.ts'
import { openContext } from '../../src/context.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import { CredentialRejections } from '../../src/domain/limits/credentials.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import type { OtpStore } from '../../src/domain/otp/store.ts'
import { verifyOtp } from '../../src/domain/otp/verify.ts'
import { type Answer, codeIn, createTestApp, credentials, otherThan, type TestApp } from '../support/app.ts'
import { newContext, noGuard, noIdempotency } from '../support/calls.ts'
import { migratedTestDatabase, sqliteOnly, store, type TestDatabase } from '../support/database.ts'
import { tester } from '../support/operator.ts'
import { held, startReceiver } from '../support/receiver.ts'
import { otpost, startServer, type TestServer } from '../support/server.ts'

const phone = '12025550143'
const address = 'ann@example.com'
const mailbox = { channel: 'EMAIL', email: address }
const refusedByProvider = () => new Response(null, { status: 500 })

type Post = (
  path: string,
  fields: Readonly<Record<string, unknown>>,
  headers?: Readonly<Record<string, string>>,
) => Promise<Answer>

/** Sends this many requests at once. */
function atOnce(count: number, request: (index: number) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => request(index)))
}

/** The number of responses by status and code. */
function statKey(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status, body } of answers) {
    const answer = status === 200 ? '200' : `${status} ${body.error}`
    counts[answer] = (counts[answer] ?? 0) + 1
  }
  return counts
}

/** The slugs of more brands than any limit allows. */
const manyBrands = Array.from({ length: 20 }, (_, index) => `brand-${index}`)

describe('concurrent requests', () => {
  let app: TestApp
  let receiver: ReturnType<typeof startReceiver>
  beforeEach(() => {
    receiver = startReceiver()
  })
  afterEach(async () => {
    await app.close()
    await receiver.stop()
  })

  const start = async (env: Readonly<Record<string, string>> = {}) => {
    app = await createTestApp({ SMS_PLAIN: 'webhook', ...receiver.env, ...env })
  }
  const sendSms = (fields = {}) => app.post('/otp/send', { phone, ...fields })
  const sendMail = (fields = {}) => app.post('/otp/send', { ...mailbox, ...fields })
  const verifySms = (otp: string) => app.post('/otp/verify', { phone, otp })
  const verifyMail = (otp: string) => app.post('/otp/verify', { email: address, otp })
  const smsCode = (index = -1) => codeIn(receiver.received.at(index)?.body.text)
  const mailCode = () => app.lastCode(address)

  test('of 50 correct guesses one verifies, and the others return 404 not_found', async () => {
    await start()
    await sendSms()
    const code = smsCode()
    expect(statKey(await atOnce(50, () => verifySms(code)))).toEqual({ '200': 1, '404 not_found': 49 })
  })

  test('of 50 wrong guesses three are compared, and then the correct one is rejected too', async () => {
    await start()
    await sendSms()
    const code = smsCode()
    expect(statKey(await atOnce(50, () => verifySms(otherThan(code))))).toEqual({
      '401 mismatch': 3,
      '429 max_attempts': 47,
    })
    expect(statKey([await verifySms(code)])).toEqual({ '429 max_attempts': 1 })
  })

  test('of mixed correct and wrong guesses, at most one verifies and at most three are compared and wrong', async () => {
    await start()
    await sendSms()
    const code = smsCode()
    const answers = await atOnce(50, (index) => verifySms(index % 3 === 2 ? code : otherThan(code)))
    // The single writer of a file handles them in order: wrong, wrong, correct. On the way to a PostgreSQL
    // server they may change order.
    const verified = (wrong: number): Record<string, number> => ({
      '401 mismatch': wrong,
      '200': 1,
      '404 not_found': 49 - wrong,
    })
    const locked: Record<string, number> = { '401 mismatch': 3, '429 max_attempts': 47 }
    const may = store === 'sqlite' ? [verified(2)] : [verified(2), verified(1), verified(0), locked]
    expect(may).toContainEqual({ '401 mismatch': 0, ...statKey(answers) })
  })

  test('of 50 sends to one phone one is delivered, and the others are rejected', async () => {
    await start()
    expect(statKey(await atOnce(50, () => sendSms()))).toEqual({ '200': 1, '429 cooldown_active': 49 })
    expect(receiver.received).toHaveLength(1)
    expect(statKey([await verifySms(smsCode())])).toEqual({ '200': 1 })
  })

  test('a failed send allows a later one, however many concurrent sends were rejected', async () => {
    await start()
    // It fails after the others were rejected; a later one would be allowed.
    const failure = held()
    receiver.answer(() => failure.promise)
    let others = 49
    const sent = () =>
      sendSms().finally(() => {
        if (--others === 0) failure.release(refusedByProvider())
      })
    expect(statKey(await atOnce(50, sent))).toEqual({
      '502 sms_failed': 1,
      '429 cooldown_active': 49,
    })
    receiver.answer(() => new Response())
    expect(statKey([await sendSms()])).toEqual({ '200': 1 })
    expect(receiver.received).toHaveLength(2)
  })

  const phoneLimits: readonly (readonly [string, number, Readonly<Record<string, string>>])[] = [
    ['minute', 3, {}],
    ['hour', 10, { PHONE_LIMIT_PER_MINUTE: '1000' }],
  ]
  test.each(phoneLimits)(
    'a phone gets no more than its limit per %s for all brands together: %d',
    async (_, max, env) => {
      await start(env)
      for (const slug of manyBrands) await app.brand(slug)
      const answers = await atOnce(60, (index) => sendSms({ brandId: manyBrands[index % manyBrands.length] }))
      expect(statKey(answers)['200']).toBe(max)
      expect(statKey(answers)['429 rate_limited']).toBeGreaterThanOrEqual(manyBrands.length - max)
      expect(receiver.received).toHaveLength(max)
    },
  )

  test('an app does not exceed the global limit with any mix of requests', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '10' })
    const answers = await atOnce(60, (index) => {
      const number = `1202555${1000 + index}`
      if (index % 3 === 0) return sendSms({ phone: number })
      if (index % 3 === 1) return app.post('/otp/verify', { phone: number, otp: '123456' })
      return app.post('/notify', { channel: 'SMS', brandId: 'acme', to: [number], message: 'Hi' })
    })
    expect(statKey(answers)['429 rate_limited']).toBe(50)
    expect(answers.every(({ status }) => [200, 404, 429].includes(status))).toBe(true)
  })

  test('failed sends count for the global limit, which counts requests (spec 8)', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '10' })
    receiver.answer(refusedByProvider)
    const answers = await atOnce(30, (index) => sendSms({ phone: `1202555${1000 + index}` }))
    expect(statKey(answers)).toEqual({ '502 sms_failed': 10, '429 rate_limited': 20 })
    expect(statKey([await sendSms()])).toEqual({ '429 rate_limited': 1 })
    expect(receiver.received).toHaveLength(10)
  })

  test('a mailbox gets no more mails than its limit per hour for all brands together', async () => {
    await start({ EMAIL_LIMIT_PER_HOUR: '7' })
    await app.brand('globex')
    const answers = await atOnce(50, (index) => sendMail({ brandId: index % 2 ? 'acme' : 'globex' }))
    expect(statKey(answers)).toEqual({ '200': 7, '429 rate_limited': 43 })
    expect(await app.outbox(address)).toHaveLength(7)
  })

  test('wrong guesses for several codes never exceed the failure budget', async () => {
    await start({ FAILURE_BUDGET_PER_DAY: '5' })
    const guessWrong = async () => {
      await sendMail()
      const wrong = otherThan(await mailCode())
      return statKey(await atOnce(30, () => verifyMail(wrong)))
    }
    expect(await guessWrong()).toEqual({ '401 mismatch': 3, '429 max_attempts': 27 })
    expect(await guessWrong()).toEqual({ '401 mismatch': 2, '429 rate_limited': 28 })
    expect(statKey([await verifyMail(await mailCode())])).toEqual({ '429 rate_limited': 1 })
  })

  test('a guess of the previous code during a resend affects neither the new code nor its attempts', async () => {
    await start({ EMAIL_LIMIT_PER_HOUR: '0' })
    for (let round = 0; round < 30; round++) {
      await sendMail()
      const old = await mailCode()
      const resend = () => app.post('/otp/resend', mailbox)
      // Guesses before, during and after the resend, as far as one process can order them.
      const racing = await Promise.all(
        round % 2
          ? [verifyMail(old), resend(), verifyMail(old)]
          : [resend(), verifyMail(old), verifyMail(old)],
      )
      const verified = racing.filter(({ status, body }) => status === 200 && body.expiresIn === undefined)
      expect(verified.length).toBeLessThanOrEqual(1)
      const fresh = await mailCode()
      if (fresh === old) continue
      expect((await verifyMail(old)).status).not.toBe(200)
      // At most three guesses of the previous code were compared with the new one; it is locked only if all
      // were.
      const charged = racing.filter(({ body }) => body.error === 'mismatch').length
      expect(statKey([await verifyMail(fresh)])).toEqual(
        charged === 2 ? { '429 max_attempts': 1 } : { '200': 1 },
      )
    }
  })

  test('a guess in progress fails if its code is replaced meanwhile', async () => {
    await start()
    await sendMail()
    const old = await mailCode()
    // The real store with a pause before its step.
    const { store } = app.app.context
    const replaced = Promise.withResolvers<void>()
    const allWait = Promise.withResolvers<void>()
    let waiting = 0
    const paused: OtpStore = {
      ...store,
      guess: async (...guess) => {
        waiting++
        if (waiting === 2) allWait.resolve()
        await replaced.promise
        return store.guess(...guess)
      },
    }
    const { contacts, limits } = readConfig({})
    const ports = {
      ...app.app.context,
      ...noIdempotency,
      contacts,
      destinationOf,
      guard: noGuard,
      store: paused,
      rejections: new CredentialRejections(),
      policy: app.app.context.policy.cached([]),
      limits: { ...limits, globalPerMinute: 1000 },
      proofIssuer: () => 'otpost',
      isTopLevelDomain: () => false,
    }
    const underWay = Array.from({ length: 2 }, async () => {
      const call = newContext()
      const body = { ...credentials, brandId: 'acme', email: address, otp: old }
      return verifyOtp(ports, call, body).then(
        () => 'verified',
        (failure: unknown) => (failure instanceof Failure ? failure.kind : failure),
      )
    })
    await allWait.promise
    expect(statKey([await app.post('/otp/resend', mailbox)])).toEqual({ '200': 1 })
    replaced.resolve()
    // They run after the resend, so they are wrong guesses of the new code.
    expect(await Promise.all(underWay)).toEqual(['mismatch', 'mismatch'])
    expect(statKey([await verifyMail(await mailCode())])).toEqual({ '200': 1 })
  })

  test('the late failure of a send affects neither the code nor the limits of the next one', async () => {
    await start()
    const late = held()
    const arrived = Promise.withResolvers<void>()
    receiver.answer(() => {
      arrived.resolve()
      return late.promise
    })
    const first = sendSms()
    await arrived.promise
    receiver.answer(() => new Response())
    app.advance(61)
    expect(statKey([await sendSms()])).toEqual({ '200': 1 })
    late.release(refusedByProvider())
    expect(statKey([await first])).toEqual({ '502 sms_failed': 1 })
    expect(statKey([await sendSms()])).toEqual({ '429 cooldown_active': 1 })
    expect(statKey([await verifySms(smsCode(0))])).toEqual({ '401 mismatch': 1 })
    expect(statKey([await verifySms(smsCode(1))])).toEqual({ '200': 1 })
  })

  test('of 400 simultaneous wrong keys 300 are checked until the minute ends; the right key is accepted (D22)', async () => {
    await start()
    const wrongKey = () => app.post('/otp/verify', { ...mailbox, otp: '123456', apiKey: 'wrong' })
    expect(statKey(await atOnce(400, wrongKey))).toEqual({ '403 forbidden': 300, '429 rate_limited': 100 })
    expect(statKey([await sendMail()])).toEqual({ '200': 1 })
    app.advance(60)
    expect(statKey([await wrongKey()])).toEqual({ '403 forbidden': 1 })
  })

  test('of three simultaneous sends to one mailbox one code verifies', async () => {
    await start()
    expect(statKey(await atOnce(3, () => sendMail()))).toEqual({ '200': 3 })
    const codes = (await app.outbox(address)).map(({ text }) => codeIn(text))
    const verdicts: Answer[] = []
    for (const code of codes) verdicts.push(await verifyMail(code))
    expect(verdicts.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  // The single writer of a file keeps the order; connections to a PostgreSQL server may change it on the way
  // to the outbox.
  sqliteOnly('of ten simultaneous sends to one mailbox only the code sent last verifies', async () => {
    await start()
    const sends = await atOnce(10, () => sendMail())
    expect(statKey(sends)).toEqual({ '200': 10 })
    const codes = (await app.outbox(address)).map(({ text }) => codeIn(text))
    const last = codes.at(-1) ?? ''
    for (const older of codes
      .slice(0, -1)
      .filter((code) => code !== last)
      .slice(0, 2)) {
      expect(statKey([await verifyMail(older)])).toEqual({ '401 mismatch': 1 })
    }
    expect(statKey([await verifyMail(last)])).toEqual({ '200': 1 })
  })
})

/** A file has one writer at a time, so more processes would test nothing new. */
const processes = store === 'postgres' ? [2, 4] : [2]

describe.each(processes)('%d server processes on one database', (count) => {
  let database: TestDatabase
  let receiver: ReturnType<typeof startReceiver>
  let servers: TestServer[] = []
  const globalLimit = 1200

  beforeAll(async () => {
    database = await migratedTestDatabase()
    receiver = startReceiver()
    const env = {
      ...database.env,
      SMS_PLAIN: 'webhook',
      PROVIDER_TIMEOUT_MS: '30000',
      EMAIL_LIMIT_PER_HOUR: '7',
      FAILURE_BUDGET_PER_DAY: '5',
      GLOBAL_LIMIT_PER_MINUTE: String(globalLimit),
      APP_CREDENTIALS: JSON.stringify({
        [credentials.appId]: credentials.apiKey,
        kiosk: 'key-of-the-kiosk',
        press: 'key-of-the-press',
      }),
      ...receiver.env,
    }
    const made = await otpost(['brand', 'put', 'acme', '--name', 'Acme'], env)
    if (made.code !== 0) throw new Error(made.stderr)
    const context = await openContext(readStoreConfig(env))
    await Promise.all(manyBrands.map((slug) => putBrand(context.acting(tester), slug, { displayName: slug })))
    await context.close()
    servers = await Promise.all(Array.from({ length: count }, () => startServer(env)))
  })

  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()))
    await receiver.stop()
    await database.remove()
  })

  /** Requests are distributed to them in turn. */
  let turn = 0
  const post: Post = (path, fields, headers) => {
    const server = servers[turn++ % servers.length]
    if (!server) throw new Error('the servers are not started')
    return server.post(path, fields, headers)
  }
  const codesOf = (to: string) =>
    receiver.received.filter(({ body }) => body.to === to).map(({ body }) => codeIn(body.text))
  const codeOf = (to: string) => codesOf(to).at(-1) ?? ''
  const mailCode = async (to: string) => {
    const { body } = (await servers[0]?.get(`/outbox/messages?to=${to}`)) ?? {}
    return codeIn(body.messages.at(-1)?.text)
  }

  /** Six phones for each test, so that the processes contend at any moment. */
  const phones = (series: number) => Array.from({ length: 6 }, (_, index) => `120255501${series}${index}`)

  test('of 30 correct guesses for each of six phones one verifies', async () => {
    await Promise.all(phones(1).map((to) => post('/otp/send', { phone: to })))
    const answers = phones(1).map((to) =>
      atOnce(30, () => post('/otp/verify', { phone: to, otp: codeOf(to) })),
    )
    for (const each of await Promise.all(answers)) {
      expect(statKey(each)).toEqual({ '200': 1, '404 not_found': 29 })
    }
  })

  test('of 30 wrong guesses for each of six phones three are compared', async () => {
    await Promise.all(phones(2).map((to) => post('/otp/send', { phone: to })))
    const answers = phones(2).map((to) =>
      atOnce(30, () => post('/otp/verify', { phone: to, otp: otherThan(codeOf(to)) })),
    )
    for (const each of await Promise.all(answers)) {
      expect(statKey(each)).toEqual({ '401 mismatch': 3, '429 max_attempts': 27 })
    }
    for (const to of phones(2)) {
      expect(statKey([await post('/otp/verify', { phone: to, otp: codeOf(to) })])).toEqual({
        '429 max_attempts': 1,
      })
    }
  })

  test('of 30 sends to each of six phones one is delivered', async () => {
    const answers = phones(3).map((to) => atOnce(30, () => post('/otp/send', { phone: to })))
    for (const each of await Promise.all(answers)) {
      expect(statKey(each)).toEqual({ '200': 1, '429 cooldown_active': 29 })
    }
    for (const to of phones(3)) expect(codesOf(to)).toHaveLength(1)
  })

  test.each(['/otp/send', '/notify'])(
    'of 30 requests %s with one Idempotency-Key for each of six phones one is delivered',
    async (path) => {
      const mostly = phones(path === '/notify' ? 6 : 7)
      const sending = mostly.map((to) => {
        const fields =
          path === '/notify' ? { channel: 'SMS', brandId: 'acme', to: [to], message: 'Hello' } : { phone: to }
        return atOnce(30, () => post(path, fields, { 'idempotency-key': to }))
      })
      for (const answers of await Promise.all(sending)) {
        const [first, ...others] = answers.filter(({ status }) => status === 200)
        for (const { body } of others) expect(body.requestId).toBe(first?.body.requestId)
        const replays = answers.filter(({ headers }) => headers.has('idempotency-replayed'))
        expect(replays).toHaveLength(others.length)
        const { '200': _, ...failures } = statKey(answers)
        expect(Object.keys(failures)).toBeOneOf([[], ['409 idempotency_in_progress']])
      }
      for (const to of mostly) expect(receiver.received.filter(({ body }) => body.to === to)).toHaveLength(1)
    },
  )

  test('of 30 guesses with one Idempotency-Key for each of six phones one is compared', async () => {
    await Promise.all(phones(8).map((to) => post('/otp/send', { phone: to })))
    const guessing = phones(8).map((to, index) => {
      const otp = index % 2 === 0 ? codeOf(to) : otherThan(codeOf(to))
      return atOnce(30, () => post('/otp/verify', { phone: to, otp }, { 'idempotency-key': to }))
    })
    for (const [index, answers] of (await Promise.all(guessing)).entries()) {
      expect(statKey(answers)).toEqual({ [index % 2 === 0 ? '200' : '401 mismatch']: 30 })
      expect(new Set(answers.map(({ body }) => body.requestId)).size).toBe(1)
      expect(answers.filter(({ headers }) => headers.has('idempotency-replayed'))).toHaveLength(29)
    }
  })

  test('a phone gets no more than three codes a minute for all brands together', async () => {
    const to = '12025550104'
    const answers = await atOnce(40, (index) =>
      post('/otp/send', { phone: to, brandId: manyBrands[index % manyBrands.length] }),
    )
    expect(statKey(answers)['200']).toBe(3)
    expect(codesOf(to)).toHaveLength(3)
    expect(answers.every(({ status }) => status === 200 || status === 429)).toBe(true)
  })

  test('a mailbox gets no more mails than its limit', async () => {
    const answers = await atOnce(40, () => post('/otp/send', mailbox))
    expect(statKey(answers)).toEqual({ '200': 7, '429 rate_limited': 33 })
  })

  test('wrong guesses for several codes never exceed the failure budget', async () => {
    const email = 'budget@example.com'
    const press = { appId: 'press', apiKey: 'key-of-the-press' }
    const guessWrong = async () => {
      await post('/otp/send', { ...press, channel: 'EMAIL', email })
      const otp = otherThan(await mailCode(email))
      return statKey(await atOnce(20, () => post('/otp/verify', { ...press, email, otp })))
    }
    expect(await guessWrong()).toEqual({ '401 mismatch': 3, '429 max_attempts': 17 })
    expect(await guessWrong()).toEqual({ '401 mismatch': 2, '429 rate_limited': 18 })
  })

  test("wrong guesses for the codes of several brands never exceed the recipient's failure budget", async () => {
    for (const email of ['brands1@example.com', 'brands2@example.com', 'brands3@example.com']) {
      const press = { appId: 'press', apiKey: 'key-of-the-press', email }
      const some = manyBrands.slice(0, 6)
      for (const brandId of some) await post('/otp/send', { ...press, channel: 'EMAIL', brandId })
      const answers = await atOnce(36, (index) =>
        // This equals the code with a probability of one in a million.
        post('/otp/verify', { ...press, brandId: some[index % some.length], otp: '000000' }),
      )
      expect(statKey(answers)).toMatchObject({ '401 mismatch': 5 })
      expect(answers.every(({ status }) => status === 401 || status === 429)).toBe(true)
    }
  })

  test('an app does not exceed the global limit', async () => {
    const kiosk = { appId: 'kiosk', apiKey: 'key-of-the-kiosk' }
    const answers = await atOnce(globalLimit + 50, () =>
      post('/otp/verify', { ...kiosk, phone: '12025550105', otp: '123456' }),
    )
    const granted = answers.filter(({ status }) => status === 404).length
    // On PostgreSQL, nodes can have unused units of the limit while another one rejects a request.
    const least = store === 'sqlite' ? globalLimit : (globalLimit * 15) / 16
    expect(granted).toBeWithin(least, globalLimit + 1)
    expect(statKey(answers)).toEqual({
      '404 not_found': granted,
      '429 rate_limited': globalLimit + 50 - granted,
    })
  })

  test('a code is invalid in all processes as soon as one of them has answered a resend', async () => {
    const [one, two] = servers
    if (!one || !two) throw new Error('the servers are not started')
    for (let round = 0; round < 10; round++) {
      const press = { appId: 'press', apiKey: 'key-of-the-press', email: `resend-${round}@example.com` }
      await one.post('/otp/send', { ...press, channel: 'EMAIL' })
      const otp = await mailCode(press.email)
      const racing = await Promise.all([
        one.post('/otp/resend', { ...press, channel: 'EMAIL' }),
        two.post('/otp/verify', { ...press, otp }),
      ])
      // The guess may have run before the resend, or later: with no code left, or with another one.
      expect(racing.map(({ status }) => status)).toEqual([200, expect.any(Number)])
      expect([200, 401, 404]).toContain(racing[1].status)
      const fresh = await mailCode(press.email)
      if (fresh === otp) continue
      expect(statKey([await two.post('/otp/verify', { ...press, otp })])).toEqual({ '401 mismatch': 1 })
      expect(statKey([await two.post('/otp/verify', { ...press, otp: fresh })])).toEqual({ '200': 1 })
    }
  })
})
