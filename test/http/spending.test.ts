import { afterEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Outcome } from '../../src/domain/ground/providers.ts'
import { type Answer, createTestApp, type TestApp } from '../support/app.ts'
import { openTestDatabase } from '../support/database.ts'
import { accepted, policyOf, rejected, temporary, testProvider, unknown } from '../support/policy.ts'
import { expectError, expectSuccess, retryAfter } from '../support/rows.ts'

// Design D42 on the request path. What was spent is in thousandths of the currency.

let app: TestApp
let operate: ReturnType<typeof policyOf>
const one = testProvider('one')
const two = testProvider('two')
const dlt = testProvider('dlt')

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  app = await createTestApp(
    { PHONE_LIMIT_PER_MINUTE: '1000', PHONE_LIMIT_PER_HOUR: '1000', GUARD: 'off', ...env },
    { phoneRoutes: { plain: [one, two], template: [dlt] } },
  )
  operate = policyOf(app)
}
afterEach(async () => {
  await app.close()
  for (const { sent, answer } of [one, two, dlt]) {
    sent.length = 0
    answer(() => accepted)
  }
})

let numbers = 0
/** A number of a country of 2 units. */
const latvia = () => `3712${String(numbers++).padStart(7, '0')}`
/** The same, with registered texts. */
const india = () => `9198${String(numbers++).padStart(8, '0')}`
/** A number of a country of 1 unit. */
const britain = () => `447400${String(numbers++).padStart(6, '0')}`
const send = (fields: Readonly<Record<string, unknown>> = {}) =>
  app.post('/otp/send', { phone: latvia(), ...fields })
const notify = (to: readonly string[], fields: Readonly<Record<string, unknown>> = {}) =>
  app.post('/notify', { channel: 'SMS', brandId: 'acme', to, message: 'Hello', ...fields })
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status)
const times = (count: number, status: number) => Array<number>(count).fill(status)

describe('a budget is exact', () => {
  test('under 200 concurrent sends', async () => {
    await start()
    await operate.budget('server', '75')
    const answers = await Promise.all(Array.from({ length: 200 }, () => send()))
    expect(statuses(answers).sort()).toEqual([...times(37, 200), ...times(163, 429)])
    expect(one.sent).toHaveLength(37)
    expect(await operate.spent()).toEqual({ server: 74_000 })
  })

  test('over all budgets of a message at once: one that is exhausted takes nothing from the others', async () => {
    await start()
    for (const scope of ['server', 'brand:acme', 'app:shop']) await operate.budget(scope, '100')
    await operate.budget('country:LV', '6')
    await operate.budget('country:GB', '6')
    const answers = await Promise.all(Array.from({ length: 10 }, () => send()))
    expect(statuses(answers).sort()).toEqual([...times(3, 200), ...times(7, 429)])
    const all = { server: 6000, 'brand:acme': 6000, 'app:shop': 6000, 'country:LV': 6000, 'country:GB': 0 }
    expect(await operate.spent()).toEqual(all)
    expectSuccess(await send({ phone: britain() }), ['expiresIn'])
    expect(await operate.spent()).toEqual({
      server: 7000,
      'brand:acme': 7000,
      'app:shop': 7000,
      'country:LV': 6000,
      'country:GB': 1000,
    })
  })

  test('over a restart', async () => {
    const database = await openTestDatabase()
    await start(database.env)
    await operate.budget('server', '5')
    await send()
    await app.close()
    await start(database.env)
    expect(statuses([await send(), await send()])).toEqual([200, 429])
    await app.close()
    await start(database.env)
    expect(await operate.spent()).toEqual({ server: 4000 })
    expectError(await send(), 429, 'rate_limited')
  })

  test('a rejected request consumes no other limit', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '2', PHONE_LIMIT_PER_MINUTE: '1' })
    await operate.budget('server', '1')
    const phone = latvia()
    for (let count = 0; count < 3; count++) {
      const refused = await send({ phone })
      expectError(refused, 429, 'rate_limited')
      expect(retryAfter(refused)).toBe(12 * 3600)
      expect(retryAfter(await notify([phone]))).toBe(12 * 3600)
    }
    await operate.removeBudget('server')
    expect(statuses([await send({ phone }), await notify([phone])])).toEqual([200, 200])
  })

  test('with --no-stop, it only counts', async () => {
    await start()
    await operate.budget('server', '3', { stops: false })
    expect(statuses([await send(), await send()])).toEqual([200, 200])
    expect(await operate.spent()).toEqual({ server: 4000 })
  })

  test('removed and set again, it counts from zero', async () => {
    await start()
    await operate.budget('server', '2')
    await send()
    await operate.removeBudget('server')
    app.advance(1)
    await operate.budget('server', '2')
    expect(statuses([await send(), await send()])).toEqual([200, 429])
  })
})

describe('a budget of each country', () => {
  test('has one counter for each country, under concurrent sends', async () => {
    await start()
    await operate.budget('country:*', '6')
    const phones = [...times(10, 0).map(latvia), ...times(10, 0).map(britain)]
    const answers = await Promise.all(phones.map((phone) => send({ phone })))
    expect(statuses(answers).sort()).toEqual([...times(9, 200), ...times(11, 429)])
    expect(await operate.spent()).toEqual({ 'country:* (GB)': 6000, 'country:* (LV)': 6000 })
    expectError(await notify([latvia()]), 429, 'rate_limited')
    await operate.lift('country:*', '1h')
    expect(statuses([await send(), await notify([britain()])])).toEqual([200, 200])
  })

  test('does not apply to a country with a budget of its own for these messages', async () => {
    await start()
    await operate.budget('country:*', '2')
    await operate.budget('country:LV', '4', { of: 'codes' })
    expect(statuses([await send(), await send(), await send()])).toEqual([200, 200, 429])
    expect(statuses([await notify([latvia()]), await notify([latvia()])])).toEqual([200, 429])
    const phone = britain()
    expect(statuses([await send({ phone })])).toEqual([200])
    expect(await operate.spent()).toEqual({
      'country:LV of codes': 4000,
      'country:* (LV)': 2000,
      'country:* (GB)': 1000,
    })
    await operate.removeBudget('country:LV', 'codes')
    expectError(await send(), 429, 'rate_limited')
  })

  test('gives back what a message to several countries did not cost', async () => {
    await start()
    await operate.budget('country:*', '10')
    for (const { answer } of [one, two]) answer(({ to }) => (to.startsWith('44') ? accepted : rejected))
    expectError(await notify([latvia(), britain(), latvia()]), 500, 'notification_failed')
    expect(await operate.spent()).toEqual({ 'country:* (GB)': 1000 })
  })

  test('is charged the dearest price for personal and universal access numbers', async () => {
    await start()
    await operate.budget('server', '100')
    await send({ phone: '447012345678' })
    expect(await operate.spent()).toEqual({ server: 12_000 })
    await send({ phone: '445551234567' })
    expect(await operate.spent()).toEqual({ server: 24_000 })
  })

  test('counts numbers of no known country as one', async () => {
    await start()
    await operate.budget('country:*', '12')
    await send({ phone: '+999123456789' })
    expect(Object.keys(await operate.spent())).toEqual(['country:* (ZZ)'])
  })
})

describe('a budget of codes or notifications', () => {
  test('counts only these, beside the budget of all messages of its scope', async () => {
    await start()
    await operate.budget('server', '12')
    await operate.budget('server', '4', { of: 'notifications' })
    await operate.budget('server', '6', { of: 'codes' })
    expect(statuses([await notify([latvia(), latvia()]), await notify([latvia()])])).toEqual([200, 429])
    const refused = await notify([latvia()])
    expect(refused.body).toMatchObject({ error: 'rate_limited', reason: 'budget' })
    expect(statuses([await send(), await send(), await send(), await send()])).toEqual([200, 200, 200, 429])
    expect(await operate.spent()).toEqual({
      server: 10_000,
      'server of codes': 6000,
      'server of notifications': 4000,
    })
    await operate.lift('server', '1h', 'codes')
    expect(statuses([await send(), await send(), await notify([latvia()])])).toEqual([200, 429, 429])
    await operate.removeBudget('server')
    expect(statuses([await send(), await notify([latvia()])])).toEqual([200, 429])
  })

  test('charges each job of an asynchronous notification', async () => {
    await start()
    await operate.budget('server', '2', { of: 'notifications' })
    await operate.budget('server', '2', { of: 'codes' })
    await operate.budget('country:*', '10')
    expectSuccess(await notify([latvia()], { async: true }), ['channel', 'recipients'], 202)
    await app.app.queue.idle()
    expectError(await notify([latvia()], { async: true }), 429, 'rate_limited')
    expect(await operate.spent()).toEqual({
      'server of codes': 0,
      'server of notifications': 2000,
      'country:* (LV)': 2000,
    })
  })
})

describe('the period of a budget ends', () => {
  test.each([
    ['day', '2028-02-28T23:59:59.999Z', 0.001],
    ['month', '2028-02-28T23:59:59.999Z', 86_400.001],
    ['month', '2026-12-31T23:00:00.000Z', 3600],
  ])('a %s that contains %s after %d s', async (period, at, seconds) => {
    await start()
    app.clock.now = Date.parse(at)
    await operate.budget('server', '2', { period })
    const answers = [await send(), await send()]
    expect(statuses(answers)).toEqual([200, 429])
    expect(answers[1] && retryAfter(answers[1])).toBe(Math.ceil(seconds))
    app.clock.now += Math.round(seconds * 1000) - 1
    expectError(await send(), 429, 'rate_limited')
    app.clock.now += 1
    expect(statuses([await send(), await send()])).toEqual([200, 429])
  })

  test('a clock that is set back keeps what was spent', async () => {
    await start()
    await operate.budget('server', '2')
    await send()
    app.advance(-86_400)
    expectError(await send(), 429, 'rate_limited')
  })

  test('a clock that is set back over midnight does not open the day again', async () => {
    await start()
    await operate.budget('server', '2')
    app.clock.now = Date.UTC(2026, 0, 2, 0, 10)
    expect(statuses([await send(), await send()])).toEqual([200, 429])
    app.clock.now = Date.UTC(2026, 0, 1, 23, 50)
    const refused = await send()
    expectError(refused, 429, 'rate_limited')
    expect(retryAfter(refused)).toBe(24 * 3600 + 600)
    app.clock.now = Date.UTC(2026, 0, 2, 23, 59, 59)
    expectError(await send(), 429, 'rate_limited')
    app.advance(1)
    expect(statuses([await send(), await send()])).toEqual([200, 429])
  })

  test('a fallback that was not sent is given back to the day that counted it', async () => {
    await start({ OTP_SMS_MODE: 'hybrid', SMS_TEMPLATE: 'outbox' })
    await app.brand('dlt', { dltEnabled: true })
    await operate.budget('server', '10')
    app.clock.now = Date.UTC(2026, 0, 1, 23, 59, 59)
    dlt.answer(() => {
      app.advance(2)
      return unknown
    })
    for (const { answer } of [one, two]) answer(() => temporary)
    expectError(await send({ brandId: 'dlt', phone: india() }), 502, 'sms_failed')
    expect(await operate.spent()).toEqual({ server: 0 })
  })
})

describe('a message costs', () => {
  test('segments × price of its provider; the dearest price is claimed, and the difference given back', async () => {
    await start()
    await operate.prices('371 0.05', '371 0.08 two')
    await operate.budget('server', '0.15')
    const claimed: (number | undefined)[] = []
    one.answer(async () => {
      claimed.push((await operate.spent()).server)
      return accepted
    })
    // 0.05 is spent, and 0.08 of the remaining 0.10 are claimed.
    expect(statuses([await send(), await send(), await send()])).toEqual([200, 200, 429])
    expect(claimed).toEqual([80, 130])
    expect(await operate.spent()).toEqual({ server: 100 })
    await operate.budget('server', '1')
    expectSuccess(await notify([latvia()], { message: 'a'.repeat(161) }), ['channel'])
    expect(await operate.spent()).toEqual({ server: 200 })
  })

  test('units for a budget of before the first import', async () => {
    await start()
    await operate.budget('server', '10')
    await operate.prices('371 0.05')
    await operate.budget('country:LV', '10')
    await send()
    expect(await operate.spent()).toEqual({ server: 2000, 'country:LV': 50 })
  })

  test('the prices of its claim, if an import changes them during the delivery', async () => {
    await start()
    await operate.prices('371 0.05')
    await operate.budget('server', '10')
    one.answer(async () => {
      await operate.prices('371 9')
      return temporary
    })
    await send()
    expect(await operate.spent()).toEqual({ server: 50 })
  })

  const outcomes: readonly (readonly [string, Outcome, number, number])[] = [
    ['accepted', accepted, 200, 2000],
    ['rejected', rejected, 502, 0],
    ['a temporary failure', temporary, 502, 0],
    // Both providers may have sent it.
    ['unknown', unknown, 502, 4000],
  ]
  test.each(outcomes)('of a message that is %s', async (_, outcome, status, cost) => {
    await start()
    await operate.budget('server', '10')
    for (const { answer } of [one, two]) answer(() => outcome)
    const answer = await send()
    expect(answer.status).toBe(status)
    expect(await operate.spent()).toEqual({ server: cost })
    expect((await notify([latvia()])).status).toBe(status === 200 ? 200 : 500)
    expect(await operate.spent()).toEqual({ server: 2 * cost })
  })

  test('a fallback after an unknown outcome is claimed too, and not sent if the budget is exhausted', async () => {
    await start({ OTP_SMS_MODE: 'hybrid', SMS_TEMPLATE: 'outbox' })
    await app.brand('dlt', { dltEnabled: true })
    await operate.budget('server', '7')
    dlt.answer(() => unknown)
    expectSuccess(await send({ brandId: 'dlt', phone: india() }), ['expiresIn'])
    expect(await operate.spent()).toEqual({ server: 4000 })
    const refused = await send({ brandId: 'dlt', phone: india() })
    expectError(refused, 502, 'sms_failed')
    expect(await operate.spent()).toEqual({ server: 6000 })
    expect(one.sent).toHaveLength(1)
    const { deliveries } = await app.eventsOf(refused)
    expect(deliveries.map(({ provider, outcome, reason }) => [provider, outcome, reason])).toEqual([
      ['dlt', 'unknown', 'time-out'],
      ['one', 'skipped', 'budget exhausted'],
      ['two', 'skipped', 'budget exhausted'],
    ])
  })

  test('/notify to 100 recipients in several countries: all or nothing, and only what was sent', async () => {
    await start()
    const to = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? latvia() : britain()))
    await operate.budget('server', '149')
    expectError(await notify(to), 429, 'rate_limited')
    expect([one.sent.length, await operate.spent()]).toEqual([0, { server: 0 }])
    await operate.budget('server', '150')
    await operate.budget('country:LV', '100')
    let calls = 0
    one.answer(() => (calls++ % 10 === 0 ? rejected : accepted))
    expectError(await notify(to), 500, 'notification_failed')
    const sent = one.sent.map(({ to: digits }, index) => ({ digits, isSent: index % 10 !== 0 }))
    const latvian = sent.filter(({ digits, isSent }) => isSent && digits.startsWith('371')).length
    const british = sent.filter(({ digits, isSent }) => isSent && digits.startsWith('44')).length
    expect(latvian + british).toBe(90)
    expect(await operate.spent()).toEqual({
      server: 2000 * latvian + 1000 * british,
      'country:LV': 2000 * latvian,
    })
  })
})

describe('a fault of the store before a fallback', () => {
  test.each(['send', 'notify'])(
    'ends the delivery of %s, and keeps what may have been spent',
    async (operation) => {
      await start({ OTP_SMS_MODE: 'hybrid', SMS_TEMPLATE: 'outbox' })
      await app.brand('dlt', { dltEnabled: true, notifyTemplates: ['ORDER_DELIVERED'] })
      await operate.budget('server', '10')
      const { store } = app.app.context
      const { admit } = store
      const fault = new Error('disk full')
      let calls = 0
      dlt.answer(() => {
        Object.assign(store, { admit: () => Promise.reject(fault) })
        return calls++ === 0 ? unknown : accepted
      })
      const variables = { customerName: 'Jane', orderId: 'A1', deliveryDateTime: '2026-01-01T12:00Z' }
      const order = { brandId: 'dlt', message: undefined, templateKey: 'ORDER_DELIVERED', variables }
      const [answer, status, spent] =
        operation === 'send'
          ? [await send({ brandId: 'dlt', phone: india() }), 502, 2000]
          : [await notify([india(), india(), india()], order), 500, 6000]
      Object.assign(store, { admit })
      expect(answer.status).toBe(status)
      await app.eventsOf(answer)
      expect(app.lines).toContainEqual(
        expect.objectContaining({ requestId: answer.body.requestId, err: fault }),
      )
      expect([one.sent.length, await operate.spent()]).toEqual([0, { server: spent }])
    },
  )
})

describe('a fault of the store after the delivery', () => {
  test.each(['send', 'notify'])('does not change the answer of %s, and is logged', async (operation) => {
    await start()
    await operate.prices('371 0.05', '371 0.08 two')
    await operate.budget('server', '10')
    const { store } = app.app.context
    const fault = new Error('disk full')
    Object.assign(store, { giveBack: () => Promise.reject(fault) })
    const answer = operation === 'send' ? await send() : await notify([latvia()])
    expect(answer.status).toBe(200)
    await app.eventsOf(answer)
    expect(app.lines).toContainEqual(
      expect.objectContaining({ requestId: answer.body.requestId, err: fault }),
    )
    expect(await operate.spent()).toEqual({ server: 80 })
  })
})

test('after any sends with any outcomes, each budget has counted the prices of the messages that may have been sent', async () => {
  await start({ OTP_SMS_MODE: 'hybrid', SMS_TEMPLATE: 'outbox' })
  await app.brand('dlt', { dltEnabled: true })
  await operate.prices('371 0.07', '371 0.05 one', '371 0.09 dlt', '44 0.02')
  const price = (provider: string, to: string) =>
    to.startsWith('44') ? 20 : provider === 'one' ? 50 : provider === 'dlt' ? 90 : 70
  const outcome = fc.constantFrom(accepted, accepted, rejected, temporary, unknown)
  const request = fc.record({
    isNotify: fc.boolean(),
    countries: fc.array(fc.constantFrom('LV', 'GB'), { minLength: 1, maxLength: 4 }),
    brandId: fc.constantFrom('acme', 'dlt'),
    outcomes: fc.array(outcome, { minLength: 12, maxLength: 12 }),
  })
  const sequence = fc.array(fc.array(request, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 })
  const scopes: readonly (readonly [scope: string, of?: 'codes' | 'notifications'])[] = [
    ['server'],
    ['server', 'codes'],
    ['brand:dlt'],
    ['app:shop', 'notifications'],
    ['country:GB'],
    ['country:*'],
  ]
  await fc.assert(
    fc.asyncProperty(sequence, fc.constantFrom('0.3', '100'), async (rounds, amount) => {
      for (const [scope, of] of scopes) await operate.budget(scope, amount, { of })
      const names = ['server', 'server of codes', 'brand:dlt', 'app:shop of notifications', 'country:GB']
      const expected = Object.fromEntries(names.map((name) => [name, 0]))
      const may: { provider: string; to: string; brand: string; isCode: boolean }[] = []
      const queue = rounds.flat().flatMap(({ outcomes }) => outcomes)
      for (const { name, answer } of [one, two, dlt]) {
        answer(async ({ to, brandSlug, text }) => {
          const next = queue.pop() ?? accepted
          await Promise.resolve()
          if (next.kind === 'accepted' || next.kind === 'unknown')
            may.push({ provider: name, to, brand: brandSlug, isCode: text !== 'Hello' })
          return next
        })
      }
      for (const requests of rounds) {
        const answers = await Promise.all(
          requests.map(({ isNotify, countries, brandId }) => {
            const to = countries.map((country) => (country === 'LV' ? latvia() : britain()))
            return isNotify ? notify(to, { brandId }) : send({ phone: to[0], brandId })
          }),
        )
        expect(statuses(answers).every((status) => [200, 429, 500, 502].includes(status))).toBe(true)
      }
      for (const { provider, to, brand, isCode } of may) {
        const cost = price(provider, to)
        const own = [
          'server',
          isCode ? 'server of codes' : 'app:shop of notifications',
          ...(brand === 'dlt' ? ['brand:dlt'] : []),
          to.startsWith('44') ? 'country:GB' : 'country:* (LV)',
        ]
        for (const name of own) expected[name] = (expected[name] ?? 0) + cost
      }
      expect(await operate.spent()).toEqual(expected)
      if (amount !== '100')
        for (const count of Object.values(expected)) expect(count).toBeLessThanOrEqual(300)
      for (const [scope, of] of scopes) await operate.removeBudget(scope, of)
      // The circuits close, and new budgets have new counters.
      app.advance(1000)
    }),
    { numRuns: 15 },
  )
})
