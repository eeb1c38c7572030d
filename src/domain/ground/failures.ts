import type { MessageStatus } from './providers.ts'

/** The codes and the start of each message are the contract: spec section 7, then three of design section 5. */
export const failureMessages = {
  validation_error: 'Invalid request.',
  brand_id_required: 'brandId is required. GET /platform/brands lists the active brands.',
  invalid_channel: 'channel must be one of: EMAIL, SMS.',
  unsupported_business: 'Unsupported business.',
  invalid_template: 'Unknown templateKey.',
  otp_template_not_supported: 'OTP must use the OTP endpoints. Send codes with POST /otp/send.',
  missing_variable: 'Missing required variable.',
  invalid_input: 'Invalid request. `otp` must be a string of 6 digits.',
  invalid_contact: 'Invalid phone number or email.',
  invalid_app_id: 'Invalid app id. `appId` must be 1 to 64 visible ASCII characters without a colon.',
  invalid_otp_format: 'OTP must be exactly 6 digits.',
  unauthorized: 'Credentials are required.',
  mismatch: 'Invalid OTP. Three wrong attempts lock a code.',
  forbidden:
    'Invalid app credentials. Check `appId` and `apiKey`. Those in an Authorization header must be the same.',
  brand_not_approved:
    'Brand is not registered or not approved. GET /platform/brands lists the active brands.',
  brand_suspended: 'Brand is suspended. The operator of this server can activate it again.',
  template_not_allowed: 'Template not enabled for brand. The operator of this server can enable it.',
  idempotency_in_progress:
    'A request with this Idempotency-Key is in progress. Retry after the seconds in Retry-After.',
  idempotency_key_reused:
    'The Idempotency-Key was used with another request body. Use a new key for each new request.',
  not_found: 'No active OTP for this contact. Request a new code.',
  message_not_found: 'This app has no message with this `messageRequestId`.',
  rate_limited: 'Too many requests. Please try again later.',
  cooldown_active: 'Please wait before requesting another OTP.',
  max_attempts: 'Too many failed attempts. Request a new code.',
  notification_failed: 'Failed to send notification.',
  internal_error: 'An unexpected error occurred. Report the `requestId` to the operator of this server.',
  sms_failed: 'Failed to send OTP. Please try again.',
  route_not_found: 'No such path. GET /docs describes the API.',
  method_not_allowed: 'Method not allowed.',
  body_too_large: 'The request body is too large.',
  unavailable:
    'The service is unavailable. Retry after the seconds in Retry-After, with the same Idempotency-Key.',
} as const

export type FailureKind = keyof typeof failureMessages

/** Why a request was rate-limited or is invalid, for programs (design D50). */
export const failureReasons = [
  'phone_minute',
  'phone_hour',
  'app_minute',
  'mailbox_hour',
  'wrong_codes',
  'guard',
  'budget',
  'credentials',
  'client_ip',
  'queue',
  'destination',
  'field',
] as const

export type FailureReason = (typeof failureReasons)[number]

export interface FailureDetails {
  /** On rate_limited and on validation_error only (design D50). */
  readonly reason?: FailureReason | undefined
  /** With the reason `field`: the field at fault. */
  readonly field?: string | undefined
  /** On every 429, on idempotency_in_progress and on unavailable. */
  readonly retryAfterSeconds?: number
  /** On notification_failed (spec 4.4, rule 11). */
  readonly channel?: 'SMS' | 'EMAIL'
  /** On notification_failed: every recipient, in the order of `to` (design D12). */
  readonly recipients?: readonly RecipientStatus[]
  /** For the log, never for the caller. */
  readonly cause?: unknown
}

interface RecipientStatus {
  /** In `to`, from 0. */
  readonly index: number
  readonly status: MessageStatus
}

/** `http/errors.ts` converts it to the error envelope. Not an Error, whose stack trace takes longer than the checks. */
export class Failure {
  constructor(
    readonly kind: FailureKind,
    readonly message: string = failureMessages[kind],
    readonly details: FailureDetails = {},
  ) {}
}

/** @param message a sentence without text of the caller, since the event log stores it */
export function invalid(message: string): Failure {
  return new Failure('validation_error', message)
}

/**
 * @param field its path in the body, such as `variables.orderDate` or `to[3]` (elements count from 0)
 * @param fault the rest of the sentence that begins with the field
 */
export function invalidField(field: string, fault: string): Failure {
  return new Failure('validation_error', `\`${field}\` ${fault}`, { reason: 'field', field })
}
