import type { TSchema } from '@sinclair/typebox'
import type { CallbackPorts } from '../../domain/delivery/delivery-reports.ts'
import type { Body } from '../../domain/ground/body.ts'
import type { FailureKind, FailureReason } from '../../domain/ground/failures.ts'
import type { Log } from '../../domain/ground/ports.ts'
import type { IntegrationPorts, WaysPorts } from '../../domain/integration/integration.ts'
import type { RelayPorts } from '../../domain/integration/relayed.ts'
import type { MessageQueryPorts } from '../../domain/notify/message-query.ts'
import type { NotifyPorts } from '../../domain/notify/notify.ts'
import type { SendOtpPorts } from '../../domain/otp/send.ts'
import type { VerifyOtpPorts } from '../../domain/otp/verify.ts'
import type { enabledOwnTemplates } from '../../domain/texts/notify-texts.ts'
import { maxBodyBytes } from './body.ts'
import type { Named, Parameter } from './docs/description.ts'
import { someRequestId } from './fields.ts'
import type { HttpRequest } from './http-request.ts'

export type HttpPorts = SendOtpPorts &
  VerifyOtpPorts &
  NotifyPorts &
  MessageQueryPorts &
  IntegrationPorts &
  WaysPorts &
  RelayPorts &
  CallbackPorts & { readonly checkDatabase: () => Promise<void> }

/** An operation of the API as the API description has it. */
export interface EndpointOperation {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly tag: 'OTP' | 'Notifications' | 'Onboarding' | 'Operation' | 'Development'
  readonly id: string
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly Parameter[]
  readonly security?: readonly Named<readonly string[]>[]
  readonly body?: Content
  /** The body with the templates of the brands of a server. */
  readonly bodyWith?: (templates: ReturnType<typeof enabledOwnTemplates>) => Content
  readonly answers: Readonly<Record<number, Content | TextContent>>
  readonly failures: Failures
  /** Of `rate_limited` and `validation_error`. */
  readonly reasons?: readonly FailureReason[]
}

/** An operation with the code that answers it. */
export interface Endpoint extends EndpointOperation {
  /** The method of `otpost/client` that calls it. */
  readonly client?: string
  /** Of the body. */
  readonly maxBytes: number
  /** How long caches may keep the answer. Its body then has no `requestId`. */
  readonly cachedSeconds?: number
  /** Returns the body of the answer without its `requestId`. Sets `context.status` if it is not 200. */
  readonly answer: (call: Call) => Promise<object> | object
}

export interface Call {
  readonly ports: HttpPorts
  readonly context: HttpRequest
  /** Of a POST; otherwise empty. */
  readonly body: Body
  readonly server: ServerState
}

export interface ServerState {
  readonly version: string
  readonly log: Log
  readonly isStopping: () => boolean
  /** Reports all answered requests to the listeners, such as the event log. */
  readonly endAnswered: () => void
}

export type Examples = Readonly<Record<string, readonly [summary: string, value: object]>>

/** Of a body in JSON, or of an answer. */
export interface Content {
  readonly schema: TSchema
  readonly examples: Examples
}

export interface TextContent {
  readonly text: string
  readonly description: string
  readonly example: string
}

/** When each failure is returned. */
export type Failures = Partial<Record<FailureKind, string>>

export function post(
  endpoint: Omit<Endpoint, 'method' | 'maxBytes'> & { readonly maxBytes?: number },
): Endpoint {
  const { maxBytes = maxBodyBytes, failures } = endpoint
  const body_too_large = `The body is larger than ${maxBytes / 1024} KiB.`
  return { ...endpoint, method: 'POST', maxBytes, failures: { ...failures, body_too_large } }
}

/** With `appId` and `apiKey` in the body, or in a header (design D49). */
export function protectedPost(endpoint: Parameters<typeof post>[0]): Endpoint {
  return { ...post(endpoint), security: [{ appBasic: [] }, { appKey: [] }, {}] }
}

export function get(endpoint: Omit<Endpoint, 'method' | 'maxBytes'>): Endpoint {
  return { ...endpoint, method: 'GET', maxBytes: 0 }
}

export function success(schema: TSchema, fields: object): Content {
  return answered(schema, { success: ['Success', { success: true, ...fields }] })
}

export function answered(schema: TSchema, examples: Examples): Content {
  const completed = Object.entries(examples).map(([name, [summary, value]]) => {
    return [name, [summary, { ...value, requestId: someRequestId }]] as const
  })
  return { schema, examples: Object.fromEntries(completed) }
}

export const anyCall: Failures = { internal_error: 'An unexpected error occurred.' }

export const anyGet: Failures = { ...anyCall, unavailable: 'The proxy before the server got no answer.' }

const unavailable =
  'The server has no room for the request, or the proxy before it got no answer. The request may have had its effect.'

export const anyPost: Failures = {
  validation_error: 'The body is not a JSON object, or a field is missing or wrong.',
  unavailable,
  ...anyCall,
}

export const protectedCall: Failures = {
  ...anyPost,
  unauthorized: 'appId or apiKey is missing, or the Authorization header has another form.',
  forbidden:
    'The credentials are not valid, those in the header and in the body differ, or the app may not use this operation. Do not retry.',
}

export const branded: Failures = {
  brand_id_required: 'brandId is missing.',
  brand_not_approved: 'The brand is unknown or pending, or the app may not use it.',
  brand_suspended: 'The brand is suspended.',
}

export const keyed: Failures = {
  validation_error:
    'The body is not a JSON object, a field is missing or wrong, or Idempotency-Key is not 1 to 255 visible ASCII characters.',
  idempotency_in_progress: 'The first request with this Idempotency-Key has no answer yet.',
  idempotency_key_reused: 'The Idempotency-Key was used with another body. A new request needs a new key.',
  unavailable: `${unavailable} Repeat it only with the same Idempotency-Key.`,
}

export function parameter(
  of: 'header' | 'query',
  name: string,
  schema: object,
  description: string,
): Parameter {
  return { name, in: of, ...(of === 'header' ? { required: true } : {}), description, schema }
}

export const idempotencyKey: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Unique for this request of your application, such as a UUID. A repetition with the same key and body gets the first answer. Failures with status 4xx and 502 are not kept, except `mismatch` of verify: the key can be used again.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
}
