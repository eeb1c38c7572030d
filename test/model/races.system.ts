import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test'
import { readConfig } from '../../src/config/config.ts'
import { readStoreConfig } from '../../src/config/store.ts'
import { openContext } from '../../src/context.ts'
import { Failure } from '../../src/domain/failures.ts'
import { putBrand } from '../../src/domain/operator/operator.ts'
import type { OtpStore } from '../../src/domain/otp/store.ts'
import { verifyOtp } from '../../src/domain/otp/verify.ts'
import { type Answer, codeIn, createTestApp, credentials, otherThan, type TestApp } from '../support/app.ts'
import { newContext } from '../support/calls.ts'
import { openTestDatabase, sqliteOnly, store, type TestDatabase } from '../support/database.ts'
import { tester } from '../support/operator.ts'
import { held, startReceiver } from '../support/receiver.ts'
import { otpost, startServer, type TestServer } from '../support/server.ts'

// Processes share two cores with the tests beside these; each is there for what it answers, not for how soon.
setDefaultTimeout(120_000)

const phone = '12025550143'
const address = 'ann@example.com'
const mailbox = { channel: 'EMAIL', email: address }
const refusedByProvider = () => new Response(null, { status: 500 })

type Post = (path: string, fields: Readonly<Record<string, unknown>>) => Promise<Answer>

/** As many requests at once. */
function atOnce(count: number, request: (index: number) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => request(index)))
}

/** How often each answer came, by status and code. */
function statKey(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status, body } of answers) {
    const answer = status === 200 ? '200' : `${status} ${body.error}`
    counts[answer] = (counts[answer] ?? 0) + 1
  }
  return counts
}

/** The slugs of more brands than any limit. */
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

  test('of 50 right answers one verifies, and the others find no code', async () => {
    await start()
    await sendSms()
    const code = smsCode()
    expect(statKey(await atOnce(50, () => verifySms(code)))).toEqual({ '200': 1, '404 not_found': 49 })
  })

  test('of 50 wrong answers three are compared, and then the right one is refused too', async () => {
    await start()
    await sendSms()
    const code = smsCode()
    expect(statKey(await atOnce(50, () => verifySms(otherThan(code))))).toEqual({
      '401 mismatch': 3,
      '429 max_attempts': 47,
    })
    expect(statKey([await verifySms(code)])).toEqual({ '429 max_attempts': 1 })
  })

  test('of right and wrong answers mixed, at most one verifies and at most three are compared and wrong', async () => {
    await start()
    await sendSms()
    const code = smsCode()
    const answers = await atOnce(50, (index) => verifySms(index % 3 === 2 ? code : otherThan(code)))
    // The one writer of a file judges them in the order in which they came: wrong, wrong, right. On the way to a server
    // they may overtake each other.
    const verified = (wrong: number): Record<string, number> => ({
      '401 mismatch': wrong,
      '200': 1,
      '404 not_found': 49 - wrong,
    })
    const locked: Record<string, number> = { '401 mismatch': 3, '429 max_attempts': 47 }
    const may = store === 'sqlite' ? [verified(2)] : [verified(2), verified(1), verified(0), locked]
    expect(may).toContainEqual({ '401 mismatch': 0, ...statKey(answers) })
  })

  test('of 50 sends to one phone one is delivered, and the others are told to wait', async () => {
    await start()
    expect(statKey(await atOnce(50, () => sendSms()))).toEqual({ '200': 1, '429 cooldown_active': 49 })
    expect(receiver.received).toHaveLength(1)
    expect(statKey([await verifySms(smsCode())])).toEqual({ '200': 1 })
  })

  test('a send that fails lets a later one pass, however many were refused beside it', async () => {
    await start()
    // It fails once the others have been refused: one that comes after would be let through.
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
    'a phone gets no more than its limit per %s over all brands: %d',
    async (_, max, env) => {
      await start(env)
      for (const slug of manyBrands) await app.brand(slug)
      const answers = await atOnce(60, (index) => sendSms({ brandId: manyBrands[index % manyBrands.length] }))
      expect(statKey(answers)['200']).toBe(max)
      expect(statKey(answers)['429 rate_limited']).toBeGreaterThanOrEqual(manyBrands.length - max)
      expect(receiver.received).toHaveLength(max)
    },
  )

  test('an application gets no more requests through than the global limit, whatever they are', async () => {
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

  test('sends that fail count for the global limit: it counts requests (spec 8)', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '10' })
    receiver.answer(refusedByProvider)
    const answers = await atOnce(30, (index) => sendSms({ phone: `1202555${1000 + index}` }))
    expect(statKey(answers)).toEqual({ '502 sms_failed': 10, '429 rate_limited': 20 })
    expect(statKey([await sendSms()])).toEqual({ '429 rate_limited': 1 })
    expect(receiver.received).toHaveLength(10)
  })

  test('a mailbox gets no more mails than its limit per hour over all brands', async () => {
    await start({ EMAIL_LIMIT_PER_HOUR: '7' })
    await app.brand('globex')
    const answers = await atOnce(50, (index) => sendMail({ brandId: index % 2 ? 'acme' : 'globex' }))
    expect(statKey(answers)).toEqual({ '200': 7, '429 rate_limited': 43 })
    expect(await app.outbox(address)).toHaveLength(7)
  })

  test('wrong answers over several codes never pass the failure budget', async () => {
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

  test('an answer to the old code that races a resend harms neither the new code nor the count', async () => {
    await start({ EMAIL_LIMIT_PER_HOUR: '0' })
    for (let round = 0; round < 30; round++) {
      await sendMail()
      const old = await mailCode()
      const resend = () => app.post('/otp/resend', mailbox)
      // Before, between and after one another, as far as one process can be told to.
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
      // At most three answers to the old code met the new one; it is locked only if all of them did.
      const charged = racing.filter(({ body }) => body.error === 'mismatch').length
      expect(statKey([await verifyMail(fresh)])).toEqual(
        charged === 2 ? { '429 max_attempts': 1 } : { '200': 1 },
      )
    }
  })

  test('an answer to the old code that is under way when the code is replaced fails', async () => {
    await start()
    await sendMail()
    const old = await mailCode()
    // The real store, but for a pause before its step.
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
      contacts,
      store: paused,
      limits: { ...limits, globalPerMinute: 1000 },
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
    // They come after the resend, so they are wrong guesses at the new code.
    expect(await Promise.all(underWay)).toEqual(['mismatch', 'mismatch'])
    expect(statKey([await verifyMail(await mailCode())])).toEqual({ '200': 1 })
  })

  test('the late failure of a send touches neither the code nor the limits of the next one', async () => {
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

  test('of 400 wrong keys at once 300 are judged, until the minute is over; the right one passes (D22)', async () => {
    await start()
    const wrongKey = () => app.post('/otp/verify', { ...mailbox, otp: '123456', apiKey: 'wrong' })
    expect(statKey(await atOnce(400, wrongKey))).toEqual({ '403 forbidden': 300, '429 rate_limited': 100 })
    expect(statKey([await sendMail()])).toEqual({ '200': 1 })
    app.advance(60)
    expect(statKey([await wrongKey()])).toEqual({ '403 forbidden': 1 })
  })

  test('of three sends to one mailbox at once one code verifies', async () => {
    await start()
    expect(statKey(await atOnce(3, () => sendMail()))).toEqual({ '200': 3 })
    const codes = (await app.outbox(address)).map(({ text }) => codeIn(text))
    const verdicts: Answer[] = []
    for (const code of codes) verdicts.push(await verifyMail(code))
    expect(verdicts.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  // The one writer of a file keeps order; connections to a server may overtake each other on the way to the outbox.
  sqliteOnly('of ten sends to one mailbox at once only the code sent last verifies', async () => {
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

/** A file has one writer at a time, so more processes would tell nothing new. */
const processes = store === 'postgres' ? [2, 4] : [2]

describe.each(processes)('%d server processes on one database', (count) => {
  let database: TestDatabase
  let receiver: ReturnType<typeof startReceiver>
  let servers: TestServer[] = []
  const globalLimit = 1200

  beforeAll(async () => {
    database = await openTestDatabase()
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

  /** Requests go to them by turns. */
  let turn = 0
  const post: Post = (path, fields) => {
    const server = servers[turn++ % servers.length]
    if (!server) throw new Error('the servers are not started')
    return server.post(path, fields)
  }
  const codesOf = (to: string) =>
    receiver.received.filter(({ body }) => body.to === to).map(({ body }) => codeIn(body.text))
  const codeOf = (to: string) => codesOf(to).at(-1) ?? ''
  const mailCode = async (to: string) => {
    const { body } = (await servers[0]?.get(`/outbox/messages?to=${to}`)) ?? {}
    return codeIn(body.messages.at(-1)?.text)
  }

  /** Six phones of a test's own, so that the processes have something to contend for at any moment. */
  const phones = (series: number) => Array.from({ length: 6 }, (_, index) => `120255501${series}${index}`)

  test('of 30 right answers for each of six phones one verifies', async () => {
    await Promise.all(phones(1).map((to) => post('/otp/send', { phone: to })))
    const answers = phones(1).map((to) =>
      atOnce(30, () => post('/otp/verify', { phone: to, otp: codeOf(to) })),
    )
    for (const each of await Promise.all(answers)) {
      expect(statKey(each)).toEqual({ '200': 1, '404 not_found': 29 })
    }
  })

  test('of 30 wrong answers for each of six phones three are compared', async () => {
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

  test('a phone gets no more than three codes a minute over all brands', async () => {
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

  test('wrong answers over several codes never pass the failure budget', async () => {
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

  test('wrong answers to the codes of several brands never pass the failure budget of their recipient', async () => {
    for (const email of ['brands1@example.com', 'brands2@example.com', 'brands3@example.com']) {
      const press = { appId: 'press', apiKey: 'key-of-the-press', email }
      const some = manyBrands.slice(0, 6)
      for (const brandId of some) await post('/otp/send', { ...press, channel: 'EMAIL', brandId })
      const answers = await atOnce(36, (index) =>
        // No code is this one but once in a million.
        post('/otp/verify', { ...press, brandId: some[index % some.length], otp: '000000' }),
      )
      expect(statKey(answers)).toMatchObject({ '401 mismatch': 5 })
      expect(answers.every(({ status }) => status === 401 || status === 429)).toBe(true)
    }
  })

  test('an application gets no more requests through than the global limit', async () => {
    const kiosk = { appId: 'kiosk', apiKey: 'key-of-the-kiosk' }
    const answers = await atOnce(globalLimit + 50, () =>
      post('/otp/verify', { ...kiosk, phone: '12025550105', otp: '123456' }),
    )
    expect(statKey(answers)).toEqual({ '404 not_found': globalLimit, '429 rate_limited': 50 })
  })

  test('a code is dead in all processes as soon as a resend was answered by one of them', async () => {
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
      // The answer may have come before the resend, or too late: for a code that is gone, or for another one.
      expect(racing.map(({ status }) => status)).toEqual([200, expect.any(Number)])
      expect([200, 401, 404]).toContain(racing[1].status)
      const fresh = await mailCode(press.email)
      if (fresh === otp) continue
      expect(statKey([await two.post('/otp/verify', { ...press, otp })])).toEqual({ '401 mismatch': 1 })
      expect(statKey([await two.post('/otp/verify', { ...press, otp: fresh })])).toEqual({ '200': 1 })
    }
  })
})
