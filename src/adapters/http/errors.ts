import { Failure, type FailureKind } from '../../domain/ground/failures.ts'

const statuses: Readonly<Record<FailureKind, number>> = {
  validation_error: 400,
  brand_id_required: 400,
  invalid_channel: 400,
  unsupported_business: 400,
  invalid_template: 400,
  otp_template_not_supported: 400,
  missing_variable: 400,
  invalid_input: 400,
  invalid_contact: 400,
  invalid_app_id: 400,
  invalid_otp_format: 400,
  unauthorized: 401,
  mismatch: 401,
  forbidden: 403,
  brand_not_approved: 403,
  brand_suspended: 403,
  template_not_allowed: 403,
  idempotency_in_progress: 409,
  idempotency_key_reused: 422,
  not_found: 404,
  message_not_found: 404,
  rate_limited: 429,
  cooldown_active: 429,
  max_attempts: 429,
  notification_failed: 500,
  internal_error: 500,
  sms_failed: 502,
  route_not_found: 404,
  method_not_allowed: 405,
  body_too_large: 413,
  unavailable: 503,
}

/** The codes that differ from the name of the failure (design 5). */
const codes: Partial<Record<FailureKind, string>> = {
  message_not_found: 'not_found',
  route_not_found: 'not_found',
  body_too_large: 'validation_error',
}

export const answerHeaders = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' } as const

export type ErrorAnswer = ReturnType<typeof errorAnswer>

/** The error envelope (spec 2.4), without what is undefined once it is JSON. The text of an unexpected error goes only to the log. */
export function errorAnswer(error: unknown, requestId: string) {
  const failure = failureOf(error)
  const { reason, field, channel, recipients } = failure.details
  return {
    status: statuses[failure.kind],
    headers: headersOf(failure),
    envelope: {
      success: false,
      error: codeOf(failure),
      message: failure.message,
      reason,
      field,
      channel,
      recipients,
      requestId,
    },
  }
}

function headersOf({ kind, details: { retryAfterSeconds } }: Failure): Record<string, string> | undefined {
  // Not Basic, for which browsers open a dialog.
  if (kind === 'unauthorized') return { 'www-authenticate': 'Bearer' }
  return retryAfterSeconds === undefined ? undefined : { 'retry-after': String(retryAfterSeconds) }
}

export function codeOf({ kind }: Failure): string {
  return codes[kind] ?? kind
}

/** The framework wraps what a body reader throws. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof Error && error.cause instanceof Failure) return error.cause
  return new Failure('internal_error', undefined, { cause: error })
}
