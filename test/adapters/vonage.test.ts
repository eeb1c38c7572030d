import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { failure } from '../../src/adapters/sms/provider.ts'
import { vonage } from '../../src/adapters/sms/vonage.ts'
import { Settings } from '../../src/config/settings.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import type { CallbackRequest, Outcome, Sms } from '../../src/domain/ground/providers.ts'
import { anySms, patienceMs, providerTools, startProviderDouble } from '../support/provider-server.ts'

const apiSecret = 'abcdef0123456789'
const signatureSecret = 'my_secret_key_for_testing'

const plain: Sms = { ...anySms, text: '123456 is your Acme code & key = ümlaut.\n\n@acme.example #123456' }

const registered: Sms = {
  ...plain,
  route: 'template',
  text: '123456 is your Acme verification code.',
  template: {
    key: 'LOGIN_OTP',
    variables: { otp: '123456' },
    id: '1107457532145798767',
    entityId: '1101456324675322134',
  },
  senderId: 'ACMEIN',
}

/** One part of a response, as documented in "Send an SMS". */
const taken = {
  to: plain.to,
  'message-id': '0A0000000123ABCD1',
  status: '0',
  'remaining-balance': '3.14159265',
  'message-price': '0.03330000',
  network: '12345',
}

function refused(status: string) {
  return { status, 'error-text': `Refused ${plain.to}: ${plain.text}` }
}

function answerOf(...messages: object[]) {
  return { 'message-count': String(messages.length), messages }
}

let double: ReturnType<typeof startProviderDouble>

/** Every outcome and delivery report of a test: none may reveal a number, a text or a secret. */
const told: unknown[] = []

beforeEach(() => {
  double = startProviderDouble(() => Response.json(answerOf(taken)))
})

afterEach(async () => {
  await double.stop()
  const said = JSON.stringify(told.splice(0))
  for (const secret of [apiSecret, '123456', '9812345678', 'Acme', 'Refused', 'verification']) {
    expect(said).not.toContain(secret)
  }
})

function providerOf(env: Record<string, string> = {}) {
  const settings = new Settings({
    VONAGE_API_KEY: 'abcd1234',
    VONAGE_API_SECRET: apiSecret,
    VONAGE_FROM: 'Acme',
    VONAGE_BASE_URL: double.url,
    ...env,
  })
  const provider = vonage.configure(settings, 'plain')(providerTools)
  expect(settings.problems).toEqual([])
  return provider
}

async function send(sms: Partial<Sms> = {}, { timeoutMs = patienceMs, env = {} } = {}): Promise<Outcome> {
  const outcome = await providerOf(env).send({ ...plain, ...sms }, timeoutMs)
  told.push(outcome)
  return outcome
}

function onlyCall() {
  const call = double.onlyCall()
  return { ...call, form: Object.fromEntries(new URLSearchParams(call.body)) }
}

describe('the request', () => {
  test('is a form with the key and the secret in a header', async () => {
    await send()
    const { method, path, headers, body, form } = onlyCall()
    expect([method, path]).toEqual(['POST', '/sms/json'])
    expect(headers.get('content-type')).toBe('application/x-www-form-urlencoded')
    expect(headers.get('authorization')).toBe('Basic YWJjZDEyMzQ6YWJjZGVmMDEyMzQ1Njc4OQ==')
    expect(form).toEqual({
      from: 'Acme',
      to: '919812345678',
      text: plain.text,
      type: 'text',
      'client-ref': plain.id,
    })
    expect(body).not.toContain(apiSecret)
  })

  test('of the template route has the text with the Indian DLT ids, and its sender', async () => {
    await send(registered)
    expect(onlyCall().form).toEqual({
      from: 'ACMEIN',
      to: '919812345678',
      text: registered.text,
      type: 'text',
      'client-ref': plain.id,
      'entity-id': '1101456324675322134',
      'content-id': '1107457532145798767',
    })
  })

  test('of the template route omits missing ids', async () => {
    await send({ ...registered, template: { key: 'A', variables: {}, id: null, entityId: null } })
    expect(Object.keys(onlyCall().form)).toEqual(['from', 'to', 'text', 'type', 'client-ref'])
  })

  test.each([
    ['€ and [brackets] are of GSM', 'text'],
    ['आपका कोड', 'unicode'],
    ['a `backtick`', 'unicode'],
    ['👍', 'unicode'],
  ])('marks the text "%s" as %s', async (text, type) => {
    await send({ text })
    expect(onlyCall().form).toMatchObject({ text, type })
  })

  test.each([
    [300, '300000'],
    [20, '20000'],
    [1, '20000'],
    [604_800, '604800000'],
    [9_999_999, '604800000'],
  ])('has the validity of %i s in milliseconds', async (validitySeconds, ttl) => {
    await send({ validitySeconds })
    expect(onlyCall().form.ttl).toBe(ttl)
  })

  test('has the callback URL for the delivery report', async () => {
    const callbackUrl = 'https://otp.example/callbacks/vonage/d2a0.1.dGhlIHRva2Vu'
    await send({ callbackUrl })
    expect(onlyCall().form.callback).toBe(callbackUrl)
  })

  test('has only the digits of a sender that is a number', async () => {
    await send({}, { env: { VONAGE_FROM: '+447700900000' } })
    expect(onlyCall().form.from).toBe('447700900000')
  })
})

describe('the response', () => {
  test('of a long message that is accepted in parts', async () => {
    double.answer(() => Response.json(answerOf(taken, { ...taken, 'message-id': '0A0000000123ABCD2' })))
    expect(await send()).toEqual({ kind: 'accepted', providerMessageId: '0A0000000123ABCD1' })
  })

  test('of a long message with a rejected part after an accepted one', async () => {
    double.answer(() => Response.json(answerOf(taken, refused('9'))))
    expect(await send()).toEqual(failure('unknown', 'taken in part'))
    double.answer(() => Response.json(answerOf(refused('9'), refused('1'))))
    expect(await send()).toEqual(failure('account', 'status 9'))
  })

  test('without an id', async () => {
    double.answer(() => Response.json(answerOf({ status: '0' })))
    expect(await send()).toEqual({ kind: 'accepted' })
  })
})

/** The example of "Understanding the delivery receipt", whose fields are all strings. */
const report = {
  'err-code': '0',
  'message-timestamp': '2026-10-25 12:10:29',
  messageId: '0B00000127FDBC63',
  msisdn: plain.to,
  'network-code': '40410',
  price: '0.03330000',
  scts: '2610251310',
  status: 'delivered',
  to: 'Acme',
  'client-ref': plain.id,
}

function read(changes: Record<string, string> = {}, env: Record<string, string> = {}) {
  return readCall({ fields: { ...report, ...changes } }, env)
}

function readCall(call: Partial<CallbackRequest>, env: Record<string, string> = {}) {
  const { deliveryReports } = providerOf(env)
  const url = 'https://otp.example/callbacks/vonage/d2a0.1.dGhlIHRva2Vu'
  const news = deliveryReports?.read({ url, fields: {}, headers: {}, body: new Uint8Array(), ...call })
  told.push(news)
  return news
}

function json(value: unknown): Partial<CallbackRequest> {
  return { headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(value)) }
}

function failureOf(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    return error instanceof Failure ? error.kind : String(error)
  }
  return undefined
}

describe('a delivery report', () => {
  const providerMessageId = report.messageId

  test('is matched by the attempt', () => {
    expect(providerOf().deliveryReports?.namedBy).toBe('attempt')
  })

  test.each([
    ['delivered', '0', { status: 'delivered', reason: null }],
    ['accepted', '0', { status: 'pending', reason: null }],
    ['buffered', '0', { status: 'pending', reason: null }],
    ['unknown', '1', { status: 'pending', reason: null }],
    ['something new', '1', { status: 'pending', reason: null }],
    ['expired', '2', { status: 'failed', reason: 'err-code 2' }],
    ['failed', '99', { status: 'failed', reason: 'err-code 99' }],
    ['rejected', '50', { status: 'failed', reason: 'err-code 50' }],
    ['failed', plain.to, { status: 'failed', reason: 'failed' }],
  ])('with %s and err-code %s', (status, code, news) => {
    expect(read({ status, 'err-code': code })).toEqual([news as never])
  })

  test('of a failure without a code', () => {
    const { 'err-code': _, ...rest } = report
    expect(readCall(json({ ...rest, status: 'rejected' }))).toEqual([
      { status: 'failed', reason: 'rejected' },
    ])
  })

  test('may be JSON', () => {
    expect(readCall(json(report))).toEqual([{ status: 'delivered', reason: null }])
    const call = json({ ...report, status: 'failed', 'err-code': 6 })
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' }
    expect(readCall({ ...call, headers })).toEqual([{ status: 'failed', reason: 'err-code 6' }])
  })

  test.each<[string, Partial<CallbackRequest>]>([
    ['nothing', {}],
    ['no status', { fields: { messageId: providerMessageId } }],
    ['no message', { fields: { status: 'delivered' } }],
    ['no JSON', { ...json({}), body: Buffer.from('{"status":') }],
    ['null', json(null)],
    ['a list', json([report])],
    ['another type', json({ ...report, status: { is: 'delivered' } })],
  ])('that is %s is rejected', (_, call) => {
    expect(failureOf(() => readCall(call))).toBe('validation_error')
  })
})

/** As in the guide "Signing Messages": sorted, `&name=value`, `_` for `&` and `=`, in hexadecimal digits. */
function signed(fields: Record<string, string>, method = 'sha256') {
  const names = Object.keys(fields).sort()
  const text = names.map((name) => `&${name}=${fields[name]?.replace(/[&=]/g, '_')}`).join('')
  return { ...fields, sig: createHmac(method, signatureSecret).update(text).digest('hex').toUpperCase() }
}

describe('a signed delivery report', () => {
  const fields = { ...report, timestamp: '1582650446', nonce: 'ec11dd3e-1e7f', 'client-ref': 'a=b&c' }
  const env = { VONAGE_SIGNATURE_SECRET: signatureSecret }
  const news = [{ status: 'delivered' as const, reason: null }]

  test.each(['sha256', 'sha512', 'sha1', 'md5'])('by %s is accepted', (method) => {
    const settings = { ...env, VONAGE_SIGNATURE_METHOD: method }
    expect(readCall({ fields: signed(fields, method) }, settings)).toEqual(news)
  })

  test('uses SHA-256 by default', () => {
    expect(readCall({ fields: signed(fields) }, env)).toEqual(news)
    expect(readCall(json(signed(fields)), env)).toEqual(news)
    expect(failureOf(() => readCall({ fields: signed(fields, 'sha1') }, env))).toBe('forbidden')
  })

  // Computed with `printf '&a=b_c&messageId=0A&status=delivered' | openssl dgst -sha256 -hmac SECRET`.
  test('has the signature of an independent implementation', () => {
    const sig = '4d0b038185427d1f8be70512d20ceb63dfe2c2da3fc5d8c0c3950f225ec9631e'
    const given = { status: 'delivered', messageId: '0A', a: 'b=c', sig }
    expect(readCall({ fields: given }, env)).toEqual([{ status: 'delivered', reason: null }])
  })

  test.each<[string, Record<string, string>]>([
    ['no signature', fields],
    ['an empty signature', { ...fields, sig: '' }],
    ['half a signature', { ...fields, sig: signed(fields).sig.slice(0, 32) }],
    ['a signature of other fields', { ...fields, sig: signed({ ...fields, status: 'failed' }).sig }],
    ['a changed field', { ...signed(fields), status: 'failed' }],
    ['an additional field', { ...signed(fields), more: '1' }],
    ['a signature that is a word', { ...fields, sig: 'none' }],
  ])('with %s is rejected', (_, given) => {
    expect(failureOf(() => readCall({ fields: given }, env))).toBe('forbidden')
  })
})

test.each([
  ['https://otp.acme.example.com', true],
  ['https://messages.acme.example.com', false],
])("delivery reports can be sent to %s: %p, by Vonage's rules for callbacks", (PUBLIC_URL, canReport) => {
  const settings = new Settings({ VONAGE_API_KEY: 'a', VONAGE_API_SECRET: 'b', VONAGE_FROM: 'c', PUBLIC_URL })
  const provider = vonage.configure(settings, 'plain')(providerTools)
  expect(provider.deliveryReports !== undefined).toBe(canReport)
})
