import { afterAll, describe, expect, test } from 'bun:test'
import type { PhoneNumberOptions } from 'better-auth/plugins'
import type { OtpostPhoneOptions } from 'otpost/better-auth'
import { createTestApp, credentials, otherThan } from '../support/app.ts'
import { authWith } from '../support/better-auth.ts'

// better-auth itself, with its memory adapter, on a service in this process whose clock the tests move.

const ending = new AsyncDisposableStack()
afterAll(() => ending.disposeAsync())

interface Scene {
  readonly env?: Readonly<Record<string, string>>
  readonly otpost?: Partial<OtpostPhoneOptions>
  readonly plugin?: Partial<PhoneNumberOptions>
}

async function start({ env = {}, otpost = {}, plugin }: Scene = {}) {
  const service = await createTestApp(env)
  ending.defer(() => service.close())
  const fetch: OtpostPhoneOptions['fetch'] = async (url, init) => service.app.handle(new Request(url, init))
  const options = { url: 'http://localhost', ...credentials, brandId: 'acme', fetch, ...otpost }
  return {
    ...authWith(options, plugin),
    service,
    codeFor: (phone: string) => service.lastCode(phone.slice(1)),
  }
}

const phone = '+12025550143'
const invalidCode = { status: 400, body: { code: 'INVALID_OTP' } }
const invalidNumber = { status: 400, body: { code: 'INVALID_PHONE_NUMBER', message: 'Invalid phone number' } }
const tooMany = (reason?: string) => ({
  status: 429,
  body: { code: 'TOO_MANY_REQUESTS', ...(reason ? { reason } : {}) },
})

test('a visitor signs up with the code of the SMS, which works once', async () => {
  const { send, verify, codeFor, users } = await start()
  expect(await send(phone)).toMatchObject({ status: 200, body: { message: 'code sent' } })
  const code = await codeFor(phone)
  expect(await verify(phone, otherThan(code))).toMatchObject(invalidCode)
  expect(users()).toHaveLength(0)
  expect(await verify(phone, code)).toMatchObject({
    status: 200,
    body: {
      status: true,
      token: expect.any(String),
      user: { phoneNumber: phone, phoneNumberVerified: true },
    },
  })
  expect(await verify(phone, code)).toMatchObject(invalidCode)
  expect(users()).toHaveLength(1)
})

test('three wrong codes lock a code, and only a new one helps', async () => {
  const { send, verify, codeFor, service } = await start()
  await send(phone)
  const first = await codeFor(phone)
  for (let attempt = 1; attempt <= 3; attempt++) {
    expect(await verify(phone, otherThan(first))).toMatchObject(invalidCode)
  }
  expect(await verify(phone, first)).toMatchObject({
    status: 403,
    body: { code: 'TOO_MANY_ATTEMPTS', message: 'Too many attempts' },
  })
  service.advance(30)
  await send(phone)
  expect(await verify(phone, await codeFor(phone))).toMatchObject({ status: 200 })
})

test('a code that expired, that is not six digits, or that was never sent is an invalid one', async () => {
  const { send, verify, codeFor, service } = await start()
  await send(phone)
  service.advance(300)
  for (const code of [await codeFor(phone), '12345', 'abcdef', '1'.repeat(20_000)]) {
    expect(await verify(phone, code)).toMatchObject(invalidCode)
  }
  expect(await verify('+12025550199', '123456')).toMatchObject(invalidCode)
})

describe('limits that better-auth does not have', () => {
  test('one code in 30 seconds, and 10 an hour, for a phone number', async () => {
    const { send, service } = await start()
    await send(phone)
    service.advance(10)
    const early = await send(phone)
    expect(early).toMatchObject(tooMany())
    expect(early.headers.get('retry-after')).toBe('20')
    expect(early.headers.get('x-retry-after')).toBe('20')
    for (let sent = 1; sent < 10; sent++) {
      service.advance(61)
      expect(await send(phone)).toMatchObject({ status: 200 })
    }
    service.advance(61)
    expect(await send(phone)).toMatchObject(tooMany('phone_hour'))
    expect(await send('+12025550199')).toMatchObject({ status: 200 })
    expect(await service.outbox(phone.slice(1))).toHaveLength(10)
  })

  test('wrong codes of a day, which a new code does not reset', async () => {
    const { send, verify, codeFor, service } = await start({ env: { FAILURE_BUDGET_PER_DAY: '4' } })
    for (const attempts of [3, 1]) {
      service.advance(61)
      await send(phone)
      const wrong = otherThan(await codeFor(phone))
      for (let attempt = 0; attempt < attempts; attempt++) await verify(phone, wrong)
    }
    const code = await codeFor(phone)
    expect(await verify(phone, code)).toMatchObject(tooMany('wrong_codes'))
    service.advance(61)
    expect(await send(phone)).toMatchObject(tooMany('wrong_codes'))
  })

  test('codes without a sign-in from one IP address, if better-auth finds it', async () => {
    const { send } = await start({ env: { GUARD: 'deny', SMS_COUNTRIES: 'US' } })
    const from = (ip: string) => ({ 'x-forwarded-for': ip })
    for (const area of [202, 213, 312, 415, 617]) {
      expect(await send(`+1${area}5550143`, from('198.51.100.7'))).toMatchObject({ status: 200 })
    }
    expect(await send('+12125550143', from('198.51.100.7'))).toMatchObject(tooMany('guard'))
    expect(await send('+12125550143', from('198.51.100.8'))).toMatchObject({ status: 200 })
    for (const area of [206, 214, 303, 404, 503, 602]) {
      expect(await send(`+1${area}5550143`)).toMatchObject({ status: 200 })
    }
  })
})

test('a forgotten password is replaced with a code', async () => {
  const { send, verify, codeFor, post, service, log } = await start()
  await send(phone)
  await verify(phone, await codeFor(phone))
  service.advance(30)
  const ask = (number: string) => post('/phone-number/request-password-reset', { phoneNumber: number })
  const reset = (otp: string) =>
    post('/phone-number/reset-password', { phoneNumber: phone, otp, newPassword: 'a new and long one' })
  expect(await ask(phone)).toMatchObject({ status: 200, body: { status: true } })
  const code = await codeFor(phone)
  expect(await reset(otherThan(code))).toMatchObject(invalidCode)
  expect(await reset(code)).toMatchObject({ status: 200 })
  expect(await reset(code)).toMatchObject(invalidCode)
  const signIn = { phoneNumber: phone, password: 'a new and long one' }
  expect(await post('/sign-in/phone-number', signIn)).toMatchObject({ status: 200 })

  // The same answer for a number without a user and within the cooldown: it does not say who is a user.
  for (const number of ['+12025550199', phone]) {
    expect(await ask(number)).toMatchObject({ status: 200, body: { status: true } })
  }
  expect(await service.outbox()).toHaveLength(2)
  expect(Bun.inspect(log)).toContain('TOO_MANY_REQUESTS')
})

test('with requireVerification, the right password of an unverified number sends a code', async () => {
  const { post, users, verify, codeFor } = await start({ plugin: { requireVerification: true } })
  const password = 'correct horse battery'
  await post('/sign-up/email', { email: 'pat@example.com', name: 'Pat', password })
  // As the users that an application imports.
  Object.assign(users()[0] ?? {}, { phoneNumber: phone, phoneNumberVerified: false })
  const signIn = () => post('/sign-in/phone-number', { phoneNumber: phone, password })
  expect(await signIn()).toMatchObject({ status: 401, body: { code: 'PHONE_NUMBER_NOT_VERIFIED' } })
  expect(await verify(phone, await codeFor(phone))).toMatchObject({ status: 200 })
  expect(await signIn()).toMatchObject({ status: 200 })
})

test('a signed-in user changes the number with a code to the new one', async () => {
  const { send, verify, codeFor, users } = await start()
  const changed = '+12025550150'
  await send(phone)
  const { headers } = await verify(phone, await codeFor(phone))
  const cookie = (headers.get('set-cookie') ?? '').replace(/;.*/, '')
  await send(changed)
  const update = { updatePhoneNumber: true }
  expect(await verify(changed, otherThan(await codeFor(changed)), update, { cookie })).toMatchObject(
    invalidCode,
  )
  expect(await verify(changed, await codeFor(changed), update, { cookie })).toMatchObject({ status: 200 })
  expect(users()).toMatchObject([{ phoneNumber: changed, phoneNumberVerified: true }])
})

test('an SMS is in the language of the request', async () => {
  const { send, service } = await start({
    otpost: { lang: (context) => context?.headers?.get('accept-language') },
  })
  await send(phone, { 'accept-language': 'de-AT,de;q=0.9,en;q=0.5' })
  await send('+12025550199')
  expect((await service.outbox()).map(({ text }) => text)).toEqual([
    expect.stringContaining('Code'),
    expect.stringContaining('verification code'),
  ])
})

describe('errors', () => {
  test.each(['12025550143', '+1 202 555 0143', '+1202', '+0044791112345', 'pat', `+${'1'.repeat(20)}`])(
    'another form of a number is invalid, so that a phone has one user: %s',
    async (number) => {
      const { send, verify, service } = await start()
      expect(await send(number)).toMatchObject(invalidNumber)
      expect(await verify(number, '123456')).toMatchObject(invalidNumber)
      expect(await service.outbox()).toEqual([])
    },
  )

  test('a blocked country is an invalid number, with the reason, and its trace has the requestId', async () => {
    const { send, service } = await start({ env: { SMS_COUNTRIES: 'IN' } })
    const { status, body } = await send(phone)
    expect({ status, body }).toMatchObject(invalidNumber)
    expect(body.reason).toBe('destination')
    expect((await service.eventsOf({ body })).trace).toMatchObject({
      end: { error: 'validation_error' },
      country: 'US',
    })
  })

  test('a message that no provider accepts is 502', async () => {
    const { send, log } = await start()
    expect(await send('+15005550001')).toMatchObject({ status: 502, body: { code: 'OTP_UNAVAILABLE' } })
    expect(Bun.inspect(log)).toContain('otpost: sms_failed')
  })

  test.each<[string, number, Partial<OtpostPhoneOptions>]>([
    ['forbidden', 500, { apiKey: 'another' }],
    ['brand_not_approved', 500, { brandId: 'other' }],
    ['unreachable', 503, { fetch: () => Promise.reject(new Error('refused')) }],
    ['unexpected_answer', 503, { fetch: async () => new Response('<h1>Bad Gateway</h1>', { status: 502 }) }],
    ['unexpected_answer', 500, { fetch: async () => new Response('<h1>Not Found</h1>', { status: 404 }) }],
  ])('%s is %i for the visitor, and logged without number and code', async (error, status, otpost) => {
    const { send, verify, log } = await start({ otpost: { retry: false, ...otpost } })
    for (const answer of [await send(phone), await verify(phone, '424242')]) {
      expect(answer).toMatchObject({ status, body: { code: 'OTP_UNAVAILABLE' } })
    }
    const logged = Bun.inspect(log)
    expect(logged).toContain(`otpost: ${error}: `)
    expect(logged).not.toMatch(/2025550143|424242/)
  })
})
