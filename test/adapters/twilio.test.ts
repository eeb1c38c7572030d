import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { failure } from '../../src/adapters/sms/provider.ts'
import { twilio } from '../../src/adapters/sms/twilio.ts'
import { Settings } from '../../src/config/settings.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import type { CallbackRequest, Outcome, Sms } from '../../src/domain/ground/providers.ts'
import { anySms, patienceMs, providerTools, startProviderDouble } from '../support/provider-server.ts'

const account = 'AC0123456789abcdef0123456789abcdef'
const token = 'canary0123456789abcdef0123456789'
const sid = 'SM0123456789abcdef0123456789abcdef'
const service = 'MG0123456789abcdef0123456789abcdef'

const sms: Sms = { ...anySms, to: '12025550143', text: 'Grüße aus Köln: "1 € & 20% = 493817" 🎁' }

/** Twilio's response to an accepted message; it repeats the number and the text. */
function message(fields: Record<string, unknown>): Record<string, unknown> {
  return {
    account_sid: account,
    api_version: '2010-04-01',
    body: sms.text,
    date_created: 'Thu, 24 Aug 2023 05:01:45 +0000',
    date_sent: null,
    date_updated: 'Thu, 24 Aug 2023 05:01:45 +0000',
    direction: 'outbound-api',
    error_code: null,
    error_message: null,
    from: '+15005550006',
    messaging_service_sid: null,
    num_media: '0',
    num_segments: '1',
    price: null,
    price_unit: null,
    sid,
    status: 'queued',
    to: '+12025550143',
    uri: `/2010-04-01/Accounts/${account}/Messages/${sid}.json`,
    ...fields,
  }
}

function created(fields: Record<string, unknown>): Response {
  return Response.json(message(fields), { status: 201 })
}

let server: ReturnType<typeof startProviderDouble>

beforeEach(() => {
  server = startProviderDouble(() => created({}))
})

afterEach(async () => {
  await server.stop()
})

function provider(env: Record<string, string> = {}) {
  const settings = new Settings({
    TWILIO_ACCOUNT_SID: account,
    TWILIO_AUTH_TOKEN: token,
    TWILIO_FROM: '+15005550006',
    TWILIO_BASE_URL: server.url,
    ...env,
  })
  const made = twilio.configure(settings, 'plain')(providerTools)
  expect(settings.problems).toEqual([])
  return made
}

async function send(given: Partial<Sms> = {}, { timeoutMs = patienceMs, env = {} } = {}): Promise<Outcome> {
  const outcome = await provider(env).send({ ...sms, ...given }, timeoutMs)
  // These outcomes are logged.
  for (const secret of [token, sms.text, '493817', sms.to])
    expect(JSON.stringify(outcome)).not.toContain(secret)
  return outcome
}

/** The only call, with its form as pairs. */
function onlyCall() {
  const call = server.onlyCall()
  return { ...call, fields: [...new URLSearchParams(call.body)] }
}

test('it supports plain messages only', () => {
  expect(twilio.name).toBe('twilio')
  expect(twilio.routes).toEqual(['plain'])
  expect(provider().name).toBe('twilio')
})

describe('the request', () => {
  test("is a form posted to the account's messages", async () => {
    expect(await send()).toEqual({ kind: 'accepted', providerMessageId: sid })
    const { method, path, headers, fields } = onlyCall()
    expect(method).toBe('POST')
    expect(path).toBe(`/2010-04-01/Accounts/${account}/Messages.json`)
    expect(headers.get('content-type')).toBe('application/x-www-form-urlencoded')
    expect(headers.get('authorization')).toBe(`Basic ${btoa(`${account}:${token}`)}`)
    expect(fields).toEqual([
      ['To', '+12025550143'],
      ['From', '+15005550006'],
      ['Body', sms.text],
    ])
  })

  test('has the validity period and the status callback URL', async () => {
    const callbackUrl = 'https://otp.example/callbacks/twilio/d2a0b3f6.1.Xy_z-0'
    await send({ validitySeconds: 300, callbackUrl })
    expect(onlyCall().fields).toEqual([
      ['To', '+12025550143'],
      ['From', '+15005550006'],
      ['Body', sms.text],
      ['ValidityPeriod', '300'],
      ['StatusCallback', callbackUrl],
    ])
  })

  test('of a code asks for conversion feedback, if it is turned on', async () => {
    await send({ expectsFeedback: true })
    expect(onlyCall().fields.at(-1)).toEqual(['ProvideFeedback', 'true'])
  })

  test.each<[number, string]>([
    [0, '1'],
    [0.4, '1'],
    [1, '1'],
    [59.9, '59'],
    [36_000, '36000'],
    [86_400, '36000'],
  ])('has a validity of %p as %p, since Twilio allows 1 to 36000', async (validitySeconds, sent) => {
    await send({ validitySeconds })
    expect(onlyCall().fields).toContainEqual(['ValidityPeriod', sent])
  })

  test.each<[string, string]>([
    ['+447700900123', 'From'],
    ['12345', 'From'],
    ['Acme Shop', 'From'],
    [service, 'MessagingServiceSid'],
  ])('has the sender %p as %s', async (sender, field) => {
    await send({}, { env: { TWILIO_FROM: sender } })
    expect(onlyCall().fields).toEqual([
      ['To', '+12025550143'],
      [field, sender],
      ['Body', sms.text],
    ])
  })

  test.each<[string, string]>([
    ['ACMEIN', 'From'],
    [service, 'MessagingServiceSid'],
  ])("has the message's own sender, %p, in place of the configured one", async (senderId, field) => {
    await send({ senderId })
    const sender = onlyCall().fields.filter(([name]) => name === 'From' || name === 'MessagingServiceSid')
    expect(sender).toEqual([[field, senderId]])
  })

  test('has the credentials in its header only', async () => {
    await send()
    const { path, headers, body } = onlyCall()
    headers.delete('authorization')
    expect(path + body + JSON.stringify(Object.fromEntries(headers))).not.toContain(token)
  })
})

describe('a success response', () => {
  test.each(['queued', 'accepted', 'scheduled', 'sending', 'sent', 'delivered', 'read'])(
    'may have the status %s',
    async (status) => {
      server.answer(() => created({ status }))
      expect(await send()).toEqual({ kind: 'accepted', providerMessageId: sid })
    },
  )

  test('may be about an MMS, which replaces a long text in some countries', async () => {
    server.answer(() => created({ sid: sid.replace('SM', 'MM') }))
    expect(await send()).toEqual({ kind: 'accepted', providerMessageId: sid.replace('SM', 'MM') })
  })

  test.each<[Record<string, unknown>, Outcome]>([
    [{ status: 'failed' }, failure('retryable', 'status failed')],
    [{ status: 'undelivered' }, failure('retryable', 'status undelivered')],
    [{ status: 'canceled' }, failure('retryable', 'status canceled')],
    [{ status: 'failed', error_code: 21610 }, failure('recipient', '21610')],
    [{ status: 'failed', error_code: 30008 }, failure('retryable', '30008')],
    [{ status: 'failed', error_code: 12025550143 }, failure('retryable', 'status failed')],
  ])('is invalid with %p', async (fields, outcome) => {
    server.answer(() => created(fields))
    expect(await send()).toEqual(outcome)
  })

  test.each<[string, unknown]>([
    ['an unknown status', 'teleported'],
    ['no status', undefined],
    ['a null status', null],
    ['a status that is not text', ['queued']],
    ['a status named like an object property', 'constructor'],
  ])('with %s leaves the outcome unknown, with its status as the reason', async (_, status) => {
    server.answer(() => created({ status }))
    expect(await send()).toEqual({ kind: 'unknown', reason: 'unreadable answer', providerMessageId: sid })
  })
})

describe('conversion feedback', () => {
  const report = (timeoutMs = patienceMs) => provider().reportConversion?.(sid, timeoutMs)

  test('confirms the message', async () => {
    server.answer(() => Response.json({ message_sid: sid, outcome: 'confirmed' }, { status: 201 }))
    expect(await report()).toEqual({ kind: 'accepted' })
    const { method, path, headers, fields } = onlyCall()
    expect([method, path]).toEqual(['POST', `/2010-04-01/Accounts/${account}/Messages/${sid}/Feedback.json`])
    expect(headers.get('authorization')).toBe(`Basic ${btoa(`${account}:${token}`)}`)
    expect(fields).toEqual([['Outcome', 'confirmed']])
  })

  test.each<[number, unknown, Outcome]>([
    [404, { code: 20404 }, failure('account', '20404')],
    [429, { code: 20429 }, failure('retryable', '20429')],
    [503, {}, failure('retryable', 'HTTP 503')],
  ])('is classified after HTTP %p with %p', async (status, body, outcome) => {
    server.answer(() => Response.json(body, { status }))
    expect(await report()).toEqual(outcome)
  })

  test('ends at the time-out', async () => {
    server.answer(() => new Promise<never>(() => undefined))
    expect(await report(50)).toEqual(failure('unknown', 'time-out'))
  })
})

describe('a delivery report', () => {
  const url = 'https://otp.example/callbacks/twilio/d2a0b3f6-70ff-4a9c-9c05-1d1f5c6c8e77.1.Xy_z-0'

  /** The text that Twilio signs, spelled out as in "Webhooks Security". */
  function signatureOf(form: Record<string, string>, address = url, key = token): string {
    let signed = address
    for (const name of Object.keys(form).sort()) signed += name + form[name]
    return createHmac('sha1', key).update(signed).digest('base64')
  }

  function callOf(
    form: Record<string, string>,
    headers: Record<string, string>,
    address = url,
  ): CallbackRequest {
    const body = Buffer.from(new URLSearchParams(form).toString())
    const query = Object.fromEntries(new URL(address).searchParams)
    return { url: address, fields: { ...query, ...form }, headers, body }
  }

  function form(fields: Record<string, string>): Record<string, string> {
    return {
      SmsSid: sid,
      SmsStatus: fields.MessageStatus ?? '',
      MessageSid: sid,
      To: '+12025550143',
      From: '+15005550006',
      AccountSid: account,
      ApiVersion: '2010-04-01',
      ...fields,
    }
  }

  function read(call: CallbackRequest, env: Record<string, string> = {}) {
    const { deliveryReports } = provider(env)
    if (!deliveryReports) throw new Error('it reads no delivery reports')
    return deliveryReports.read(call)
  }

  function readSigned(fields: Record<string, string>) {
    const given = form(fields)
    return read(callOf(given, { 'x-twilio-signature': signatureOf(given) }))
  }

  /** The expected failure of reading it; undefined: none. */
  function failureOf(action: () => unknown): string | undefined {
    try {
      action()
      return undefined
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      for (const secret of [token, sms.to]) expect(error.message).not.toContain(secret)
      return error.kind
    }
  }

  test("comes to the attempt's callback URL", () => {
    expect(provider().deliveryReports?.namedBy).toBe('attempt')
  })

  test.each(['delivered', 'read'])('with status %s is delivered', (MessageStatus) => {
    expect(readSigned({ MessageStatus })).toEqual([{ status: 'delivered', reason: null }])
  })

  test.each(['undelivered', 'failed', 'canceled'])('with status %s is failed', (MessageStatus) => {
    expect(readSigned({ MessageStatus, ErrorCode: '30005' })).toEqual([{ status: 'failed', reason: '30005' }])
    expect(readSigned({ MessageStatus })).toEqual([{ status: 'failed', reason: null }])
  })

  test.each([
    'accepted',
    'scheduled',
    'queued',
    'sending',
    'sent',
    'receiving',
    'received',
    'partially_delivered',
  ])('with status %s is not final', (MessageStatus) => {
    expect(readSigned({ MessageStatus })).toEqual([{ status: 'pending', reason: null }])
    expect(readSigned({ MessageStatus, ErrorCode: '30005' })).toEqual([{ status: 'pending', reason: null }])
  })

  test.each(['', 'none', '+12025550143', '12025550143'])(
    'has no reason for the error code %p',
    (ErrorCode) => {
      expect(readSigned({ MessageStatus: 'failed', ErrorCode })).toEqual([{ status: 'failed', reason: null }])
    },
  )

  test.each<[string, Record<string, string>]>([
    ['no status', {}],
    ['an empty status', { MessageStatus: '' }],
    ['an unknown status', { MessageStatus: 'teleported' }],
    ['a status named like an object property', { MessageStatus: 'constructor' }],
    ['a status in capitals', { MessageStatus: 'DELIVERED' }],
  ])('with %s is invalid', (_, fields) => {
    expect(failureOf(() => readSigned(fields))).toBe('validation_error')
  })

  const given = form({ MessageStatus: 'delivered' })
  const good = signatureOf(given)

  test.each<[string, CallbackRequest]>([
    ['no signature', callOf(given, {})],
    ['an empty signature', callOf(given, { 'x-twilio-signature': '' })],
    ['half a signature', callOf(given, { 'x-twilio-signature': good.slice(0, 14) })],
    ['a signature and more', callOf(given, { 'x-twilio-signature': `${good}=` })],
    [
      "another's signature",
      callOf(given, { 'x-twilio-signature': signatureOf(given, url, 'another auth token') }),
    ],
    ['another field changed', callOf({ ...given, MessageStatus: 'failed' }, { 'x-twilio-signature': good })],
    ['an additional field', callOf({ ...given, ErrorCode: '30005' }, { 'x-twilio-signature': good })],
    ['the URL of another attempt', callOf(given, { 'x-twilio-signature': good }, url.replace('.1.', '.2.'))],
    ['an added query', callOf(given, { 'x-twilio-signature': good }, `${url}?a=1`)],
    ['another scheme', callOf(given, { 'x-twilio-signature': good }, url.replace('https', 'http'))],
    ['another port', callOf(given, { 'x-twilio-signature': signatureOf(given, url.replace('/c', ':80/c')) })],
    ['its fields in the query', { ...callOf(given, { 'x-twilio-signature': good }), body: new Uint8Array() }],
  ])('with %s is forbidden', (_, call) => {
    expect(failureOf(() => read(callOf(given, { 'x-twilio-signature': good })))).toBeUndefined()
    expect(failureOf(() => read(call))).toBe('forbidden')
  })

  test('is verified byte for byte, with spaces, signs and empty fields', () => {
    const fields = { MessageStatus: 'sent', A: ' a b+c&d=é ', AB: '', a: '%20', 'ÄÖ[]': '1\n2' }
    expect(readSigned(fields)).toEqual([{ status: 'pending', reason: null }])
  })

  test('may be signed with or without the port', () => {
    const withPort = url.replace('otp.example', 'otp.example:443')
    const elsewhere = url.replace('otp.example', 'otp.example:8443')
    const call = (address: string, signed: string) =>
      callOf(given, { 'x-twilio-signature': signatureOf(given, signed) }, address)
    for (const [address, signed] of [
      [url, withPort],
      [elsewhere, elsewhere],
      [elsewhere, url],
    ] as const) {
      expect(failureOf(() => read(call(address, signed)))).toBeUndefined()
    }
    expect(failureOf(() => read(call(url, elsewhere)))).toBe('forbidden')
    expect(failureOf(() => read(call(elsewhere, withPort)))).toBe('forbidden')
  })

  test('has its query signed too', () => {
    const address = `${url}?a=1&b=%20`
    const call = callOf(given, { 'x-twilio-signature': signatureOf(given, address) }, address)
    expect(read(call)).toEqual([{ status: 'delivered', reason: null }])
  })

  // The test vector of Twilio's own libraries. It is not a delivery report, but its signature is valid.
  test("has the same signature as in Twilio's libraries", () => {
    const example = {
      CallSid: 'CA1234567890ABCDE',
      Caller: '+14158675309',
      Digits: '1234',
      From: '+14158675309',
      To: '+18005551212',
    }
    const address = 'https://mycompany.com/myapp.php?foo=1&bar=2'
    const env = { TWILIO_AUTH_TOKEN: '12345' }
    const right = callOf(example, { 'x-twilio-signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B8=' }, address)
    const wrong = callOf(example, { 'x-twilio-signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B9=' }, address)
    expect(failureOf(() => read(right, env))).toBe('validation_error')
    expect(failureOf(() => read(wrong, env))).toBe('forbidden')
  })
})

test.each<[string, string]>([
  ['no JSON', '<html>21211</html>'],
  ['an incomplete body', '{"code":21211,"message":"The numb'],
  ['a code that is not a number', '{"code":"21211"}'],
  ['a code that is a phone number', '{"code":12025550143}'],
  ['a code with a fraction', '{"code":21211.5}'],
  ['an HTTP status as code', '{"code":400}'],
  ['null', 'null'],
])('an error with %s is classified by its status', async (_, body) => {
  server.answer(() => new Response(body, { status: 400 }))
  expect(await send()).toEqual(failure('content', 'HTTP 400'))
})

test.each(['+15005550006', '12345', '723', 'Acme', 'Acme 24-7', 'A', service])(
  'the sender may be %p',
  (from) => {
    provider({ TWILIO_FROM: from })
  },
)
