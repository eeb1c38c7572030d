import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { twilio } from '../../src/adapters/sms/twilio.ts'
import { Settings } from '../../src/config/settings.ts'
import { Failure } from '../../src/domain/failures.ts'
import type { CallbackRequest, Outcome, Sms } from '../../src/domain/messages/providers.ts'
import {
  anySms,
  passingMs,
  patienceMs,
  providerTools,
  startProviderDouble,
} from '../support/provider-server.ts'

const account = 'AC0123456789abcdef0123456789abcdef'
const token = 'canary0123456789abcdef0123456789'
const sid = 'SM0123456789abcdef0123456789abcdef'
const service = 'MG0123456789abcdef0123456789abcdef'

const sms: Sms = {
  ...anySms,
  to: '12025550143',
  text: 'Grüße aus Köln: "1 € & 20% = 493817" 🎁',
}

/** What the Messages resource answers a message with that it takes; it repeats the number and the text. */
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

/** Twilio's error body, whose message tends to hold the number. */
function refused(status: number, code: number): Response {
  const more_info = `https://www.twilio.com/docs/errors/${code}`
  return Response.json(
    { code, message: `The number +12025550143 is bad: ${sms.text}`, more_info, status },
    { status },
  )
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
  // What comes out of here is logged.
  for (const secret of [token, sms.text, '493817', sms.to])
    expect(JSON.stringify(outcome)).not.toContain(secret)
  return outcome
}

/** The only call that was made, its form as pairs. */
function onlyCall() {
  const call = server.onlyCall()
  return { ...call, fields: [...new URLSearchParams(call.body)] }
}

test('it carries plain messages alone', () => {
  expect(twilio.name).toBe('twilio')
  expect(twilio.routes).toEqual(['plain'])
  expect(provider().name).toBe('twilio')
})

describe('the request', () => {
  test('is a POST of a form to the messages of the account', async () => {
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

  test('takes with it for how long, and where to tell what became of it', async () => {
    const callbackUrl = 'https://otp.example/receipts/twilio/d2a0b3f6.1.Xy_z-0'
    await send({ validitySeconds: 300, callbackUrl })
    expect(onlyCall().fields).toEqual([
      ['To', '+12025550143'],
      ['From', '+15005550006'],
      ['Body', sms.text],
      ['ValidityPeriod', '300'],
      ['StatusCallback', callbackUrl],
    ])
  })

  test.each<[number, string]>([
    [0, '1'],
    [0.4, '1'],
    [1, '1'],
    [59.9, '59'],
    [36_000, '36000'],
    [86_400, '36000'],
  ])('has a validity of %p as %p, since Twilio takes 1 to 36000', async (validitySeconds, sent) => {
    await send({ validitySeconds })
    expect(onlyCall().fields).toContainEqual(['ValidityPeriod', sent])
  })

  test.each<[string, string]>([
    ['+447700900123', 'From'],
    ['12345', 'From'],
    ['Acme Shop', 'From'],
    [service, 'MessagingServiceSid'],
  ])('names the sender %p as %s', async (sender, field) => {
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
  ])('names a sender of its own, %p, instead of the usual one', async (senderId, field) => {
    await send({ senderId })
    const sender = onlyCall().fields.filter(([name]) => name === 'From' || name === 'MessagingServiceSid')
    expect(sender).toEqual([[field, senderId]])
  })

  test('has the credentials in its header alone', async () => {
    await send()
    const { path, headers, body } = onlyCall()
    headers.delete('authorization')
    expect(path + body + JSON.stringify(Object.fromEntries(headers))).not.toContain(token)
  })
})

describe('an answer of success', () => {
  test.each([200, 201, 202])('may have the status %p', async (status) => {
    server.answer(() => Response.json(message({}), { status }))
    expect(await send()).toEqual({ kind: 'accepted', providerMessageId: sid })
  })

  test.each(['queued', 'accepted', 'scheduled', 'sending', 'sent', 'delivered', 'read'])(
    'may say that the message is %s',
    async (status) => {
      server.answer(() => created({ status }))
      expect(await send()).toEqual({ kind: 'accepted', providerMessageId: sid })
    },
  )

  test('may be about an MMS, which a long text is made in some places', async () => {
    server.answer(() => created({ sid: sid.replace('SM', 'MM') }))
    expect(await send()).toEqual({ kind: 'accepted', providerMessageId: sid.replace('SM', 'MM') })
  })

  test.each<[Record<string, unknown>, Outcome]>([
    [{ status: 'failed' }, { kind: 'retryable', reason: 'status failed' }],
    [{ status: 'undelivered' }, { kind: 'retryable', reason: 'status undelivered' }],
    [{ status: 'canceled' }, { kind: 'retryable', reason: 'status canceled' }],
    [
      { status: 'failed', error_code: 21610 },
      { kind: 'rejected', scope: 'recipient', reason: '21610' },
    ],
    [
      { status: 'failed', error_code: 30008 },
      { kind: 'retryable', reason: '30008' },
    ],
    [
      { status: 'failed', error_code: 12025550143 },
      { kind: 'retryable', reason: 'status failed' },
    ],
  ])('is none with %p', async (fields, outcome) => {
    server.answer(() => created(fields))
    expect(await send()).toEqual(outcome)
  })

  test.each<[string, unknown]>([
    ['a status of the future', 'teleported'],
    ['no status', undefined],
    ['null for a status', null],
    ['a status that is no text', ['queued']],
    ['a status that every object has', 'constructor'],
  ])('with %s leaves it open, under its name', async (_, status) => {
    server.answer(() => created({ status }))
    expect(await send()).toEqual({ kind: 'unknown', reason: 'unreadable answer', providerMessageId: sid })
  })

  const whole = JSON.stringify(message({}))
  test.each<[string, string]>([
    ['nothing', ''],
    ['no JSON', '<html>queued</html>'],
    ['a body that breaks off', whole.slice(0, -1)],
    ['a body that breaks off early', whole.slice(0, 20)],
    ['null', 'null'],
    ['a list', `[${whole}]`],
    ['text', JSON.stringify(sid)],
    ['no sid', JSON.stringify(message({ sid: undefined }))],
    ['null for a sid', JSON.stringify(message({ sid: null }))],
    ['a sid of something else', JSON.stringify(message({ sid: sid.replace('SM', 'CA') }))],
    ['a short sid', JSON.stringify(message({ sid: sid.slice(0, -1) }))],
    ['a long sid', JSON.stringify(message({ sid: `${sid}0` }))],
    ['a sid that is a list', JSON.stringify(message({ sid: [sid] }))],
    ['an error', JSON.stringify({ code: 21211, message: 'no', status: 400 })],
    ['more than is read', ' '.repeat(70_000) + whole],
  ])('with %s leaves it open', async (_, body) => {
    server.answer(() => new Response(body, { status: 201 }))
    expect(await send()).toEqual({ kind: 'unknown', reason: 'unreadable answer' })
  })
})

describe("Twilio's error", () => {
  const rows: Readonly<
    Record<'account' | 'content' | 'recipient' | 'retryable', readonly [number, number][]>
  > = {
    account: [
      [403, 10001],
      [403, 10002],
      [401, 20003],
      [403, 20005],
      [403, 20006],
      [403, 20008],
      [403, 20010],
      [403, 20403],
      [404, 20404],
      [400, 21267],
      [400, 21607],
      [401, 70051],
      [400, 90010],
    ],
    content: [
      [400, 21408],
      [400, 21608],
      [400, 20001],
      [400, 20422],
      [400, 20423],
      [400, 21212],
      [400, 21601],
      [400, 21602],
      [400, 21603],
      [400, 21604],
      [400, 21605],
      [400, 21606],
      [400, 21609],
      [400, 21612],
      [400, 21616],
      [400, 21617],
      [400, 21618],
      [400, 21619],
      [400, 21624],
      [400, 21657],
      [400, 21659],
      [400, 21660],
      [400, 21661],
      [400, 21662],
      [400, 21663],
      [400, 21668],
      [404, 21701],
      [403, 21702],
      [403, 21703],
      [404, 21704],
      [404, 21705],
      [400, 21910],
      [400, 90007],
      [400, 90014],
    ],
    recipient: [
      [400, 21211],
      [400, 21214],
      [400, 21217],
      [400, 21265],
      [400, 21266],
      [400, 21268],
      [400, 21610],
      [400, 21614],
      [400, 21635],
    ],
    retryable: [
      [400, 14107],
      [429, 20429],
      [500, 20500],
      [503, 20503],
      [400, 21611],
      [400, 21730],
      [400, 63017],
      [400, 63018],
      [429, 63038],
    ],
  }

  for (const scope of ['account', 'content', 'recipient'] as const) {
    test.each(rows[scope])(`with HTTP %p and code %p is one of the ${scope}`, async (status, code) => {
      server.answer(() => refused(status, code))
      expect(await send()).toEqual({ kind: 'rejected', scope, reason: String(code) })
      expect(server.received).toHaveLength(1)
    })
  }

  test.each(rows.retryable)('with HTTP %p and code %p may pass', async (status, code) => {
    server.answer(() => refused(status, code))
    expect(await send()).toEqual({ kind: 'retryable', reason: String(code) })
    expect(server.received).toHaveLength(1)
  })

  test.each<[number, Outcome]>([
    [400, { kind: 'rejected', scope: 'content', reason: '29999' }],
    [401, { kind: 'rejected', scope: 'account', reason: '29999' }],
    [403, { kind: 'rejected', scope: 'account', reason: '29999' }],
    [404, { kind: 'rejected', scope: 'account', reason: '29999' }],
    [429, { kind: 'retryable', reason: '29999' }],
    [500, { kind: 'retryable', reason: '29999' }],
    [503, { kind: 'retryable', reason: '29999' }],
  ])('with HTTP %p and a code that is not listed goes by the status', async (status, outcome) => {
    server.answer(() => refused(status, 29999))
    expect(await send()).toEqual(outcome)
  })

  test.each<[number, Outcome]>([
    [301, { kind: 'rejected', scope: 'account', reason: 'HTTP 301' }],
    [302, { kind: 'rejected', scope: 'account', reason: 'HTTP 302' }],
    [307, { kind: 'rejected', scope: 'account', reason: 'HTTP 307' }],
    [400, { kind: 'rejected', scope: 'content', reason: 'HTTP 400' }],
    [401, { kind: 'rejected', scope: 'account', reason: 'HTTP 401' }],
    [403, { kind: 'rejected', scope: 'account', reason: 'HTTP 403' }],
    [404, { kind: 'rejected', scope: 'account', reason: 'HTTP 404' }],
    [408, { kind: 'retryable', reason: 'HTTP 408' }],
    [422, { kind: 'rejected', scope: 'content', reason: 'HTTP 422' }],
    [429, { kind: 'retryable', reason: 'HTTP 429' }],
    [500, { kind: 'retryable', reason: 'HTTP 500' }],
    [502, { kind: 'retryable', reason: 'HTTP 502' }],
    [503, { kind: 'retryable', reason: 'HTTP 503' }],
    [504, { kind: 'retryable', reason: 'HTTP 504' }],
  ])('without a body goes by the status %p', async (status, outcome) => {
    const elsewhere = startProviderDouble(() => created({}))
    server.answer(() => new Response(null, { status, headers: { location: elsewhere.url } }))
    expect(await send()).toEqual(outcome)
    expect(elsewhere.received).toHaveLength(0)
    await elsewhere.stop()
  })

  test.each<[string, string]>([
    ['no JSON', '<html>21211</html>'],
    ['a body that breaks off', '{"code":21211,"message":"The numb'],
    ['a message that was taken', JSON.stringify(message({}))],
    ['a code that is no number', '{"code":"21211"}'],
    ['a code that is a phone number', '{"code":12025550143}'],
    ['a code with a fraction', '{"code":21211.5}'],
    ['a code of HTTP', '{"code":400}'],
    ['null', 'null'],
  ])('with %s goes by the status', async (_, body) => {
    server.answer(() => new Response(body, { status: 400 }))
    expect(await send()).toEqual({ kind: 'rejected', scope: 'content', reason: 'HTTP 400' })
  })
})

describe('no answer', () => {
  test('within the time-out leaves it open', async () => {
    const never = Promise.withResolvers<Response>()
    server.answer(() => never.promise)
    expect(await send({}, { timeoutMs: passingMs })).toEqual({ kind: 'unknown', reason: 'time-out' })
    never.resolve(new Response())
    expect(server.received).toHaveLength(1)
  })

  test('because nothing listens may pass: nothing was sent', async () => {
    await server.stop()
    expect((await send()).kind).toBe('retryable')
  })

  test('because the connection ends with the request leaves it open', async () => {
    const gateway = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { data: (socket) => socket.terminate() },
    })
    const env = { TWILIO_BASE_URL: `http://127.0.0.1:${gateway.port}` }
    expect((await send({}, { env })).kind).toBe('unknown')
    gateway.stop(true)
  })
})

describe('a receipt', () => {
  const url = 'https://otp.example/receipts/twilio/d2a0b3f6-70ff-4a9c-9c05-1d1f5c6c8e77.1.Xy_z-0'

  /** What Twilio's signature is of, spelt out: "Webhooks Security". */
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
    if (!deliveryReports) throw new Error('it reads no receipts')
    return deliveryReports.read(call)
  }

  function readSigned(fields: Record<string, string>) {
    const given = form(fields)
    return read(callOf(given, { 'x-twilio-signature': signatureOf(given) }))
  }

  /** What kind of failure reading it is; undefined: none. */
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

  test('comes to a URL of the attempt', () => {
    expect(provider().deliveryReports?.namedBy).toBe('attempt')
  })

  test.each(['delivered', 'read'])('that says %s is one of delivery', (MessageStatus) => {
    expect(readSigned({ MessageStatus })).toEqual([{ status: 'delivered', reason: null }])
  })

  test.each(['undelivered', 'failed', 'canceled'])('that says %s is one of failure', (MessageStatus) => {
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
  ])('that says %s is not the last', (MessageStatus) => {
    expect(readSigned({ MessageStatus })).toEqual([{ status: 'pending', reason: null }])
    expect(readSigned({ MessageStatus, ErrorCode: '30005' })).toEqual([{ status: 'pending', reason: null }])
  })

  test.each(['', 'none', '+12025550143', '12025550143'])('has no reason in an error code %p', (ErrorCode) => {
    expect(readSigned({ MessageStatus: 'failed', ErrorCode })).toEqual([{ status: 'failed', reason: null }])
  })

  test.each<[string, Record<string, string>]>([
    ['no status', {}],
    ['an empty status', { MessageStatus: '' }],
    ['a status of the future', { MessageStatus: 'teleported' }],
    ['a status that every object has', { MessageStatus: 'constructor' }],
    ['a status in capitals', { MessageStatus: 'DELIVERED' }],
  ])('with %s is none', (_, fields) => {
    expect(failureOf(() => readSigned(fields))).toBe('validation_error')
  })

  const given = form({ MessageStatus: 'delivered' })
  const good = signatureOf(given)

  test.each<[string, CallbackRequest]>([
    ['no signature', callOf(given, {})],
    ['an empty signature', callOf(given, { 'x-twilio-signature': '' })],
    ['half a signature', callOf(given, { 'x-twilio-signature': good.slice(0, 14) })],
    ['more than a signature', callOf(given, { 'x-twilio-signature': `${good}=` })],
    [
      "another's signature",
      callOf(given, { 'x-twilio-signature': signatureOf(given, url, 'another auth token') }),
    ],
    ['another field changed', callOf({ ...given, MessageStatus: 'failed' }, { 'x-twilio-signature': good })],
    ['a field more', callOf({ ...given, ErrorCode: '30005' }, { 'x-twilio-signature': good })],
    ['the URL of another attempt', callOf(given, { 'x-twilio-signature': good }, url.replace('.1.', '.2.'))],
    ['a query it did not have', callOf(given, { 'x-twilio-signature': good }, `${url}?a=1`)],
    ['another scheme', callOf(given, { 'x-twilio-signature': good }, url.replace('https', 'http'))],
    ['another port', callOf(given, { 'x-twilio-signature': signatureOf(given, url.replace('/r', ':80/r')) })],
    [
      'its fields in the query',
      {
        ...callOf(given, { 'x-twilio-signature': good }),
        body: new Uint8Array(),
      },
    ],
  ])('with %s is forbidden', (_, call) => {
    expect(failureOf(() => read(callOf(given, { 'x-twilio-signature': good })))).toBeUndefined()
    expect(failureOf(() => read(call))).toBe('forbidden')
  })

  test('is taken in its bytes, with spaces, signs and empty fields', () => {
    const fields = { MessageStatus: 'sent', A: ' a b+c&d=é ', AB: '', a: '%20', 'ÄÖ[]': '1\n2' }
    expect(readSigned(fields)).toEqual([{ status: 'pending', reason: null }])
  })

  test('is as well with the port in what is signed, or without', () => {
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

  // The example that Twilio's own libraries are tested with. It is no receipt, but its signature is right.
  test("is signed as Twilio's libraries have it", () => {
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

describe('its settings', () => {
  const sound = { TWILIO_ACCOUNT_SID: account, TWILIO_AUTH_TOKEN: token, TWILIO_FROM: 'Acme' }

  function problemsOf(env: Record<string, string>): readonly string[] {
    const settings = new Settings(env)
    twilio.configure(settings, 'plain')
    return settings.problems
  }

  test('are asked for by name', () => {
    expect(problemsOf({}).map((problem) => problem.split(' ')[0])).toEqual([
      'TWILIO_ACCOUNT_SID',
      'TWILIO_AUTH_TOKEN',
      'TWILIO_FROM',
    ])
    expect(problemsOf(sound)).toEqual([])
  })

  test.each<[string, string, string]>([
    ['an API key', 'TWILIO_ACCOUNT_SID', 'SKcanary6789abcdef0123456789abcdef'],
    ['half an account', 'TWILIO_ACCOUNT_SID', 'AC0123456789canary'],
    ['an account with a path', 'TWILIO_ACCOUNT_SID', `${account}/canary`],
    ['an account and a line break', 'TWILIO_ACCOUNT_SID', `${account}\n`],
    ['a token with a space', 'TWILIO_AUTH_TOKEN', 'canary '],
    ['a token with a line break', 'TWILIO_AUTH_TOKEN', 'canary\n'],
    ['a number without +', 'TWILIO_FROM', '15005550006'],
    ['a number with spaces', 'TWILIO_FROM', '+1 500 555 0006'],
    ['a long sender id', 'TWILIO_FROM', 'canary canary'],
    ['a sender id of other letters', 'TWILIO_FROM', 'Bäckerei'],
    ['half a messaging service', 'TWILIO_FROM', 'MG0123456789canary'],
    ['http to another machine', 'TWILIO_BASE_URL', 'http://canary.example'],
    ['no URL', 'TWILIO_BASE_URL', 'canary'],
  ])('are refused where they are %s', (_, name, value) => {
    const problems = problemsOf({ ...sound, [name]: value })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toStartWith(`${name} `)
    expect(problems[0]).not.toContain('canary')
    expect(problems[0]).not.toContain(value)
  })

  test.each(['+15005550006', '12345', '723', 'Acme', 'Acme 24-7', 'A', service])(
    'may name the sender %p',
    (from) => {
      expect(problemsOf({ ...sound, TWILIO_FROM: from })).toEqual([])
    },
  )

  test('may name another host, with a slash at its end or without', async () => {
    await send({}, { env: { TWILIO_BASE_URL: `${server.url}/` } })
    expect(onlyCall().path).toBe(`/2010-04-01/Accounts/${account}/Messages.json`)
  })
})
