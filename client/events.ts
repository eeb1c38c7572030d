// Verification of the events that otpost sends to the webhook of an app, as Standard Webhooks. Uses web standards alone
// (WebCrypto), as the client does.

/** Fields that all events have. */
interface EventData {
  /** The `requestId` of the send, resend or notify. */
  readonly requestId: string
  /** The `reference` of that request. */
  readonly reference: string | null
  readonly brandId: string | null
  readonly channel: 'SMS' | 'EMAIL'
  /** Masked. */
  readonly to: string
  /** The position of the recipient in `to`, from 0. */
  readonly index: number
  readonly reason: string | null
}

interface EventOf<Type, Status> {
  /** The header `webhook-id`. It is the same for each try of this event: handle an event with a known id only once. */
  readonly id: string
  readonly type: Type
  /** When it happened, ISO 8601, UTC. */
  readonly timestamp: string
  readonly data: EventData & { readonly status: Status }
}

/** A delivery report says that the message reached the recipient. */
export type MessageDelivered = EventOf<'message.delivered', 'delivered'>
/** The message was not sent, or a delivery report says that it did not arrive. `unknown`: a provider timed out. */
export type MessageFailed = EventOf<'message.failed', 'failed' | 'unknown'>
/** The recipient's code was verified. */
export type OtpVerifiedEvent = EventOf<'otp.verified', null>
/** The third wrong attempt locked the code. */
export type OtpLockedEvent = EventOf<'otp.locked', null>

export type OtpostEvent = MessageDelivered | MessageFailed | OtpVerifiedEvent | OtpLockedEvent

const eventTypes = [
  'message.delivered',
  'message.failed',
  'otp.verified',
  'otp.locked',
] as const satisfies readonly OtpostEvent['type'][]

/** Why a request is not an event. */
export type EventErrorCode =
  /** `webhook-id`, `webhook-timestamp` or `webhook-signature` is missing, or the timestamp is not a number. */
  | 'missing_header'
  /** The request is older or newer than `toleranceSeconds`. */
  | 'timestamp_out_of_range'
  /** No signature is that of this body with one of the secrets. */
  | 'invalid_signature'
  /** The event is authentic, but this client does not know its type. Answer 2xx, or otpost sends it again. */
  | 'unknown_event'

export class EventError extends Error {
  override readonly name = 'EventError'
  readonly code: EventErrorCode

  constructor(code: EventErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/** The headers of a request: those of fetch, or an object of them such as `request.headers` of Node. */
export type EventHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

export interface VerifyEventOptions {
  /** The maximum difference between `webhook-timestamp` and the clock, in seconds. Default 300. */
  readonly toleranceSeconds?: number
  /** Replaces the clock. */
  readonly now?: Date
}

/**
 * Verifies the signature and the time of an event, and returns the event. The comparison takes constant time.
 *
 * @param rawBody the body as it was received. A body that was parsed and serialized again has another signature.
 * @param secret the `whsec_…` that `otpost app webhook` printed; several for the webhooks of several apps
 * @throws EventError when the request is not an event of otpost that this client knows
 * @throws TypeError when a secret is not `whsec_` with base64, RangeError when toleranceSeconds is negative
 */
export async function verifyEvent(
  rawBody: string | Uint8Array,
  headers: EventHeaders,
  secret: string | readonly string[],
  { toleranceSeconds = 300, now = new Date() }: VerifyEventOptions = {},
): Promise<OtpostEvent> {
  if (!(toleranceSeconds >= 0)) throw new RangeError('toleranceSeconds must be 0 or more.')
  const keys = (typeof secret === 'string' ? [secret] : secret).map(keyOf)
  const id = required(headers, 'webhook-id')
  const timestamp = required(headers, 'webhook-timestamp')
  const signatures = required(headers, 'webhook-signature')
  if (!/^\d{1,15}$/.test(timestamp))
    throw new EventError('missing_header', 'webhook-timestamp is not a number.')
  if (!(Math.abs(now.getTime() / 1000 - Number(timestamp)) <= toleranceSeconds)) {
    throw new EventError(
      'timestamp_out_of_range',
      'webhook-timestamp is too far from the clock of this machine.',
    )
  }
  const body = typeof rawBody === 'string' ? new TextEncoder().encode(rawBody) : rawBody
  if (!(await isSigned(keys, `${id}.${timestamp}.`, body, signatures))) {
    throw new EventError(
      'invalid_signature',
      'webhook-signature has no signature of this body with this secret.',
    )
  }
  return eventOf(id, new TextDecoder().decode(body))
}

/** The headers of Standard Webhooks, as otpost sends them with an event. */
export type SignedHeaders = Readonly<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>>

/** @throws TypeError when the secret is not `whsec_` with base64 */
export async function signedHeaders(
  secret: string,
  id: string,
  body: string,
  now: Date,
): Promise<SignedHeaders> {
  const timestamp = String(Math.floor(now.getTime() / 1000))
  const key = await hmacKey(keyOf(secret), 'sign')
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  const signature = new Uint8Array(await crypto.subtle.sign('HMAC', key, signed))
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${btoa(String.fromCharCode(...signature))}`,
  }
}

function hmacKey(key: Uint8Array<ArrayBuffer>, use: 'sign' | 'verify'): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, [use])
}

function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const key = secret.startsWith('whsec_') ? bytesOf(secret.slice('whsec_'.length)) : undefined
  // The message does not repeat the secret.
  if (!key || key.length === 0) throw new TypeError('secret must be whsec_ with base64 after it.')
  return key
}

/** Undefined if it is not base64. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

function required(headers: EventHeaders, name: string): string {
  const value = headerOf(headers, name)
  if (typeof value === 'string' && value !== '') return value
  throw new EventError('missing_header', `The header ${name} is missing.`)
}

function headerOf(headers: EventHeaders, name: string): unknown {
  if (typeof headers.get === 'function') return headers.get(name)
  const [, value] = Object.entries(headers).find(([known]) => known.toLowerCase() === name) ?? []
  return Array.isArray(value) ? value.join(' ') : value
}

async function isSigned(
  keys: readonly Uint8Array<ArrayBuffer>[],
  prefix: string,
  body: Uint8Array,
  header: string,
): Promise<boolean> {
  const start = new TextEncoder().encode(prefix)
  const signed = new Uint8Array(start.length + body.length)
  signed.set(start)
  signed.set(body, start.length)
  const signatures = header.split(' ').flatMap((entry) => {
    const signature = entry.startsWith('v1,') ? bytesOf(entry.slice('v1,'.length)) : undefined
    return signature ? [signature] : []
  })
  for (const bytes of keys) {
    const key = await hmacKey(bytes, 'verify')
    for (const signature of signatures) {
      if (await crypto.subtle.verify('HMAC', key, signature, signed)) return true
    }
  }
  return false
}

/** The signature was verified: the body is otpost's. */
function eventOf(id: string, body: string): OtpostEvent {
  const event = parsed(body)
  if (event && eventTypes.some((type) => type === event.type)) return { ...event, id } as OtpostEvent
  throw new EventError('unknown_event', 'This client does not know this type of event.')
}

function parsed(body: string): { readonly type?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
