import { describe, expect, test } from 'bun:test'
import { readConfig } from '../../src/config/config.ts'
import { addReviewNumber } from '../../src/domain/operator/review-numbers.ts'
import type { Brand } from '../../src/domain/texts/brand.ts'
import { codeIn, type TestApp } from '../support/app.ts'
import { failed, overWebhook, taken } from '../support/gateway.ts'
import { setText, tester } from '../support/operator.ts'
import { expectError, expectSuccess } from '../support/rows.ts'

// Design D47: codes in a brand's own words.

const phone = '919876543210'
const registration = { id: null, ids: {}, senderId: null, maxLength: null }
const { receiver, start } = overWebhook({
  shop: { displayName: 'Shop', domain: 'shop.example', androidHash: 'FA+9qCX9VSu' },
  dlt: { displayName: 'Dlt Shop', dltEnabled: true, loginIdEnabled: true },
})

async function own(app: TestApp, brand: string, texts: Readonly<Record<string, string>>, key = 'LOGIN_OTP') {
  for (const [lang, text] of Object.entries(texts))
    await setText(app.app.context.acting(tester), { brand, key, channel: 'SMS', lang, text })
}

const templateFails = ({ body }: { body: { route: string } }) =>
  body.route === 'template' ? failed() : taken()

describe("a brand's own text", () => {
  test('is sent byte for byte, with its last line, and the code verifies', async () => {
    const app = await start({}, taken)
    await own(app, 'shop', { en: '{{otp}}  =  {{businessName}} ({{minutes}} min). One. Two.\n-- ' })
    for (const path of ['/otp/send', '/otp/resend']) {
      expectSuccess(await app.post(path, { brandId: 'shop', phone, businessName: 'A {{otp}} $&' }), [
        'expiresIn',
      ])
      app.advance(31)
    }
    for (const { body } of receiver.received) {
      const code = codeIn(body.text)
      expect(body.text).toBe(
        `${code}  =  A {{otp}} $& (5 min). One. Two.\n-- \n\n@shop.example #${code} FA+9qCX9VSu`,
      )
    }
    expect(receiver.received).toHaveLength(2)
    const otp = codeIn(receiver.received[1]?.body.text)
    expectSuccess(await app.post('/otp/verify', { brandId: 'shop', phone, otp }))
  })

  test('is used from the next request on, in the language of the request or of the brand', async () => {
    const app = await start({}, taken)
    const brand: Partial<Brand> = { displayName: 'Shop', lang: 'hi' }
    await app.brand('shop', brand)
    const textFor = async (lang: unknown) => {
      app.advance(3600)
      expectSuccess(await app.post('/otp/send', { brandId: 'shop', phone, lang }), ['expiresIn'])
      return receiver.received.at(-1)?.body.text.replace(/[0-9]{6}/, '#')
    }
    expect(await textFor(undefined)).toStartWith('आपका Shop कोड #')
    await own(app, 'shop', { hi: 'हिन्दी {{otp}}', 'sv-SE': 'svenska {{otp}}', en: 'English {{otp}}' })
    const rows = [
      [undefined, 'हिन्दी #'],
      ['sv-se', 'svenska #'],
      ['sv', 'हिन्दी #'],
      ['en-GB', 'English #'],
      ['da, en;q=0.8, sv-SE;q=0.9', 'svenska #'],
      [{ lang: 'en' }, 'हिन्दी #'],
    ]
    for (const [lang, text] of rows) expect(await textFor(lang)).toBe(text)
    expect(await textFor('ta')).toStartWith('Shop குறியீடு #')
  })

  test("is the registered one on the template route, with the brand's name, and follows lang on the direct route", async () => {
    const app = await start({ OTP_SMS_MODE: 'hybrid' }, templateFails)
    await app.brand('dlt', {
      displayName: 'Dlt Shop',
      dltEnabled: true,
      entityId: '1101',
      registrations: {
        LOGIN_OTP: { ...registration, id: '1' },
        'LOGIN_OTP:hi': { ...registration, id: '2' },
      },
      domain: 'shop.example',
    })
    await own(app, 'dlt', { en: 'Your {{businessName}} code: {{otp}}', ta: 'தமிழ் {{otp}}' })
    const sendIn = async (lang: string) => {
      receiver.received.length = 0
      app.advance(3600)
      await app.post('/otp/send', { brandId: 'dlt', phone, lang, businessName: 'Corner' })
      const [template, plain] = receiver.received.map(({ body }) => body)
      const code = codeIn(plain.text)
      expect(template.variables).toMatchObject({ otp: code, businessName: 'Dlt Shop', minutes: '5' })
      expect(plain.text).toEndWith(`\n\n@shop.example #${code}`)
      return [template.text, plain.text.split('\n\n')[0]].map((text) => text.replace(code, '#'))
    }
    expect(await sendIn('ta')).toEqual(['Your Dlt Shop code: #', 'தமிழ் #'])
    expect(await sendIn('hi')).toEqual([
      'आपका Dlt Shop कोड # है। 5 मिनट तक मान्य। किसी को न बताएं।',
      'आपका Corner कोड # है। 5 मिनट तक मान्य।',
    ])
  })

  test('of LOGIN_OTP_WITH_ID has the loginId', async () => {
    const app = await start({ OTP_SMS_MODE: 'template' }, taken)
    await own(app, 'dlt', { en: 'only {{otp}}' })
    await own(app, 'dlt', { en: '{{loginId}}: {{otp}}' }, 'LOGIN_OTP_WITH_ID')
    await app.post('/otp/send', { brandId: 'dlt', phone, loginId: 'jane' })
    expect(receiver.received[0]?.body).toMatchObject({
      templateKey: 'LOGIN_OTP_WITH_ID',
      variables: { loginId: 'jane' },
    })
    expect(receiver.received[0]?.body.text).toMatch(/^jane: [0-9]{6}$/)
  })
})

test('a registered text of TRANSACTION_OTP has the parts as values, of which carriers accept 30 characters (D55)', async () => {
  const app = await start({ OTP_SMS_MODE: 'template' }, taken)
  const send = (payee: string) => {
    app.advance(31)
    const transaction = { amount: '1250', currency: 'inr', payee }
    return app.post('/otp/send', { brandId: 'dlt', phone, loginId: 'jane', transaction })
  }
  expectError(await send('x'.repeat(31)), 400, 'validation_error', 'transaction.payee')
  expectSuccess(await send('City Water'), ['expiresIn'])
  expect(receiver.received.map(({ body }) => body)).toMatchObject([
    {
      templateKey: 'TRANSACTION_OTP',
      variables: { amount: '1,250.00', currency: 'INR', payee: 'City Water' },
    },
  ])
  expect(receiver.received[0]?.body.variables).not.toHaveProperty('loginId')
})

test('a review number has its fixed code, and no text is sent (D48)', async () => {
  const app = await start({}, taken)
  await own(app, 'shop', { en: 'own {{otp}}' })
  const { context } = app.app
  const request = { phone: `+${phone}`, brand: 'shop', until: '2026-01-02' }
  const { contacts } = readConfig({})
  const { code } = await addReviewNumber(
    { ...context.acting(tester), brands: context.brands, contacts },
    request,
  )
  expectSuccess(await app.post('/otp/send', { brandId: 'shop', phone, lang: 'hi' }), ['expiresIn'])
  expectSuccess(await app.post('/otp/verify', { brandId: 'shop', phone, otp: code }))
  expect(receiver.received).toHaveLength(0)
})

describe('a loginId longer than the registered text allows', () => {
  const long = 'x'.repeat(31)
  const withId = (maxLength: number) => ({
    registrations: { LOGIN_OTP_WITH_ID: { ...registration, maxLength } },
  })
  const rows: readonly (readonly [string, string, object, Partial<Brand>, 200 | 400])[] = [
    ['template hybrid', long, {}, {}, 400],
    ['template', 'x'.repeat(41), {}, withId(40), 400],
    ['template', 'x'.repeat(40), {}, withId(40), 200],
    ['template', 'x'.repeat(30), {}, {}, 200],
    ['plain', long, {}, {}, 200],
    ['template', long, { phone: '447911123456' }, {}, 200],
    ['template', long, {}, { dltEnabled: false }, 200],
    ['template', long, {}, { loginIdEnabled: false }, 200],
  ]
  test.each(['template', 'hybrid', 'plain'])('is refused before any limit (mode %s)', async (mode) => {
    const app = await start({ OTP_SMS_MODE: mode }, taken)
    for (const [, loginId, fields, properties, status] of rows.filter(([modes]) => modes.includes(mode))) {
      receiver.received.length = 0
      app.advance(3600)
      await app.brand('dlt', { dltEnabled: true, loginIdEnabled: true, ...properties })
      const sent = await app.post('/otp/send', { brandId: 'dlt', phone, loginId, ...fields })
      if (status === 200) expectSuccess(sent, ['expiresIn'])
      else {
        expectError(sent, 400, 'validation_error')
        expect(sent.body.message).toContain('`loginId`')
        expect(receiver.received).toHaveLength(0)
        // Neither a cooldown nor a count of the phone.
        expectSuccess(await app.post('/otp/send', { brandId: 'dlt', phone }), ['expiresIn'])
      }
    }
  })

  test("is sent where the brand's own text is without it", async () => {
    const app = await start({ OTP_SMS_MODE: 'template' }, taken)
    await own(app, 'dlt', { en: 'only {{otp}}' }, 'LOGIN_OTP_WITH_ID')
    expectSuccess(await app.post('/otp/send', { brandId: 'dlt', phone, loginId: long }), ['expiresIn'])
  })
})
