import type { FailureKind } from '../../../domain/ground/failures.ts'
import { isRecipient, partOf, type RelayKind, textOr, verified } from './kind.ts'

const codes: Readonly<Partial<Record<FailureKind, string>>> = {
  rate_limited: 'rate_limited',
  unauthorized: 'authentication_failed',
  validation_error: 'unsupported_request',
  forbidden: 'unsupported_request',
  brand_not_approved: 'unsupported_request',
  brand_suspended: 'delivery_rejected',
  unavailable: 'timeout',
}

/** The custom SMS gateway of Authgear, which reads `code` of the answer. */
export const authgear: RelayKind = {
  proof: 'body-hmac',
  waitsMs: 9000,
  routes: {
    '': {
      read: ({ body }) => {
        const { code } = partOf(body, 'template_variables')
        // A sign-in by a link has no code.
        return textOr({ to: body.to, code, text: body.body, lang: body.language_tag })
      },
      done: () => ({ status: 200, body: { code: 'ok' } }),
    },
    '/verified': verified,
  },
  failed: ({ failure: { kind, message, details }, status, attempts }) => {
    const last = attempts.at(-1)
    const code =
      isRecipient(details.field) || details.reason === 'destination' || last?.errorClass === 'recipient'
        ? 'invalid_phone_number'
        : last?.outcome === 'unknown'
          ? 'timeout'
          : last?.outcome === 'rejected'
            ? 'delivery_rejected'
            : (codes[kind] ?? 'unknown_error')
    const info = last && { provider_name: last.provider, provider_error_code: last.reason }
    return { status, body: { code, description: message, ...(info && { info }) } }
  },
}
