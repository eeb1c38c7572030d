import { createHmac } from 'node:crypto'
import { serverSettings } from '../../config/server-settings.ts'
import { declare, printable } from '../../config/setting.ts'
import type { Settings } from '../../config/settings.ts'
import { attemptPathLength } from '../../domain/delivery/delivery-reports.ts'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import { Failure, invalid } from '../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome, Sms } from '../../domain/ground/providers.ts'
import { isSame } from '../crypto/secrets.ts'
import { call, meaningOfStatus } from './http.ts'
import { apiUrl, failure, type SmsProviderSpec, wordTable } from './provider.ts'
import { fieldsOf, type JsonFields, reportJson } from './reading.ts'
import { segmentsOf } from './segments.ts'

export const vonageSettings = declare('Vonage', {
  VONAGE_API_KEY: { format: 'printable ASCII', valid: printable, secret: true, meaning: 'The API key.' },
  VONAGE_API_SECRET: {
    format: 'printable ASCII',
    valid: printable,
    secret: true,
    meaning: 'The API secret.',
  },
  VONAGE_FROM: {
    format: 'number, or name of up to 11 characters',
    valid: [
      /^\s*(\+?[0-9]{3,15}|[A-Za-z0-9 ._&-]{0,11})\s*$/,
      'must be a number, or a name of up to 11 letters and digits',
    ],
    meaning: 'The sender: a phone number, or an alphanumeric sender id.',
  },
  VONAGE_SIGNATURE_SECRET: {
    unset: 'unset: signatures are not checked',
    format: 'text',
    secret: true,
    meaning:
      'The signature secret of the account. otpost then rejects delivery reports without a valid signature.',
  },
  VONAGE_SIGNATURE_METHOD: {
    default: 'sha256',
    choices: ['sha256', 'sha512', 'sha1', 'md5'],
    meaning: 'The signature method of the account.',
  },
  VONAGE_BASE_URL: {
    default: 'https://rest.nexmo.com',
    ...apiUrl,
    meaning: 'The URL of the API.',
  },
})

/** "SMS API error codes". 5: a fault during the processing. 29: a trial account and a number that is not one of its test numbers. */
const statuses = wordTable<Meaning>({
  recipient: '6 7 33',
  content: '2 3 12 15 22 23 29',
  account: '4 8 9 11 14 32',
  retryable: '1 10',
  unknown: '5',
})

export const vonage: SmsProviderSpec = {
  name: 'vonage',
  routes: ['plain', 'template'],
  settings: vonageSettings,
  codes: {
    meanings: statuses,
    prefix: 'status ',
    page: () => 'https://developer.vonage.com/messaging/sms/guides/troubleshooting-sms',
  },
  configure(settings) {
    const why = 'the SMS provider vonage needs it'
    const key = settings.required(vonageSettings.VONAGE_API_KEY, why)
    const secret = settings.required(vonageSettings.VONAGE_API_SECRET, why)
    const from = settings.required(vonageSettings.VONAGE_FROM, why).trim()
    const url = `${settings.baseUrl(vonageSettings.VONAGE_BASE_URL)}/sms/json`
    const signature = readSignature(settings)
    const publicUrl = settings.text(serverSettings.PUBLIC_URL).trim()
    const canReport = publicUrl.length + attemptPathLength('vonage') <= maxCallbackLength
    const headers = {
      authorization: `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    }
    return () => ({
      name: 'vonage',
      endpoint: url,
      send: (sms, timeoutMs) =>
        call(url, { headers, body: requestOf(sms, from).toString() }, timeoutMs, outcomeOf),
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

/** Vonage's bounds of `ttl`. */
const ttlMs = { min: 20_000, max: 604_800_000 }

/** Vonage rejects a longer `callback` (status 23); the length is from its Python SDK. */
const maxCallbackLength = 100

function requestOf(sms: Sms, from: string): URLSearchParams {
  const { id, to, text, template, senderId, validitySeconds, callbackUrl } = sms
  const request = new URLSearchParams({
    from: (senderId ?? from).replace(/^\+(?=[0-9])/, ''),
    to,
    text,
    // In type `text`, characters outside GSM 03.38 arrive as question marks.
    type: segmentsOf(text).encoding === 'UCS-2' ? 'unicode' : 'text',
    'client-ref': id,
  })
  if (validitySeconds !== null) {
    request.set('ttl', String(Math.min(ttlMs.max, Math.max(ttlMs.min, validitySeconds * 1000))))
  }
  if (callbackUrl !== null) request.set('callback', callbackUrl)
  if (template?.entityId) request.set('entity-id', template.entityId)
  if (template?.id) request.set('content-id', template.id)
  return request
}

/** Failures also have status 200. A long text is accepted when all of its messages are. */
function outcomeOf(status: number, text: string): Outcome {
  const isOk = status >= 200 && status < 300
  const { messages } = fieldsOf(text)
  const parts: readonly JsonFields[] = Array.isArray(messages) ? messages.map(Object) : []
  const refused = parts.find((part) => part.status !== '0')
  if (isOk && parts.length > 0 && !refused) {
    const id = parts[0]?.['message-id']
    const isId = typeof id === 'string' && /^[0-9A-Za-z-]{8,64}$/.test(id)
    return isId ? { kind: 'accepted', providerMessageId: id } : { kind: 'accepted' }
  }
  // A retry would send the accepted part twice.
  if (isOk && parts.some((part) => part.status === '0')) return failure('unknown', 'taken in part')
  const code = refused?.status
  if (typeof code === 'string' && /^[1-9][0-9]{0,2}$/.test(code)) {
    // An unlisted error is about this message, which was not sent.
    return failure(statuses.get(code) ?? (isOk ? 'content' : meaningOfStatus(status)), `status ${code}`)
  }
  return isOk ? failure('unknown', 'unreadable answer') : failure(meaningOfStatus(status), `HTTP ${status}`)
}

type Signature = NonNullable<ReturnType<typeof readSignature>>

function readSignature(settings: Settings) {
  const secret = settings.optional(vonageSettings.VONAGE_SIGNATURE_SECRET)
  const method = settings.oneOf(vonageSettings.VONAGE_SIGNATURE_METHOD)
  return secret === undefined ? undefined : { secret, method }
}

const failed: ReadonlySet<string> = new Set(['expired', 'failed', 'rejected'])

/** A GET with a query, or a POST of a form or of JSON, by the account's settings. */
function readCallback(call: CallbackRequest, signature: Signature | undefined): readonly DeliveryReport[] {
  const isJson = /^application\/json\b/i.test(call.headers['content-type'] ?? '')
  const fields: JsonFields = isJson ? Object(reportJson(call.body)) : call.fields
  if (signature && !isSigned(fields, signature)) throw new Failure('forbidden', 'The signature is wrong.')
  const { messageId, status, 'err-code': code } = fields
  if (typeof messageId !== 'string' || typeof status !== 'string') {
    throw invalid('`messageId` and `status` are required.')
  }
  if (status === 'delivered') return [{ status, reason: null }]
  if (!failed.has(status)) return [{ status: 'pending', reason: null }]
  const reason = /^[0-9]{1,3}$/.test(String(code)) ? `err-code ${code}` : status
  return [{ status: 'failed', reason }]
}

/** The HMAC covers all other parameters, sorted by name, with separators replaced by `_`. */
function isSigned({ sig, ...fields }: JsonFields, { secret, method }: Signature): boolean {
  const signed = Object.keys(fields)
    .sort()
    .map((name) => `&${name}=${String(fields[name]).replace(/[&=]/g, '_')}`)
    .join('')
  const expected = createHmac(method, secret).update(signed).digest()
  return isSame(Buffer.from(String(sig), 'hex'), expected)
}
