import { afterEach, describe, expect, test } from 'bun:test'
import { exampleOf } from '../../src/adapters/phone/example.ts'
import { readDestinationConfig } from '../../src/config/destinations.ts'
import { dayMs } from '../../src/domain/ground/time.ts'
import { PriceList } from '../../src/domain/money/prices.ts'
import { relativePrices } from '../../src/domain/money/relative-prices.ts'
import { modeAt } from '../../src/domain/operator/guard.ts'
import {
  mobilePrices,
  type WhatIfSettings,
  whatIf,
  whatIfRow,
  whatIfWords,
} from '../../src/domain/operator/whatif.ts'
import { Random } from '../simulation/random.ts'
import { codeIn, createTestApp, type TestApp } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { operate, tester } from '../support/operator.ts'
import { policyOf } from '../support/policy.ts'

// Design D58: what other settings would have done with an event log whose truth is known.

const builtIn = mobilePrices(relativePrices, exampleOf)
const apps: TestApp[] = []
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()))
})

async function start(env: Readonly<Record<string, string>> = {}) {
  const settings = { SMS_COOLDOWN_SECONDS: '1', PHONE_LIMIT_PER_MINUTE: '1000', ...env }
  const app = await createTestApp(settings)
  apps.push(app)
  const startedAt = app.clock.now
  return {
    app,
    async send(phone: string, isVerified = false): Promise<number> {
      app.advance(30)
      const { status } = await app.post('/otp/send', { phone })
      if (!isVerified || status !== 200) return status
      app.advance(5)
      const otp = codeIn((await app.outbox(phone)).at(-1)?.text)
      return (await app.post('/otp/verify', { phone, otp })).status
    },
    async whatIf(given: WhatIfSettings = {}, since = startedAt) {
      // The event log gets a request in the turn after the answer.
      await new Promise((resolve) => setImmediate(resolve))
      const server = { ...readDestinationConfig(settings), prices: builtIn }
      return whatIf(app.app.context, server, given, { since })
    },
  }
}

const numbers = {
  GB: (at: number) => `447400${String(100000 + at * 10007)}`,
  IN: (at: number) => `9198${String(10000000 + at * 10007)}`,
  LV: (at: number) => `3712${String(1000000 + at * 10007)}`,
}

describe('countries', () => {
  test('deny the codes to others, with who verified them, and their cost by country and app', async () => {
    const { send, whatIf } = await start()
    for (let at = 0; at < 4; at++) expect(await send(numbers.GB(at), at < 3)).toBe(200)
    for (let at = 0; at < 3; at++) expect(await send(numbers.LV(at), at === 0)).toBe(200)
    const found = await whatIf({ countries: ['GB', 'IN'] })
    const saved = { amount: 6, currency: 'units' }
    const none = { amount: 0, currency: 'units' }
    expect(whatIfRow(found)).toEqual({
      requests: 7,
      denied: 3,
      deniedVerified: 1,
      saved,
      byCountry: [
        { country: 'LV', requests: 3, denied: 3, deniedVerified: 1, saved },
        { country: 'GB', requests: 4, denied: 0, deniedVerified: 0, saved: none },
      ],
      byApp: [{ app: 'shop', requests: 7, denied: 3, deniedVerified: 1, saved }],
    })
    expect(found.byDay).toMatchObject([{ at: Date.UTC(2026, 0, 1), requests: 7, denied: 3 }])
  })

  test('leave the stored rules in force, and deny no number that a rule for a prefix may allow', async () => {
    const { app, send, whatIf } = await start()
    await send(numbers.LV(0))
    await send(numbers.IN(0))
    await policyOf(app).rule('IN', 'allow')
    await policyOf(app).rule('+3712', 'allow')
    const found = await whatIf({ countries: ['GB'] })
    expect(whatIfRow(found)).toMatchObject({ requests: 2, denied: 0 })
    expect(found.unknown.join()).toContain('A rule for a prefix may apply to 1 number.')
  })
})

describe('codes per phone and hour', () => {
  test.each([1, 2, 3, 5])('%d: as many as a server with this limit denies', async (phoneHour) => {
    const calls = Array.from({ length: 60 }, (_, at) => numbers.GB((at * at) % 7))
    const logged = await start({ PHONE_LIMIT_PER_HOUR: '1000' })
    const limited = await start({ PHONE_LIMIT_PER_HOUR: String(phoneHour) })
    let denied = 0
    for (const phone of calls) {
      for (const { app } of [logged, limited]) app.advance(60)
      expect(await logged.send(phone)).toBe(200)
      if ((await limited.send(phone)) === 429) denied++
    }
    expect((await logged.whatIf({ phoneHour })).total).toMatchObject({ requests: 60, denied })
    expect((await limited.whatIf()).total).toMatchObject({ requests: 60 - denied, denied: 0 })
  })
})

test.each([1, 2, 3])('the settings in force deny nothing that was sent: history %d', async (seed) => {
  const random = new Random(seed)
  const env = { GUARD: 'deny', PHONE_LIMIT_PER_HOUR: '3', SMS_COUNTRIES: 'GB,LV,IN' }
  const { app, send, whatIf } = await start(env)
  await policyOf(app).rule('IN', 'block')
  await policyOf(app).budget('country:*', '40')
  let sent = 0
  for (let step = 0; step < 120; step++) {
    app.advance(random.below(600))
    const phone = numbers[random.pick(['GB', 'GB', 'LV', 'IN'] as const)](random.below(12))
    const before = (await app.outbox()).length
    await send(phone, random.chance(0.6))
    if ((await app.outbox()).length > before) sent++
  }
  expect((await whatIf()).total).toMatchObject({ requests: sent, denied: 0 })
  expect(sent).toBeLessThan(110)
})

test('what was sent before the time counts, as for a server that runs on', async () => {
  const { app, send, whatIf } = await start()
  for (let sent = 0; sent < 2; sent++) await send(numbers.GB(0))
  const since = app.clock.now + 1
  for (let sent = 0; sent < 2; sent++) await send(numbers.GB(0))
  expect((await whatIf({ phoneHour: 3 }, since)).total).toMatchObject({ requests: 2, denied: 1 })
})

test('the page reads so many codes, and says until when', async () => {
  const { app, send, whatIf: all } = await start()
  for (let at = 0; at < 101; at++) await send(numbers.GB(at))
  expect((await all()).total.requests).toBe(101)
  const server = { guard: 'record', smsCountries: [], phonePerHour: 10, prices: builtIn } as const
  const found = await whatIf(app.app.context, server, {}, { since: app.clock.now - 86_400_000, most: 100 })
  expect(found.total.requests).toBe(100)
  expect(found.unknown.join()).toContain('The log is longer: only the codes until 2026-01-01 12:50:00 UTC')
})

describe('a price file', () => {
  test('has the cost and the currency, per segment, and the price of a provider first', async () => {
    const { send, whatIf } = await start()
    await send(numbers.LV(0))
    await send(numbers.LV(1))
    const row = (prefix: string, price: number, provider: string | null = null) => ({
      prefix,
      provider,
      priceMicros: price * 1e6,
      currency: 'INR',
    })
    const list = new PriceList([row('371', 3), row('3712', 0.5, 'outbox'), row('44', 9)])
    const prices = mobilePrices(list, exampleOf)
    const found = await whatIf({ countries: ['GB'], prices })
    expect(whatIfRow(found).saved).toEqual({ amount: 1, currency: 'INR' })
  })
})

test('the money of codes that are left is right after others were erased, and the result says so', async () => {
  const { app, send, whatIf } = await start()
  for (let at = 0; at < 3; at++) await send(numbers.LV(at))
  expect((await whatIf({ countries: ['GB'] })).unknown.join()).not.toContain('erased')
  await app.app.context.forget({ channel: 'SMS', to: numbers.LV(0) }, tester)
  const found = await whatIf({ countries: ['GB'] })
  expect(whatIfRow(found)).toMatchObject({ denied: 2, saved: { amount: 4, currency: 'units' } })
  expect(found.unknown.join()).toContain(
    'Recipients were erased: their codes are missing. Until 2026-01-02 00:00:00 UTC, a code costs what the prices of the server say.',
  )
  app.advance(24 * 3600)
  await send(numbers.LV(3))
  expect((await whatIf({ countries: ['GB'] })).total).toMatchObject({ denied: 3, savedMicros: 6e6 })
})

test('reading begins with the day of the oldest request, and not in the future', async () => {
  const { app, send } = await start()
  await send(numbers.GB(0))
  await new Promise((resolve) => setImmediate(resolve))
  const { context } = app.app
  const read: number[] = []
  const spied = {
    ...context,
    eventLog: {
      ...context.eventLog,
      smsSegments: (from: number, until: number) => {
        read.push(from)
        return context.eventLog.smsSegments(from, until)
      },
    },
  }
  const server = { guard: 'record', smsCountries: [], phonePerHour: 10, prices: builtIn } as const
  expect((await whatIf(spied, server, {}, { since: Date.UTC(1900, 0, 1) })).total.requests).toBe(1)
  expect(read).toEqual([Date.UTC(2026, 0, 1)])
  await expect(whatIf(context, server, {}, { since: app.clock.now + dayMs })).rejects.toThrow(
    'since must not be in the future.',
  )
})

describe('budgets of now', () => {
  test('in another currency than the price file are named', async () => {
    const { app, send, whatIf } = await start()
    await send(numbers.LV(0))
    await policyOf(app).budget('country:*', '1')
    const usd = new PriceList([{ prefix: '371', provider: null, priceMicros: 5e6, currency: 'USD' }])
    const words = whatIfWords(await whatIf({ prices: mobilePrices(usd, exampleOf) })).join('\n')
    expect(words).toContain('Budgets of a way or in another currency than USD do not count: country:*.')
    expect(words).toContain('Prices alone deny only what exceeds a budget.')
    const inUnits = { ...builtIn, perSegment: () => 2e6 }
    const counted = await whatIf({ prices: inUnits, phoneHour: 5 })
    expect([counted.total.denied, counted.notes]).toEqual([1, []])
    await policyOf(app).budget('way:sms', '1')
    expect((await whatIf()).notes.join()).toContain('do not count: way:sms.')
  })

  test('deny what a server with them denies', async () => {
    const logged = await start()
    const limited = await start()
    await policyOf(limited.app).budget('country:*', '6')
    let denied = 0
    for (let at = 0; at < 8; at++) {
      await logged.send(numbers.LV(at))
      if ((await limited.send(numbers.LV(at))) === 429) denied++
    }
    await policyOf(logged.app).budget('country:*', '6')
    expect((await logged.whatIf()).total).toMatchObject({ requests: 8, denied, savedMicros: denied * 2e6 })
    expect(denied).toBe(5)
    expect((await limited.whatIf()).total).toMatchObject({ requests: 3, denied: 0 })
  })
})

describe('the guard', () => {
  test('has the mode that was in force at each time', () => {
    const changes = [
      { at: 10, target: 'off', details: { mode: 'record → off' } },
      { at: 20, target: 'deny', details: { mode: 'off → deny until 1970-01-01 00:00:01 UTC' } },
      { at: 2000, target: 'record', details: { mode: 'off → record' } },
    ]
    const modes = [0, 10, 20, 999, 1000, 2000].map((at) => modeAt(changes, 'deny', at))
    expect(modes).toEqual(['record', 'off', 'deny', 'deny', 'off', 'record'])
    expect(modeAt([], 'deny', 0)).toBe('deny')
  })

  /** Users at home, and an attack on numbers of one prefix and on many of another country. */
  async function attack({ send }: Awaited<ReturnType<typeof start>>): Promise<number> {
    let denied = 0
    for (let at = 0; at < 40; at++) {
      const phones = [numbers.GB(at), `3716700${1000 + at}`, numbers.LV(at)]
      for (const [kind, phone] of phones.entries()) {
        const status = await send(phone, kind === 0 && at % 4 > 0)
        if (status === 429) denied++
      }
    }
    return denied
  }

  test('denies the codes that it recorded, as a server that denies', async () => {
    const record = await start({ GUARD: 'record' })
    const deny = await start({ GUARD: 'deny' })
    await operate(record.app, 'guard mode', { mode: 'record' })
    expect(await attack(record)).toBe(0)
    const denied = await attack(deny)
    const found = await record.whatIf({ guard: 'deny' })
    expect(found.total).toMatchObject({ requests: 120, denied })
    expect(denied).toBeGreaterThan(50)
    expect(found.byCountry).toMatchObject([
      { name: 'LV', denied },
      { name: 'GB', denied: 0 },
    ])
    expect((await record.whatIf()).total.denied).toBe(0)
    expect((await deny.whatIf()).total).toMatchObject({ requests: 120 - denied, denied: 0 })
    expect((await deny.whatIf({ guard: 'deny' })).total.denied).toBe(0)
  })

  test('that was off denies by country and number alone', async () => {
    const off = await start({ GUARD: 'off' })
    const deny = await start({ GUARD: 'deny' })
    await attack(off)
    const truth = await attack(deny)
    const { total, unknown } = await off.whatIf({ guard: 'deny' })
    expect(unknown.join()).toContain('The guard was off for 120 codes.')
    expect(total.denied).toBeGreaterThan(0.9 * truth)
    expect(total.denied).toBeLessThanOrEqual(truth + 5)
  })

  test('counts a verified code of those it would have denied', async () => {
    const { send, whatIf } = await start({ GUARD: 'record' })
    for (let at = 0; at < 6; at++) await send(`3716700${1000 + at}`, at === 5)
    expect((await whatIf({ guard: 'deny' })).total).toMatchObject({ denied: 3, deniedVerified: 1 })
  })
})

test('the page has the figures, and the actions that apply the settings', async () => {
  const { app, send } = await start()
  await send(numbers.GB(0), true)
  for (let at = 0; at < 3; at++) await send(numbers.LV(at), at === 0)
  const visitor = await signedIn(app)
  const words = async (query: string) => {
    const { status, html } = await visitor.get(`/admin/what-if${query}`)
    return [status, html.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ')] as const
  }
  expect((await words(''))[1]).not.toContain('With these settings')
  const [, text] = await words('?since=1d&guard=deny&countries=gb%2C+IN&phoneHour=5')
  expect(text).toContain('3 of 4 codes would have been denied; 1 of them was later verified; 6 units saved.')
  expect(text).toContain('Latvia (LV) 3 3 1 6 units Block the country… LV')
  expect(text).toContain('set SMS_COUNTRIES=GB,IN PHONE_LIMIT_PER_HOUR=5 and restart the server.')
  expect(text).toContain('Set the guard to deny')
  expect(await words('?countries=XX&phoneHour=0')).toEqual([
    400,
    expect.stringContaining('Countries must be codes such as IN,GB. Codes per phone and hour must be 1 to'),
  ])
})
