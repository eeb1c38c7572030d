import { afterEach, describe, expect, test } from 'bun:test'
import type { Ladder } from '../../src/domain/otp/ladder.ts'
import { addAccount, enterAs } from '../support/accounts.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { printed } from '../support/command.ts'
import { explained } from '../support/explained.ts'
import { accepted, policyOf, rejected, temporary, testProvider, unknown } from '../support/policy.ts'
import { expectError, expectSuccess } from '../support/rows.ts'

// Design D54: calls have a list of countries and a budget of their own.

const [sms, whatsapp, voice] = [testProvider('one'), testProvider('two'), testProvider('three')]
let app: TestApp

afterEach(async () => {
  await app.close()
  for (const each of [sms, voice]) each.answer(() => accepted)
  for (const { sent } of [sms, whatsapp, voice]) sent.length = 0
})

async function start(
  env: Readonly<Record<string, string>> = {},
  ways: Ladder['ways'] = ['sms'],
): Promise<void> {
  const phoneRoutes = { plain: [sms], whatsapp: [whatsapp], voice: [voice] }
  const ladder = { ways, waitSeconds: 20 }
  app = await createTestApp({ SMS_COOLDOWN_SECONDS: '0', ...env }, { phoneRoutes, ladder })
}

const british = (index: number) => `4474001${String(index).padStart(5, '0')}`
const resend = (phone: string, via = 'voice') => app.post('/otp/resend', { phone, via })

/** Requests a call of each number, all at once. Returns how many calls the server makes, and why not the others. */
async function attack(calls: number, first = 0) {
  const answers = await Promise.all(
    Array.from({ length: calls }, (_, index) => resend(british(first + index))),
  )
  const others = answers.filter(({ status }) => status !== 200)
  return {
    made: calls - others.length,
    why: [...new Set(others.map(({ status, body }) => `${status} ${body.error} ${body.reason}`))],
  }
}

describe('calls to other countries', () => {
  const latvia = '37120000001'

  test('than those of VOICE_COUNTRIES are rejected, while SMS go to them', async () => {
    await start({ VOICE_COUNTRIES: 'gb, FR', SMS_COUNTRIES: 'GB,LV' })
    const refused = await resend(latvia)
    expectError(refused, 400, 'validation_error', 'destination')
    expect(refused.body.message).toBe('`phone` is a number of Latvia (LV), which this server does not call.')
    const { trace } = await app.eventsOf(refused)
    if (!trace) throw new Error('no trace')
    expect(explained(trace, [])).toContainEqual(expect.stringContaining('VOICE_COUNTRIES'))
    expectSuccess(await resend(latvia, 'sms'), ['expiresIn'])
    expectSuccess(await resend(british(1)), ['expiresIn'])
    // A country must be allowed for SMS, too.
    expectError(await resend('33612345678'), 400, 'validation_error', 'destination')
    expect(voice.sent.map(({ to }) => to)).toEqual([british(1)])
  })

  test('than those of SMS_COUNTRIES are rejected without VOICE_COUNTRIES, also where a stored rule allows SMS', async () => {
    await start({ SMS_COUNTRIES: 'GB' })
    await policyOf(app).rule('LV', 'allow')
    expectError(await resend(latvia), 400, 'validation_error', 'destination')
    expectSuccess(await resend(latvia, 'sms'), ['expiresIn'])
    expectSuccess(await resend(british(1)), ['expiresIn'])
  })

  test('need no list: without both, only premium-rate and satellite numbers are blocked, as for SMS', async () => {
    await start()
    expectSuccess(await resend(latvia), ['expiresIn'])
    for (const phone of ['+449098790000', '+881612345678', '+870773123456'])
      expectError(await resend(phone), 400, 'validation_error', 'destination')
    await policyOf(app).rule('+881', 'allow')
    expectSuccess(await resend('+881612345678'), ['expiresIn'])
  })

  test('have numbers of no country, if there is a list', async () => {
    await start({ VOICE_COUNTRIES: 'GB' })
    await policyOf(app).rule('+881', 'allow')
    const refused = await resend('+881612345678')
    expectError(refused, 400, 'validation_error', 'destination')
    expect(refused.body.message).toBe('`phone` is a number of no country, which this server does not call.')
  })
})

test('a ladder skips the call of another country, and the call that the limit rejects', async () => {
  await start({ VOICE_COUNTRIES: 'GB' }, ['sms', 'voice', 'whatsapp'])
  sms.answer(() => temporary)
  expectSuccess(await app.post('/otp/send', { phone: '37120000001' }), ['expiresIn'])
  expect([voice.sent.length, whatsapp.sent.length]).toEqual([0, 1])
  await attack(100)
  expectSuccess(await app.post('/otp/send', { phone: british(200) }), ['expiresIn'])
  expect([voice.sent.length, whatsapp.sent.length]).toEqual([100, 2])
}, 60_000)

describe('without a budget of calls', () => {
  test('an attack on 300 numbers makes 100 calls a day, and an alert says so', async () => {
    await start({ ALERT_EMAIL: 'ops@example.com' })
    expect(await attack(300)).toEqual({ made: 100, why: ['429 rate_limited budget'] })
    expect(voice.sent.length).toBe(100)
    expect((await resend(british(301), 'sms')).status).toBe(200)
    await app.app.alerts.idle()
    app.advance(1)
    app.app.alerts.tick()
    await app.app.alerts.idle()
    const subjects = (await app.outbox('ops@example.com')).map(({ subject }) => subject)
    expect(subjects).toContainEqual(expect.stringContaining('Budget way:voice: 100% of 100 calls'))
    app.advance(12 * 3600)
    expect(await attack(120, 400)).toEqual({ made: 100, why: ['429 rate_limited budget'] })
  }, 60_000)

  test('a call that the provider rejects does not count; one with an unknown result does', async () => {
    await start()
    voice.answer(() => rejected)
    await attack(60)
    voice.answer(() => temporary)
    await attack(60, 60)
    voice.answer(() => unknown)
    await attack(60, 120)
    voice.answer(() => accepted)
    expect((await attack(60, 200)).made).toBe(40)
    const refused = await resend(british(300))
    expect(refused.body.message).toContain('The budget for calls is spent; it resets in 12 hours.')
    const { trace } = await app.eventsOf(refused)
    expect(trace?.limits.at(-1)).toMatchObject({
      limit: 'budget',
      refused: true,
      max: 100e6,
      budget: { scope: 'way:voice', of: 'all', currency: 'calls' },
    })
  }, 60_000)
})

test('the budget of a server that has none is listed, with its state, on the page too', async () => {
  await start()
  await attack(80)
  const visitor = await enterAs(app, await addAccount(app, 'ada@acme.example', 'operator'))
  const { html } = await visitor.get('/admin/money')
  expect(html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')).toMatch(
    /100 calls per day, resets .* 80 calls 80%/,
  )
  expect(html).not.toContain('Remove<span class="sr-only"> way:voice')
  // Commands have the clock of the machine.
  const env = { ...app.database.env, VOICE_PROVIDER: 'twilio-voice' }
  const rows = async () => (await printed(env, ['budget', 'list', '--json'])).map((row) => JSON.parse(row))
  const capped = { scope: 'way:voice', per: 'day', amount: 100, currency: 'calls', state: 'ok' }
  expect((await rows()).flat()).toMatchObject([capped])
  await policyOf(app).budget('way:voice', '30')
  expect((await rows()).flat()).toMatchObject([{ scope: 'way:voice', currency: 'units' }])
}, 60_000)

describe('a budget of a way', () => {
  test('of calls decides instead, of the price of a call, and only about calls', async () => {
    await start()
    const { budget, prices, spent, removeBudget } = policyOf(app)
    await prices('44 0.05', '44 0.20 three')
    await budget('way:voice', '30')
    expect(await attack(160)).toEqual({ made: 150, why: ['429 rate_limited budget'] })
    expect(voice.sent.length).toBe(150)
    expectSuccess(await resend(british(500), 'sms'), ['expiresIn'])
    expectSuccess(await resend(british(501), 'whatsapp'), ['expiresIn'])
    expect(await spent()).toEqual({ 'way:voice': 30_000 })
    await removeBudget('way:voice')
    expect((await attack(110, 600)).made).toBe(100)
  }, 60_000)

  test('of notifications does not end the limit of calls; one that only alerts does', async () => {
    await start()
    const { budget } = policyOf(app)
    await budget('way:voice', '1', { of: 'notifications' })
    expect((await attack(110)).made).toBe(100)
    await budget('way:voice', '1', { of: 'codes', stops: false })
    expect((await attack(110, 200)).made).toBe(110)
  }, 60_000)

  test('counts the messages of its way, with those of the server and the country', async () => {
    await start()
    const { budget, spent } = policyOf(app)
    for (const scope of ['server', 'country:GB', 'way:sms', 'way:whatsapp', 'way:telegram'])
      await budget(scope, '50')
    await resend(british(1), 'sms')
    await resend(british(2), 'whatsapp')
    await resend(british(3), 'whatsapp')
    await resend(british(4))
    const one = (await spent())['way:sms'] ?? 0
    expect(one).toBeGreaterThan(0)
    expect(await spent()).toEqual({
      server: 4 * one,
      'country:GB': 4 * one,
      'way:sms': one,
      'way:whatsapp': 2 * one,
      'way:telegram': 0,
    })
    await expect(budget('way:fax', '5')).rejects.toThrow('way: with sms, whatsapp, telegram, voice')
  })
})
