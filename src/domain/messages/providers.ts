export type SmsRoute = 'plain' | 'template'

/** One SMS for one recipient, whichever provider sends it. */
export interface SmsMessage {
  /** The same over all providers and routes. */
  readonly id: string
  readonly requestId: string
  readonly brandSlug: string
  readonly brandName: string
  /** E.164 digits without `+`. */
  readonly to: string
  /** The recipient's keyed hash. */
  readonly subject: string
  /** The text on the plain route. */
  readonly text: string
  readonly template: {
    readonly key: string
    readonly text: string
    readonly variables: Readonly<Record<string, string>>
    readonly registration: Registration
  } | null
  /** Null: unlimited. */
  readonly validitySeconds: number | null
  /** The recipient's first position in the request's `to`, from 1; null: it is the only recipient. */
  readonly position: number | null
}

/** How a template is registered with carriers (India's DLT) and providers. */
export interface Registration {
  /** For a provider without an id of its own in `ids`. */
  readonly id: string | null
  /** By provider. */
  readonly ids: Readonly<Record<string, string>>
  /** Null: the provider's default sender. */
  readonly senderId: string | null
  /** Of the brand as principal entity. */
  readonly entityId: string | null
}

/** One SMS for one provider, on one route. */
export interface Sms extends Pick<SmsMessage, 'id' | 'requestId' | 'brandSlug' | 'brandName' | 'to'> {
  readonly route: SmsRoute
  readonly text: string
  /** On the template route only. A provider that renders itself uses `id` and `variables`, others `id` and `entityId`. */
  readonly template: {
    readonly key: string
    readonly variables: Readonly<Record<string, string>>
    /** Null: none is configured for this provider. */
    readonly id: string | null
    readonly entityId: string | null
  } | null
  /** Null: the sender in the provider's settings. */
  readonly senderId: string | null
  readonly validitySeconds: number | null
  /** Null: no delivery report. */
  readonly callbackUrl: string | null
}

/**
 * The result of a provider call.
 *
 * - `rejected`: a retry would not help, because of the recipient, the content (text, template, sender) or the account.
 * - `retryable`: certainly not sent; another provider may succeed.
 * - `unknown`: it may or may not have been sent, as after a time-out.
 *
 * `reason` is a code of the provider or the error, without secrets, text or recipient. `unasked`: it was not called.
 */
export type Outcome =
  | { readonly kind: 'accepted'; readonly providerMessageId?: string }
  | {
      readonly kind: 'rejected'
      readonly scope: RejectionScope
      readonly reason: string
      readonly unasked?: true
    }
  | { readonly kind: 'retryable'; readonly reason: string; readonly unasked?: true }
  | { readonly kind: 'unknown'; readonly reason: string; readonly providerMessageId?: string }

export type RejectionScope = 'recipient' | 'content' | 'account'

/** `send` answers within `timeoutMs` and never throws. */
export interface SmsProvider {
  readonly name: string
  /** Undefined: it calls no URL. */
  readonly endpoint?: string
  send(sms: Sms, timeoutMs: number): Promise<Outcome>
  /** Undefined: there are none. */
  readonly deliveryReports?: DeliveryReportReader
}

/** Reads delivery reports from HTTP requests. */
export interface DeliveryReportReader {
  /** `attempt`: each message has its own callback URL (`Sms.callbackUrl`). `providerMessageId`: one URL for all messages. */
  readonly namedBy: 'attempt' | 'providerMessageId'
  /** @throws Failure `forbidden` for a wrong signature, `validation_error` for anything but a report */
  read(call: CallbackRequest): readonly DeliveryReport[]
  /** The answer that the provider requires; undefined: the usual envelope. */
  answer?(call: CallbackRequest, now: number): unknown
}

export interface CallbackRequest {
  /** As the provider called it: under PUBLIC_URL, with its query. */
  readonly url: string
  /** Of the query and of a form in the body. */
  readonly fields: Readonly<Record<string, string>>
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
}

/** `pending` is everything that is not final. */
export interface DeliveryReport {
  /** Set where reports are named by it. */
  readonly providerMessageId?: string
  readonly status: 'delivered' | 'failed' | 'pending'
  /** The provider's code of a failure; no text, no recipient. */
  readonly reason: string | null
}

export interface Mail {
  readonly requestId: string
  readonly brandSlug: string | null
  /** Null: the mailer's default. */
  readonly brandName: string | null
  readonly to: string
  /** The recipient's keyed hash. */
  readonly recipientSubject: string
  /** The key of the template; null: the caller's own content. */
  readonly template: string | null
  readonly subject: string
  readonly html: string
  readonly text: string
  /** See `SmsMessage.position`. */
  readonly position: number | null
}

/** `send` answers within `timeoutMs` and never throws; `attempt` counts within the request. */
export interface Mailer {
  readonly name: string
  send(mail: Mail, attempt: number, timeoutMs: number): Promise<Outcome>
}

/** GSM 03.38, 3GPP TS 23.038. */
export interface Segments {
  readonly count: number
  readonly encoding: 'GSM-7' | 'UCS-2'
}
