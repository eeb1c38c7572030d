import { createHmac } from 'node:crypto'
import type { Settings } from '../../config/settings.ts'
import { Failure } from '../../domain/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome, Sms } from '../../domain/messages/providers.ts'
import { meaningOfStatus, post } from './http.ts'
import { failure, type Meaning, type SmsProviderSpec } from './provider.ts'
import { fieldsOf, isSame } from './reading.ts'

/**
 * Twilio's Programmable Messaging, by its REST API of 2010-04-01 ("Messages resource"). The text is as it was given to
 * us; Twilio's copy of it is kept or redacted as the account says, since asking for less with a message is an error
 * (30029, 30030) where the account has no such feature.
 */
export const twilio: SmsProviderSpec = {
  name: 'twilio',
  routes: ['plain'],
  configure(settings) {
    const why = 'the SMS provider twilio needs it'
    const account = accountSid(settings, settings.required('TWILIO_ACCOUNT_SID', why))
    const token = authToken(settings, settings.required('TWILIO_AUTH_TOKEN', why))
    const from = usualSender(settings, settings.required('TWILIO_FROM', why))
    const base = settings.baseUrl('TWILIO_BASE_URL', 'https://api.twilio.com')
    const url = `${base}/2010-04-01/Accounts/${account}/Messages.json`
    const headers = {
      authorization: `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
    }
    return () => ({
      name: 'twilio',
      endpoint: url,
      async send(sms, timeoutMs) {
        const result = await post(url, { headers, body: form(sms, from) }, timeoutMs)
        return result.answered ? outcomeOf(result.status, result.text) : result.outcome
      },
      deliveryReports: { namedBy: 'attempt', read: (call) => readCallback(call, token) },
    })
  },
}

const messagingService = /^MG[0-9a-fA-F]{32}$/

/** How long a message may wait to be sent: Twilio takes whole seconds from 1 to this, which is also what is usual. */
const longestValidity = 36_000

function form({ to, text, senderId, validitySeconds, callbackUrl }: Sms, from: string): string {
  const sender = senderId ?? from
  const fields = new URLSearchParams({
    To: `+${to}`,
    // A messaging service chooses one of its senders.
    [messagingService.test(sender) ? 'MessagingServiceSid' : 'From']: sender,
    Body: text,
  })
  if (validitySeconds !== null) {
    fields.set('ValidityPeriod', String(Math.min(Math.max(Math.floor(validitySeconds), 1), longestValidity)))
  }
  if (callbackUrl !== null) fields.set('StatusCallback', callbackUrl)
  return fields.toString()
}

/**
 * Twilio's error dictionary, as far as it is about sending an SMS. A sender that is none of the account's, or that can't
 * be used for this destination, is content: with another one the message may well arrive.
 */
const codes: ReadonlyMap<number, Meaning> = new Map([
  // The account is not active; has no such feature while on trial.
  [10001, 'account'],
  [10002, 'account'],
  // Sending too fast.
  [14107, 'retryable'],
  // A parameter that is unknown.
  [20001, 'content'],
  // Permission denied, account not active, access denied, test credentials, action disabled.
  [20003, 'account'],
  [20005, 'account'],
  [20006, 'account'],
  [20008, 'account'],
  [20010, 'account'],
  // Forbidden; no such account.
  [20403, 'account'],
  [20404, 'account'],
  // A parameter, or a SID, that is invalid.
  [20422, 'content'],
  [20423, 'content'],
  // Too many requests, internal error, unavailable.
  [20429, 'retryable'],
  [20500, 'retryable'],
  [20503, 'retryable'],
  // The number is invalid.
  [21211, 'recipient'],
  // The sender is invalid.
  [21212, 'content'],
  // The number can't be reached, seems invalid, is a short code, is the sender, is a premium number.
  [21214, 'recipient'],
  [21217, 'recipient'],
  [21265, 'recipient'],
  [21266, 'recipient'],
  [21268, 'recipient'],
  // No alphanumeric sender while on trial.
  [21267, 'account'],
  // The region is not enabled.
  [21408, 'content'],
  // The sender is not one for SMS.
  [21601, 'content'],
  // No text, no sender, no number, too long a text.
  [21602, 'content'],
  [21603, 'content'],
  [21604, 'content'],
  [21605, 'content'],
  // The sender is not one of the account, or not for this destination.
  [21606, 'content'],
  // On trial: another sender than the trial's; a number that isn't verified.
  [21607, 'account'],
  [21608, 'content'],
  // StatusCallback is invalid.
  [21609, 'content'],
  // The recipient has opted out.
  [21610, 'recipient'],
  // The sender's queue is full.
  [21611, 'retryable'],
  // This sender can't reach this number.
  [21612, 'content'],
  // Not a mobile number.
  [21614, 'recipient'],
  // The sender is ambiguous.
  [21616, 'content'],
  // The text is too long, can't be sent, is missing.
  [21617, 'content'],
  [21618, 'content'],
  [21619, 'content'],
  // ValidityPeriod is invalid.
  [21624, 'content'],
  // A landline.
  [21635, 'recipient'],
  // The sender: invalid there, not Twilio's, another account's, not for SMS, of another region, routed wrongly.
  [21657, 'content'],
  [21659, 'content'],
  [21660, 'content'],
  [21661, 'content'],
  [21662, 'content'],
  [21663, 'content'],
  [21668, 'content'],
  // The messaging service: missing, not available, with no sender for this number, with none at all, invalid.
  [21701, 'content'],
  [21702, 'content'],
  [21703, 'content'],
  [21704, 'content'],
  [21705, 'content'],
  // Maintenance.
  [21730, 'retryable'],
  // Sender and number are of different channels.
  [21910, 'content'],
  // The rates and the daily number of messages of the account.
  [63017, 'retryable'],
  [63018, 'retryable'],
  [63038, 'retryable'],
  // Authorization failed.
  [70051, 'account'],
  // ValidityPeriod is invalid.
  [90007, 'content'],
  [90014, 'content'],
  // The account is not active.
  [90010, 'account'],
])

/** What Twilio's statuses of a message mean. `partially_delivered` is one of several recipients. */
const statuses: ReadonlyMap<string, DeliveryReport['status']> = new Map([
  ['accepted', 'pending'],
  ['scheduled', 'pending'],
  ['queued', 'pending'],
  ['sending', 'pending'],
  ['sent', 'pending'],
  ['receiving', 'pending'],
  ['received', 'pending'],
  ['partially_delivered', 'pending'],
  ['delivered', 'delivered'],
  ['read', 'delivered'],
  ['undelivered', 'failed'],
  ['failed', 'failed'],
  ['canceled', 'failed'],
])

function outcomeOf(httpStatus: number, text: string): Outcome {
  const { sid, status, code, error_code: errorCode } = fieldsOf(text)
  if (httpStatus < 200 || httpStatus > 299) {
    return refusal(code, meaningOfStatus(httpStatus), `HTTP ${httpStatus}`)
  }
  if (typeof sid !== 'string' || !/^(SM|MM)[0-9a-fA-F]{32}$/.test(sid)) {
    return failure('unknown', 'unreadable answer')
  }
  const state = typeof status === 'string' ? statuses.get(status) : undefined
  if (!state) return { kind: 'unknown', reason: 'unreadable answer', providerMessageId: sid }
  // No new message is documented to be so; but if it is, it was not sent, and another provider may do better.
  if (state === 'failed') return refusal(errorCode, 'retryable', `status ${status}`)
  return { kind: 'accepted', providerMessageId: sid }
}

/** What Twilio's code says of a message that was not taken, else what is known without it. */
function refusal(code: unknown, meaning: Meaning, reason: string): Outcome {
  if (typeof code !== 'number' || !/^[0-9]{5}$/.test(String(code))) return failure(meaning, reason)
  return failure(codes.get(code) ?? meaning, String(code))
}

/** A status callback ("Outbound Message Status in Status Callbacks"): a form, signed with the account's auth token. */
function readCallback({ url, headers, body }: CallbackRequest, token: string): readonly DeliveryReport[] {
  const fields = new URLSearchParams(Buffer.from(body).toString())
  const given = headers['x-twilio-signature'] ?? ''
  const isSigned = signedUrls(url).some((signed) => isSame(given, signature(token, signed, fields)))
  if (!isSigned) throw new Failure('forbidden', 'the signature is wrong')
  const status = statuses.get(fields.get('MessageStatus') ?? '')
  if (!status) throw new Failure('validation_error', 'MessageStatus must be one of Twilio')
  const code = fields.get('ErrorCode') ?? ''
  return [{ status, reason: status === 'failed' && /^[0-9]{1,6}$/.test(code) ? code : null }]
}

/** "Webhooks Security": the URL as it was called, and after it the fields' names and values, in the order of the names. */
function signature(token: string, url: string, fields: URLSearchParams): string {
  const sorted = new URLSearchParams(fields)
  sorted.sort()
  return createHmac('sha1', token)
    .update(url + [...sorted].flat().join(''))
    .digest('base64')
}

/** Twilio signs some URLs with their port and some without, and its own libraries accept either. */
function signedUrls(url: string): readonly string[] {
  const { protocol, hostname, port, pathname, search } = new URL(url)
  const usualPort = protocol === 'https:' ? '443' : '80'
  return [
    `${protocol}//${hostname}${pathname}${search}`,
    `${protocol}//${hostname}:${port || usualPort}${pathname}${search}`,
  ]
}

function accountSid(settings: Settings, value: string): string {
  if (value !== '' && !/^AC[0-9a-fA-F]{32}$/.test(value)) {
    settings.refuse('TWILIO_ACCOUNT_SID', 'must be AC and 32 hexadecimal digits')
  }
  return value
}

function authToken(settings: Settings, value: string): string {
  if (/\s/.test(value)) settings.refuse('TWILIO_AUTH_TOKEN', 'must not contain spaces')
  return value
}

/** A number, a short code, an alphanumeric sender id, a messaging service. */
const senders: readonly RegExp[] = [
  /^\+[1-9][0-9]{6,14}$/,
  /^[0-9]{3,8}$/,
  /^(?=.*[A-Za-z])[A-Za-z0-9 +_&-]{1,11}$/,
  messagingService,
]

function usualSender(settings: Settings, value: string): string {
  if (value !== '' && !senders.some((kind) => kind.test(value))) {
    settings.refuse(
      'TWILIO_FROM',
      'must be a number with + and country code, a short code, an alphanumeric sender id of up to 11 characters, or the SID (MG…) of a messaging service',
    )
  }
  return value
}
