import { createHmac } from 'node:crypto'
import type { Settings } from '../../config/settings.ts'
import { Failure } from '../../domain/failures.ts'
import { attemptPathLength } from '../../domain/messages/delivery-reports.ts'
import type { CallbackRequest, DeliveryReport, Outcome, Sms } from '../../domain/messages/providers.ts'
import { meaningOfStatus, post } from './http.ts'
import { failure, type Meaning, type SmsProviderSpec } from './provider.ts'
import { type Fields, fieldsOf, isSame, reportJson } from './reading.ts'
import { segmentsOf } from './segments.ts'

/**
 * Vonage, by its SMS API: it needs no more than the account's key and secret, and takes a URL for the receipts of each
 * message. On the template route the rendered text goes with the ids of India's DLT.
 */
export const vonage: SmsProviderSpec = {
  name: 'vonage',
  routes: ['plain', 'template'],
  configure(settings) {
    const why = 'the SMS provider vonage needs it'
    const key = settings.credential('VONAGE_API_KEY', why)
    const secret = settings.credential('VONAGE_API_SECRET', why)
    const from = settings.required('VONAGE_FROM', why).trim()
    if (!/^(\+?[0-9]{3,15}|[A-Za-z0-9 ._&-]{0,11})$/.test(from)) {
      settings.refuse('VONAGE_FROM', 'must be a number, or a name of up to 11 letters and digits')
    }
    const url = `${settings.baseUrl('VONAGE_BASE_URL', 'https://rest.nexmo.com')}/sms/json`
    const signature = readSignature(settings)
    const publicUrl = settings.text('PUBLIC_URL', '').trim()
    const canReport = publicUrl.length + attemptPathLength('vonage') <= maxCallbackLength
    const headers = {
      authorization: `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    }
    return () => ({
      name: 'vonage',
      endpoint: url,
      async send(sms, timeoutMs) {
        const answer = await post(url, { headers, body: requestOf(sms, from).toString() }, timeoutMs)
        return answer.answered ? outcomeOf(answer.status, answer.text) : answer.outcome
      },
      ...(canReport
        ? {
            deliveryReports: {
              namedBy: 'attempt',
              read: (call: CallbackRequest) => readCallback(call, signature),
            },
          }
        : {}),
    })
  },
}

/** How long Vonage may try to deliver, in milliseconds (parameter `ttl`). */
const ttl = { min: 20_000, max: 604_800_000 }

/** Vonage refuses messages with a longer `callback` (status 23); the length is the one in its SDK for Python. */
const maxCallbackLength = 100

/** The parameters of "Send an SMS". */
function requestOf(sms: Sms, from: string): URLSearchParams {
  const { id, to, text, template, senderId, validitySeconds, callbackUrl } = sms
  const request = new URLSearchParams({
    // Numbers are digits alone, also where one is the sender.
    from: (senderId ?? from).replace(/^\+(?=[0-9])/, ''),
    to,
    text,
    // Vonage does not choose by itself: outside of GSM 03.38, `text` arrives as question marks.
    type: segmentsOf(text).encoding === 'UCS-2' ? 'unicode' : 'text',
    'client-ref': id,
  })
  if (validitySeconds !== null) {
    request.set('ttl', String(Math.min(ttl.max, Math.max(ttl.min, validitySeconds * 1000))))
  }
  if (callbackUrl !== null) request.set('callback', callbackUrl)
  if (template?.entityId) request.set('entity-id', template.entityId)
  if (template?.id) request.set('content-id', template.id)
  return request
}

/** Vonage's table of the SMS API's error codes. 29 is about the number: such an account may write to its own test numbers alone. */
const statuses: Readonly<Record<string, Meaning>> = {
  '1': 'retryable',
  '2': 'content',
  '3': 'content',
  '4': 'account',
  '5': 'retryable',
  '6': 'recipient',
  '7': 'recipient',
  '8': 'account',
  '9': 'account',
  '10': 'retryable',
  '11': 'account',
  '12': 'content',
  '14': 'account',
  '15': 'content',
  '22': 'content',
  '23': 'content',
  '29': 'content',
  '32': 'account',
  '33': 'recipient',
}

/** Vonage answers failures with 200 too. A long text is several messages, and taken when all of them are. */
function outcomeOf(status: number, text: string): Outcome {
  const isOk = status >= 200 && status < 300
  const parts = partsOf(text)
  const refused = parts.find((part) => part.status !== '0')
  if (isOk && parts.length > 0 && !refused) return accepted(parts[0]?.['message-id'])
  // A part of it is out: whoever sent the whole again would send that part twice.
  if (isOk && parts.some((part) => part.status === '0')) return failure('unknown', 'taken in part')
  const code = refused?.status
  if (typeof code === 'string' && /^[1-9][0-9]{0,2}$/.test(code)) {
    // An error that isn't listed is one of this message: it was not sent, and others may well be.
    return failure(statuses[code] ?? (isOk ? 'content' : meaningOfStatus(status)), `status ${code}`)
  }
  return isOk ? failure('unknown', 'unreadable answer') : failure(meaningOfStatus(status), `HTTP ${status}`)
}

function accepted(messageId: unknown): Outcome {
  return typeof messageId === 'string' && /^[0-9A-Za-z-]{8,64}$/.test(messageId)
    ? { kind: 'accepted', providerMessageId: messageId }
    : { kind: 'accepted' }
}

function partsOf(text: string): readonly Fields[] {
  const { messages } = fieldsOf(text)
  return Array.isArray(messages) ? messages.map(Object) : []
}

/** How receipts are signed, where Vonage was asked to sign them ("Signing Messages"). */
interface Signature {
  readonly secret: string
  readonly method: 'sha256' | 'sha512' | 'sha1' | 'md5'
}

function readSignature(settings: Settings): Signature | undefined {
  const secret = settings.optional('VONAGE_SIGNATURE_SECRET')
  const method = settings.oneOf('VONAGE_SIGNATURE_METHOD', ['sha256', 'sha512', 'sha1', 'md5'], 'sha256')
  return secret === undefined ? undefined : { secret, method }
}

/** What Vonage calls the end of a message. The others, such as `buffered`, are steps on the way, or say nothing. */
const failed: ReadonlySet<string> = new Set(['expired', 'failed', 'rejected'])

/** A delivery receipt: a GET with a query, or a POST of a form or of JSON, as the account's settings say. */
function readCallback(call: CallbackRequest, signature: Signature | undefined): readonly DeliveryReport[] {
  const fields = reportFields(call)
  if (signature && !isSigned(fields, signature)) throw new Failure('forbidden', 'the signature is wrong')
  const { messageId, status, 'err-code': code } = fields
  if (typeof messageId !== 'string' || typeof status !== 'string') {
    throw new Failure('validation_error', 'messageId and status are required')
  }
  if (status === 'delivered') return [{ status, reason: null }]
  if (!failed.has(status)) return [{ status: 'pending', reason: null }]
  const reason = /^[0-9]{1,3}$/.test(String(code)) ? `err-code ${code}` : status
  return [{ status: 'failed', reason }]
}

function reportFields({ fields, headers, body }: CallbackRequest): Fields {
  return /^application\/json\b/i.test(headers['content-type'] ?? '') ? Object(reportJson(body)) : fields
}

/** The HMAC is of all other parameters, sorted by name, with `_` for what separates them ("Manually generate"). */
function isSigned({ sig, ...fields }: Fields, { secret, method }: Signature): boolean {
  const signed = Object.keys(fields)
    .sort()
    .map((name) => `&${name}=${String(fields[name]).replace(/[&=]/g, '_')}`)
    .join('')
  const expected = createHmac(method, secret).update(signed).digest()
  return isSame(Buffer.from(String(sig), 'hex'), expected)
}
