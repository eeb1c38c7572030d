import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { SignatureV4 } from '@smithy/signature-v4'
import { failure } from '../../src/adapters/sms/provider.ts'
import { sns } from '../../src/adapters/sms/sns.ts'
import type { TextSetting } from '../../src/config/setting.ts'
import { Settings } from '../../src/config/settings.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import type { CallbackRequest, Outcome, Sms } from '../../src/domain/ground/providers.ts'
import { Sha256 } from '../support/provider-doubles.ts'
import { anySms, patienceMs, providerTools, startProviderDouble } from '../support/provider-server.ts'

const accessKeyId = 'AKIDEXAMPLE'
const secretAccessKey = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const sessionToken = 'IQoJb3JpZ2luX2VjEXAMPLE//////////TOKEN=='
const now = Date.UTC(2026, 10, 21, 9, 8, 7, 654)

const plain: Sms = {
  ...anySms,
  text: "123456 is your Acme code (it's *new*): ä + आ & 🎁!\n\n@acme.example #123456",
  validitySeconds: 300,
}

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

const messageId = '34d9b400-c6dd-5444-820d-fbeb0f1f54cf'

const published = `<?xml version="1.0"?>
<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/">
  <PublishResult>
    <MessageId>${messageId}</MessageId>
  </PublishResult>
  <ResponseMetadata>
    <RequestId>d74b8436-ae13-5ab4-a9ff-ce54dfea72a0</RequestId>
  </ResponseMetadata>
</PublishResponse>
`

function refusal(code: string, message = `Not ${plain.text.replace('&', '&amp;')} to +${plain.to}`) {
  return `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/">
  <Error>
    <Type>Sender</Type>
    <Code>${code}</Code>
    <Message>${message}</Message>
  </Error>
  <RequestId>9b3f7a5c-0d5c-5f5a-9f3a-2f5b7a6c1d2e</RequestId>
</ErrorResponse>`
}

let double: ReturnType<typeof startProviderDouble>

/** Every outcome and delivery report of a test: none may reveal a number, a text or a secret. */
const told: unknown[] = []

beforeEach(() => {
  double = startProviderDouble(() => new Response(published))
})

afterEach(async () => {
  await double.stop()
  const said = JSON.stringify(told.splice(0))
  const secrets = [
    accessKeyId,
    secretAccessKey,
    sessionToken,
    '123456',
    '9812345678',
    'Acme',
    'My Phone Carrier',
  ]
  for (const secret of secrets) expect(said).not.toContain(secret)
})

function providerOf(env: Record<string, string> = {}) {
  const settings = new Settings({
    AWS_REGION: 'ap-south-1',
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    SNS_BASE_URL: double.url,
    ...env,
  })
  const provider = sns.configure(settings, 'plain')({ ...providerTools, now: () => now })
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

/** An attribute of a message, in the form of the Query API. */
function attribute(index: number, name: string, value: string) {
  const entry = `MessageAttributes.entry.${index}`
  return {
    [`${entry}.Name`]: name,
    [`${entry}.Value.DataType`]: 'String',
    [`${entry}.Value.StringValue`]: value,
  }
}

const publish = { Action: 'Publish', Version: '2010-03-31', PhoneNumber: '+919812345678' }

describe('the request', () => {
  test('is a form', async () => {
    await send()
    const { method, path, headers, body, form } = onlyCall()
    expect([method, path]).toEqual(['POST', '/'])
    expect(headers.get('content-type')).toBe('application/x-www-form-urlencoded; charset=utf-8')
    expect(form).toEqual({
      ...publish,
      Message: plain.text,
      ...attribute(1, 'AWS.SNS.SMS.SMSType', 'Transactional'),
    })
    expect(body + JSON.stringify([...headers])).not.toContain(secretAccessKey)
  })

  test('has the sender', async () => {
    await send({}, { env: { SNS_SENDER_ID: 'Acme-1' } })
    expect(onlyCall().form).toEqual({
      ...publish,
      Message: plain.text,
      ...attribute(1, 'AWS.SNS.SMS.SMSType', 'Transactional'),
      ...attribute(2, 'AWS.SNS.SMS.SenderID', 'Acme-1'),
    })
  })

  test('of the template route has the text with the Indian DLT ids, and its sender', async () => {
    await send(registered, { env: { SNS_SENDER_ID: 'Acme1' } })
    expect(onlyCall().form).toEqual({
      ...publish,
      Message: registered.text,
      ...attribute(1, 'AWS.SNS.SMS.SMSType', 'Transactional'),
      ...attribute(2, 'AWS.SNS.SMS.SenderID', 'ACMEIN'),
      ...attribute(3, 'AWS.MM.SMS.EntityId', '1101456324675322134'),
      ...attribute(4, 'AWS.MM.SMS.TemplateId', '1107457532145798767'),
    })
  })

  test('of the template route omits missing ids', async () => {
    await send({
      ...registered,
      senderId: null,
      template: { key: 'A', variables: {}, id: null, entityId: null },
    })
    expect(onlyCall().form).toEqual({
      ...publish,
      Message: registered.text,
      ...attribute(1, 'AWS.SNS.SMS.SMSType', 'Transactional'),
    })
  })
})

describe('the signature', () => {
  test.each<[string, Record<string, string>, string]>([
    ['with an access key', {}, 'ap-south-1'],
    ['with a session token', { AWS_SESSION_TOKEN: sessionToken }, 'ap-south-1'],
    ['for another region', { AWS_REGION: 'us-gov-west-1' }, 'us-gov-west-1'],
  ])("%s equals that of Amazon's own software", async (_, env, region) => {
    await send({}, { env })
    const { headers, body } = onlyCall()
    const signer = new SignatureV4({
      credentials: { accessKeyId, secretAccessKey, ...(env.AWS_SESSION_TOKEN ? { sessionToken } : {}) },
      region,
      service: 'sns',
      sha256: Sha256 as never,
      applyChecksum: false,
    })
    const signed = await signer.sign(
      {
        method: 'POST',
        protocol: 'http:',
        hostname: '127.0.0.1',
        path: '/',
        query: {},
        headers: { host: double.host, 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
        body,
      },
      { signingDate: new Date(now) },
    )
    expect(headers.get('authorization')).toBe(signed.headers.authorization ?? '')
    expect(headers.get('x-amz-date')).toBe('20261121T090807Z')
    expect(headers.get('x-amz-security-token')).toBe(env.AWS_SESSION_TOKEN ?? null)
  })
})

describe('the response', () => {
  test.each([
    ['as documented', published],
    ['without a declaration', published.slice(published.indexOf('<Pub'))],
    ['on one line', published.replace(/\s*\n\s*/g, '')],
    ['with a sequence', published.replace('</MessageId>', '</MessageId><SequenceNumber>1</SequenceNumber>')],
  ])('of an accepted message, %s', async (_, text) => {
    double.answer(() => new Response(text))
    expect(await send()).toEqual({ kind: 'accepted', providerMessageId: messageId })
  })

  test('with an invalid number is recognized by its message', async () => {
    const message = `Invalid parameter: PhoneNumber Reason: +${plain.to} is not valid to publish to`
    double.answer(() => new Response(refusal('InvalidParameter', message), { status: 400 }))
    expect(await send()).toEqual(failure('recipient', 'InvalidParameter'))
  })

  test.each([
    ['an incomplete error', refusal('AuthorizationError').slice(0, -5)],
    ['an error in JSON', '{"Error":{"Code":"AuthorizationError"}}'],
    ['a code with a number in it', refusal(`A ${plain.to}`)],
    ['the body of a success', published],
  ])('HTTP 400 with %s is classified by its status', async (_, text) => {
    double.answer(() => new Response(text, { status: 400 }))
    expect(await send()).toEqual(failure('content', 'HTTP 400'))
  })
})

/** "Example log for successful SMS delivery" in Amazon's documentation. */
function log(
  status: string,
  id = messageId,
  providerResponse = 'Message has been accepted by phone carrier',
) {
  return {
    notification: { messageId: id, timestamp: '2026-06-28 00:40:34.558' },
    delivery: {
      phoneCarrier: 'My Phone Carrier',
      mnc: 270,
      numberOfMessageParts: 1,
      destination: `+${plain.to}`,
      priceInUSD: 0.00645,
      smsType: 'Transactional',
      mcc: 310,
      providerResponse,
      dwellTimeMs: 599,
      dwellTimeMsUntilDeviceAck: 1344,
    },
    status,
  }
}

/** A CloudWatch Logs subscription message: JSON log events in JSON. */
function logs(...messages: unknown[]): string {
  return JSON.stringify({
    messageType: 'DATA_MESSAGE',
    owner: '111122223333',
    logGroup: 'sns/ap-south-1/111122223333/DirectPublishToPhoneNumber',
    logStream: 'a"}{b',
    subscriptionFilters: ['otpost'],
    logEvents: messages.map((message, index) => ({
      id: `3195310660696698337880902507980421114328961542429822156${index}`,
      timestamp: 1_432_826_855_000,
      message: typeof message === 'string' ? message : JSON.stringify(message),
    })),
  })
}

const requestId = 'ed4acda5-034f-9f42-bba1-f29aea6d7d8f'

/** A Firehose request with such records. */
function delivery(...records: (string | Uint8Array)[]) {
  return {
    requestId,
    timestamp: 1_578_090_901_599,
    records: records.map((data) => ({ data: Buffer.from(data).toString('base64') })),
  }
}

function callOf(body: unknown, headers: Record<string, string> = {}): CallbackRequest {
  return {
    url: 'https://otp.example/callbacks/sns/dGhlIHRva2Vu',
    fields: {},
    headers: { 'content-type': 'application/json', 'x-amz-firehose-request-id': requestId, ...headers },
    body:
      body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  }
}

function read(body: unknown, headers: Record<string, string> = {}, env: Record<string, string> = {}) {
  const news = providerOf(env).deliveryReports?.read(callOf(body, headers))
  told.push(news)
  return news
}

function failureOf(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    return error instanceof Failure ? error.kind : String(error)
  }
  return undefined
}

const arrived = { providerMessageId: messageId, status: 'delivered' as const, reason: null }
const control = JSON.stringify({
  messageType: 'CONTROL_MESSAGE',
  owner: 'CloudwatchLogs',
  logGroup: '',
  logStream: '',
  subscriptionFilters: [],
  logEvents: [{ id: '', timestamp: 1_510_109_208_016, message: 'CWL CONTROL MESSAGE: Checking health' }],
})

describe('a delivery report', () => {
  test('is matched by the message id', () => {
    expect(providerOf().deliveryReports?.namedBy).toBe('providerMessageId')
  })

  test.each([
    ['SUCCESS', undefined, { status: 'delivered', reason: null }],
    ['FAILURE', 'Phone number is opted out', { status: 'failed', reason: 'Phone number is opted out' }],
    [
      'FAILURE',
      'Phone carrier is currently unreachable/unavailable',
      { status: 'failed', reason: 'Phone carrier is currently unreachable/unavailable' },
    ],
    ['FAILURE', `No way to +${plain.to}`, { status: 'failed', reason: 'FAILURE' }],
    ['SOMETHING_NEW', undefined, { status: 'pending', reason: null }],
  ])('with %s and %s', (status, response, news) => {
    const body = delivery(gzipSync(logs(log(status, messageId, response))))
    expect(read(body)).toEqual([{ providerMessageId: messageId, ...news } as never])
  })

  test('without a delivery status', () => {
    const body = delivery(gzipSync(logs({ notification: { messageId }, status: 'FAILURE' })))
    expect(read(body)).toEqual([{ providerMessageId: messageId, status: 'failed', reason: 'FAILURE' }])
  })

  test('may come with others, in events, records and concatenated gzip data', () => {
    const [one, two, three, four, five] = ['1', '2', '3', '4', '5'].map((id) => log('SUCCESS', id))
    const joined = Buffer.concat([gzipSync(logs(three)), gzipSync(control), gzipSync(logs(four))])
    const news = read(delivery(gzipSync(logs(one, two)), joined, gzipSync(`${logs(five)}\n`)))
    expect(news?.map(({ providerMessageId }) => providerMessageId)).toEqual(['1', '2', '3', '4', '5'])
  })

  test('may be compressed as a whole', () => {
    const body = gzipSync(JSON.stringify(delivery(gzipSync(logs(log('SUCCESS'))))))
    expect(read(body, { 'content-encoding': 'gzip' })).toEqual([arrived])
  })

  test('may be decompressed by Firehose, with its log events extracted', () => {
    const text = JSON.stringify(log('SUCCESS'))
    expect(read(delivery(logs(log('SUCCESS')), `${text}\n${text}\n`))).toEqual([arrived, arrived, arrived])
  })

  test.each([
    ['a control message', [gzipSync(control)]],
    [
      'a control message that looks like logs',
      [gzipSync(logs(log('SUCCESS')).replace('DATA_MESSAGE', 'CONTROL_MESSAGE'))],
    ],
    ['an empty record', ['']],
    ['no records', []],
    ['no events', [gzipSync(JSON.stringify({ messageType: 'DATA_MESSAGE' }))]],
    [
      'logs of another service',
      [gzipSync(logs('START', '{"a":1}', '[]', 'null', '"a"', '{"notification":1}'))],
    ],
    ['a log without a status', [gzipSync(logs({ notification: { messageId } }))]],
    ['an id that is a number', [gzipSync(logs({ notification: { messageId: 1 }, status: 'SUCCESS' }))]],
    ['invalid events', [gzipSync('{"messageType":"DATA_MESSAGE","logEvents":[null,1,{"message":1}]}')]],
  ])('is absent in a delivery of %s', (_, records) => {
    expect(read(delivery(...records))).toEqual([])
  })

  test.each([
    ['nothing', ''],
    ['no JSON', 'hello'],
    ['null', 'null'],
    ['a list', '[]'],
    ['no records', { requestId }],
    ['records that are not a list', { requestId, records: { data: '' } }],
    ['no id', { records: [] }],
    ['a record that is null', { requestId, records: [null] }],
    ['a record without data', { requestId, records: [{}] }],
    ['data that is an object', { requestId, records: [{ data: { messageType: 'DATA_MESSAGE' } }] }],
    ['incomplete gzip data', delivery(gzipSync(logs(log('SUCCESS'))).subarray(0, 40))],
    ['gzip data that is not JSON', delivery(gzipSync('hello'))],
    ['a text', delivery('hello')],
    ['incomplete JSON', delivery(logs(log('SUCCESS')).slice(0, -1))],
    ['unbalanced braces', delivery('}{', '{]}')],
    ['an incomplete body', gzipSync(JSON.stringify(delivery())).subarray(0, 20)],
    ['100,000 open brackets', `{"requestId":"a","records":${'['.repeat(100_000)}`],
  ])('is rejected if it is %s', (_, body) => {
    expect(failureOf(() => read(body))).toBe('validation_error')
  })

  test('that decompresses to gigabytes is rejected', () => {
    const bomb = gzipSync(Buffer.alloc(17 * 1024 * 1024, ' '))
    expect(bomb.length).toBeLessThan(20_000)
    expect(failureOf(() => read(bomb))).toBe('validation_error')
    expect(failureOf(() => read(delivery(bomb)))).toBe('validation_error')
    const half = gzipSync(Buffer.alloc(9 * 1024 * 1024, ' '))
    expect(read(delivery(half))).toEqual([])
    expect(failureOf(() => read(delivery(half, half)))).toBe('validation_error')
  })
})

describe('the Firehose access key', () => {
  const body = delivery(gzipSync(logs(log('SUCCESS'))))
  const env = { SNS_FIREHOSE_ACCESS_KEY: 'the access key' }

  test('is not checked if none is set', () => {
    expect(read(body, { 'x-amz-firehose-access-key': 'any' })).toEqual([arrived])
  })

  test('must equal the configured one', () => {
    expect(read(body, { 'x-amz-firehose-access-key': 'the access key' }, env)).toEqual([arrived])
  })

  test.each<[string, Record<string, string>]>([
    ['missing', {}],
    ['empty', { 'x-amz-firehose-access-key': '' }],
    ['another', { 'x-amz-firehose-access-key': 'the access kez' }],
    ['longer', { 'x-amz-firehose-access-key': 'the access key ' }],
  ])('is rejected if it is %s', (_, headers) => {
    expect(failureOf(() => read(body, headers, env))).toBe('forbidden')
  })
})

describe('the response to Firehose', () => {
  test.each([
    ['plain', JSON.stringify(delivery(gzipSync(control)))],
    ['packed', gzipSync(JSON.stringify(delivery(gzipSync(control))))],
  ])('has its request id, which is %s, and the time', (_, body) => {
    expect(providerOf().deliveryReports?.answer?.(callOf(body), now)).toEqual({ requestId, timestamp: now })
  })
})

describe('the settings', () => {
  const sound = { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'canary', AWS_SECRET_ACCESS_KEY: 'canary' }

  test.each(['ACM', 'Acme', 'ACMEIN', '1a2', 'Acme-Mail', 'abcdefghijk'])(
    'may have the sender %s',
    (senderId) => {
      const settings = new Settings({ ...sound, SNS_SENDER_ID: senderId })
      sns.configure(settings, 'template')
      expect(settings.problems).toEqual([])
    },
  )

  test.each([
    ['eu-west-1', 'sns.eu-west-1.amazonaws.com'],
    ['us-gov-west-1', 'sns.us-gov-west-1.amazonaws.com'],
    ['cn-north-1', 'sns.cn-north-1.amazonaws.com.cn'],
  ])('of %s result in %s', (region, host) => {
    const asked: [string, string][] = []
    const settings = new (class extends Settings {
      override baseUrl(setting: TextSetting, usual = ''): string {
        asked.push([setting.name, usual])
        return super.baseUrl(setting, usual)
      }
    })({ ...sound, AWS_REGION: region })
    sns.configure(settings, 'plain')
    expect(settings.problems).toEqual([])
    expect(asked).toEqual([['SNS_BASE_URL', `https://${host}`]])
  })
})
