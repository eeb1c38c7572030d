import { invalid } from '../../../domain/ground/failures.ts'
import type { RelayedCode } from '../../../domain/integration/relayed.ts'
import { partOf, type RelayCall, type RelayKind, sent, verified } from './kind.ts'

/** The Send SMS and Send Email hooks of Supabase Auth, which waits in a transaction of its database. */
export const supabase: RelayKind = {
  proof: 'standard-webhooks',
  waitsMs: 3500,
  routes: { '': { read, done: sent }, '/verified': verified },
  // It repeats a 429 or 503 at once, and gives the code and the message of a hook's own error to the application, whose client
  // library shows no message of 502 and 503. Its own providers fail with 422.
  failed: ({ failure: { message, kind }, status }) => {
    const isUnknown = kind === 'unauthorized' || kind === 'route_not_found'
    const code = status === 502 ? 422 : status === 503 ? 500 : status
    return { status: isUnknown ? status : 200, body: { error: { http_code: code, message } } }
  },
}

function read({ body }: RelayCall): readonly RelayedCode[] {
  const [metadata, user, sms, mail] = ['metadata', 'user', 'sms', 'email_data'].map((name) =>
    partOf(body, name),
  ) as [RelayCall['body'], RelayCall['body'], RelayCall['body'], RelayCall['body']]
  const { uuid, ip_address: clientIp } = metadata
  const one = (to: Pick<RelayedCode, 'phone' | 'email'>, code: unknown, place: string): RelayedCode => ({
    asks: 'code',
    ...to,
    code: code ?? null,
    clientIp,
    // Retries have the same, with another webhook-id.
    ...(typeof uuid === 'string' && { key: `${uuid}${place}`.slice(0, 255) }),
  })
  if ('sms' in body) return [one({ phone: internationalOf(sms.phone) }, sms.otp, '')]
  if (!('email_data' in body)) throw invalid('The body must have `sms` or `email_data`.')
  const { token, token_new: tokenOfNew, email_action_type: action } = mail
  const isChange = action === 'email_change'
  // Without secure changes, and for a user without an e-mail address, the only code is for the new one.
  if (isChange && !tokenOfNew) return [one({ email: user.new_email }, token, '')]
  const codes = [one({ email: user.email }, token, '')]
  return isChange ? [...codes, one({ email: user.new_email }, tokenOfNew, '-new')] : codes
}

/** It leaves out the plus sign. */
function internationalOf(phone: unknown): unknown {
  return typeof phone === 'string' && /^\d/.test(phone) ? `+${phone}` : phone
}
