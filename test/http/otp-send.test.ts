import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { codeIn, createTestApp, otherThan, type TestApp } from '../support/app.ts'
import { failed, overWebhook, taken, testRouting } from '../support/gateway.ts'
import { held } from '../support/receiver.ts'
import { expectError, expectRow, expectSuccess, freshEmail, freshPhone } from '../support/rows.ts'
import { sendBrands, sendRows } from '../tables/otp-send.ts'

let app: TestApp

beforeAll(async () => {
  app = await createTestApp()
  for (const [slug, properties] of Object.entries(sendBrands)) await app.brand(slug, properties)
})
afterAll(() => app.close())

for (const path of ['/otp/send', '/otp/resend']) {
  const rows = sendRows()

  describe(`POST ${path}`, () => {
    for (const row of rows) {
      test(`${row.name} returns ${row.status} ${row.error ?? ''}`, async () => {
        expectRow(path, row, await app.post(path, row.body))
      })
    }

    test('returns the lifetime of the code, and never the code', async () => {
      const phone = freshPhone()
      const answer = await app.post(path, { phone })
      expect(answer.body.expiresIn).toBe(300)
      const code = await app.lastCode(phone)
      const { requestId: _, ...shown } = answer.body
      expect(JSON.stringify(shown)).not.toContain(code)
    })

    test('during a cooldown returns 429 cooldown_active', async () => {
      const phone = freshPhone()
      expectSuccess(await app.post('/otp/send', { phone }), ['expiresIn'])
      expectError(await app.post(path, { phone }), 429, 'cooldown_active')
    })

    test('as the fourth SMS to a phone in a minute returns 429 rate_limited', async () => {
      const phone = freshPhone()
      for (const brandId of ['acme', 'other', 'logins']) {
        expectSuccess(await app.post(path, { brandId, phone }), ['expiresIn'])
      }
      await app.brand('fourth')
      expectError(await app.post(path, { brandId: 'fourth', phone }), 429, 'rate_limited')
    })

    test('immediately invalidates the previous code', async () => {
      const phone = freshPhone()
      await app.post('/otp/send', { phone })
      const old = await app.lastCode(phone)
      app.advance(30)
      await app.post(path, { phone })
      const fresh = await app.lastCode(phone)
      // Two codes are equal once in a million; then the test has nothing to compare.
      if (old !== fresh) expectError(await app.post('/otp/verify', { phone, otp: old }), 401, 'mismatch')
      expectSuccess(await app.post('/otp/verify', { phone, otp: fresh }))
    })

    test('gives the new code its own 300 seconds', async () => {
      const phone = freshPhone()
      await app.post('/otp/send', { phone })
      app.advance(200)
      await app.post(path, { phone })
      const otp = await app.lastCode(phone)
      app.advance(299)
      expectSuccess(await app.post('/otp/verify', { phone, otp }))
    })

    test('resets a record that wrong codes locked', async () => {
      const phone = freshPhone()
      await app.post('/otp/send', { phone })
      const wrong = otherThan(await app.lastCode(phone))
      for (let guess = 0; guess < 3; guess++) await app.post('/otp/verify', { phone, otp: wrong })
      expectError(await app.post('/otp/verify', { phone, otp: wrong }), 429, 'max_attempts')
      app.advance(30)
      expectSuccess(await app.post(path, { phone }), ['expiresIn'])
      expectSuccess(await app.post('/otp/verify', { phone, otp: await app.lastCode(phone) }))
    })

    test('never uses a code that the caller supplies', async () => {
      const phone = freshPhone()
      await app.post(path, { phone, otp: '424242', code: '424242' })
      const sent = (await app.outbox(phone)).at(-1)
      if (sent) expect(codeIn(sent.text)).not.toBe('424242')
    })
  })
}

describe('the SMS', () => {
  test("has the code and the brand's display name", async () => {
    const phone = freshPhone()
    await app.post('/otp/send', { phone })
    const messages = await app.outbox(phone)
    expect(messages).toHaveLength(1)
    expect(messages[0]).toMatchObject({ channel: 'SMS', to: phone, brandId: 'acme', route: 'plain' })
    expect(messages[0]?.text).toContain('Acme')
    expect(messages[0]?.text).toMatch(/(?<!\d)\d{6}(?!\d)/)
  })

  test('has businessName in place of the display name, when given', async () => {
    const phone = freshPhone()
    await app.post('/otp/send', { phone, businessName: 'Corner Shop' })
    const text = (await app.outbox(phone)).at(-1)?.text
    expect(text).toContain('Corner Shop')
    expect(text).not.toContain('Acme')
  })

  test('has businessName on a resend too', async () => {
    const phone = freshPhone()
    await app.post('/otp/resend', { phone, businessName: 'Corner Shop' })
    expect((await app.outbox(phone)).at(-1)?.text).toContain('Corner Shop')
  })

  const texts: readonly (readonly [path: string, lang: unknown, text: string])[] = [
    ['/otp/send', 'hi-IN', 'आपका Acme कोड'],
    ['/otp/resend', 'PT', 'O seu PIN Acme'],
    ['/otp/send', 'tlh', 'verification code'],
    ['/otp/send', 'not a tag', 'verification code'],
    ['/otp/resend', ['hi'], 'verification code'],
  ]
  test.each(texts)('of %s with lang %p has %s (D47)', async (path, lang, expected) => {
    const [phone, email] = [freshPhone(), freshEmail()]
    expectSuccess(await app.post(path, { phone, lang }), ['expiresIn'])
    expect((await app.outbox(phone)).at(-1)?.text).toContain(expected)
    expectSuccess(await app.post('/otp/verify', { phone, otp: await app.lastCode(phone) }))
    expectSuccess(await app.post(path, { channel: 'EMAIL', email, lang }), ['expiresIn'])
    expectSuccess(await app.post('/otp/verify', { email, otp: await app.lastCode(email) }))
  })

  test('in Arabic is a right-to-left mail (D47)', async () => {
    const email = freshEmail()
    await app.post('/otp/send', { channel: 'EMAIL', email, lang: 'ar-EG' })
    const mail = (await app.outbox(email)).at(-1)
    expect(mail).toMatchObject({ subject: 'رمز التحقق الخاص بك في Acme' })
    expect(mail?.html).toContain('<html lang="ar" dir="rtl">')
  })

  test('has the loginId if the brand has it enabled (D13)', async () => {
    const phone = freshPhone()
    await app.post('/otp/send', { brandId: 'logins', phone, loginId: 'jane.doe' })
    const text = (await app.outbox(phone)).at(-1)?.text
    expect(text).toContain('jane.doe')
    expect(text).toContain('Logins')
  })

  test('omits the loginId if the brand has it disabled (D13)', async () => {
    const phone = freshPhone()
    expectSuccess(await app.post('/otp/send', { phone, loginId: 'jane.doe' }), ['expiresIn'])
    expect((await app.outbox(phone)).at(-1)?.text).not.toContain('jane.doe')
  })

  test('is the normal text if loginId is enabled but not given', async () => {
    const phone = freshPhone()
    expectSuccess(await app.post('/otp/send', { brandId: 'logins', phone }), ['expiresIn'])
    expect(await app.lastCode(phone)).toMatch(/^\d{6}$/)
  })

  test('ends with a Web OTP line if the brand has a domain', async () => {
    await app.brand('web', { displayName: 'Web', domain: 'login.example.com' })
    const phone = freshPhone()
    await app.post('/otp/send', { brandId: 'web', phone })
    const text = (await app.outbox(phone)).at(-1)?.text ?? ''
    expect(text.split('\n').at(-1)).toBe(`@login.example.com #${codeIn(text)}`)
  })

  test('has no Web OTP line if the brand has no domain', async () => {
    const phone = freshPhone()
    await app.post('/otp/send', { phone })
    expect((await app.outbox(phone)).at(-1)?.text).not.toMatch(/^@/m)
  })
})

describe('the e-mail', () => {
  test('has the code as text and as HTML, and the brand as sender', async () => {
    const email = freshEmail()
    await app.post('/otp/send', { channel: 'EMAIL', email })
    const messages = await app.outbox(email)
    expect(messages).toHaveLength(1)
    const mail = messages[0]
    expect(mail).toMatchObject({ channel: 'EMAIL', to: email, brandId: 'acme', brandName: 'Acme' })
    expect(mail?.html).toContain(codeIn(mail?.text))
    expect(mail?.html).toContain('Acme')
    expect(mail?.text).toContain('Acme')
    expect(mail?.text).not.toMatch(/<[a-z/]/i)
    expect(mail?.subject).toMatch(/\S/)
    expect(mail?.subject).not.toMatch(/[\r\n]/)
  })

  test("escapes the brand's name in its HTML", async () => {
    await app.brand('marked', { displayName: 'A & B <i>"Co"</i>' })
    const email = freshEmail()
    await app.post('/otp/send', { brandId: 'marked', channel: 'EMAIL', email })
    const mail = (await app.outbox(email)).at(-1)
    expect(mail?.brandName).toBe('A & B <i>"Co"</i>')
    expect(mail?.text).toContain('A & B <i>"Co"</i>')
    expect(mail?.html).toContain('A &amp; B &lt;i&gt;')
    expect(mail?.html).not.toContain('<i>')
  })

  test('has no cooldown (spec 3.2): a second one is sent immediately and invalidates the first code', async () => {
    const email = freshEmail()
    await app.post('/otp/send', { channel: 'EMAIL', email })
    const old = await app.lastCode(email)
    expectSuccess(await app.post('/otp/resend', { channel: 'EMAIL', email }), ['expiresIn'])
    const fresh = await app.lastCode(email)
    if (old !== fresh) expectError(await app.post('/otp/verify', { email, otp: old }), 401, 'mismatch')
    expectSuccess(await app.post('/otp/verify', { email, otp: fresh }))
  })
})

describe('a phone', () => {
  const digits = (count: number) => '5'.repeat(count)
  const rows: readonly { phone: string; to: string | null }[] = [
    { phone: '+1 (555) 900-0001', to: '15559000001' },
    { phone: '1.555.900.0002', to: '15559000002' },
    { phone: '  1-555-900-0003  ', to: '15559000003' },
    { phone: digits(7), to: digits(7) },
    { phone: digits(15), to: digits(15) },
    { phone: digits(6), to: null },
    { phone: digits(16), to: null },
    { phone: '+ ( ) - .', to: null },
    { phone: '1555900000x', to: null },
    { phone: '1555/9000001', to: null },
    { phone: '15559000001\u0000', to: null },
    { phone: '1555900\t0001', to: null },
    { phone: '1555900\n0001', to: null },
    { phone: 'tel:15559000001', to: null },
  ]
  for (const { phone, to } of rows) {
    test(`${JSON.stringify(phone)} is ${to ?? 'rejected'} (D5)`, async () => {
      const answer = await app.post('/otp/send', { phone })
      if (to === null) return expectError(answer, 400, 'validation_error')
      expectSuccess(answer, ['expiresIn'])
      expect((await app.outbox(to)).at(-1)?.to).toBe(to)
    })
  }

  test('has one cooldown and one code for all spellings', async () => {
    expectSuccess(await app.post('/otp/send', { phone: '+1 (555) 910-0001' }), ['expiresIn'])
    for (const phone of ['15559100001', '1.555.910.0001', '1-555-910-0001']) {
      expectError(await app.post('/otp/send', { phone }), 429, 'cooldown_active')
    }
    const otp = await app.lastCode('15559100001')
    expectSuccess(await app.post('/otp/verify', { phone: ' 1 555 910 0001 ', otp }))
  })

  test.each([{}, { PHONE_DEFAULT_REGION: 'GB' }])(
    'is one recipient with 00 and with a trunk prefix, with %p (D5)',
    async (env) => {
      const british = await createTestApp(env)
      const first = await british.post('/otp/send', { phone: '+44 7911 123456' })
      expectSuccess(first, ['expiresIn'])
      const spellings = ['+44 (0)7911 123456', '+00447911123456', '000447911123456', '00440 7911 123456']
      for (const [index, phone] of spellings.entries()) {
        expectError(await british.post('/otp/send', { phone }), 429, 'cooldown_active')
        const wrong = await british.post('/otp/verify', { phone, otp: '000000' })
        if (index < 3) expectError(wrong, 401, 'mismatch')
        else expectError(wrong, 429, 'max_attempts')
      }
      expect((await british.outbox()).map(({ to }) => to)).toEqual(['447911123456'])
      await british.close()
    },
  )

  test('is one recipient in national formats with PHONE_DEFAULT_REGION (D5)', async () => {
    const indian = await createTestApp({ PHONE_DEFAULT_REGION: 'IN' })
    const spellings = [
      '098765 43210',
      '9876543210',
      '+91 98765-43210',
      '0091 98765 43210',
      '919876543210',
    ] as const
    for (const [index, phone] of spellings.entries()) {
      indian.advance(60)
      expectSuccess(await indian.post('/otp/send', { phone }), ['expiresIn'])
      const other = spellings[(index + 1) % spellings.length]
      expectError(await indian.post('/otp/send', { phone: other }), 429, 'cooldown_active')
      const sent = (await indian.outbox('919876543210')).at(-1)
      expect(sent?.to).toBe('919876543210')
      expectSuccess(await indian.post('/otp/verify', { phone: other, otp: codeIn(sent?.text) }))
    }
    await indian.close()
  })

  test('that is one of two countries is rejected with PHONE_DEFAULT_REGION, and never sent abroad (D5)', async () => {
    const american = await createTestApp({ PHONE_DEFAULT_REGION: 'US' })
    await american.brand('acme')
    // Of Georgia (US), and of Norway.
    const both = '(478) 513-2397'
    const sms = { channel: 'SMS', brandId: 'acme', message: 'Hello' }
    const answers = [
      await american.post('/otp/send', { phone: both }),
      await american.post('/otp/resend', { phone: both }),
      await american.post('/notify', { ...sms, to: ['+1 202 555 0143', both] }),
      await american.post('/otp/verify', { phone: both, otp: '123456' }),
    ]
    const [send, resend, notify, verify] = answers
    for (const answer of answers)
      expect(answer.body.message).toContain('Begin it with + and the country code.')
    for (const answer of [send, resend]) if (answer) expectError(answer, 400, 'validation_error', 'phone')
    if (notify) expectError(notify, 400, 'validation_error', 'to[1]')
    if (verify) expectError(verify, 400, 'invalid_contact')
    expect(await american.outbox()).toEqual([])
    expectSuccess(await american.post('/otp/send', { phone: '+1 (478) 513-2397' }), ['expiresIn'])
    expectSuccess(await american.post('/otp/send', { phone: '+47 851 32 397' }), ['expiresIn'])
    expect((await american.outbox()).map(({ to }) => to)).toEqual(['14785132397', '4785132397'])
    await american.close()
  })
})

describe('an e-mail address', () => {
  const rows: readonly { email: string; valid: boolean }[] = [
    { email: ' Mixed.Case@Example.COM ', valid: true },
    { email: `${'a'.repeat(64)}@${'b'.repeat(60)}.example.com`, valid: true },
    { email: 'nobody', valid: false },
    { email: '', valid: false },
    { email: 'a@b@example.com', valid: false },
    { email: 'a b@example.com', valid: false },
    { email: 'a@exam\u0000ple.com', valid: false },
    { email: 'a@example.com\r\nBcc: b@example.com', valid: false },
    { email: `${'a'.repeat(243)}@example.com`, valid: false },
    { email: 'a..b@c.example', valid: false },
    { email: 'a@b_c.d', valid: false },
  ]
  for (const { email, valid } of rows) {
    test(`${JSON.stringify(email).slice(0, 50)} is ${valid ? 'accepted' : 'rejected'} (D6)`, async () => {
      const answer = await app.post('/otp/send', { channel: 'EMAIL', email })
      if (valid) expectSuccess(answer, ['expiresIn'])
      else expectError(answer, 400, 'validation_error')
    })
  }

  test('is the same in any case, with surrounding blanks, and in any Unicode form (D6)', async () => {
    await app.post('/otp/send', { channel: 'EMAIL', email: ' Rene\u0301@Example.com' })
    const otp = await app.lastCode('ren\u00e9@example.com')
    expectSuccess(await app.post('/otp/verify', { email: 'REN\u00c9@EXAMPLE.COM ', otp }))
  })

  test('is the same in every spelling of its domain, and mail is sent to the normalized form (D6)', async () => {
    const spellings = [
      'Ann@B\u00fccher.example',
      'ann@xn--bcher-kva.example.',
      'ann@b\u00dc\uff43her\u3002example',
    ]
    for (const [index, email] of spellings.entries()) {
      expectSuccess(await app.post('/otp/send', { channel: 'EMAIL', email }), ['expiresIn'])
      const sent = await app.outbox('ann@xn--bcher-kva.example')
      expect(sent).toHaveLength(index + 1)
      expect(sent.at(-1)?.to).toBe('ann@xn--bcher-kva.example')
      const otp = codeIn(sent.at(-1)?.text)
      const other = spellings[(index + 1) % spellings.length]
      expectSuccess(await app.post('/otp/verify', { email: other, otp }))
    }
  })
})

test('brandId is trimmed and compared in lower case (D7)', async () => {
  const phone = freshPhone()
  expectSuccess(await app.post('/otp/send', { brandId: ' ACME ', phone }), ['expiresIn'])
  expectError(await app.post('/otp/send', { brandId: 'acme', phone }), 429, 'cooldown_active')
  const otp = await app.lastCode(phone)
  expectSuccess(await app.post('/otp/verify', { brandId: 'Acme', phone, otp }))
})

test("a brand's change to active or suspended takes effect at the next request", async () => {
  await app.brand('moving', { status: 'pending' })
  const phone = freshPhone()
  expectError(await app.post('/otp/send', { brandId: 'moving', phone }), 403, 'brand_not_approved')
  await app.brand('moving', { status: 'active' })
  expectSuccess(await app.post('/otp/send', { brandId: 'moving', phone }), ['expiresIn'])
  await app.brand('moving', { status: 'suspended' })
  app.advance(60)
  expectError(await app.post('/otp/send', { brandId: 'moving', phone }), 403, 'brand_suspended')
})

test('OTP_TTL_SECONDS is the value of expiresIn', async () => {
  const brief = await createTestApp({ OTP_TTL_SECONDS: '60' })
  const answer = await brief.post('/otp/send', { phone: '919812340001' })
  expect(answer.body.expiresIn).toBe(60)
  await brief.close()
})

describe('through the webhook provider', () => {
  const gateway = overWebhook({ dlt: { displayName: 'Dlt Shop', dltEnabled: true } })
  const { receiver, start } = gateway

  const acme = { brandId: 'acme', phone: '919812340001' }
  const dlt = { ...acme, brandId: 'dlt' }
  testRouting('/otp/send', gateway, [
    ['plain', 'acme', acme, '', 'plain', '200'],
    ['plain', 'DLT', dlt, '', 'plain', '200'],
    ['plain', 'DLT, plain fails', dlt, 'plain', 'plain', '502 sms_failed'],
    ['template', 'acme', acme, '', 'plain', '200'],
    ['template', 'DLT', dlt, '', 'template', '200'],
    ['template', 'DLT, template fails', dlt, 'template', 'template', '502 sms_failed'],
    ['template', 'acme, plain fails', acme, 'plain', 'plain', '502 sms_failed'],
    ['hybrid', 'acme', acme, '', 'plain', '200'],
    ['hybrid', 'acme, plain fails', acme, 'plain', 'plain', '502 sms_failed'],
    ['hybrid', 'DLT', dlt, '', 'template', '200'],
    ['hybrid', 'DLT, template fails', dlt, 'template', 'template plain', '200'],
    ['hybrid', 'DLT, both fail', dlt, 'template plain', 'template plain', '502 sms_failed'],
  ])

  test('a payload has the fields of design 8 and a signature', async () => {
    const webhook = await start({ OTP_SMS_MODE: 'template' }, taken)
    const plain = await webhook.post('/otp/send', { phone: '+91 98123 40001' })
    const template = await webhook.post('/otp/send', { brandId: 'dlt', phone: '+91 98123 40002' })
    const [first, second] = receiver.received
    const fields = ['id', 'to', 'route', 'text', 'brandId', 'requestId']
    expect(Object.keys(first?.body).sort()).toEqual([...fields].sort())
    expect(first?.body).toMatchObject({
      to: '919812340001',
      route: 'plain',
      brandId: 'acme',
      requestId: plain.body.requestId,
    })
    expect(Object.keys(second?.body).sort()).toEqual([...fields, 'templateKey', 'variables'].sort())
    expect(second?.body).toMatchObject({
      to: '919812340002',
      route: 'template',
      templateKey: 'LOGIN_OTP',
      brandId: 'dlt',
      requestId: template.body.requestId,
    })
    for (const header of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
      expect(first?.headers.get(header)).toMatch(/\S/)
    }
  })

  test('a loginId selects its own template (D13)', async () => {
    const webhook = await start({ OTP_SMS_MODE: 'template' }, taken)
    await webhook.brand('dlt-logins', { displayName: 'Logins', dltEnabled: true, loginIdEnabled: true })
    await webhook.post('/otp/send', { brandId: 'dlt-logins', phone: '919812340001', loginId: 'jane.doe' })
    await webhook.post('/otp/send', { brandId: 'dlt', phone: '919812340002', loginId: 'jane.doe' })
    const [enabled, disabled] = receiver.received
    expect(enabled?.body.templateKey).toBe('LOGIN_OTP_WITH_ID')
    expect(Object.values(enabled?.body.variables)).toContain('jane.doe')
    expect(enabled?.body.text).toContain('jane.doe')
    expect(disabled?.body.templateKey).toBe('LOGIN_OTP')
    expect(JSON.stringify(disabled?.body)).not.toContain('jane.doe')
  })

  test("businessName is used on the plain route only: the registered text has the brand's name (D31)", async () => {
    const webhook = await start({ OTP_SMS_MODE: 'hybrid' }, ({ body }) =>
      body.route === 'template' ? failed() : taken(),
    )
    await webhook.post('/otp/send', { brandId: 'dlt', phone: '919812340001', businessName: 'Corner Shop' })
    const [template, plain] = receiver.received
    expect(JSON.stringify(template?.body)).not.toContain('Corner Shop')
    expect(template?.body).toMatchObject({ route: 'template', variables: { businessName: 'Dlt Shop' } })
    expect(template?.body.text).toContain('Dlt Shop')
    expect(plain?.body.route).toBe('plain')
    expect(plain?.body.text).toContain('Corner Shop')
    expect(plain?.body.text).not.toContain('Dlt Shop')
  })

  test('lang is used on the plain route only: the registered text stays English (D47)', async () => {
    const webhook = await start({ OTP_SMS_MODE: 'hybrid' }, ({ body }) =>
      body.route === 'template' ? failed() : taken(),
    )
    await webhook.post('/otp/send', { brandId: 'dlt', phone: '919812340001', lang: 'hi' })
    const [template, plain] = receiver.received
    const code = codeIn(plain?.body.text)
    expect(template?.body).toMatchObject({
      text: `${code} is your Dlt Shop verification code. It expires in 5 minutes. Do not share it with anyone.`,
      variables: { otp: code, businessName: 'Dlt Shop', lifetime: '5 minutes' },
    })
    expect(plain?.body.text).toContain('5 मिनट')
  })

  test('the fallback sends the same code, which can be verified', async () => {
    const webhook = await start({ OTP_SMS_MODE: 'hybrid' }, ({ body }) =>
      body.route === 'template' ? failed() : taken(),
    )
    await webhook.post('/otp/send', { brandId: 'dlt', phone: '919812340001', businessName: 'Corner Shop' })
    const [template, plain] = receiver.received
    expect(codeIn(plain?.body.text)).toBe(codeIn(template?.body.text))
    expect(Object.values(template?.body.variables)).toContain(codeIn(plain?.body.text))
    const verify = { brandId: 'dlt', phone: '919812340001', otp: codeIn(plain?.body.text) }
    expectSuccess(await webhook.post('/otp/verify', verify))
  })

  test('a failed send revokes the code, starts no cooldown and does not reveal the cause', async () => {
    const webhook = await start({}, failed)
    const phone = '919812340001'
    const answer = await webhook.post('/otp/send', { phone })
    expectError(answer, 502, 'sms_failed')
    expect(answer.body.message).not.toContain('secret of the gateway')
    expect(answer.body.message).not.toContain('webhook')
    const otp = codeIn(receiver.received[0]?.body.text)
    expectError(await webhook.post('/otp/verify', { phone, otp }), 404, 'not_found')
    receiver.answer(taken)
    expectSuccess(await webhook.post('/otp/send', { phone }), ['expiresIn'])
  })

  test('a failed resend leaves no valid code', async () => {
    const webhook = await start({}, taken)
    const phone = '919812340001'
    await webhook.post('/otp/send', { phone })
    webhook.advance(30)
    receiver.answer(failed)
    expectError(await webhook.post('/otp/resend', { phone }), 502, 'sms_failed')
    for (const { body } of receiver.received) {
      expectError(await webhook.post('/otp/verify', { phone, otp: codeIn(body.text) }), 404, 'not_found')
    }
  })

  test('a code can be verified while its SMS is still being sent (D15)', async () => {
    const phone = '919812340001'
    const verified: number[] = []
    const webhook = await start({}, async ({ body }) => {
      const answer = await webhook.post('/otp/verify', { phone, otp: codeIn(body.text) })
      verified.push(answer.status)
      return taken()
    })
    expectSuccess(await webhook.post('/otp/send', { phone }), ['expiresIn'])
    expect(verified).toEqual([200])
  })

  test('the previous code is invalid while the new SMS is being sent (spec 3.1)', async () => {
    const phone = '919812340001'
    const webhook = await start({}, taken)
    await webhook.post('/otp/send', { phone })
    const old = codeIn(receiver.received[0]?.body.text)
    webhook.advance(30)
    const codes: string[] = []
    receiver.answer(async ({ body }) => {
      codes.push(codeIn(body.text))
      const answer = await webhook.post('/otp/verify', { phone, otp: old })
      if (codes[0] !== old) expectError(answer, 401, 'mismatch')
      return taken()
    })
    expectSuccess(await webhook.post('/otp/resend', { phone }), ['expiresIn'])
    expect(codes).toHaveLength(1)
  })

  test('a double tap sends one SMS', async () => {
    const webhook = await start({}, taken)
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => webhook.post('/otp/send', { phone: '919812340001' })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expectError(answer, 429, 'cooldown_active')
    }
    expect(receiver.received).toHaveLength(1)
  })

  test('a slow failure does not affect the code or cooldown of a newer send', async () => {
    const slow = held()
    const webhook = await start({}, () => slow.promise)
    const phone = '919812340001'
    const arrived = Promise.withResolvers<void>()
    receiver.answer(() => {
      arrived.resolve()
      return slow.promise
    })
    const first = webhook.post('/otp/send', { phone })
    await arrived.promise
    // Advances the clock of limits and codes; provider calls are timed by the machine's clock.
    webhook.advance(61)
    receiver.answer(taken)
    expectSuccess(await webhook.post('/otp/send', { phone }), ['expiresIn'])
    slow.release(failed())
    expectError(await first, 502, 'sms_failed')
    expectError(await webhook.post('/otp/send', { phone }), 429, 'cooldown_active')
    const otp = codeIn(receiver.received[1]?.body.text)
    expectSuccess(await webhook.post('/otp/verify', { phone, otp }))
  })

  describe('a provider that never responds (D26)', () => {
    const timeoutMs = 60
    const never = () => new Promise<Response>(() => {})
    const rows: readonly { name: string; env: Record<string, string> }[] = [
      { name: 'one provider', env: {} },
      { name: 'two routes', env: { OTP_SMS_MODE: 'hybrid' } },
      {
        name: 'two routes of three providers',
        env: {
          OTP_SMS_MODE: 'hybrid',
          SMS_PLAIN: 'webhook,webhook,webhook',
          SMS_TEMPLATE: 'webhook,webhook',
        },
      },
    ]
    for (const { name, env } of rows) {
      test(`with ${name} returns 502 after at most two time-outs, revokes the code and starts no cooldown`, async () => {
        const webhook = await start({ ...env, PROVIDER_TIMEOUT_MS: String(timeoutMs) }, never)
        // The machine's time must also pass for the service.
        Object.defineProperty(webhook.clock, 'now', { get: Date.now })
        const phone = '919812340001'
        expectError(await webhook.post('/otp/send', { brandId: 'dlt', phone }), 502, 'sms_failed')
        // Two calls use up the time; rounding may leave enough for a third to begin.
        expect(receiver.received.length).toBeLessThanOrEqual(3)
        // A live code would return 401 or 200 for any guess. On a busy machine a time-out can end before the
        // receiver reads the request, so the test does not depend on received requests.
        const guess = { brandId: 'dlt', phone, otp: '123456' }
        expectError(await webhook.post('/otp/verify', guess), 404, 'not_found')
        // A cooldown would return 429.
        expectError(await webhook.post('/otp/send', { brandId: 'dlt', phone }), 502, 'sms_failed')
      })
    }
  })
})

test('an unreachable mail server returns 502 sms_failed and revokes the code', async () => {
  // Port 1 refuses connections.
  const unreachable = await createTestApp({ SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'codes@example.com' })
  const email = freshEmail()
  const answer = await unreachable.post('/otp/send', { channel: 'EMAIL', email })
  expectError(answer, 502, 'sms_failed')
  expect(JSON.stringify(answer.body)).not.toMatch(/127\.0\.0\.1|ECONNREFUSED/)
  expectError(await unreachable.post('/otp/verify', { email, otp: '123456' }), 404, 'not_found')
  await unreachable.close()
})
