import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { awsSms } from '../../src/adapters/sms/aws-sms.ts'
import { kannel } from '../../src/adapters/sms/kannel.ts'
import { msg91 } from '../../src/adapters/sms/msg91.ts'
import { failure, type SmsProviderSpec } from '../../src/adapters/sms/provider.ts'
import { sns } from '../../src/adapters/sms/sns.ts'
import { twilio } from '../../src/adapters/sms/twilio.ts'
import { vonage } from '../../src/adapters/sms/vonage.ts'
import { webhook } from '../../src/adapters/sms/webhook.ts'
import { Settings } from '../../src/config/settings.ts'
import type { Meaning } from '../../src/domain/delivery/provider-codes.ts'
import type { Outcome, Sms, SmsRoute } from '../../src/domain/ground/providers.ts'
import {
  anySms,
  passingMs,
  patienceMs,
  providerTools,
  startProviderDouble,
} from '../support/provider-server.ts'

// Tests that apply to every SMS provider, according to its documentation. Each provider's own tests are in
// its own file.

interface Provider {
  readonly spec: SmsProviderSpec
  readonly route?: SmsRoute
  readonly sms?: Partial<Sms>
  readonly settings: Readonly<Record<string, string>>
  /** The setting with the server's URL. */
  readonly baseUrl: string
  /** The response to an accepted message, and the outcome. */
  readonly status: number
  readonly taken: string
  readonly accepted: Outcome
  /** HTTP status and error code of rejections, by error class. */
  readonly codes: Partial<Record<Meaning, string>>
  refusal?(status: number, code: string): string
  reasonOf?(code: string): string
  /** What an unknown outcome also has: the ID of the message, if it is known before the response. */
  readonly namedBefore?: { readonly providerMessageId: string }
  /** Statuses without a body that have a different class here, or none. */
  readonly bare?: Readonly<Record<number, Meaning>>
  /** Invalid success responses besides the common ones; undefined: the body is not read. */
  readonly unreadable?: readonly string[]
  readonly unread?: string
  /** Invalid values of settings; `canary` must not be repeated. */
  readonly wrong: readonly (readonly [name: string, ...values: string[]])[]
}

const account = 'AC0123456789abcdef0123456789abcdef'
const sid = 'SM0a1b2c3d4e5f60718293a4b5c6d7e8f9'
const message = { sid, status: 'queued', to: '+919812345678', body: anySms.text }
const messageId = '34d9b400-c6dd-5444-820d-fbeb0f1f54cf'
const flowId = '5762846b4f8d285d378b4567'
const published = `<?xml version="1.0"?>
<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>${messageId}</MessageId>
</PublishResult></PublishResponse>
`
const vonageTaken = { to: anySms.to, 'message-id': '0A0000000123ABCD1', status: '0' }
const vonageAnswer = (messages: unknown) => JSON.stringify({ 'message-count': '1', messages })
const msg91Taken = { type: 'success', message: flowId }
const each = (statuses: readonly number[], codes: string) =>
  codes
    .split(' ')
    .flatMap((code) => statuses.map((status) => `${status}:${code}`))
    .join(' ')

const msg91Common = {
  spec: msg91,
  settings: { MSG91_AUTH_KEY: 'canary-key', MSG91_SENDER: 'ACMEIN' },
  baseUrl: 'MSG91_BASE_URL',
  status: 200,
  taken: JSON.stringify(msg91Taken),
  accepted: { kind: 'accepted', providerMessageId: flowId },
  codes: {
    retryable: `${each([200, 400, 500], '001 002')} 503:999`,
    unknown: `${each([200, 400, 500], '601')} ${each([500, 502, 504], '999')}`,
    recipient: each([200, 400], '202'),
    account: each([200, 400], '104 105 106 201 205 207 208 209 210 301 302 303 401 418 505 506'),
    content: each([200, 400], '101 102 103 107 203 211 306 307 308 309 310 311 999'),
  },
  // A code is text or a number.
  refusal: (status: number, code: string) =>
    JSON.stringify({
      type: 'error',
      message: 'for 919812345678',
      code: status === 200 ? code : Number(code),
    }),
  reasonOf: (code: string) => `code ${code}`,
  bare: { 418: 'account' },
  unreadable: [
    { message: flowId },
    { type: 'warning', message: flowId },
    { type: 'SUCCESS', message: flowId },
    { type: 'success' },
    { type: 'success', message: '' },
    { type: 'success', message: ' ' },
    { type: 'success', message: 1 },
    { type: 'success', message: [flowId] },
  ].map((body) => JSON.stringify(body)),
  wrong: [['MSG91_BASE_URL', 'canary', 'ftp://canary.example', 'http://canary.example']],
} as const satisfies Provider

const providers: Readonly<Record<string, Provider>> = {
  twilio: {
    spec: twilio,
    settings: { TWILIO_ACCOUNT_SID: account, TWILIO_AUTH_TOKEN: 'canary-token', TWILIO_FROM: '+15005550006' },
    baseUrl: 'TWILIO_BASE_URL',
    status: 201,
    taken: JSON.stringify(message),
    accepted: { kind: 'accepted', providerMessageId: sid },
    codes: {
      account: `403:10001 403:10002 401:20003 403:20005 403:20006 403:20008 403:20010 403:20403 404:20404 400:21267
        400:21607 401:70051 400:90010 401:29999 403:29999 404:29999`,
      content: `400:21408 400:21608 400:20001 400:20422 400:20423 400:21212 400:21601 400:21602 400:21603 400:21604
        400:21605 400:21606 400:21609 400:21612 400:21616 400:21617 400:21618 400:21619 400:21624 400:21657 400:21659
        400:21660 400:21661 400:21662 400:21663 400:21668 404:21701 403:21702 403:21703 404:21704 404:21705 400:21910
        400:90007 400:90014 400:29999`,
      recipient: '400:21211 400:21214 400:21217 400:21265 400:21266 400:21268 400:21610 400:21614 400:21635',
      retryable: `400:14107 429:20429 503:20503 400:21611 400:21730 400:63017 400:63018 429:63038 429:29999
        503:29999`,
      unknown: '500:20500 500:29999 502:29999 504:29999',
    },
    // The error text often has the phone number.
    refusal: (status, code) =>
      JSON.stringify({ code: Number(code), message: `${anySms.to} is bad: ${anySms.text}`, status }),
    unreadable: [
      JSON.stringify(sid),
      ...[undefined, null, sid.replace('SM', 'CA'), sid.slice(0, -1), `${sid}0`, [sid]].map((wrong) =>
        JSON.stringify({ ...message, sid: wrong }),
      ),
      JSON.stringify({ code: 21211, message: 'no', status: 400 }),
    ],
    wrong: [
      [
        'TWILIO_ACCOUNT_SID',
        'SKcanary6789abcdef0123456789abcdef',
        'AC0123456789canary',
        `${account}/canary`,
        `${account}\n`,
      ],
      ['TWILIO_AUTH_TOKEN', 'canary ', 'canary\n'],
      ['TWILIO_FROM', '15005550006', '+1 500 555 0006', 'canary canary', 'Bäckerei', 'MG0123456789canary'],
      ['TWILIO_BASE_URL', 'http://canary.example', 'canary'],
    ],
  },
  vonage: {
    spec: vonage,
    settings: { VONAGE_API_KEY: 'canary1', VONAGE_API_SECRET: 'canary2', VONAGE_FROM: 'canary3' },
    baseUrl: 'VONAGE_BASE_URL',
    status: 200,
    taken: vonageAnswer([vonageTaken]),
    accepted: { kind: 'accepted', providerMessageId: '0A0000000123ABCD1' },
    codes: {
      retryable: '200:1 200:10 429:98 503:98',
      unknown: '200:5 500:98 502:98 504:98',
      content: '200:2 200:3 200:12 200:15 200:22 200:23 200:29 200:99',
      account: '200:4 200:8 200:9 200:11 200:14 200:32 401:8',
      recipient: '200:6 200:7 200:33',
    },
    refusal: (_, status) => vonageAnswer([{ status, 'error-text': `Refused ${anySms.to}: ${anySms.text}` }]),
    reasonOf: (code) => `status ${code}`,
    unreadable: [
      'OK',
      '0',
      '[{"status":"0"}]',
      vonageAnswer([]),
      vonageAnswer({ status: '0' }),
      ...[null, { status: 0 }, { status: ['0'] }, { 'message-id': '0A' }, { status: '919812345678' }].map(
        (one) => vonageAnswer([one]),
      ),
      '{"message_uuid":"aaaaaaaa-bbbb-cccc-dddd-0123456789ab"}',
    ],
    wrong: [
      [
        'VONAGE_BASE_URL',
        'canary',
        'http://canary.example',
        'https://a.example/?canary',
        'https://canary:canary@a.example',
      ],
      ['VONAGE_API_SECRET', 'canary\ncanary'],
      ['VONAGE_FROM', 'canary canary'],
      ['VONAGE_SIGNATURE_METHOD', 'canary'],
    ],
  },
  'msg91, by text': msg91Common,
  'msg91, by template': {
    ...msg91Common,
    route: 'template',
    sms: { template: { key: 'LOGIN_OTP', variables: { otp: '123456' }, id: '6a76c9555ae4', entityId: null } },
  },
  sns: {
    spec: sns,
    settings: { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'canary1', AWS_SECRET_ACCESS_KEY: 'canary2' },
    baseUrl: 'SNS_BASE_URL',
    status: 200,
    taken: published,
    accepted: { kind: 'accepted', providerMessageId: messageId },
    codes: {
      content: `${each(
        [400],
        'InvalidParameter ParameterValueInvalid InvalidParameterValue InvalidParameterCombination InvalidQueryParameter InvalidAction MissingAction MissingParameter UserError ValidationError ValidationException SomethingNew constructor',
      )} 404:MalformedQueryString`,
      recipient: '400:OptedOut',
      account: `${each(
        [403],
        'AuthorizationError InvalidSecurity InvalidClientTokenId SignatureDoesNotMatch AccessDenied ExpiredToken ExpiredTokenException MissingAuthenticationToken OptInRequired UnrecognizedClientException SomethingNew',
      )} ${each([400], 'AccessDeniedException IncompleteSignature NotAuthorized RequestExpired')}`,
      retryable:
        '429:Throttled 400:Throttling 400:ThrottlingException 503:ServiceUnavailable 503:SomethingNew',
      unknown: `500:InternalError 500:InternalFailure ${each([500, 502, 504], 'SomethingNew')}`,
    },
    refusal: (_, code) =>
      `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>${code}</Code>
       <Message>Not to +${anySms.to}</Message></Error><RequestId>9b3f7a5c</RequestId></ErrorResponse>`,
    unreadable: [
      'OK',
      published.replace(/<MessageId>.*<\/MessageId>/, ''),
      published.replace(messageId, ''),
      published.replace(messageId, `+${anySms.to}`),
      `<html>${published}</html>`,
      published.replaceAll('PublishResponse', 'PublishBatchResponse'),
      '<ErrorResponse><Error><Code>InternalError</Code></Error></ErrorResponse>',
      `{"PublishResponse":{"PublishResult":{"MessageId":"${messageId}"}}}`,
    ],
    wrong: [
      ['AWS_REGION', 'canary.example/'],
      ['AWS_ACCESS_KEY_ID', 'canary\ncanary'],
      ['AWS_SESSION_TOKEN', 'canary\ncanary'],
      ['SNS_BASE_URL', 'http://canary.example'],
      ['SNS_SENDER_ID', 'ca', 'canarycanary', 'ca nary', '12025550143'],
    ],
  },
  'aws-sms': {
    spec: awsSms,
    settings: {
      AWS_REGION: 'ap-south-1',
      AWS_ACCESS_KEY_ID: 'canary-id',
      AWS_SECRET_ACCESS_KEY: 'canary-secret',
    },
    baseUrl: 'AWS_SMS_BASE_URL',
    status: 200,
    taken: JSON.stringify({ MessageId: messageId }),
    accepted: { kind: 'accepted', providerMessageId: messageId },
    codes: {
      content: `${each(
        [400],
        'ConflictException ResourceNotFoundException ValidationException DESTINATION_PHONE_NUMBER_NOT_VERIFIED NO_ORIGINATION_IDENTITIES_FOUND SENDER_ID_NOT_REGISTERED SomethingNew constructor',
      )}`,
      recipient: '400:DESTINATION_PHONE_NUMBER_OPTED_OUT',
      account: `${each(
        [400],
        'AccessDeniedException ServiceQuotaExceededException UnrecognizedClientException InvalidSignatureException ExpiredTokenException IncompleteSignature MissingAuthenticationToken NotAuthorized OptInRequired RequestExpired',
      )} 403:SomethingNew`,
      retryable: '400:ThrottlingException 503:ServiceUnavailable 503:SomethingNew',
      unknown: `500:InternalServerException 500:InternalFailure ${each([500, 502, 504], 'SomethingNew')}`,
    },
    refusal: (_, code) =>
      JSON.stringify({
        ...(code === code.toUpperCase()
          ? { __type: 'ConflictException', Reason: code }
          : { __type: `com.amazonaws.pinpointsmsvoicev2#${code}` }),
        Message: `Not to +${anySms.to}`,
      }),
    unreadable: [
      'OK',
      '{}',
      ...[null, '', 1, [messageId], `+${anySms.to}`, 'a b'].map((wrong) =>
        JSON.stringify({ MessageId: wrong }),
      ),
    ],
    wrong: [
      ['AWS_REGION', 'canary.example/'],
      ['AWS_ACCESS_KEY_ID', 'canary\ncanary'],
      ['AWS_SMS_BASE_URL', 'http://canary.example'],
      ['AWS_SMS_SENDER', 'ca nary', 'canary\n1'],
      ['AWS_SMS_CONFIGURATION_SET', 'ca nary', '+canary'],
    ],
  },
  kannel: {
    spec: kannel,
    settings: { KANNEL_USERNAME: 'otpost', KANNEL_PASSWORD: 'canary-secret', KANNEL_FROM: 'canary3' },
    baseUrl: 'KANNEL_URL',
    status: 202,
    taken: '0: Accepted for delivery',
    accepted: { kind: 'accepted' },
    codes: {},
    unreadable: [
      'Sent. Message splits: 2',
      '0: Accepted',
      '0: Accepted for delivery, or not',
      '{"error":"canary 919812345678"}',
    ],
    unread: 'HTTP 202',
    wrong: [
      ['KANNEL_URL', 'canary', 'http://canary.example:13013'],
      ['KANNEL_PASSWORD', 'canary\n'],
      ['KANNEL_USERNAME', 'canary\r'],
      ['KANNEL_FROM', 'canary А'],
      ['KANNEL_SMSC', 'canary\n'],
      ['KANNEL_ENTITY_TLV', 'canary&x'],
      ['KANNEL_TEMPLATE_TLV', 'canary?x'],
    ],
  },
  webhook: {
    spec: webhook,
    settings: {
      SMS_WEBHOOK_SECRET: `whsec_${Buffer.from('canary secret of 32 bytes.......').toString('base64')}`,
    },
    baseUrl: 'SMS_WEBHOOK_URL',
    status: 200,
    taken: '',
    accepted: { kind: 'accepted', providerMessageId: anySms.id },
    codes: {},
    namedBefore: { providerMessageId: anySms.id },
    bare: { 304: 'account' },
    wrong: [
      ['SMS_WEBHOOK_URL', 'canary', 'ftp://canary.example/sms', 'http://canary.example/sms'],
      ['SMS_WEBHOOK_SECRET', 'whsec_canary!'],
    ],
  },
}

/** The class of a status without an error code (design D26). */
const bareStatuses: Readonly<Record<number, Meaning>> = {
  ...{ 301: 'account', 302: 'account', 303: 'account', 307: 'account', 308: 'account' },
  ...{ 400: 'content', 401: 'account', 403: 'account', 404: 'account', 413: 'content', 422: 'content' },
  ...{ 408: 'retryable', 429: 'retryable', 503: 'retryable' },
  ...{ 500: 'unknown', 502: 'unknown', 504: 'unknown', 520: 'unknown' },
}

function configure(provider: Provider, env: Readonly<Record<string, string>>) {
  const settings = new Settings(env)
  const make = provider.spec.configure(settings, provider.route ?? 'plain')
  return { problems: settings.problems, make }
}

/** Sends an SMS. The outcome is logged, so it must not have the number, the text or a secret. */
async function send(provider: Provider, url: string, timeoutMs = patienceMs): Promise<Outcome> {
  const { route = 'plain', sms } = provider
  const { problems, make } = configure(provider, { ...provider.settings, [provider.baseUrl]: url })
  expect(problems).toEqual([])
  const outcome = await make(providerTools).send({ ...anySms, route, ...sms }, timeoutMs)
  expect(JSON.stringify(outcome)).not.toMatch(/canary|123456|9812345678|Acme/)
  return outcome
}

describe.each(Object.entries(providers))('%s', (_, provider) => {
  let server: ReturnType<typeof startProviderDouble>
  const { taken, status } = provider

  beforeEach(() => {
    server = startProviderDouble(() => new Response(taken, { status }))
  })
  afterEach(() => server.stop())

  test('accepts a message, also with a slash at the end of its URL', async () => {
    expect(await send(provider, server.url)).toEqual(provider.accepted)
    expect(await send(provider, `${server.url}/`)).toEqual(provider.accepted)
    const [first, second] = server.received
    expect(second?.path).toBe(first?.path ?? '')
  })

  const codes = Object.entries(provider.codes).flatMap(([meaning, list]) =>
    list
      .trim()
      .split(/\s+/)
      .map((one) => [...one.split(':'), meaning] as [string, string, Meaning]),
  )
  if (codes.length > 0) {
    test.each(codes)(
      'gives HTTP %s with code %s the class %s, and does not retry',
      async (http, code, meaning) => {
        server.answer(() => new Response(provider.refusal?.(Number(http), code), { status: Number(http) }))
        const reason = provider.reasonOf?.(code) ?? code
        expect(await send(provider, server.url)).toEqual(failure(meaning, reason))
        expect(server.received).toHaveLength(1)
      },
    )
  }

  const bare = Object.entries({ ...bareStatuses, ...provider.bare })
  test.each(bare)(
    'gives HTTP %s without a code the class %s, and does not follow or retry it',
    async (http, meaning) => {
      const elsewhere = startProviderDouble(() => new Response(taken, { status }))
      const init = { status: Number(http), headers: { location: elsewhere.url } }
      // A redirect or an error with the body of a success is not a success.
      const bodies = Number(http) === 304 ? [''] : ['', '<html>919812345678</html>', taken]
      for (const [index, body] of bodies.entries()) {
        server.answer(() => new Response(body === '' ? null : body, init))
        const outcome = failure(meaning, `HTTP ${http}`)
        const named = meaning === 'unknown' ? provider.namedBefore : undefined
        expect(await send(provider, server.url)).toEqual({ ...outcome, ...named })
        expect(server.received).toHaveLength(index + 1)
      }
      await elsewhere.stop()
      expect(elsewhere.received).toHaveLength(0)
    },
  )

  if (provider.unreadable) {
    const everywhere = [
      '',
      '<html>queued</html>',
      'null',
      '[]',
      '{}',
      `[${taken}]`,
      taken.trim().slice(0, -1),
      taken.slice(0, 20),
    ]
    test.each([...everywhere, ...provider.unreadable, ' '.repeat(70_000) + taken])(
      'has an unknown outcome for a success response with %j',
      async (body) => {
        server.answer(() => new Response(body, { status }))
        const reason = provider.unread ?? 'unreadable answer'
        expect(await send(provider, server.url)).toEqual({ kind: 'unknown', reason })
      },
    )
  }

  test("has a temporary failure if the server's port is closed", async () => {
    await server.stop()
    expect((await send(provider, server.url)).kind).toBe('retryable')
  })

  test('has an unknown outcome if a connection, new or reused, ends after the request, and sends once', async () => {
    let requests = 0
    const gateway = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket, bytes) {
          // A body may arrive after its head.
          if (!bytes.toString().startsWith('POST ')) return
          requests++
          if (requests > 1) socket.terminate()
          else socket.write(`HTTP/1.1 ${status} OK\r\ncontent-length: ${taken.length}\r\n\r\n${taken}`)
        },
      },
    })
    const url = `http://127.0.0.1:${gateway.port}`
    expect((await send(provider, url)).kind).toBe('accepted')
    expect((await send(provider, url)).kind).toBe('unknown')
    expect((await send(provider, url)).kind).toBe('unknown')
    expect(requests).toBe(3)
    gateway.stop(true)
  })

  test('reports each missing setting by name', () => {
    const sound = { ...provider.settings, [provider.baseUrl]: 'https://sms.example' }
    expect(configure(provider, sound).problems).toEqual([])
    for (const name of Object.keys(provider.settings)) {
      expect(configure(provider, { ...sound, [name]: '' }).problems).toEqual([
        expect.stringMatching(new RegExp(`^${name} is not set`)),
      ])
    }
  })

  test.each(provider.wrong.flatMap(([name, ...values]) => values.map((value) => [name, value])))(
    'rejects %s with the value %j without repeating it',
    (name = '', value = '') => {
      const sound = { ...provider.settings, [provider.baseUrl]: 'https://sms.example' }
      const { problems } = configure(provider, { ...sound, [name]: value })
      expect(problems).toEqual([expect.stringMatching(new RegExp(`^${name} `))])
      expect(problems.join()).not.toContain('canary')
      expect(problems.join()).not.toContain(value)
    },
  )
})

test('has an unknown outcome if the server does not respond in time, and does not retry', async () => {
  const never = Promise.withResolvers<Response>()
  const server = startProviderDouble(() => never.promise)
  const outcomes = await Promise.all(
    Object.values(providers).map((provider) => send(provider, server.url, passingMs)),
  )
  for (const outcome of outcomes) expect(outcome).toMatchObject({ kind: 'unknown', reason: 'time-out' })
  expect(server.received).toHaveLength(outcomes.length)
  never.resolve(new Response())
  await server.stop()
})
