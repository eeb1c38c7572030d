import { text as textIn } from '../../../domain/ground/body.ts'
import { invalid, invalidField } from '../../../domain/ground/failures.ts'
import type { FailedCall, RelayAnswer, RelayCall, RelayKind } from './kind.ts'

/** The one-time-password-sms API of CAMARA, version 1: otpost makes and verifies the code, the text is the caller's. */
export const camara: RelayKind = {
  proof: 'authorization',
  waitsMs: 9000,
  routes: {
    '/one-time-password-sms/v1/send-code': {
      read: (call) => {
        refuseOtherFields(call, ['phoneNumber', 'message'])
        const { phoneNumber: phone, message } = call.body
        if (typeof phone !== 'string' || !/^\+[1-9][0-9]{4,14}$/.test(phone))
          throw invalidField('phoneNumber', 'must be + and 5 to 15 digits.')
        const text = textIn('message', message, { max: 160, lines: 'many' })
        if (!text.includes('{{code}}')) throw invalidField('message', 'must have {{code}}.')
        return { asks: 'code', phone, text }
      },
      done: (call, authenticationId) => answer(call, 200, { authenticationId }),
    },
    '/one-time-password-sms/v1/validate-code': {
      read: (call) => {
        refuseOtherFields(call, ['authenticationId', 'code'])
        const { authenticationId: codeId, code } = call.body
        if (typeof codeId !== 'string' || codeId === '' || codeId.length > 36)
          throw invalidField('authenticationId', 'must be that of a send-code.')
        if (typeof code !== 'string' || code === '' || code.length > 10)
          throw invalidField('code', 'must be the code of the SMS.')
        return { asks: 'verification', codeId, code }
      },
      done: (call) => answer(call, 204, null),
    },
  },
  failed: (failed) => {
    const [status, code] = codeOf(failed)
    const message = failed.failure.message.replace('`phone`', '`phoneNumber`')
    return answer(failed.call, status, { status, code, message })
  },
}

function codeOf(failed: FailedCall): readonly [status: number, code: string] {
  const { failure, status, attempts, country } = failed
  const { kind, details } = failure
  const own = 'ONE_TIME_PASSWORD_SMS'
  if (kind === 'unauthorized') return [401, 'UNAUTHENTICATED']
  if (kind === 'message_not_found') return [404, 'NOT_FOUND']
  if (kind === 'rate_limited')
    return details.reason === 'phone_minute' || details.reason === 'phone_hour'
      ? [403, `${own}.MAX_OTP_CODES_EXCEEDED`]
      : [429, details.reason === 'budget' ? 'QUOTA_EXCEEDED' : 'TOO_MANY_REQUESTS']
  if (details.reason === 'destination')
    // A number of no country belongs to no operator.
    return country === undefined ? [404, 'NOT_FOUND'] : [403, `${own}.PHONE_NUMBER_NOT_ALLOWED`]
  if (kind === 'mismatch' || kind === 'invalid_otp_format') return [400, `${own}.INVALID_OTP`]
  if (kind === 'not_found') return [400, `${own}.VERIFICATION_EXPIRED`]
  if (kind === 'max_attempts') return [400, `${own}.VERIFICATION_FAILED`]
  if (attempts.at(-1)?.errorClass === 'recipient') return [403, `${own}.PHONE_NUMBER_BLOCKED`]
  if (status === 403) return [403, 'PERMISSION_DENIED']
  return status < 500
    ? [400, 'INVALID_ARGUMENT']
    : [status === 502 ? 503 : status, status === 500 ? 'INTERNAL' : 'UNAVAILABLE']
}

function refuseOtherFields({ body }: RelayCall, known: readonly string[]): void {
  const other = Object.keys(body).find((name) => !known.includes(name))
  if (other !== undefined) throw invalid(`The body may have ${known.join(' and ')} only.`)
}

/** With the x-correlator of the request, if it is one that a header may have. */
function answer({ headers }: RelayCall, status: number, body: object | null): RelayAnswer {
  const given = headers.get('x-correlator') ?? ''
  const correlator = /^[a-zA-Z0-9_:;./<>{}-]{1,256}$/.test(given) ? { 'x-correlator': given } : {}
  const json = body === null ? {} : { 'content-type': 'application/json' }
  return { status, body, headers: { ...json, ...correlator } }
}
