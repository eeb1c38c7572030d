import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { type Answer, codeIn, createTestApp, otherThan, type TestApp } from '../support/app.ts'
import { explained } from '../support/explained.ts'
import { operate } from '../support/operator.ts'
import { type AddedRelay, addRelay, basic } from '../support/relay.ts'

// Design D53: relays whose codes otpost makes and verifies. test/camara.system.ts has the rest of CAMARA.

let app: TestApp
let relay: AddedRelay

beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

const phone = '+12025550143'

interface Caller {
  readonly kind: 'camara' | 'keycloak'
  readonly send: (to?: string) => Promise<Answer>
  readonly validate: (id: string, code: string, to?: string) => Promise<Answer>
  /** Its words for an answer, with the ID of the code that was sent. */
  readonly read: (answer: Answer) => readonly [result: string, id: string | undefined]
}

const post = (path: string, body: object, authorization = `Bearer ${relay.secret}`) =>
  app.request('POST', new URL(relay.url).pathname + path, {
    headers: { 'content-type': 'application/json', authorization },
    body: JSON.stringify(body),
  })

const camaraPath = '/one-time-password-sms/v1'

const camara: Caller = {
  kind: 'camara',
  send: (phoneNumber = phone) =>
    post(`${camaraPath}/send-code`, { phoneNumber, message: 'Code: {{code}}, again {{code}}' }),
  validate: (authenticationId, code) => post(`${camaraPath}/validate-code`, { authenticationId, code }),
  read: ({ status, body }) => [`${status} ${body.code ?? ''}`.trim(), body.authenticationId],
}

const session = {
  realm: 'shop',
  clientId: 'web',
  sessionId: 's',
  traceId: 't',
  metadata: { step: 'send_tan' },
}

const keycloak: Caller = {
  kind: 'keycloak',
  send: (phoneNumber = phone) =>
    post('/sms/send', { phoneNumber, ipAddress: '203.0.113.7', ...session }, basic(relay.user, relay.secret)),
  validate: (hash, code, phoneNumber = phone) =>
    post('/sms/validate', { phoneNumber, hash, code, ...session }),
  read: ({ status, body }) => [`${status} ${body.status ?? body.valid ?? body.error}`, body.hash],
}

describe.each([
  [
    camara,
    {
      sent: '200',
      valid: '204',
      wrong: '400 ONE_TIME_PASSWORD_SMS.INVALID_OTP',
      locked: '400 ONE_TIME_PASSWORD_SMS.VERIFICATION_FAILED',
      gone: '400 ONE_TIME_PASSWORD_SMS.VERIFICATION_EXPIRED',
      unknown: '404 NOT_FOUND',
      blocked: '403 ONE_TIME_PASSWORD_SMS.PHONE_NUMBER_NOT_ALLOWED',
      rejected: '403 ONE_TIME_PASSWORD_SMS.PHONE_NUMBER_BLOCKED',
      exhausted: '403 ONE_TIME_PASSWORD_SMS.MAX_OTP_CODES_EXCEEDED',
      unpaid: '429 QUOTA_EXCEEDED',
      unproven: '401 UNAUTHENTICATED',
    },
  ],
  [
    keycloak,
    {
      sent: '200 SENT',
      valid: '200 true',
      wrong: '200 false',
      locked: '200 false',
      gone: '200 false',
      unknown: '200 false',
      blocked: '200 ERROR',
      rejected: '200 ERROR',
      exhausted: '200 ERROR',
      unpaid: '200 ERROR',
      unproven: '401 unauthorized',
    },
  ],
] as const)('$kind', ({ kind, send, validate, read }, words) => {
  beforeEach(async () => {
    relay = await addRelay(app, kind)
  })

  const sent = async (to = phone) => {
    const [result, id = ''] = read(await send(to))
    expect(result).toBe(words.sent)
    return { id, code: codeIn((await app.outbox(to)).at(-1)?.text) }
  }
  const result = async (answer: Promise<Answer>) => read(await answer)[0]
  const traceOf = async ({ headers }: Answer) => {
    const requestId = headers.get('x-request-id')
    const { trace, deliveries } = await app.eventsOf({ body: { requestId } })
    if (!trace) throw new Error(`no trace of ${requestId}`)
    return explained(trace, deliveries).join('\n')
  }

  test('verifies a code once, and knows it by its ID alone', async () => {
    const { id, code } = await sent()
    const other = await sent('+12025550144')
    expect(await result(validate(id, otherThan(code)))).toBe(words.wrong)
    const unknown = await validate(crypto.randomUUID(), code)
    expect(read(unknown)[0]).toBe(words.unknown)
    expect(await traceOf(unknown)).toContain('there was no active code')
    if (kind === 'keycloak') expect(await result(validate(other.id, other.code))).toBe(words.unknown)
    expect(await result(validate(id, code))).toBe(words.valid)
    expect(await result(validate(id, code))).toBe(words.gone)
  })

  test('verifies no code that has expired, was replaced, or has three wrong guesses', async () => {
    const expired = await sent()
    app.advance(301)
    expect(await result(validate(expired.id, expired.code))).toBe(words.gone)
    const replaced = await sent()
    const { id, code } = await sent()
    expect(await result(validate(replaced.id, replaced.code))).toBe(words.gone)
    for (let guess = 0; guess < 3; guess++)
      expect(await result(validate(id, otherThan(code)))).toBe(words.wrong)
    const locked = await validate(id, code)
    expect(read(locked)[0]).toBe(words.locked)
    expect(await traceOf(locked)).toContain('wrong')
  })

  test('has three guesses, also at once', async () => {
    const { id, code } = await sent()
    const guesses = await Promise.all(Array.from({ length: 20 }, () => validate(id, otherThan(code))))
    const codes = await Promise.all(guesses.map((guess) => traceOf(guess)))
    expect(codes.filter((trace) => trace.includes(': 401 mismatch'))).toHaveLength(3)
    expect(await result(validate(id, code))).toBe(words.locked)
    const all = await sent('+12025550144')
    const rights = await Promise.all(
      Array.from({ length: 20 }, () => validate(all.id, all.code, '+12025550144')),
    )
    expect(rights.filter((right) => read(right)[0] === words.valid)).toHaveLength(1)
  })

  test('verifies no code of an app or of another relay', async () => {
    const { body } = await app.post('/otp/send', { channel: 'SMS', phone })
    const code = await app.lastCode(phone)
    expect(await result(validate(body.requestId, code))).toBe(words.unknown)
    expect((await app.post('/otp/verify', { phone, otp: code })).status).toBe(200)
    const { id, code: second } = await sent()
    relay = await addRelay(app, kind, { name: 'second' })
    expect(await result(validate(id, second))).toBe(words.unknown)
  })

  test('has its own errors, and traces, for what is not sent', async () => {
    await operate(app, 'destination set', { rule: 'GB', action: 'block' })
    await operate(app, 'destination set', { rule: '+1500555', action: 'allow' })
    const blocked = await send('+447400123456')
    expect(read(blocked)).toEqual([words.blocked, undefined])
    expect(await traceOf(blocked)).toContain('United Kingdom')
    const rejected = await send('+15005550001')
    expect(read(rejected)).toEqual([words.rejected, undefined])
    expect(await traceOf(rejected)).toContain('magic number')
    const budget = { scope: 'country:LV', period: 'day', amount: '0.01' }
    await operate(app, 'budget set', budget)
    const unpaid = await send('+37121234567')
    expect(read(unpaid)).toEqual([words.unpaid, undefined])
    expect(await traceOf(unpaid)).toContain('budget')
    for (let each = 0; each < 3; each++) await sent()
    const fourth = await send()
    expect(read(fourth)).toEqual([words.exhausted, undefined])
    expect(fourth.headers.has('retry-after')).toBe(false)
    expect(await traceOf(fourth)).toContain('REJECTED  SMS codes per minute for this phone: 3 of 3')
    relay = { ...relay, secret: 'another' }
    const unproven = await send()
    expect(read(unproven)).toEqual([words.unproven, undefined])
    expect(await traceOf(unproven)).toContain('proof: The secret is not that of the relay.')
  })
})
