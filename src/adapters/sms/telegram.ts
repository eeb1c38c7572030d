import { createHash, createHmac } from 'node:crypto'
import { declare, printable } from '../../config/setting.ts'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import { Failure, invalid } from '../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome, Sms } from '../../domain/ground/providers.ts'
import { isSame } from '../crypto/secrets.ts'
import { call, meaningOfStatus } from './http.ts'
import { apiUrl, failure, type SmsProviderSpec, wordTable } from './provider.ts'
import { fieldsOf, reportJson } from './reading.ts'

export const telegramSettings = declare('Telegram', {
  TELEGRAM_TOKEN: {
    unset: 'unset',
    format: 'printable ASCII',
    valid: printable,
    secret: true,
    meaning: 'The API token of Telegram Gateway. It turns on the way `telegram`.',
  },
  TELEGRAM_BASE_URL: {
    default: 'https://gatewayapi.telegram.org',
    ...apiUrl,
    meaning: 'The URL of the API.',
  },
})

/** The API has no list of its errors; clients of others have these. */
const errors = wordTable<Meaning>({
  recipient: 'PHONE_NUMBER_INVALID PHONE_NUMBER_NOT_FOUND PHONE_NUMBER_NOT_AVAILABLE',
  content: `
    CALLBACK_URL_INVALID CODE_INVALID CODE_LENGTH_INVALID CODE_LENGTH_REQUIRED MESSAGE_ALREADY_SENT
    PAYLOAD_INVALID PHONE_NUMBER_MISMATCH REQUEST_ID_INVALID REQUEST_ID_REQUIRED SENDER_NOT_OWNED
    SENDER_NOT_VERIFIED SENDER_USERNAME_INVALID TTL_INVALID
  `,
  account: 'ACCESS_TOKEN_INVALID ACCESS_TOKEN_REQUIRED BALANCE_NOT_ENOUGH UNKNOWN_METHOD',
  retryable: 'FLOOD_WAIT',
})

/** Gateway API: only codes, in a text of Telegram. `checkSendAbility` costs as much as a message, so it is not called. */
export const telegram: SmsProviderSpec = {
  name: 'telegram',
  routes: ['telegram'],
  settings: telegramSettings,
  codes: { meanings: errors, page: () => 'https://core.telegram.org/gateway/api' },
  configure(settings) {
    const token = settings.required(telegramSettings.TELEGRAM_TOKEN, 'the provider telegram needs it')
    const url = `${settings.baseUrl(telegramSettings.TELEGRAM_BASE_URL)}/sendVerificationMessage`
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return ({ now }) => ({
      name: 'telegram',
      endpoint: url,
      async send(sms, timeoutMs) {
        if (!/^[0-9]{4,8}$/.test(sms.code ?? ''))
          return { ...failure('content', 'sends codes of 4 to 8 digits only'), notCalled: true }
        return call(url, { headers, body: JSON.stringify(requestOf(sms)) }, timeoutMs, outcomeOf)
      },
      deliveryReports: { namedBy: 'attempt', read: (call) => readReport(call, token, now()) },
    })
  },
}

/** Telegram's bounds of `ttl`. */
const ttl = { min: 30, max: 3600 }
const maxCallbackBytes = 256

function requestOf({ id, to, code, validitySeconds, callbackUrl }: Sms) {
  const canReport = callbackUrl?.startsWith('https:') && Buffer.byteLength(callbackUrl) <= maxCallbackBytes
  return {
    phone_number: `+${to}`,
    code,
    ...(validitySeconds !== null && {
      ttl: Math.min(ttl.max, Math.max(ttl.min, Math.floor(validitySeconds))),
    }),
    ...(canReport && { callback_url: callbackUrl }),
    payload: id,
  }
}

/** Failures have status 200 too. */
function outcomeOf(status: number, text: string): Outcome {
  const { ok, result, error } = fieldsOf(text)
  const isOk = status >= 200 && status < 300
  if (isOk && ok === true) {
    const { request_id: id } = Object(result)
    return typeof id === 'string' && id !== ''
      ? { kind: 'accepted', providerMessageId: id }
      : failure('unknown', 'unreadable answer')
  }
  // Such as FLOOD_WAIT_30. An unlisted error is about this message, which was not sent.
  const [, word] = /^(?=.{1,40}$)([A-Z]+(?:_[A-Z]+)+)(?:_[0-9]+)?$/.exec(String(error)) ?? []
  const byStatus = isOk ? (ok === false ? 'content' : 'unknown') : meaningOfStatus(status)
  const reason = word ?? (isOk ? 'unreadable answer' : `HTTP ${status}`)
  return failure(errors.get(reason) ?? byStatus, reason)
}

const reportToleranceMs = 300_000

const statuses = wordTable({ delivered: 'delivered read', failed: 'expired revoked' })

/** "Report delivery": a RequestStatus. Telegram refunds a message that expires before it is delivered. */
function readReport(
  { headers, body }: CallbackRequest,
  token: string,
  now: number,
): readonly DeliveryReport[] {
  const timestamp = headers['x-request-timestamp'] ?? ''
  const key = createHash('sha256').update(token).digest()
  const expected = createHmac('sha256', key).update(`${timestamp}\n`).update(body).digest('hex')
  const isSigned = isSame(headers['x-request-signature'] ?? '', expected)
  const isRecent = Math.abs(now - Number(timestamp) * 1000) <= reportToleranceMs
  if (!isSigned || !isRecent) throw new Failure('forbidden', 'The signature is wrong or too old.')
  const report = Object(reportJson(body))
  if (typeof report.request_id !== 'string') throw invalid('`request_id` is required.')
  const { status } = Object(report.delivery_status)
  const known = statuses.get(status) ?? 'pending'
  if (known !== 'failed') return [{ status: known, reason: null }]
  const to = /^\+?([0-9]{7,15})$/.exec(String(report.phone_number))?.[1]
  const refundedTo = (report.is_refunded ?? status === 'expired') === true ? to : undefined
  return [{ status: known, reason: status, ...(refundedTo !== undefined && { refundedTo }) }]
}
