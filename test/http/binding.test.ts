import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readConfig } from '../../src/config/config.ts'
import { addReviewNumber } from '../../src/domain/operator/review-numbers.ts'
import { createTestApp, otherThan, type TestApp } from '../support/app.ts'
import { explained } from '../support/explained.ts'
import { setText, tester } from '../support/operator.ts'
import { testProvider } from '../support/policy.ts'
import { expectError, expectSuccess, freshEmail, freshPhone } from '../support/rows.ts'

// Design D55: what a code is for.

const transaction = { amount: '1250.00', currency: 'INR', payee: 'City Water' }
const payment = { purpose: 'payment', transaction }
const sms = testProvider('one')
const chat = testProvider('two')
let app: TestApp

beforeEach(async () => {
  const settings = { SMS_COOLDOWN_SECONDS: '0', PHONE_LIMIT_PER_MINUTE: '100', PHONE_LIMIT_PER_HOUR: '100' }
  app = await createTestApp(settings, { phoneRoutes: { plain: [sms], whatsapp: [chat] } })
  await app.brand('logins', { displayName: 'Acme', loginIdEnabled: true })
})
afterEach(async () => {
  await app.close()
  sms.sent.length = 0
  chat.sent.length = 0
})

type Fields = Readonly<Record<string, unknown>>

const verify = (fields: Fields) => app.post('/otp/verify', fields)

/** Sends a code to a new phone. */
async function sent(fields: Fields, path = '/otp/send') {
  const phone = freshPhone()
  expectSuccess(await app.post(path, { phone, ...fields }), ['expiresIn'])
  return { phone, otp: sms.sent.at(-1)?.code ?? '' }
}

describe('a code', () => {
  test.each(['/otp/send', '/otp/resend'])(
    'of %s verifies only with its purpose and transaction, each of which counts',
    async (path) => {
      const others: readonly Fields[] = [
        {},
        { purpose: 'login', transaction },
        { transaction },
        { purpose: 'payment' },
        { ...payment, transaction: { ...transaction, amount: '1250.01' } },
        { ...payment, transaction: { ...transaction, currency: 'USD' } },
        { ...payment, transaction: { ...transaction, payee: 'City water' } },
      ]
      for (const other of others) {
        const code = await sent(payment, path)
        expectError(await verify({ ...code, ...other }), 401, 'mismatch')
        expectError(await verify({ ...code, ...other }), 401, 'mismatch')
        expectSuccess(await verify({ ...code, ...payment }))
      }
      const code = await sent(payment, path)
      for (const _ of [1, 2, 3]) expectError(await verify(code), 401, 'mismatch')
      expectError(await verify({ ...code, ...payment }), 429, 'max_attempts')
    },
  )

  test('that was sent for nothing verifies with nothing', async () => {
    for (const given of [{ purpose: 'login' }, { transaction }]) {
      const code = await sent({})
      expectError(await verify({ ...code, ...given }), 401, 'mismatch')
      expectSuccess(await verify({ ...code, purpose: null, transaction: null }))
    }
  })

  test('by e-mail too', async () => {
    const email = freshEmail()
    expectSuccess(await app.post('/otp/send', { channel: 'EMAIL', email, purpose: 'login' }), ['expiresIn'])
    const otp = await app.lastCode(email)
    expectError(await verify({ email, otp }), 401, 'mismatch')
    expectSuccess(await verify({ email, otp, purpose: 'login' }))
  })

  test('of a resend replaces the one of another purpose', async () => {
    const { phone, otp } = await sent({ purpose: 'login' })
    expectSuccess(await app.post('/otp/resend', { phone, purpose: 'delete' }), ['expiresIn'])
    expectError(await verify({ phone, otp, purpose: 'login' }), 401, 'mismatch')
    expectSuccess(await verify({ phone, otp: sms.sent.at(-1)?.code, purpose: 'delete' }))
  })
})

test('an Idempotency-Key with another purpose is one with another body', async () => {
  const keyed = (path: string, fields: object) =>
    app.request('POST', path, {
      headers: { 'content-type': 'application/json', 'idempotency-key': 'k1' },
      body: JSON.stringify({ appId: 'shop', apiKey: 'key-of-the-shop', brandId: 'acme', ...fields }),
    })
  const phone = freshPhone()
  expectSuccess(await keyed('/otp/send', { phone, ...payment }), ['expiresIn'])
  expectError(await keyed('/otp/send', { phone, purpose: 'login' }), 422, 'idempotency_key_reused')
  const guess = { phone, otp: sms.sent.at(-1)?.code }
  expectError(await keyed('/otp/verify', guess), 401, 'mismatch')
  expect((await keyed('/otp/verify', guess)).body.error).toBe('mismatch')
  expectError(await keyed('/otp/verify', { ...guess, ...payment }), 422, 'idempotency_key_reused')
  expectSuccess(await verify({ ...guess, ...payment }))
})

describe('explain names', () => {
  const rows: readonly (readonly [differs: string, sent: Fields, given: Fields])[] = [
    ['purpose', payment, { ...payment, purpose: 'login' }],
    ['amount', payment, { ...payment, transaction: { ...transaction, amount: '1.25' } }],
    ['currency', payment, { ...payment, transaction: { ...transaction, currency: 'USD' } }],
    ['payee', payment, { ...payment, transaction: { ...transaction, payee: 'Other Works' } }],
    ['purpose, amount, currency, payee', payment, {}],
    ['amount, currency, payee', { purpose: 'login' }, { purpose: 'login', transaction }],
    ['purpose', {}, { purpose: 'login' }],
  ]
  test.each(rows)('%s, without a value', async (differs, atSend, given) => {
    const answer = await verify({ ...(await sent(atSend)), ...given })
    expect(answer.body.message).toBe('Invalid OTP. Three wrong attempts lock a code.')
    const { trace } = await app.eventsOf(answer)
    const text = trace ? explained(trace, []).join('\n') : ''
    expect(text).toContain(`REJECTED  not as the code was sent: ${differs}\n`.trimEnd())
    for (const secret of ['1250', '1.25', 'INR', 'USD', 'City', 'Works', 'login'])
      expect(text).not.toContain(secret)
    expect(await app.app.context.eventLog.guarded(10)).toEqual([])
  })

  test('the code, if all parts are right', async () => {
    const { phone, otp } = await sent(payment)
    const { trace } = await app.eventsOf(await verify({ phone, otp: otherThan(otp), ...payment }))
    expect(trace?.flags).toEqual([])
    expect(trace && explained(trace, []).join('\n')).toContain('REJECTED  the code was wrong')
  })
})

describe('the message of a transaction', () => {
  test('names it in the language of the request, and not the loginId', async () => {
    await sent({ brandId: 'logins', loginId: 'jane', lang: 'de', ...payment })
    const [{ text = '', code, template } = {}] = sms.sent
    expect(text).toBe(
      `${code} ist Ihr Code von Acme, um 1.250,00 INR an City Water zu zahlen. Er läuft in 5 Minuten ab. Geben Sie ihn nicht weiter.`,
    )
    expect(template).toBeNull()
  })

  test('is an own text of the brand, with its last line for autofill', async () => {
    await app.brand('acme', { displayName: 'Acme', domain: 'shop.example' })
    const about = { brand: 'acme', key: 'TRANSACTION_OTP', channel: 'SMS', lang: 'en' } as const
    const text = 'Pay {{amount}} {{currency}} to {{payee}}: {{otp}}.'
    await setText(app.app.context.acting(tester), { ...about, text })
    const { otp } = await sent({ transaction: { ...transaction, amount: '0.5', payee: '{{otp}}' } })
    expect(sms.sent.at(-1)?.text).toBe(`Pay 0.50 INR to {{otp}}: ${otp}.\n\n@shop.example #${otp}`)
  })

  test('by e-mail names it too, and has no link', async () => {
    await app.brand('acme', { displayName: 'Acme', linkUrl: 'https://shop.example/code' })
    const email = freshEmail()
    const payee = '<b>Works & Co'
    const fields = { channel: 'EMAIL', email, transaction: { ...transaction, payee } }
    const { deliveries } = await app.eventsOf(await app.post('/otp/send', fields))
    const [{ text = '', html } = {}] = await app.outbox()
    expect(text).toContain(`Your Acme code to pay 1,250.00 in INR to ${payee}:`)
    expect(html).toContain('1,250.00 in INR to <bdi>&lt;b&gt;Works &amp; Co</bdi>:')
    expect(text).not.toContain('https://shop.example')
    expect(deliveries.map(({ template }) => template)).toEqual(['TRANSACTION_OTP'])
  })

  test('is an SMS, and takes no way whose messages have only the code', async () => {
    const phone = freshPhone()
    const by = (via: string) => app.post('/otp/resend', { phone, via, transaction })
    expectError(await by('whatsapp'), 400, 'validation_error', 'via')
    expectSuccess(await by('sms'), ['expiresIn'])
    expect([sms.sent.length, chat.sent.length]).toEqual([1, 0])
    await app.close()
    const ladder = { ways: ['whatsapp', 'sms'], waitSeconds: 0 } as const
    app = await createTestApp({}, { phoneRoutes: { plain: [sms], whatsapp: [chat] }, ladder })
    await sent({ transaction })
    expect([sms.sent.length, chat.sent.length]).toEqual([2, 0])
  })
})

test('the fixed code of a review number is for the same as each other code', async () => {
  const { context } = app.app
  const request = { phone: '+12025550199', brand: 'acme', until: '2026-01-02' }
  const ports = { ...context.acting(tester), brands: context.brands, contacts: readConfig({}).contacts }
  const { code: otp } = await addReviewNumber(ports, request)
  const { phone } = request
  expectSuccess(await app.post('/otp/send', { phone, ...payment }), ['expiresIn'])
  const wrong = await verify({ phone, otp, purpose: 'payment' })
  expectError(wrong, 401, 'mismatch')
  expect((await app.eventsOf(wrong)).trace?.flags).toEqual(['other-amount', 'other-currency', 'other-payee'])
  expectSuccess(await verify({ phone, otp, ...payment }))
  expect(sms.sent).toHaveLength(0)
})
