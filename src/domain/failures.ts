/** Spec section 7, then three of design section 5. The codes are the contract. */
export const failureMessages = {
  validation_error: 'Invalid request',
  brand_id_required: 'brandId is required',
  invalid_channel: 'channel must be one of: EMAIL, SMS',
  unsupported_business: 'Unsupported business',
  invalid_template: 'Unknown templateKey',
  otp_template_not_supported: 'OTP must use the OTP endpoints',
  missing_variable: 'Missing required variable',
  invalid_input: 'Invalid request',
  invalid_contact: 'Invalid phone number or email',
  invalid_app_id: 'Invalid app id',
  invalid_otp_format: 'OTP must be exactly 6 digits',
  unauthorized: 'Credentials are required',
  mismatch: 'Invalid OTP',
  forbidden: 'Invalid app credentials',
  brand_not_approved: 'Brand is not registered or not approved',
  brand_suspended: 'Brand is suspended',
  template_not_allowed: 'Template not enabled for brand',
  not_found: 'No active OTP for this contact. Request a new code.',
  rate_limited: 'Too many requests. Please try again later.',
  cooldown_active: 'Please wait before requesting another OTP',
  max_attempts: 'Too many failed attempts. Request a new code.',
  notification_failed: 'Failed to send notification',
  internal_error: 'An unexpected error occurred',
  sms_failed: 'Failed to send OTP. Please try again.',
  route_not_found: 'No such route',
  method_not_allowed: 'Method not allowed',
  body_too_large: 'The request body is too large',
} as const

export type FailureKind = keyof typeof failureMessages

export interface FailureDetails {
  /** On every 429. */
  readonly retryAfterSeconds?: number
  /** On notification_failed (spec 4.4, rule 11). */
  readonly channel?: 'SMS' | 'EMAIL'
  /** For the log, never for the caller. */
  readonly cause?: unknown
}

/** `http/errors.ts` converts it to the error envelope. */
export class Failure extends Error {
  override readonly name = 'Failure'

  constructor(
    readonly kind: FailureKind,
    message: string = failureMessages[kind],
    readonly details: FailureDetails = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
  }
}

export function invalid(message: string): Failure {
  return new Failure('validation_error', message)
}
