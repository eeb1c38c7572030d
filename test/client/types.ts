import type { Static, TSchema } from '@sinclair/typebox'
import {
  createClient,
  type Failure,
  type NotifyAsyncResult,
  type NotifyResult,
  type OtpostEvent,
  type SendResult,
  type VerifyResult,
} from 'otpost/client'
import type {
  Brands,
  BrandsErrors,
  Catalog,
  CatalogErrors,
  FailureReason,
  HtmlEmailRequest,
  IntegrationReceived,
  IntegrationRequest,
  MessageStatus,
  MessageStatusErrors,
  MessageStatusRequest,
  NotificationAccepted,
  Notified,
  NotifyErrors,
  OtpResendRequest,
  OtpSendRequest,
  OtpSent,
  OtpVerified,
  OtpVerifyRequest,
  operations,
  RequestAccessErrors,
  ResendErrors,
  SendErrors,
  TemplateEmailRequest,
  TemplateSmsRequest,
  TextSmsRequest,
  VerifyErrors,
} from '../../client/contract.ts'
import type { brands } from '../../src/adapters/http/endpoints/brands.ts'
import type { catalog } from '../../src/adapters/http/endpoints/catalog.ts'
import type {
  integrationReceived,
  integrationRequest,
} from '../../src/adapters/http/endpoints/integration-request.ts'
import type { messageStatus, messageStatusRequest } from '../../src/adapters/http/endpoints/message-status.ts'
import type {
  htmlEmailRequest,
  notificationAccepted,
  notified,
  templateEmailRequest,
  templateSmsRequest,
  textSmsRequest,
} from '../../src/adapters/http/endpoints/notify.ts'
import type { otpResendRequest, otpSendRequest, otpSent } from '../../src/adapters/http/endpoints/otp-send.ts'
import type { otpVerified, otpVerifyRequest } from '../../src/adapters/http/endpoints/otp-verify.ts'
import type { FailureKind, FailureReason as ServiceReason } from '../../src/domain/ground/failures.ts'

// Nothing here runs; the compiler checks it. A line stops compiling when the client and the service differ, or when the
// compiler accepts a wrong call.

/** Whether two types are the same. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false

/** A list of assertions that compiles only if all are true. */
type Claims<_All extends readonly true[]> = never

// --- The contract and the service -----------------------------------------------------------------------------------

/** The fields of any form of a request. A field that must be absent or null is none. */
type Fields<Request> = Request extends unknown
  ? {
      [Name in keyof Request]-?: [Exclude<Request[Name], null | undefined>] extends [never] ? never : Name
    }[keyof Request]
  : never

type DescribedFields<Schema extends TSchema> = Exclude<Fields<Static<Schema>>, 'appId' | 'apiKey'>

/** A request with the fields that the client adds. */
type Sent<Request> = Request extends unknown
  ? Omit<Request, 'brandId'> & { readonly appId: string; readonly apiKey: string; readonly brandId: string }
  : never

/** A deeply read-only value. */
type Frozen<T> = {
  readonly [Name in keyof T]: NonNullable<T[Name]> extends object ? Frozen<T[Name]> : T[Name]
}

export type _Answers = Claims<
  [
    Same<OtpSent, Static<typeof otpSent>>,
    Same<OtpVerified, Static<typeof otpVerified>>,
    Same<Omit<Notified, 'templateKey'>, Omit<Static<typeof notified>, 'templateKey'>>,
    Same<keyof OtpSent, keyof Static<typeof otpSent>>,
    Same<keyof OtpVerified, keyof Static<typeof otpVerified>>,
    Same<keyof Notified, keyof Static<typeof notified>>,
    Same<NotificationAccepted, Static<typeof notificationAccepted>>,
    MessageStatus extends Frozen<Static<typeof messageStatus>> ? true : false,
    Same<keyof MessageStatus, keyof Static<typeof messageStatus>>,
    Catalog extends Frozen<Static<typeof catalog>> ? true : false,
    Same<keyof Catalog, keyof Static<typeof catalog>>,
    Brands extends Frozen<Static<typeof brands>> ? true : false,
    Same<keyof Brands, keyof Static<typeof brands>>,
    Same<IntegrationReceived, Static<typeof integrationReceived>>,
  ]
>

export type _Requests = Claims<
  [
    Same<Fields<OtpSendRequest>, DescribedFields<typeof otpSendRequest>>,
    Same<Fields<OtpResendRequest>, DescribedFields<typeof otpResendRequest>>,
    Same<Fields<OtpVerifyRequest>, DescribedFields<typeof otpVerifyRequest>>,
    Same<Fields<MessageStatusRequest>, DescribedFields<typeof messageStatusRequest>>,
    Same<Fields<TextSmsRequest>, DescribedFields<typeof textSmsRequest>>,
    Same<Fields<TemplateSmsRequest>, DescribedFields<ReturnType<typeof templateSmsRequest>>>,
    Same<Fields<HtmlEmailRequest>, DescribedFields<typeof htmlEmailRequest>>,
    Same<Fields<TemplateEmailRequest>, DescribedFields<typeof templateEmailRequest>>,
    Same<Fields<IntegrationRequest>, DescribedFields<typeof integrationRequest>>,
    Sent<OtpSendRequest> extends Frozen<Static<typeof otpSendRequest>> ? true : false,
    Sent<OtpResendRequest> extends Frozen<Static<typeof otpResendRequest>> ? true : false,
    Sent<OtpVerifyRequest> extends Frozen<Static<typeof otpVerifyRequest>> ? true : false,
    Sent<TextSmsRequest> extends Frozen<Static<typeof textSmsRequest>> ? true : false,
    Sent<HtmlEmailRequest> extends Frozen<Static<typeof htmlEmailRequest>> ? true : false,
    Sent<TemplateEmailRequest> extends Frozen<Static<typeof templateEmailRequest>> ? true : false,
  ]
>

/** Failures of the service that no operation of the client has: they have another code there, or are never returned. */
type OutsideOperations = 'message_not_found' | 'route_not_found' | 'method_not_allowed' | 'body_too_large'

type AnyError =
  | keyof SendErrors
  | keyof ResendErrors
  | keyof VerifyErrors
  | keyof NotifyErrors
  | keyof MessageStatusErrors
  | keyof CatalogErrors
  | keyof BrandsErrors
  | keyof RequestAccessErrors

/** The codes of an operation that the client knows at run time. */
type Known<Method extends keyof typeof operations> = (typeof operations)[Method]['errors'][number]

export type _Failures = Claims<
  [
    Same<AnyError, Exclude<FailureKind, OutsideOperations>>,
    Same<FailureReason, ServiceReason>,
    Same<Known<'send'>, keyof SendErrors>,
    Same<Known<'resend'>, keyof ResendErrors>,
    Same<Known<'verify'>, keyof VerifyErrors>,
    Same<Known<'notify'>, keyof NotifyErrors>,
    Same<Known<'messageStatus'>, keyof MessageStatusErrors>,
    Same<Known<'catalog'>, keyof CatalogErrors>,
    Same<Known<'brands'>, keyof BrandsErrors>,
    Same<Known<'requestAccess'>, keyof RequestAccessErrors>,
  ]
>

// --- Calls ----------------------------------------------------------------------------------------------------------

const otpost = createClient({
  url: 'https://otpost.example.com',
  appId: 'shop',
  apiKey: 'key',
  brandId: 'acme',
})
const to = ['+1 202 555 0143']

export function calls(): void {
  otpost.send({ phone: '1' })
  otpost.send({ channel: 'SMS', phone: '1', loginId: 'pat', businessName: 'Acme', brandId: 'other' })
  otpost.send({ channel: 'EMAIL', email: 'pat@example.com' }, { signal: new AbortController().signal })
  otpost.send({ phone: '1' }, { timeoutMs: 1000, retry: { maxAttempts: 5 } })
  otpost.resend({ phone: '1' }, { retry: false })
  otpost.resend({ phone: '1' }, { idempotencyKey: 'login-1' })
  otpost.verify({ phone: '1', otp: '123456' }, { idempotencyKey: 'login-1' })
  // @ts-expect-error a status request has no key
  otpost.messageStatus({ messageRequestId: '1' }, { idempotencyKey: 'login-1' })
  // @ts-expect-error no recipient
  otpost.send({})
  // @ts-expect-error an e-mail needs its channel
  otpost.send({ email: 'pat@example.com' })
  // @ts-expect-error the recipient of the other channel
  otpost.send({ channel: 'EMAIL', phone: '1' })
  // @ts-expect-error both recipients
  otpost.send({ phone: '1', email: 'pat@example.com' })
  const both = { phone: '1', email: 'pat@example.com' }
  // @ts-expect-error the same in a variable
  otpost.send(both)
  // @ts-expect-error no such channel
  otpost.send({ channel: 'FAX', phone: '1' })
  // @ts-expect-error the service generates the code
  otpost.send({ phone: '1', otp: '123456' })
  // @ts-expect-error no such field
  otpost.send({ phone: '1', buisnessName: 'Acme' })

  otpost.verify({ phone: '1', otp: '123456' })
  otpost.verify({ email: 'pat@example.com', otp: '123456' })
  // @ts-expect-error a code may begin with 0
  otpost.verify({ phone: '1', otp: 123456 })
  // @ts-expect-error both recipients
  otpost.verify({ phone: '1', email: 'pat@example.com', otp: '123456' })
  // @ts-expect-error no recipient
  otpost.verify({ otp: '123456' })

  const order = { customerName: 'Pat', orderId: 'A-1' }
  otpost.notify({ channel: 'SMS', to, message: 'Hello' })
  otpost.notify({ channel: 'SMS', to, message: 'Hello', async: true, expiresAt: '2026-03-14T15:09Z' })
  // @ts-expect-error a boolean
  otpost.notify({ channel: 'SMS', to, message: 'Hello', async: 'true' })
  otpost.notify({ channel: 'SMS', to, templateKey: 'OUT_FOR_DELIVERY', variables: order })
  // @ts-expect-error without orderDate
  otpost.notify({ channel: 'SMS', to, templateKey: 'ORDER_PLACED', variables: order })
  // @ts-expect-error a template of codes
  otpost.notify({ channel: 'SMS', to, templateKey: 'LOGIN_OTP', variables: {} })
  // @ts-expect-error no template that the program knows
  otpost.notify({ channel: 'SMS', to, templateKey: 'PARCEL_READY', variables: { points: 7, shop: 'Mitte' } })
  otpost.notify({ channel: 'EMAIL', to, subject: 'Hello', html: '<p>Hello' })
  otpost.notify({
    channel: 'EMAIL',
    to,
    subject: 'Hello',
    template: 'Hello {{name}}',
    data: { name: 'Pat', n: 1 },
  })
  otpost.catalog({ timeoutMs: 1000 })
  otpost.brands()
  const contact = { companyName: 'Acme', contactName: 'Pat', contactEmail: 'pat@example.com' }
  otpost.requestAccess({ ...contact, brandName: 'Acme', channels: ['SMS'] })
  // @ts-expect-error no brandName
  otpost.requestAccess(contact)
  // @ts-expect-error no such channel
  otpost.requestAccess({ ...contact, brandName: 'Acme', channels: ['FAX'] })
  // @ts-expect-error a list, even of one
  otpost.notify({ channel: 'SMS', to: '1', message: 'Hello' })
  // @ts-expect-error two modes
  otpost.notify({ channel: 'SMS', to, message: 'Hello', templateKey: 'OUT_FOR_DELIVERY', variables: order })
  // @ts-expect-error the mode of another channel
  otpost.notify({ channel: 'EMAIL', to, message: 'Hello' })
  // @ts-expect-error two modes
  otpost.notify({ channel: 'EMAIL', to, subject: 'Hello', html: '<p>Hello', template: 'Hello' })
  // @ts-expect-error no subject
  otpost.notify({ channel: 'EMAIL', to, html: '<p>Hello' })
  const withOwn = createClient<{ PARCEL_READY: { points: number; shop: string } }>({
    url: 'https://otpost.example.com',
    appId: 'shop',
    apiKey: 'key',
  })
  withOwn.notify({ channel: 'SMS', to, templateKey: 'PARCEL_READY', variables: { points: 7, shop: 'Mitte' } })
  withOwn.notify({ channel: 'SMS', to, templateKey: 'OUT_FOR_DELIVERY', variables: order, async: true })
  // @ts-expect-error an object of variables
  withOwn.notify({ channel: 'SMS', to, templateKey: 'PARCEL_READY', variables: 'A-1' })
  // @ts-expect-error without shop
  withOwn.notify({ channel: 'SMS', to, templateKey: 'PARCEL_READY', variables: { points: 7 } })
  // @ts-expect-error without orderDate
  withOwn.notify({ channel: 'SMS', to, templateKey: 'ORDER_PLACED', variables: order })
  // @ts-expect-error no such retry
  otpost.send({ phone: '1' }, { retry: true })
}

// --- Results --------------------------------------------------------------------------------------------------------

export function results(sent: SendResult, verified: VerifyResult, notified: NotifyResult): void {
  // @ts-expect-error a failure has no lifetime
  sent.expiresIn.toFixed()
  if (sent.success) sent.expiresIn.toFixed()
  else {
    const seconds: number | undefined = sent.retryAfterSeconds
    const requestId: string | undefined = sent.requestId
    const status: number | undefined = sent.status
    void [seconds, requestId, status]
    if (sent.error === 'cooldown_active') sent.requestId.toUpperCase()
    if (sent.error === 'unexpected_answer') sent.serverError?.toUpperCase()
    // @ts-expect-error a code of verify
    if (sent.error === 'mismatch') return
  }
  if (!verified.success) {
    // @ts-expect-error a code of send
    if (verified.error === 'cooldown_active') return
  }
  // @ts-expect-error only an asynchronous notify counts its recipients
  if (notified.success) notified.recipients.toFixed()
  if (!notified.success && notified.error === 'notification_failed') {
    const channel: 'SMS' | 'EMAIL' = notified.channel
    const failed: number[] = notified.recipients
      .filter(({ status }) => status === 'failed')
      .map(({ index }) => index)
    void [channel, failed]
  }
}

export async function asynchronous(isAsync: boolean): Promise<void> {
  const message = { channel: 'SMS', to, message: 'Hello' } as const
  const stored = await otpost.notify({ ...message, async: true })
  if (stored.success) stored.recipients.toFixed()
  const sent = await otpost.notify(message)
  // @ts-expect-error the messages are sent, not stored
  if (sent.success) sent.recipients.toFixed()
  const either: NotifyResult | NotifyAsyncResult = await otpost.notify({ ...message, async: isAsync })
  if (either.success && 'recipients' in either) either.recipients
}

export function events(event: OtpostEvent): void {
  const id: string = event.id
  const status: 'delivered' | 'failed' | 'unknown' | null = event.data.status
  void [id, status]
  if (event.type === 'message.delivered') event.data.status satisfies 'delivered'
  // @ts-expect-error no such type
  if (event.type === 'message.sent') return
  // @ts-expect-error an event never has the code
  void event.data.otp
}

/** All codes of a failure, which a caller can list exhaustively. */
export function meaningOf(failure: Failure<SendErrors>): string {
  switch (failure.error) {
    case 'validation_error':
    case 'brand_id_required':
    case 'unauthorized':
    case 'forbidden':
    case 'brand_not_approved':
    case 'brand_suspended':
    case 'idempotency_key_reused':
      return 'the call is wrong'
    case 'rate_limited':
    case 'cooldown_active':
    case 'idempotency_in_progress':
    case 'unavailable':
      return 'later'
    case 'internal_error':
    case 'sms_failed':
      return 'the service failed'
    case 'timeout':
    case 'unreachable':
    case 'unexpected_answer':
      return 'nobody knows'
  }
}
