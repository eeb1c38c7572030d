export type SmsRoute = 'plain' | 'template'

/** One SMS for one recipient, whichever provider will carry it. */
export interface SmsMessage {
  /** Identifies this message; the same over all providers and routes it is tried on. */
  readonly id: string
  readonly requestId: string
  readonly brandSlug: string
  readonly brandName: string
  /** E.164 digits without `+`. */
  readonly to: string
  /** What stands for the recipient in the store. */
  readonly subject: string
  /** What the plain route says; with the WebOTP line where the brand has a domain. */
  readonly text: string
  /** On a registered template: what its route says, as it was registered. */
  readonly template: TemplateMessage | null
  /** How long it is worth delivering, in seconds; null: no matter when. */
  readonly validitySeconds: number | null
  /** Which of the request's recipients it is for, from 1; null: there is no other. */
  readonly position: number | null
}

export interface TemplateMessage {
  readonly key: string
  readonly text: string
  readonly variables: Readonly<Record<string, string>>
  readonly registration: Registration
}

/** How a brand's template is registered with carriers and vendors (India's DLT, and vendors' own catalogues). */
export interface Registration {
  /** The id of the template, for a provider that has none of its own in `ids`. */
  readonly id: string | null
  /** The id of the template by name of the provider. */
  readonly ids: Readonly<Record<string, string>>
  /** The sender id (header) it is registered under; null leaves the provider's own. */
  readonly senderId: string | null
  /** The brand's principal entity id. */
  readonly entityId: string | null
}

/** One SMS as one provider is asked to carry it, on one route. */
export interface Sms extends Pick<SmsMessage, 'id' | 'requestId' | 'brandSlug' | 'brandName' | 'to'> {
  readonly route: SmsRoute
  /** The finished text of this route. */
  readonly text: string
  /**
   * On the template route alone. A provider that renders itself takes `id` and `variables`; one that is given the
   * rendered text hands it on with `id` and `entityId`.
   */
  readonly template: {
    readonly key: string
    readonly variables: Readonly<Record<string, string>>
    /** The template's id as this provider knows it; null: none is configured. */
    readonly id: string | null
    readonly entityId: string | null
  } | null
  /** Overrides the sender in the provider's settings; null: doesn't. */
  readonly senderId: string | null
  readonly validitySeconds: number | null
  /** Where this provider may report what became of this attempt; null: nowhere. */
  readonly callbackUrl: string | null
}

/**
 * What a provider made of a message, in the words that routing goes by.
 *
 * - `accepted`: it will carry it. `vendorId` is its own name for the message, where it gives one.
 * - `rejected`: it will not, and asking again would not help. Scope `recipient`: no way leads to that number. `content`:
 *   this text, template or sender. `account`: who we are to it (credentials, credit, permissions).
 * - `retryable`: it could not, now; another may. Nothing was sent, or the provider itself says that it failed.
 * - `unknown`: it may or may not have been taken, as after a time-out.
 *
 * `reason` is the vendor's code or the error's: no secret, no text, no recipient. `unasked` marks what we decided by
 * ourselves: the provider was not even called, and is not to blame.
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

/** A way to send SMS. `send` answers within `timeoutMs` and never throws. */
export interface SmsProvider {
  readonly name: string
  /** The URL that messages go to; undefined: they go to none. */
  readonly endpoint?: string
  send(sms: Sms, timeoutMs: number): Promise<Outcome>
  /** How it reports what became of messages; undefined: it doesn't. */
  readonly deliveryReports?: DeliveryReportReader
}

/** Reads a vendor's delivery receipts, which arrive as HTTP requests. */
export interface DeliveryReportReader {
  /**
   * What tells the message that a receipt is about. `attempt`: each message carried a URL of its own (`Sms.receiptUrl`).
   * `vendorId`: the receipt names it as the provider did when it accepted it, and comes to one URL of the provider.
   */
  readonly namedBy: 'attempt' | 'providerMessageId'
  /**
   * @throws Failure `forbidden` where the vendor's signature is wrong, `validation_error` where it is not a receipt
   */
  read(call: CallbackRequest): readonly DeliveryReport[]
  /** What the vendor wants to be answered, where it is particular; undefined: the usual envelope. */
  answer?(call: CallbackRequest, now: number): unknown
}

/** A request that a vendor made to tell of messages. */
export interface CallbackRequest {
  /** The URL as the vendor called it: under PUBLIC_URL, with its query. */
  readonly url: string
  /** Fields of the query and, where the body is a form, of that. */
  readonly fields: Readonly<Record<string, string>>
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The body as bytes. */
  readonly body: Uint8Array
}

/** News of one message. `pending` is all that is not final: on its way, buffered, being retried. */
export interface DeliveryReport {
  /** Given where receipts are named by it. */
  readonly providerMessageId?: string
  readonly status: 'delivered' | 'failed' | 'pending'
  /** The vendor's code of a failure; no text, no recipient. */
  readonly reason: string | null
}

/** One e-mail for one recipient. */
export interface Mail {
  readonly requestId: string
  readonly brandSlug: string | null
  /** The sender's name; null leaves it to the mailer. */
  readonly brandName: string | null
  readonly to: string
  /** What stands for the recipient in the store. */
  readonly recipientSubject: string
  /** Key of the template, by which the journal tells codes; null: the caller's own content. */
  readonly template: string | null
  readonly subject: string
  readonly html: string
  /** The plain text part. */
  readonly text: string
  /** Which of the request's recipients it is for, from 1; null: there is no other. */
  readonly position: number | null
}

/** A way to send e-mail. `send` answers within `timeoutMs` and never throws; `attempt` counts those of the request. */
export interface Mailer {
  readonly name: string
  send(mail: Mail, attempt: number, timeoutMs: number): Promise<Outcome>
}

/** How many segments a text takes as an SMS, and in which encoding (GSM 03.38, 3GPP TS 23.038). */
export interface Segments {
  readonly count: number
  readonly encoding: 'GSM-7' | 'UCS-2'
}
