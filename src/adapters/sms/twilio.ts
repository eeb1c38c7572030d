import { createHmac } from 'node:crypto'
import { declare } from '../../config/setting.ts'
import type { Settings } from '../../config/settings.ts'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import { Failure, invalid } from '../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome, Sms } from '../../domain/ground/providers.ts'
import { isSame } from '../crypto/secrets.ts'
import { call, meaningOfStatus } from './http.ts'
import { apiUrl, failure, type SmsProviderSpec, wordTable } from './provider.ts'
import { fieldsOf } from './reading.ts'

export const twilioSettings = declare('Twilio', {
  TWILIO_ACCOUNT_SID: {
    format: '`AC` and 32 hexadecimal digits',
    valid: [/^AC[0-9a-fA-F]{32}$/, 'must be AC and 32 hexadecimal digits'],
    secret: true,
    meaning: 'The account SID.',
  },
  TWILIO_AUTH_TOKEN: {
    format: 'text without spaces',
    valid: [/^\S*$/, 'must not contain spaces'],
    secret: true,
    meaning: 'The auth token. It also checks the signatures of delivery reports.',
  },
  TWILIO_FROM: {
    format: 'number with `+`, short code, sender id of up to 11 characters, or `MG…`',
    valid: [
      /^(\+[1-9][0-9]{6,14}|[0-9]{3,8}|(?=.*[A-Za-z])[A-Za-z0-9 +_&-]{1,11}|MG[0-9a-fA-F]{32})$/,
      'must be a number with + and country code, a short code, an alphanumeric sender id of up to 11 characters, or the SID (MG…) of a messaging service',
    ],
    meaning:
      'The sender: a phone number, a short code, an alphanumeric sender id, or the SID of a messaging service.',
  },
  TWILIO_BASE_URL: {
    default: 'https://api.twilio.com',
    ...apiUrl,
    meaning: 'The URL of the API.',
  },
})

/** Twilio's error dictionary. An unusable sender is `content`: another sender may be accepted. */
const codes = wordTable<Meaning>({
  recipient: '21211 21214 21217 21265 21266 21268 21610 21614 21635',
  content: `
    20001 20422 20423 21212 21408 21601 21602 21603 21604 21605 21606 21608 21609 21612 21616
    21617 21618 21619 21624 21657 21659 21660 21661 21662 21663 21668 21701 21702 21703 21704
    21705 21910 90007 90014
  `,
  account: '10001 10002 20003 20005 20006 20008 20010 20403 20404 21267 21607 70051 90010',
  retryable: '14107 20429 20503 21611 21730 63017 63018 63038',
  unknown: '20500',
})

/** Of delivery reports. */
const reportCodes = wordTable<Meaning>({
  recipient: '30003 30004 30005 30006',
  content: '30007 30010 30018 30019 30024 30032 30034 30038',
  account: '30002',
  retryable: '30001 30017 30022 30023 30027',
  unknown: '30008 30036 30410',
})

/** REST API 2010-04-01. The account decides on redaction: without the feature, its parameter is an error. */
export const twilio: SmsProviderSpec = {
  name: 'twilio',
  routes: ['plain'],
  settings: twilioSettings,
  codes: {
    meanings: new Map([...codes, ...reportCodes]),
    page: (code) => `https://www.twilio.com/docs/api/errors/${code}`,
  },
  configure(settings) {
    const why = 'the SMS provider twilio needs it'
    const { account, token, headers } = twilioAccount(settings, why)
    const from = settings.required(twilioSettings.TWILIO_FROM, why)
    const base = settings.baseUrl(twilioSettings.TWILIO_BASE_URL)
    const url = `${base}/2010-04-01/Accounts/${account}/Messages.json`
    return () => ({
      name: 'twilio',
      endpoint: url,
      send: (sms, timeoutMs) => call(url, { headers, body: form(sms, from) }, timeoutMs, outcomeOf),
      reportConversion(sid, timeoutMs) {
        const feedbackUrl = `${base}/2010-04-01/Accounts/${account}/Messages/${encodeURIComponent(sid)}/Feedback.json`
        const request = { headers, body: 'Outcome=confirmed' }
        return call(feedbackUrl, request, timeoutMs, (status, text) =>
          isSuccess(status) ? { kind: 'accepted' } : refusalOf(status, text),
        )
      },
      deliveryReports: { namedBy: 'attempt', read: (call) => readCallback(call, token) },
    })
  },
}

export function twilioAccount(settings: Settings, why: string) {
  const account = settings.required(twilioSettings.TWILIO_ACCOUNT_SID, why)
  const token = settings.required(twilioSettings.TWILIO_AUTH_TOKEN, why)
  const headers = {
    authorization: `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`,
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
  }
  return { account, token, headers }
}

const messagingService = /^MG[0-9a-fA-F]{32}$/

/** Twilio's limit and default of ValidityPeriod. */
const maxValiditySeconds = 36_000

function form(
  { to, text, senderId, validitySeconds, callbackUrl, expectsFeedback }: Sms,
  from: string,
): string {
  const sender = senderId ?? from
  const fields = new URLSearchParams({
    To: `+${to}`,
    [messagingService.test(sender) ? 'MessagingServiceSid' : 'From']: sender,
    Body: text,
  })
  if (validitySeconds !== null) {
    fields.set(
      'ValidityPeriod',
      String(Math.min(Math.max(Math.floor(validitySeconds), 1), maxValiditySeconds)),
    )
  }
  if (callbackUrl !== null) fields.set('StatusCallback', callbackUrl)
  if (expectsFeedback) fields.set('ProvideFeedback', 'true')
  return fields.toString()
}

const statuses = wordTable<DeliveryReport['status']>({
  pending: 'accepted scheduled queued sending sent receiving received partially_delivered',
  delivered: 'delivered read',
  failed: 'undelivered failed canceled',
})

function outcomeOf(httpStatus: number, text: string): Outcome {
  if (!isSuccess(httpStatus)) return refusalOf(httpStatus, text)
  const { sid, status, error_code: errorCode } = fieldsOf(text)
  if (typeof sid !== 'string' || !/^(SM|MM)[0-9a-fA-F]{32}$/.test(sid)) {
    return failure('unknown', 'unreadable answer')
  }
  const state = typeof status === 'string' ? statuses.get(status) : undefined
  if (!state) return { kind: 'unknown', reason: 'unreadable answer', providerMessageId: sid }
  // Not documented for a new message. It was not sent, and another provider may succeed.
  if (state === 'failed') return refusal(errorCode, 'retryable', `status ${status}`)
  return { kind: 'accepted', providerMessageId: sid }
}

export function isSuccess(httpStatus: number): boolean {
  return httpStatus >= 200 && httpStatus <= 299
}

export function refusalOf(httpStatus: number, text: string, known = codes): Outcome {
  return refusal(fieldsOf(text).code, meaningOfStatus(httpStatus), `HTTP ${httpStatus}`, known)
}

function refusal(code: unknown, meaning: Meaning, reason: string, known = codes): Outcome {
  if (typeof code !== 'number' || !/^[0-9]{5}$/.test(String(code))) return failure(meaning, reason)
  return failure(known.get(String(code)) ?? meaning, String(code))
}

/** "Outbound Message Status in Status Callbacks". */
function readCallback(call: CallbackRequest, token: string): readonly DeliveryReport[] {
  const fields = signedForm(call, token)
  const status = statuses.get(fields.get('MessageStatus') ?? '')
  if (!status) throw invalid('`MessageStatus` must be a message status of Twilio.')
  const code = fields.get('ErrorCode') ?? ''
  return [{ status, reason: status === 'failed' && /^[0-9]{1,6}$/.test(code) ? code : null }]
}

/** A form, signed with the auth token. */
export function signedForm({ url, headers, body }: CallbackRequest, token: string): URLSearchParams {
  const fields = new URLSearchParams(Buffer.from(body).toString())
  const given = headers['x-twilio-signature'] ?? ''
  const isSigned = signedUrls(url).some((signed) => isSame(given, signature(token, signed, fields)))
  if (!isSigned) throw new Failure('forbidden', 'The signature is wrong.')
  return fields
}

/** "Webhooks Security": the HMAC covers the URL, then the fields' names and values sorted by name. */
function signature(token: string, url: string, fields: URLSearchParams): string {
  const sorted = new URLSearchParams(fields)
  sorted.sort()
  return createHmac('sha1', token)
    .update(url + [...sorted].flat().join(''))
    .digest('base64')
}

/** Twilio signs URLs with or without their port; its own libraries accept either. */
function signedUrls(url: string): readonly string[] {
  const { protocol, hostname, port, pathname, search } = new URL(url)
  const usualPort = protocol === 'https:' ? '443' : '80'
  return [
    `${protocol}//${hostname}${pathname}${search}`,
    `${protocol}//${hostname}:${port || usualPort}${pathname}${search}`,
  ]
}
