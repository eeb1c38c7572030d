import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type FailureKind, failureMessages } from '../../src/domain/ground/failures.ts'
import { type Answer, createTestApp, otherThan, type TestApp } from '../support/app.ts'
import { appKeys, freshApp, manyApps } from '../support/apps.ts'
import { accessRequest } from '../support/calls.ts'
import { startReceiver } from '../support/receiver.ts'
import { freshEmail, freshPhone } from '../support/rows.ts'

/** The typical messages of spec section 7, with example values for `<id>` and `<key>`. */
const typical = {
  brand_id_required: 'brandId is required',
  invalid_channel: 'channel must be one of: EMAIL, SMS',
  unsupported_business: 'Unsupported business',
  invalid_template: 'Unknown templateKey',
  otp_template_not_supported: 'OTP must use the OTP endpoints',
  missing_variable: 'Missing required variable',
  invalid_input: 'Invalid request',
  invalid_contact: 'Invalid phone number or email',
  invalid_app_id: 'Invalid app id',
  invalid_otp_format: 'OTP must be exactly 6 digits',
  mismatch: 'Invalid OTP',
  forbidden: 'Invalid app credentials',
  brand_not_approved: 'Brand is not registered or not approved',
  brand_suspended: 'Brand is suspended',
  template_not_allowed: 'Template not enabled for brand',
  not_found: 'No active OTP for this contact. Request a new code.',
  rate_limited: 'Too many requests. Please try again later.',
  cooldown_active: 'Please wait before requesting another OTP',
  max_attempts: 'Too many failed attempts. Request a new code.',
  notification_failed: 'Failed to send notification',
  internal_error: 'An unexpected error occurred',
  sms_failed: 'Failed to send OTP. Please try again.',
} as const satisfies Partial<Record<FailureKind, string>>

describe('the default message starts with the typical message of spec section 7', () => {
  test.each(Object.entries(typical))('%s', (kind, words) => {
    expect(failureMessages[kind as FailureKind]).toStartWith(words)
  })
})

describe('the message of a response starts with the typical message of spec section 7', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await createTestApp({
      APP_CREDENTIALS: JSON.stringify({ ...appKeys, 'with:colon': 'key' }),
      GLOBAL_LIMIT_PER_MINUTE: '10',
      EMAIL_LIMIT_PER_HOUR: '1',
      FAILURE_BUDGET_PER_DAY: '4',
    })
    for (const slug of ['acme', 'globex', 'initech', 'hooli']) {
      await app.brand(slug, { notifyTemplates: ['ORDER_PLACED'] })
    }
    await app.brand('halted', { status: 'suspended' })
  })
  afterAll(() => app.close())

  const send = (fields: object) => app.post('/otp/send', { ...freshApp(), brandId: 'acme', ...fields })
  const verify = (fields: object) => app.post('/otp/verify', { ...freshApp(), brandId: 'acme', ...fields })
  const sms = (fields: object) =>
    app.post('/notify', { ...freshApp(), brandId: 'acme', channel: 'SMS', to: [freshPhone()], ...fields })
  const mail = (fields: object) =>
    app.post('/notify', { ...freshApp(), channel: 'EMAIL', to: [freshEmail()], subject: 'x', ...fields })

  /** Sends a code to a phone, enters wrong codes and returns the last response. */
  const guessWrong = async (phone: string, brandId: string, times: number) => {
    await send({ phone, brandId })
    const otp = otherThan(await app.lastCode(phone))
    let answer = await verify({ phone, brandId, otp })
    for (let guess = 1; guess < times; guess++) answer = await verify({ phone, brandId, otp })
    return answer
  }

  const rows: readonly (readonly [message: string, call: () => Promise<Answer>])[] = [
    [
      'appId is required. Send `appId` and `apiKey` in the JSON body.',
      () => app.post('/otp/send', { appId: '', apiKey: 'x' }),
    ],
    [
      'API key is required. Send it as `apiKey` in the JSON body.',
      () => app.post('/otp/send', { apiKey: null }),
    ],
    [
      'Invalid app credentials. Check `appId` and `apiKey`. Those in an Authorization header must be the same.',
      () => app.post('/otp/send', { appId: 'x', apiKey: 'x' }),
    ],
    [
      'brandId is required. GET /platform/brands lists the active brands.',
      () => send({ brandId: null, phone: freshPhone() }),
    ],
    [
      'brandId or variables.businessName is required. GET /platform/brands lists the active brands.',
      () => sms({ brandId: null, message: 'x' }),
    ],
    [
      'Brand is not registered or not approved. GET /platform/brands lists the active brands.',
      () => send({ brandId: 'nobody', phone: freshPhone() }),
    ],
    [
      'Brand is suspended. The operator of this server can activate it again.',
      () => send({ brandId: 'halted', phone: freshPhone() }),
    ],
    ['`phone` is required when `channel` is SMS.', () => send({})],
    ['`phone` must be a string.', () => send({ phone: 12025550143 })],
    ['`phone` must have 7 to 15 digits.', () => send({ phone: '12345' })],
    [
      '`phone` must have only digits, spaces and the characters + - ( ) .',
      () => send({ phone: '202-555-O143' }),
    ],
    [
      '`email` must be an e-mail address, such as pat@example.com.',
      () => send({ channel: 'EMAIL', email: 'pat' }),
    ],
    ['`channel` must be SMS or EMAIL.', () => send({ channel: 'FAX', phone: freshPhone() })],
    [
      '`businessName` must have at most 40 characters.',
      () => send({ phone: freshPhone(), businessName: 'x'.repeat(41) }),
    ],
    ['`otp` is required.', () => verify({ phone: freshPhone() })],
    ['Send exactly one of `phone` and `email`.', () => verify({ otp: '123456' })],
    [
      'Invalid request. `otp` must be a string of 6 digits.',
      () => verify({ phone: freshPhone(), otp: 12345 }),
    ],
    ['OTP must be exactly 6 digits.', () => verify({ phone: freshPhone(), otp: '12345' })],
    [
      'Invalid phone number or email. `phone` must have 7 to 15 digits.',
      () => verify({ phone: '12', otp: '123456' }),
    ],
    [
      'Invalid phone number or email. `email` must be an e-mail address, such as pat@example.com.',
      () => verify({ email: 'pat', otp: '123456' }),
    ],
    [
      'Invalid app id. `appId` must be 1 to 64 visible ASCII characters without a colon.',
      () => verify({ appId: 'with:colon', apiKey: 'key', phone: freshPhone(), otp: '123456' }),
    ],
    [
      'No active OTP for this contact. Request a new code.',
      () => verify({ phone: freshPhone(), otp: '123456' }),
    ],
    ['Invalid OTP. Three wrong attempts lock a code.', () => guessWrong(freshPhone(), 'acme', 1)],
    ['Too many failed attempts. Request a new code.', () => guessWrong(freshPhone(), 'acme', 4)],
    [
      'Please wait before requesting another OTP. Try again in 18 seconds.',
      async () => {
        const phone = freshPhone()
        await send({ phone })
        app.advance(12)
        return send({ phone })
      },
    ],
    [
      'Too many OTP requests. Try later. At most 3 per minute for this phone; resets in 42 seconds.',
      async () => {
        const phone = freshPhone()
        await send({ phone })
        app.advance(18)
        for (const brandId of ['globex', 'initech']) await send({ phone, brandId })
        return send({ phone, brandId: 'hooli' })
      },
    ],
    [
      'Too many OTP requests. Try later. At most 10 per hour for this phone; resets in 50 minutes.',
      async () => {
        const phone = freshPhone()
        for (let count = 0; count < 10; count++) {
          await send({ phone })
          app.advance(61)
        }
        return send({ phone })
      },
    ],
    [
      'Too many OTP requests. Try later. At most 1 per hour for this mailbox; resets in 60 minutes.',
      async () => {
        const email = freshEmail()
        await send({ channel: 'EMAIL', email })
        return send({ channel: 'EMAIL', email })
      },
    ],
    [
      'Too many requests. Please try again later. At most 10 per minute for this app; resets in 60 seconds.',
      async () => {
        const own = freshApp()
        for (let count = 0; count < 10; count++) await verify({ ...own, otp: 'x' })
        return verify({ ...own, otp: 'x' })
      },
    ],
    [
      'Too many requests. Please try again later. Try again in 24 hours.',
      async () => {
        const phone = freshPhone()
        await guessWrong(phone, 'acme', 3)
        await guessWrong(phone, 'globex', 1)
        return send({ phone, brandId: 'initech' })
      },
    ],
    [
      'Too many requests. Please try again later. At most 5 per hour for this IP address; resets in 60 minutes.',
      async () => {
        const request = accessRequest
        for (let count = 0; count < 5; count++) await app.post('/integrations/requests', request)
        return app.post('/integrations/requests', request)
      },
    ],
    ['`channel` is required: SMS or EMAIL.', () => mail({ channel: null, html: 'x' })],
    ['channel must be one of: EMAIL, SMS.', () => mail({ channel: 'FAX', html: 'x' })],
    ['`to` must be a non-empty array.', () => mail({ to: [], html: 'x' })],
    ['`to[1]` must have 7 to 15 digits.', () => sms({ to: [freshPhone(), '1'], message: 'x' })],
    ['Send exactly one of `html` and `template`.', () => mail({})],
    ['Send either `message` or `templateKey`, not both.', () => sms({ message: 'x', templateKey: 'x' })],
    ['`otp` is not accepted on /notify.', () => sms({ message: 'x', otp: '123456' })],
    [
      '`html` is only for channel EMAIL. Remove it, or change `channel`.',
      () => sms({ message: 'x', html: 'x' }),
    ],
    [
      'OTP must use the OTP endpoints. Send codes with POST /otp/send.',
      () => sms({ templateKey: 'LOGIN_OTP', variables: {} }),
    ],
    [
      'Unknown templateKey: NONE. The templates are ORDER_PLACED, OUT_FOR_DELIVERY, ORDER_DELIVERED.',
      () => sms({ templateKey: 'NONE', variables: {} }),
    ],
    [
      'Template not enabled for brand. The operator of this server can enable ORDER_DELIVERED.',
      () => sms({ templateKey: 'ORDER_DELIVERED', variables: {} }),
    ],
    [
      'Unsupported business: Globex. It must name the same brand as `brandId`.',
      () => sms({ templateKey: 'ORDER_PLACED', variables: { businessName: 'Globex' } }),
    ],
    [
      'Missing required variable: orderId. ORDER_PLACED requires `customerName`, `orderId`, `orderDate`.',
      () => sms({ templateKey: 'ORDER_PLACED', variables: { customerName: 'Pat' } }),
    ],
    [
      '`variables.orderDate` must be a date that exists, YYYY-MM-DD.',
      () =>
        sms({
          templateKey: 'ORDER_PLACED',
          variables: { customerName: 'Pat', orderId: 'A1', orderDate: 'x' },
        }),
    ],
    [
      'Missing required variable: name. `data` needs a value for {{name}}.',
      () => mail({ template: '{{name}}' }),
    ],
  ]
  test.each([...rows])('%s', async (message, call) => {
    const { body } = await call()
    expect(body).toMatchObject({ success: false, message })
    // The field that the sentence begins with (design D50).
    const [, field] = /^`([^`]+)`/.exec(message) ?? []
    if (body.error === 'validation_error') expect(body.field).toBe(field)
  })
})

describe('the message of a failed delivery', () => {
  let app: TestApp
  const receiver = startReceiver(() => new Response(null, { status: 500 }))
  beforeAll(async () => {
    app = await createTestApp({
      ...manyApps,
      SMS_PLAIN: 'webhook',
      ...receiver.env,
    })
    await app.brand('acme')
  })
  afterAll(async () => {
    await app.close()
    await receiver.stop()
  })

  const notify = (to: readonly string[]) =>
    app.post('/notify', { ...freshApp(), brandId: 'acme', channel: 'SMS', to, message: 'x' })

  const rows: readonly (readonly [message: string, call: () => Promise<Answer>])[] = [
    [
      'Failed to send OTP. Please try again.',
      () => app.post('/otp/send', { ...freshApp(), brandId: 'acme', phone: freshPhone() }),
    ],
    ['Failed to send notification. No provider accepted the message.', () => notify([freshPhone()])],
    [
      'Failed to send notification. No provider accepted 2 of 2 messages.',
      () => notify([freshPhone(), freshPhone()]),
    ],
  ]
  test.each([...rows])('%s', async (message, call) => {
    const { body } = await call()
    expect(body).toMatchObject({ success: false, message })
  })
})
