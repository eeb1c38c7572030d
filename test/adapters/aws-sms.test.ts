import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { SignatureV4 } from '@smithy/signature-v4'
import { awsSms } from '../../src/adapters/sms/aws-sms.ts'
import { failure } from '../../src/adapters/sms/provider.ts'
import { Settings } from '../../src/config/settings.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import type { DeliveryReport, Outcome, Sms } from '../../src/domain/ground/providers.ts'
import { Sha256 } from '../support/provider-doubles.ts'
import { anySms, patienceMs, providerTools, startProviderDouble } from '../support/provider-server.ts'

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG' }
const now = Date.UTC(2026, 10, 21, 9, 8, 7, 654)
const messageId = '862a8790-60c0-4430-9b2b-658bdexample'

let double: ReturnType<typeof startProviderDouble>

beforeEach(() => {
  double = startProviderDouble(() => Response.json({ MessageId: messageId }))
})
afterEach(() => double.stop())

function providerOf(env: Record<string, string> = {}) {
  const settings = new Settings({
    AWS_REGION: 'ap-south-1',
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_SMS_BASE_URL: double.url,
    ...env,
  })
  const provider = awsSms.configure(settings, 'plain')({ ...providerTools, now: () => now })
  expect(settings.problems).toEqual([])
  return provider
}

async function sent(sms: Partial<Sms> = {}, env: Record<string, string> = {}): Promise<unknown> {
  expect(await providerOf(env).send({ ...anySms, ...sms }, patienceMs)).toEqual({
    kind: 'accepted',
    providerMessageId: messageId,
  })
  return JSON.parse(double.onlyCall().body)
}

const usual = {
  DestinationPhoneNumber: `+${anySms.to}`,
  MessageBody: anySms.text,
  MessageType: 'TRANSACTIONAL',
}

describe('the request', () => {
  test('is JSON for the action SendTextMessage', async () => {
    expect(await sent()).toEqual(usual)
    const { method, path, headers } = double.onlyCall()
    expect([method, path]).toEqual(['POST', '/'])
    expect(headers.get('content-type')).toBe('application/x-amz-json-1.0')
    expect(headers.get('x-amz-target')).toBe('PinpointSMSVoiceV2.SendTextMessage')
  })

  test('has the sender, the configuration set and the validity', async () => {
    const env = { AWS_SMS_SENDER: '+12065550150', AWS_SMS_CONFIGURATION_SET: 'otpost' }
    const own = { OriginationIdentity: '+12065550150', ConfigurationSetName: 'otpost', TimeToLive: 300 }
    expect(await sent({ validitySeconds: 300 }, env)).toEqual({ ...usual, ...own })
  })

  test.each([
    [0, 5],
    [59.9, 59],
    [1_000_000, 259_200],
  ])('has a validity of %p as %p, since Amazon allows 5 to 259200', async (validitySeconds, TimeToLive) => {
    expect(await sent({ validitySeconds })).toEqual({ ...usual, TimeToLive })
  })

  test("of the template route has the Indian DLT ids, and the template's sender", async () => {
    const template = { key: 'LOGIN_OTP', variables: {}, id: '1107', entityId: '1101' }
    const env = { AWS_SMS_SENDER: 'pool-1' }
    expect(await sent({ route: 'template', template, senderId: 'ACMEIN' }, env)).toEqual({
      ...usual,
      OriginationIdentity: 'ACMEIN',
      DestinationCountryParameters: { IN_ENTITY_ID: '1101', IN_TEMPLATE_ID: '1107' },
    })
  })

  test('of a code asks for conversion feedback, if it is turned on', async () => {
    expect(await sent({ expectsFeedback: true })).toEqual({ ...usual, MessageFeedbackEnabled: true })
  })

  test("has the signature of Amazon's own software", async () => {
    await sent()
    const { headers, body } = double.onlyCall()
    const signer = new SignatureV4({
      credentials,
      region: 'ap-south-1',
      service: 'sms-voice',
      sha256: Sha256 as never,
      applyChecksum: false,
    })
    const names = ['content-type', 'x-amz-target'] as const
    const given = Object.fromEntries(names.map((name) => [name, headers.get(name) ?? '']))
    const request = {
      method: 'POST',
      protocol: 'http:',
      hostname: '127.0.0.1',
      path: '/',
      query: {},
      headers: { host: double.host, ...given },
      body,
    }
    const signed = await signer.sign(request, { signingDate: new Date(now) })
    expect(headers.get('authorization')).toBe(signed.headers.authorization ?? '')
  })
})

test('a number that Amazon calls invalid is a fault of the recipient', async () => {
  const fields = [{ Name: 'DestinationPhoneNumber', Message: `+${anySms.to} is not valid` }]
  const body = { __type: 'ValidationException', Reason: 'FIELD_VALIDATION_FAILED', Fields: fields }
  double.answer(() => Response.json(body, { status: 400 }))
  const outcome = await providerOf().send(anySms, patienceMs)
  expect(outcome).toEqual(failure('recipient', 'FIELD_VALIDATION_FAILED'))
})

describe('conversion feedback', () => {
  const report = () => providerOf().reportConversion?.(messageId, patienceMs)

  test('sets the message to received', async () => {
    double.answer(() => Response.json({ MessageId: messageId, MessageFeedbackStatus: 'RECEIVED' }))
    expect(await report()).toMatchObject({ kind: 'accepted' })
    const { headers, body } = double.onlyCall()
    expect(headers.get('x-amz-target')).toBe('PinpointSMSVoiceV2.PutMessageFeedback')
    expect(JSON.parse(body)).toEqual({ MessageId: messageId, MessageFeedbackStatus: 'RECEIVED' })
  })

  test.each<[number, string, Outcome]>([
    [400, 'ResourceNotFoundException', failure('content', 'ResourceNotFoundException')],
    [400, 'AccessDeniedException', failure('account', 'AccessDeniedException')],
    [500, 'InternalServerException', failure('unknown', 'InternalServerException')],
  ])('is classified after HTTP %p with %s', async (status, type, outcome) => {
    double.answer(() => Response.json({ __type: type }, { status }))
    expect(await report()).toEqual(outcome)
  })
})

describe('a delivery report', () => {
  function read(events: readonly object[], key?: string): readonly DeliveryReport[] | undefined {
    const records = events.map((event) => ({ data: Buffer.from(JSON.stringify(event)).toString('base64') }))
    return providerOf({ AWS_SMS_FIREHOSE_ACCESS_KEY: 'key of Firehose' }).deliveryReports?.read({
      url: 'https://otp.example/callbacks/aws-sms/dGhlIHRva2Vu',
      fields: {},
      headers: key === undefined ? {} : { 'x-amz-firehose-access-key': key },
      body: Buffer.from(JSON.stringify({ requestId: 'request', timestamp: now, records })),
    })
  }
  /** "SMS example log" in Amazon's documentation, in part. */
  const event = (eventType: string, more: object = {}) => ({
    ...{ eventType, eventVersion: '1.0', eventTimestamp: now, isFinal: true, messageId },
    ...{ destinationPhoneNumber: `+${anySms.to}`, messageType: 'TRANSACTIONAL', ...more },
  })

  test.each([
    ['TEXT_DELIVERED', 'delivered', null],
    ['TEXT_SUCCESSFUL', 'delivered', null],
    ['TEXT_QUEUED', 'pending', null],
    ['TEXT_UNKNOWN', 'pending', null],
    ['TEXT_CARRIER_BLOCKED', 'failed', 'TEXT_CARRIER_BLOCKED'],
    ['TEXT_TTL_EXPIRED', 'failed', 'TEXT_TTL_EXPIRED'],
  ])('of the event %s is %s', (type, status, reason) => {
    const reports: unknown = read([event(type)], 'key of Firehose')
    expect(reports).toEqual([{ providerMessageId: messageId, status, reason }])
  })

  test('of a failure that is not final is pending', () => {
    const [report] = read([event('TEXT_UNREACHABLE', { isFinal: false })], 'key of Firehose') ?? []
    expect(report?.status).toBe('pending')
  })

  test('is not read from events of calls and pictures', () => {
    expect(read([event('VOICE_COMPLETED'), event('MEDIA_DELIVERED'), {}], 'key of Firehose')).toEqual([])
  })

  test('requires the access key', () => {
    expect(() => read([event('TEXT_DELIVERED')], 'another key')).toThrow(Failure)
    expect(() => read([event('TEXT_DELIVERED')])).toThrow(Failure)
  })
})
