import { afterEach, describe, expect, test } from 'bun:test'
import { createTestApp, type TestApp } from '../support/app.ts'
import { accepted, policyOf, temporary, testProvider } from '../support/policy.ts'
import { expectError, expectSuccess, logged } from '../support/rows.ts'

// Design D40 on the request path. Which rule matches is in test/domain/destination-rules.test.ts.

let app: TestApp
let operate: ReturnType<typeof policyOf>
const one = testProvider('one')
const two = testProvider('two')
const dlt = testProvider('dlt')

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  app = await createTestApp(env, { phoneRoutes: { plain: [one, two], template: [dlt] } })
  await app.brand('dlt', { dltEnabled: true, notifyTemplates: ['ORDER_DELIVERED'] })
  operate = policyOf(app)
}
afterEach(async () => {
  await app.close()
  for (const { sent, answer } of [one, two, dlt]) {
    sent.length = 0
    answer(() => accepted)
  }
})

const latvia = '37120000001'
const britain = '447400123456'
const india = '919876543210'
const send = (phone: string, fields: Readonly<Record<string, unknown>> = {}) =>
  app.post('/otp/send', { phone, ...fields })
const notify = (...to: readonly string[]) =>
  app.post('/notify', { channel: 'SMS', brandId: 'acme', to, message: 'Hello' })
const variables = { customerName: 'Jane', orderId: 'A-1', deliveryDateTime: '2026-01-01T12:00Z' }
const twice = (call: string) => [call, call]
/** The calls of the providers, in their order. */
const calls = () =>
  [one, two, dlt].flatMap(({ name, sent }) => sent.map(({ to, route }) => `${name} ${route} ${to}`))

describe('where SMS may go', () => {
  test('SMS_COUNTRIES allows its countries only, without numbers of other kinds; stored rules take precedence', async () => {
    await start({ SMS_COUNTRIES: 'GB,LV' })
    const blocked = {
      'a country that is not listed': '4915112345678',
      'a territory with its own code': '447911123456',
      'a premium-rate number': '449012345678',
      'a pager': '447640123456',
      'a satellite number': '881612345678',
      'a number of no plan': '371000000000',
    }
    for (const [name, phone] of Object.entries(blocked)) {
      expect([name, (await send(phone)).body.error]).toEqual([name, 'validation_error'])
    }
    for (const phone of [britain, latvia]) expectSuccess(await send(phone), ['expiresIn'])
    await operate.rule('DE', 'allow')
    await operate.rule('LV', 'block')
    expectSuccess(await send('4915112345678'), ['expiresIn'])
    expectError(await send('37120000002'), 400, 'validation_error')
    await operate.rule('+449012', 'allow')
    expectSuccess(await send('449012345678'), ['expiresIn'])
  })

  test('without a rule, SMS go everywhere but to costly numbers; with one, not to personal ones either', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '1000' })
    const costly = {
      'premium-rate': '449012345678',
      'shared-cost': '491805123456',
      pager: '447640123456',
      satellite: '881612345678',
    }
    const others = { personal: '447012345678', 'universal access': '445551234567' }
    const expectBlocked = async (numbers: Readonly<Record<string, string>>) => {
      for (const [kind, phone] of Object.entries(numbers)) {
        for (const path of ['/otp/send', '/otp/resend', '/notify']) {
          const sms = { channel: 'SMS', brandId: 'acme', to: [britain, phone], message: 'Hello' }
          const answer = await app.post(path, path === '/notify' ? sms : { phone })
          expectError(answer, 400, 'validation_error', 'destination')
          expect([phone, answer.body.message]).toEqual([phone, expect.stringContaining(` a ${kind} number`)])
        }
      }
      expect(calls()).toEqual([])
    }
    await expectBlocked(costly)
    const sent = [britain, '448001234567', '18005550199', '371000000000', ...Object.values(others)]
    expectSuccess(await notify(...sent), ['channel'])
    expect(calls()).toHaveLength(sent.length)
    one.sent.length = 0
    await operate.rule('GB', 'allow')
    await expectBlocked({ ...costly, ...others })
    await operate.rule('+4470', 'allow')
    for (const phone of ['447012345678', '18005550199']) expectSuccess(await notify(phone), ['channel'])
    expect(calls()).toHaveLength(2)
  })

  test('the rule of a brand takes precedence over the general one, for its requests only', async () => {
    await start()
    await app.brand('other')
    await operate.rule('LV', 'block')
    await operate.rule('LV', 'allow', { brandSlug: 'other' })
    expectError(await send(latvia), 400, 'validation_error')
    expectSuccess(await send(latvia, { brandId: 'other' }), ['expiresIn'])
  })

  test('monitor sends, and marks the trace and the log line', async () => {
    await start()
    await operate.rule('LV', 'monitor')
    const answer = await send(latvia)
    expectSuccess(answer, ['expiresIn'])
    const { trace, deliveries } = await app.eventsOf(answer)
    expect(trace).toMatchObject({ country: 'LV', flags: ['destination'] })
    expect(deliveries[0]?.country).toBe('LV')
    expect(app.lines.at(-1)).toMatchObject({ country: 'LV', flags: ['destination'] })
  })

  test('a blocked send names the field, not the number, and sends nothing', async () => {
    await start()
    await operate.rule('LV', 'block')
    const answer = await send(latvia)
    expectError(answer, 400, 'validation_error')
    expect(answer.body.message).toBe('`phone` is in a country that this server does not send SMS to: Latvia.')
    expect((await app.eventsOf(answer)).trace?.country).toBe('LV')
    expect(calls()).toEqual([])
    expectSuccess(await app.post('/otp/send', { channel: 'EMAIL', email: 'a@example.com' }), ['expiresIn'])
  })

  test('one blocked recipient of /notify blocks the whole request before any SMS', async () => {
    await start()
    await operate.rule('LV', 'block')
    const answer = await notify(britain, india, latvia)
    expectError(answer, 400, 'validation_error')
    expect(answer.body.message).toStartWith('`to[2]` is in a country')
    expect(calls()).toEqual([])
    const sent = await notify(britain, india)
    expectSuccess(sent, ['channel'])
    const { trace, deliveries } = await app.eventsOf(sent)
    expect(trace?.country).toBeNull()
    expect(deliveries.map(({ country }) => country).sort()).toEqual(['GB', 'IN'])
  })
})

describe('how SMS go', () => {
  test('the providers of a rule are tried in its order', async () => {
    await start()
    await operate.rule('LV', 'allow', { providers: ['two', 'one'] })
    two.answer(() => temporary)
    const { deliveries } = await app.eventsOf(await send(latvia))
    expect(deliveries.map(({ provider, outcome }) => `${provider} ${outcome}`)).toEqual([
      'two retryable',
      'one accepted',
    ])
  })

  test('through the providers and with the sender of the rule, of /notify for each recipient', async () => {
    await start()
    await operate.rule('LV', 'allow', { providers: ['two'], sender: 'ACME' })
    expectSuccess(await notify(latvia, britain), ['channel'])
    expectSuccess(await send(latvia), ['expiresIn'])
    expect(calls()).toEqual([`one plain ${britain}`, `two plain ${latvia}`, `two plain ${latvia}`])
    expect(two.sent.map(({ senderId }) => senderId)).toEqual(['ACME', 'ACME'])
    expect(one.sent.map(({ senderId }) => senderId)).toEqual([null])
  })

  test.each(['template', 'hybrid'])(
    'the SMS of a DLT brand go the registered route, and abroad the plain one (OTP_SMS_MODE=%s)',
    async (mode) => {
      await start({ OTP_SMS_MODE: mode, SMS_TEMPLATE: 'outbox' })
      const ordered = { channel: 'SMS', brandId: 'dlt', templateKey: 'ORDER_DELIVERED', to: [india, britain] }
      for (const phone of [india, britain])
        expectSuccess(await send(phone, { brandId: 'dlt' }), ['expiresIn'])
      expectSuccess(await app.post('/notify', { ...ordered, variables }), ['channel', 'templateKey'])
      expect(calls()).toEqual([...twice(`one plain ${britain}`), ...twice(`dlt template ${india}`)])
      // A rule decides.
      await operate.rule('LV', 'allow', { route: 'template' })
      await operate.rule('+9177', 'allow', { route: 'plain', providers: ['one'] })
      for (const phone of [latvia, '917700000001'])
        expectSuccess(await send(phone, { brandId: 'dlt' }), ['expiresIn'])
      expect(calls()).toContain(`dlt template ${latvia}`)
      expect(calls()).toContain('one plain 917700000001')
      dlt.answer(() => ({ kind: 'retryable', reason: 'HTTP 503' }))
      const failing = await send('919876543211', { brandId: 'dlt' })
      expect(failing.status).toBe(mode === 'hybrid' ? 200 : 502)
    },
  )

  test.each(['/otp/send', '/notify'])(
    'a rule without a configured provider fails, sends nothing, and is named in the log: %s',
    async (path) => {
      await start()
      await operate.rule('LV', 'allow', { providers: ['gone'], brandSlug: 'acme' })
      await operate.budget('server', '100')
      const fields =
        path === '/notify' ? { channel: 'SMS', brandId: 'acme', to: [latvia], message: 'Hello' } : {}
      const answer = await app.post(path, { phone: path === '/notify' ? undefined : latvia, ...fields })
      if (path === '/notify') expectError(answer, 500, 'notification_failed')
      else expectError(answer, 502, 'sms_failed')
      expect(calls()).toEqual([])
      expect(await operate.spent()).toEqual({ server: 0 })
      await logged()
      const line = app.lines.find((each) => 'requestId' in each && each.requestId === answer.body.requestId)
      expect(line).toMatchObject({ err: { message: expect.stringContaining('rule LV for brand acme') } })
      // The next send counts from zero.
      await operate.rule('LV', 'allow', { brandSlug: 'acme' })
      expectSuccess(await send(latvia), ['expiresIn'])
    },
  )
})
