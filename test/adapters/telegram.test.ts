import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { failure } from '../../src/adapters/sms/provider.ts'
import { telegram } from '../../src/adapters/sms/telegram.ts'
import { Settings } from '../../src/config/settings.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import type { CallbackRequest, Outcome, Sms } from '../../src/domain/ground/providers.ts'
import { anySms, patienceMs, providerTools } from '../support/provider-server.ts'
import {
  startTelegramGateway,
  telegramEnv,
  telegramReport,
  telegramSigned,
  telegramToken,
} from '../support/telegram-gateway.ts'

const code: Sms = { ...anySms, route: 'telegram', lang: 'en', validitySeconds: 300 }
const now = Date.UTC(2026, 0, 1, 12)

let double: ReturnType<typeof startTelegramGateway>
/** Every outcome of a test: none may reveal a number, a code or a secret. */
const told: unknown[] = []

beforeEach(() => {
  double = startTelegramGateway()
})

afterEach(async () => {
  await double.stop()
  expect(double.problems).toEqual([])
  const said = JSON.stringify(told.splice(0))
  for (const secret of ['canary', '123456', '9812345678', '98765', 'Acme']) expect(said).not.toContain(secret)
})

function providerOf() {
  const settings = new Settings(telegramEnv(double.url))
  const provider = telegram.configure(settings, 'telegram')({ ...providerTools, now: () => now })
  expect(settings.problems).toEqual([])
  return provider
}

async function send(sms: Partial<Sms> = {}): Promise<Outcome> {
  const outcome = await providerOf().send({ ...code, ...sms }, patienceMs)
  told.push(outcome)
  return outcome
}

describe('the request', () => {
  const callbackUrl = 'https://otp.example/callbacks/telegram/d2a0.1.dGhlIHRva2Vu'

  test('has the code, its lifetime, our ID and the callback URL', async () => {
    const outcome = await send({ callbackUrl })
    const [message] = double.messages
    expect(outcome).toEqual({ kind: 'accepted', providerMessageId: String(message?.request_id) })
    expect(message).toMatchObject({
      phone_number: '+919812345678',
      code: '123456',
      ttl: 300,
      callback_url: callbackUrl,
      payload: code.id,
    })
  })

  test.each([
    [10, 30],
    [30, 30],
    [299.5, 299],
    [3600, 3600],
    [86_400, 3600],
    [null, undefined],
  ])('of a code that is valid for %p s has the ttl %p', async (validitySeconds, ttl) => {
    await send({ validitySeconds })
    expect(double.messages[0]?.ttl).toBe(ttl)
  })

  test.each([null, 'http://127.0.0.1/callbacks/telegram/x', `https://otp.example/${'x'.repeat(256)}`])(
    'has no callback URL that Telegram would reject',
    async (url) => {
      await send({ callbackUrl: url })
      expect(double.messages[0]?.callback_url).toBeUndefined()
    },
  )

  test.each([null, '123', '987654321', '12AB56'])('with the code %p is not made', async (given) => {
    const reason = 'sends codes of 4 to 8 digits only'
    expect(await send({ code: given })).toEqual({
      kind: 'rejected',
      scope: 'content',
      reason,
      notCalled: true,
    })
    expect(double.received).toEqual([])
  })
})

describe('the answer', () => {
  test.each([
    ['PHONE_NUMBER_INVALID', 'recipient', 'PHONE_NUMBER_INVALID'],
    ['PHONE_NUMBER_NOT_FOUND', 'recipient', 'PHONE_NUMBER_NOT_FOUND'],
    ['PHONE_NUMBER_NOT_AVAILABLE', 'recipient', 'PHONE_NUMBER_NOT_AVAILABLE'],
    ['CODE_INVALID', 'content', 'CODE_INVALID'],
    ['TTL_INVALID', 'content', 'TTL_INVALID'],
    ['PAYLOAD_INVALID', 'content', 'PAYLOAD_INVALID'],
    ['CALLBACK_URL_INVALID', 'content', 'CALLBACK_URL_INVALID'],
    ['SENDER_NOT_VERIFIED', 'content', 'SENDER_NOT_VERIFIED'],
    ['MESSAGE_ALREADY_SENT', 'content', 'MESSAGE_ALREADY_SENT'],
    ['ACCESS_TOKEN_INVALID', 'account', 'ACCESS_TOKEN_INVALID'],
    ['ACCESS_TOKEN_REQUIRED', 'account', 'ACCESS_TOKEN_REQUIRED'],
    ['BALANCE_NOT_ENOUGH', 'account', 'BALANCE_NOT_ENOUGH'],
    ['UNKNOWN_METHOD', 'account', 'UNKNOWN_METHOD'],
    ['FLOOD_WAIT_30', 'retryable', 'FLOOD_WAIT'],
    ['FLOOD_WAIT', 'retryable', 'FLOOD_WAIT'],
    ['SOMETHING_NEW', 'content', 'SOMETHING_NEW'],
    ['Number +919812345678 has no Telegram', 'content', 'unreadable answer'],
  ] as const)('200 with the error %s is an error of %s', async (error, meaning, reason) => {
    double.answer(() => Response.json({ ok: false, error }))
    expect(await send()).toEqual(failure(meaning, reason))
  })

  test.each<[number, unknown, Outcome]>([
    [200, {}, failure('unknown', 'unreadable answer')],
    [200, null, failure('unknown', 'unreadable answer')],
    [200, { ok: true, result: { phone_number: '+919812345678' } }, failure('unknown', 'unreadable answer')],
    [200, { ok: false }, failure('content', 'unreadable answer')],
    [401, { ok: false, error: 'ACCESS_TOKEN_INVALID' }, failure('account', 'ACCESS_TOKEN_INVALID')],
    [401, { ok: false, error: 'SOMETHING_NEW' }, failure('account', 'SOMETHING_NEW')],
    [429, { ok: false, error: 'FLOOD_WAIT_3' }, failure('retryable', 'FLOOD_WAIT')],
    [500, { ok: true, result: { request_id: '1' } }, failure('unknown', 'HTTP 500')],
    [502, '+919812345678', failure('unknown', 'HTTP 502')],
  ])('%i %j', async (status, body, outcome) => {
    double.answer(() => Response.json(body, { status }))
    expect(await send()).toEqual(outcome)
  })
})

const message = { request_id: '1a2b', phone_number: '+919812345678', payload: code.id }

function read(call: Partial<CallbackRequest>) {
  const url = 'https://otp.example/callbacks/telegram/d2a0.1.dGhlIHRva2Vu'
  const whole = { url, fields: {}, headers: {}, body: new Uint8Array(), ...call }
  return providerOf().deliveryReports?.read(whole)
}

function report(body: unknown, { at = now, token = telegramToken } = {}) {
  const signed = telegramSigned(body, at, token)
  return { ...signed, body: Buffer.from(signed.body) }
}

function failureOf(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    return error instanceof Failure ? error.kind : String(error)
  }
  return undefined
}

describe('a report', () => {
  test('is matched by the attempt', () => {
    expect(providerOf().deliveryReports?.namedBy).toBe('attempt')
  })

  test.each([
    ['sent', {}, { status: 'pending', reason: null }],
    ['delivered', {}, { status: 'delivered', reason: null }],
    ['read', {}, { status: 'delivered', reason: null }],
    ['something new', {}, { status: 'pending', reason: null }],
    ['expired', {}, { status: 'failed', reason: 'expired', refundedTo: '919812345678' }],
    ['expired', { is_refunded: true }, { status: 'failed', reason: 'expired', refundedTo: '919812345678' }],
    ['expired', { is_refunded: false }, { status: 'failed', reason: 'expired' }],
    ['expired', { phone_number: 'someone' }, { status: 'failed', reason: 'expired' }],
    ['revoked', {}, { status: 'failed', reason: 'revoked' }],
    ['revoked', { is_refunded: true }, { status: 'failed', reason: 'revoked', refundedTo: '919812345678' }],
    ['read', { is_refunded: true }, { status: 'delivered', reason: null }],
  ])('%s %j', (status, more, expected) => {
    expect(read(report(telegramReport(message, status, more)))).toEqual([expected as never])
  })

  test('of a message that is not sent yet has no status', () => {
    expect(read(report({ request_id: '1' }))).toEqual([{ status: 'pending', reason: null }])
  })

  test('is signed with the token', () => {
    const body = telegramReport(message, 'delivered')
    const signed = report(body)
    expect(failureOf(() => read(report(body, { token: 'another' })))).toBe('forbidden')
    expect(failureOf(() => read({ ...signed, headers: {} }))).toBe('forbidden')
    expect(failureOf(() => read({ ...signed, body: Buffer.from(`${signed.body} `) }))).toBe('forbidden')
    const later = { ...signed.headers, 'x-request-timestamp': String(now / 1000 + 1) }
    expect(failureOf(() => read({ ...signed, headers: later }))).toBe('forbidden')
  })

  // KEY=$(printf '%s' "$TELEGRAM_TOKEN" | openssl dgst -sha256 -hex); printf '1767268800\n{"request_id":"1"}' | openssl dgst
  // -sha256 -mac HMAC -macopt hexkey:$KEY
  test('has the signature of an independent implementation', () => {
    const headers = {
      'x-request-timestamp': '1767268800',
      'x-request-signature': 'f970d53f87678c4564ad55717ddc97e7b738e3dad12ab6cc074a2d0591439767',
    }
    const body = Buffer.from('{"request_id":"1"}')
    expect(read({ headers, body })).toEqual([{ status: 'pending', reason: null }])
  })

  test('is rejected if it is older or newer than five minutes', () => {
    const body = telegramReport(message, 'delivered')
    const at = (seconds: number) => failureOf(() => read(report(body, { at: now + seconds * 1000 })))
    expect([-301, -300, 300, 301].map(at)).toEqual(['forbidden', undefined, undefined, 'forbidden'])
  })

  test.each<[unknown]>([['no JSON'], [null], [[]], [{ request_id: 1 }]])('%j is rejected', (body) => {
    expect(failureOf(() => read(report(body)))).toBe('validation_error')
  })
})
