import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { EventError, type EventErrorCode, type EventHeaders, verifyEvent } from 'otpost/client'
import { signEvent } from 'otpost/testing'
import { Webhook } from 'standardwebhooks'
import { signedHeaders, webhookKey } from '../../src/adapters/crypto/standard-webhooks.ts'
import { eventTypes } from '../../src/domain/ground/webhook-events.ts'

const secretOf = (text: string) => `whsec_${Buffer.from(text.padEnd(32, '.')).toString('base64')}`
const secret = secretOf('current')
const now = new Date('2026-03-14T15:09:26Z')
const event = {
  type: 'message.failed',
  timestamp: '2026-03-14T15:09:20.000Z',
  data: {
    requestId: '3f2b8f0e-6c1d-4a53-9f57-0d6a2c9e41b7',
    reference: 'Bestellung 7 für Zoë',
    brandId: 'acme',
    channel: 'SMS',
    to: '12*******43',
    index: 0,
    status: 'failed',
    reason: 'unreachable',
  },
} as const
const body = JSON.stringify(event)

/** The headers that otpost sends. */
function headersOf(raw = body, by = secret, at = now): Record<string, string> {
  return signedHeaders(webhookKey(by) ?? Buffer.alloc(0), 'evt_1', raw, at.getTime())
}

async function codeOf(verified: Promise<unknown>): Promise<EventErrorCode | undefined> {
  const error = await verified.catch((error: unknown) => error)
  return error instanceof EventError ? error.code : undefined
}

describe('an event', () => {
  const headers = headersOf()
  const { 'webhook-signature': signature = '' } = headers

  test.each<[string, string | Uint8Array, EventHeaders, string | readonly string[]]>([
    ['as bytes, with the headers of fetch', Buffer.from(body), new Headers(headers), secret],
    ['as text, with the headers of Node', body, headers, secret],
    [
      'with header names in capitals',
      body,
      Object.fromEntries(Object.entries(headers).map(([k, v]) => [k.toUpperCase(), v])),
      secret,
    ],
    ['with a header as a list', body, { ...headers, 'webhook-signature': ['v1,AAAA', signature] }, secret],
    ['signed with the second of two secrets', body, headers, [secretOf('next'), secret]],
    [
      'with signatures of another secret and of other versions',
      body,
      {
        ...headers,
        'webhook-signature': `v1a,xyz v1,! ${headersOf(body, secretOf('x'))['webhook-signature']} ${signature}`,
      },
      secret,
    ],
  ])('%s is returned with its id', async (_, raw, given, secrets) => {
    expect(await verifyEvent(raw, given, secrets, { now })).toEqual({ ...event, id: 'evt_1' })
  })

  test('of each type that the server has is known', async () => {
    for (const type of eventTypes) {
      const raw = JSON.stringify({ ...event, type })
      expect(await verifyEvent(raw, headersOf(raw), secret, { now })).toMatchObject({ type })
    }
  })

  test('is what the reference library signs and accepts', async () => {
    const reference = new Webhook(secret)
    const at = new Date()
    expect(reference.verify(body, headersOf(body, secret, at))).toEqual(event)
    const signed = {
      'webhook-id': 'evt_2',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': reference.sign('evt_2', at, body),
    }
    expect(await verifyEvent(body, signed, secret)).toMatchObject({ id: 'evt_2' })
  })
})

describe('signEvent of otpost/testing', () => {
  test('signs as otpost does, and verifyEvent and the reference library accept it', async () => {
    const { headers, body: signed } = await signEvent(event, secret, { id: 'evt_1', now })
    expect(JSON.parse(signed)).toEqual({ ...event, timestamp: now.toISOString() })
    const { 'user-agent': _, ...sent } = headersOf(signed)
    expect(headers).toEqual<unknown>({ 'content-type': 'application/json', ...sent })
    expect(await verifyEvent(signed, headers, secret, { now })).toMatchObject({
      data: event.data,
      id: 'evt_1',
    })
    const current = await signEvent({ type: 'otp.locked' }, secret)
    expect(new Webhook(secret).verify(current.body, { ...current.headers })).toMatchObject({
      type: 'otp.locked',
    })
  })

  test('completes an event of each type with what otpost would send', async () => {
    for (const type of eventTypes) {
      const { headers, body: signed } = await signEvent({ type, data: { reference: 'login-1' } }, secret)
      const { id, data } = await verifyEvent(signed, headers, secret)
      expect({ fields: Object.keys(data), reference: data.reference }).toEqual({
        fields: Object.keys(event.data),
        reference: 'login-1',
      })
      expect(id).toBe(headers['webhook-id'])
    }
  })

  test('rejects a secret of another form', async () => {
    await expect(signEvent({ type: 'otp.locked' }, 'secret')).rejects.toThrow(TypeError)
  })
})

describe('a request that is no event is rejected:', () => {
  test.each<[string, EventErrorCode, string, Record<string, string | undefined>]>([
    ['another body', 'invalid_signature', `${body} `, {}],
    ['another id', 'invalid_signature', body, { 'webhook-id': 'evt_2' }],
    ['another time', 'invalid_signature', body, { 'webhook-timestamp': String(now.getTime() / 1000 + 1) }],
    ['no id', 'missing_header', body, { 'webhook-id': undefined }],
    ['no time', 'missing_header', body, { 'webhook-timestamp': '' }],
    ['no signature', 'missing_header', body, { 'webhook-signature': undefined }],
    ['a time that is not a number', 'missing_header', body, { 'webhook-timestamp': '1e9' }],
    ['a signature of another version', 'invalid_signature', body, { 'webhook-signature': 'v2,AAAA' }],
    ['a signature that is not base64', 'invalid_signature', body, { 'webhook-signature': 'v1,%%%' }],
    ['an empty signature', 'invalid_signature', body, { 'webhook-signature': 'v1,' }],
  ])('%s', async (_, code, raw, change) => {
    expect(await codeOf(verifyEvent(raw, { ...headersOf(), ...change }, secret, { now }))).toBe(code)
  })

  test('another secret', async () => {
    expect(await codeOf(verifyEvent(body, headersOf(), [secretOf('next')], { now }))).toBe(
      'invalid_signature',
    )
  })

  test('more than five minutes old or ahead, or more than toleranceSeconds', async () => {
    for (const [seconds, toleranceSeconds, code] of [
      [300, undefined, undefined],
      [-300, undefined, undefined],
      [301, undefined, 'timestamp_out_of_range'],
      [-301, undefined, 'timestamp_out_of_range'],
      [301, 301, undefined],
      [1, 0, 'timestamp_out_of_range'],
    ] as const) {
      const at = new Date(now.getTime() - seconds * 1000)
      const options = toleranceSeconds === undefined ? { now } : { now, toleranceSeconds }
      const verified = verifyEvent(body, headersOf(body, secret, at), secret, options)
      expect({ seconds, code: await codeOf(verified) }).toEqual({ seconds, code })
    }
  })

  test('of a type of a newer server, with its own code', async () => {
    for (const raw of [JSON.stringify({ ...event, type: 'message.read' }), 'null', '[]', '{', '']) {
      expect(await codeOf(verifyEvent(raw, headersOf(raw), secret, { now }))).toBe('unknown_event')
    }
  })

  test('a changed bit of the signature or of the body', async () => {
    const { 'webhook-signature': signature = '', ...headers } = headersOf()
    const bytes = Buffer.from(signature.slice('v1,'.length), 'base64')
    await fc.assert(
      fc.asyncProperty(
        fc.nat(bytes.length * 8 - 1),
        fc.nat(Buffer.byteLength(body) * 8 - 1),
        async (a, b) => {
          const flipped = (of: Uint8Array, bit: number) =>
            Buffer.from(of.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte)))
          const forged = { ...headers, 'webhook-signature': `v1,${flipped(bytes, a).toString('base64')}` }
          expect(await codeOf(verifyEvent(body, forged, secret, { now }))).toBe('invalid_signature')
          const changed = flipped(Buffer.from(body), b)
          expect(await codeOf(verifyEvent(changed, headersOf(), secret, { now }))).toBe('invalid_signature')
        },
      ),
      { numRuns: 50 },
    )
  })
})

test('a secret that is not whsec_ with base64 is a programming error, which does not repeat it', async () => {
  for (const wrong of ['', 'whsec_', 'whsec_%secret-1', 'secret-1', [secret, 'secret-1']]) {
    const error = await verifyEvent(body, headersOf(), wrong, { now }).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(TypeError)
    expect(String(error)).not.toContain('secret-1')
  }
  const verified = verifyEvent(body, headersOf(), secret, { toleranceSeconds: Number.NaN, now })
  await expect(verified).rejects.toThrow(RangeError)
})
