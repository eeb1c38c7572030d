import { APIError, getIP } from 'better-auth/api'
import type { PhoneNumberOptions } from 'better-auth/plugins'
import { type ClientOptions, createClient, type SendResult, type VerifyResult } from './client.ts'

// The phone-number plugin of better-auth with the codes of otpost. Nothing sends or accepts the code that better-auth makes itself.

type Calls = Required<Pick<PhoneNumberOptions, 'sendOTP' | 'sendPasswordResetOTP' | 'verifyOTP'>>
type Context = Parameters<Calls['sendOTP']>[1]

export interface OtpostPhoneOptions extends ClientOptions {
  readonly brandId: string
  /** The language of the SMS: a tag such as `hi`, or a function that returns a tag or an Accept-Language header. */
  readonly lang?: string | ((context: Context) => string | null | undefined)
}

/**
 * Options of better-auth's plugin: `phoneNumber({ ...otpostPhone({ url, appId, apiKey, brandId }) })`. The functions throw
 * better-auth's APIError. Phone numbers must have the form `+12025550143`, since better-auth compares them as text.
 *
 * @throws as createClient
 */
export function otpostPhone({ lang, ...options }: OtpostPhoneOptions): Calls {
  // A person waits.
  const otpost = createClient({ retry: { maxWaitMs: 2000 }, ...options })

  const sendOTP: Calls['sendOTP'] = async ({ phoneNumber: phone }, context) => {
    if (!isE164(phone)) throw invalidNumber()
    const headers = context?.request ?? context?.headers
    const ip = context && headers ? getIP(headers, context.context.options) : null
    // In development, better-auth takes it for the IP address of every visitor.
    const clientIp = ip === '127.0.0.1' ? null : ip
    const tag = typeof lang === 'function' ? lang(context) : lang
    const result = await otpost.send({ phone, ...(clientIp && { clientIp }), ...(tag && { lang: tag }) })
    if (!result.success) throw errorOf(result, context)
  }

  return {
    sendOTP,
    sendPasswordResetOTP: sendOTP,
    async verifyOTP({ phoneNumber: phone, code }, context) {
      if (!isE164(phone)) throw invalidNumber()
      if (!/^\d{6}$/.test(code)) return false
      const result = await otpost.verify({ phone, otp: code })
      // One answer for both: others must not learn whether a code was requested.
      if (result.success || result.error === 'mismatch' || result.error === 'not_found') return result.success
      throw errorOf(result, context)
    },
  }
}

/** Another spelling of a number would be another user. */
function isE164(phone: string): boolean {
  return /^\+[1-9]\d{6,14}$/.test(phone)
}

function invalidNumber(detail = {}): APIError {
  const body = { code: 'INVALID_PHONE_NUMBER', message: 'Invalid phone number', ...detail }
  return new APIError('BAD_REQUEST', body)
}

/** Failures of the server or its setup are logged, without the recipient. */
function errorOf(failed: Extract<SendResult | VerifyResult, { success: false }>, context: Context): APIError {
  const { error, field, requestId, retryAfterSeconds = 60, status = 503 } = failed
  const detail = { reason: failed.reason, requestId }
  if (error === 'invalid_contact' || field === 'phone' || detail.reason === 'destination') {
    return invalidNumber(detail)
  }
  if (error === 'max_attempts') {
    return new APIError('FORBIDDEN', { code: 'TOO_MANY_ATTEMPTS', message: 'Too many attempts', ...detail })
  }
  if (error === 'rate_limited' || error === 'cooldown_active') {
    const message = 'Too many requests. Please try again later.'
    const seconds = String(retryAfterSeconds)
    // The limits of better-auth itself use the second header.
    const headers = { 'Retry-After': seconds, 'X-Retry-After': seconds }
    return new APIError('TOO_MANY_REQUESTS', { code: 'TOO_MANY_REQUESTS', message, ...detail }, headers)
  }
  context?.context.logger.error(`otpost: ${error}: ${failed.message}`, detail)
  const message = 'The code could not be sent or checked. Please try again later.'
  const body = { code: 'OTP_UNAVAILABLE', message, ...detail }
  if (error === 'sms_failed') return new APIError('BAD_GATEWAY', body)
  // The rest are mistakes of the setup, such as a wrong API key.
  return new APIError(status >= 500 ? 'SERVICE_UNAVAILABLE' : 'INTERNAL_SERVER_ERROR', body)
}
