import { describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { webhook } from '../../src/adapters/sms/webhook.ts'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import { Settings } from '../../src/config/settings.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, SmsRoute } from '../../src/domain/ground/providers.ts'
import { sqliteStores } from '../support/operator.ts'

const secretOf = (text: string) => `whsec_${Buffer.from(text).toString('base64')}`

const secret = secretOf('a secret of the test, 32 bytes..')
const now = Date.parse('2026-01-01T12:00:00.700Z')
const providerMessageId = '0b54a5a2-6a3c-4d8e-9a39-0f6a3f0d7c11'
const { outbox } = sqliteStores(openDatabase(':memory:'))

function readerOf(given = secret, route: SmsRoute = 'plain') {
  const settings = new Settings({ SMS_WEBHOOK_URL: 'https://sms.example/', SMS_WEBHOOK_SECRET: given })
  const { deliveryReports } = webhook.configure(
    settings,
    route,
  )({ now: () => now, outbox, reportLater: () => {} })
  expect(settings.problems).toEqual([])
  if (!deliveryReports) throw new Error('there is no reader of delivery reports')
  return deliveryReports
}

interface Signing {
  readonly by?: string
  /** Seconds from now. */
  readonly after?: number
  readonly id?: string
}

/** A delivery report as an operator's service sends it, signed by the Standard Webhooks library. */
function signed(body: unknown, { by = secret, after = 0, id = 'msg_1' }: Signing = {}): CallbackRequest {
  const raw = typeof body === 'string' ? body : JSON.stringify(body)
  const at = new Date(now + after * 1000)
  return {
    url: 'https://otp.example/callbacks/webhook/token',
    fields: {},
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(by).sign(id, at, raw),
    },
    body: Buffer.from(raw),
  }
}

/** The same with other headers. */
function altered(call: CallbackRequest, headers: CallbackRequest['headers']): CallbackRequest {
  return { ...call, headers: { ...call.headers, ...headers } }
}

function refusal(kind: string) {
  return expect.objectContaining({ kind })
}

const delivered = { id: providerMessageId, status: 'delivered' }
const read = (call: CallbackRequest) => readerOf().read(call)

test('a delivery report identifies the message by the id that the service got', () => {
  expect(readerOf().namedBy).toBe('providerMessageId')
  expect(readerOf().answer).toBeUndefined()
})

describe('a delivery report with', () => {
  test.each<[unknown, DeliveryReport]>([
    [delivered, { providerMessageId, status: 'delivered', reason: null }],
    [
      { id: providerMessageId, status: 'failed', reason: 'absent' },
      { providerMessageId, status: 'failed', reason: 'absent' },
    ],
    [
      { id: providerMessageId, status: 'failed' },
      { providerMessageId, status: 'failed', reason: null },
    ],
    [
      { id: providerMessageId, status: 'failed', reason: null },
      { providerMessageId, status: 'failed', reason: null },
    ],
    [
      { id: providerMessageId, status: 'failed', reason: 34 },
      { providerMessageId, status: 'failed', reason: null },
    ],
    [
      { id: providerMessageId, status: 'failed', reason: 'x'.repeat(41) },
      { providerMessageId, status: 'failed', reason: null },
    ],
    [
      { id: providerMessageId, status: 'sent' },
      { providerMessageId, status: 'pending', reason: null },
    ],
    [
      { id: providerMessageId, status: 'Delivered' },
      { providerMessageId, status: 'pending', reason: null },
    ],
    [
      { id: providerMessageId, status: '' },
      { providerMessageId, status: 'pending', reason: null },
    ],
    [
      { id: providerMessageId, status: 'toString', by: 'a gateway' },
      { providerMessageId, status: 'pending', reason: null },
    ],
  ])('%j is valid', (body, report) => {
    expect(read(signed(body))).toEqual([report])
  })
})

describe('the signature', () => {
  test.each(['plain', 'template'] as const)('is verified on the %s route', (route) => {
    expect(readerOf(secret, route).read(signed(delivered))).toHaveLength(1)
    expect(() => readerOf(secret, route).read(signed(delivered, { by: secretOf('another') }))).toThrow(
      refusal('forbidden'),
    )
  })

  test('covers the exact bytes of the body', () => {
    const body = `{ "status":"delivered",\n "id": ${JSON.stringify(providerMessageId)}, "note": "Grüße 🎁" }\n`
    expect(read(signed(body))).toEqual([{ providerMessageId, status: 'delivered', reason: null }])
  })

  test('may be one of several', () => {
    const call = signed(delivered)
    const [right, wrong] = [
      call.headers['webhook-signature'],
      new Webhook(secretOf('the next one')).sign('msg_1', new Date(now), JSON.stringify(delivered)),
    ]
    for (const list of [`${wrong} ${right}`, `${right} ${wrong}`, `v1a,AAAA ${wrong} v2,x ${right}`]) {
      expect(read(altered(call, { 'webhook-signature': list }))).toHaveLength(1)
    }
    expect(() => read(altered(call, { 'webhook-signature': `${wrong} ${wrong}` }))).toThrow(
      refusal('forbidden'),
    )
  })

  test('may use the secret without its prefix', () => {
    expect(readerOf(secret.replace('whsec_', '')).read(signed(delivered))).toHaveLength(1)
  })

  const right = signed(delivered)
  const signature = right.headers['webhook-signature'] ?? ''

  test.each<[string, CallbackRequest]>([
    ['of another key', signed(delivered, { by: secretOf('a secret of the test, 32 bytes.!') })],
    [
      'of another body',
      { ...right, body: Buffer.from(JSON.stringify({ id: 'other', status: 'delivered' })) },
    ],
    ['of a body with a byte more', { ...right, body: Buffer.from(`${JSON.stringify(delivered)} `) }],
    ['of another id', altered(right, { 'webhook-id': 'msg_2' })],
    ['of another time', altered(right, { 'webhook-timestamp': String(Math.floor(now / 1000) + 1) })],
    ['missing', altered(right, { 'webhook-signature': undefined })],
    ['empty', altered(right, { 'webhook-signature': '' })],
    ['an empty one of its version', altered(right, { 'webhook-signature': 'v1,' })],
    ['without its version', altered(right, { 'webhook-signature': signature.slice(3) })],
    ['of another version', altered(right, { 'webhook-signature': signature.replace('v1,', 'v2,') })],
    ['cut', altered(right, { 'webhook-signature': signature.slice(0, -1) })],
    ['longer', altered(right, { 'webhook-signature': `${signature}=` })],
    ['in another case', altered(right, { 'webhook-signature': signature.toLowerCase() })],
    ['without an id', altered(right, { 'webhook-id': undefined })],
    ['without a time', altered(right, { 'webhook-timestamp': undefined })],
  ])('is rejected if it is %s', (_, call) => {
    expect(() => read(call)).toThrow(refusal('forbidden'))
  })

  test.each(['', 'soon', 'NaN', 'Infinity', '-1'])('is rejected with an invalid time: %p', (time) => {
    const raw = JSON.stringify(delivered)
    // The library signs numbers only; a service without it could send other text.
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const digest = new Bun.CryptoHasher('sha256', key).update(`msg_1.${time}.${raw}`).digest('base64')
    const call = altered(right, { 'webhook-timestamp': time, 'webhook-signature': `v1,${digest}` })
    expect(() => read(call)).toThrow(refusal('forbidden'))
  })
})

describe('the time of a delivery report', () => {
  test.each([-299, -60, 0, 60, 299])('may differ by %i seconds', (after) => {
    expect(read(signed(delivered, { after }))).toHaveLength(1)
  })

  test.each([-86_400, -302, 302, 86_400])('may not differ by %i seconds', (after) => {
    expect(() => read(signed(delivered, { after }))).toThrow(refusal('forbidden'))
  })
})

describe('a delivery report with a valid signature', () => {
  test.each<[string, unknown]>([
    ['empty', ''],
    ['not JSON', 'delivered'],
    ['incomplete', '{"id":"0b54'],
    ['null', 'null'],
    ['a string', '"delivered"'],
    ['a list', [delivered]],
    ['without an id', { status: 'delivered' }],
    ['without a status', { id: providerMessageId }],
    ['of an id that is not text', { id: 7, status: 'delivered' }],
    ['of a status that is not text', { id: providerMessageId, status: true }],
    ['of a status that is a list', { id: providerMessageId, status: ['delivered'] }],
  ])('is rejected if it is %s', (_, body) => {
    expect(() => read(signed(body))).toThrow(refusal('validation_error'))
  })
})

test('no rejection reveals confidential data', () => {
  for (const call of [signed('delivered'), signed({}), signed(delivered, { by: secretOf('another') })]) {
    let message = ''
    try {
      read(call)
    } catch (error) {
      if (error instanceof Failure) message = error.message
    }
    expect(message).not.toBe('')
    for (const given of [secret.slice(6), providerMessageId, 'v1,', 'delivered'])
      expect(message).not.toContain(given)
  }
})
