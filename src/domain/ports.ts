import type { Channel } from './contact.ts'
import type { Operation } from './journal.ts'

/** The time in epoch milliseconds. */
export type Clock = () => number

/**
 * How far the clock may be behind what the store tells of it: requests overtake each other, also between processes. What
 * lies further ahead is from before the clock was set back. A code of that time is over, since its life can't be told any
 * more; a window is cut to its length from now.
 */
export const clockToleranceMs = 5000

/**
 * Randomness and keyed hashing; the server's secrets stay behind it. While a secret is being replaced there are two: the
 * first one makes hashes, and what former ones made is still recognized.
 */
export interface Secrets {
  /** A random UUID, version 4. */
  newId(): string
  /** Six digits, uniform over 000000 to 999999, from a cryptographic source. */
  newCode(): string
  /** The id of a new record: 128 random bits, in base64url. */
  newRecordId(): string
  /**
   * HMAC-SHA-256 of a code for its owner, in base64url, under the present secret and then each former one. It is never
   * stored.
   */
  keyedCodes(owner: CodeOwner, code: string): readonly [string, ...string[]]
  /** What a record stores of a keyed code: SHA-256 over the record's id and it, in base64url. */
  saltedHash(recordId: string, keyedCode: string): string
  /** A new API key and what is stored of it. */
  newApiKey(): { readonly key: string; readonly sha256: string }
  /**
   * A keyed hash that stands for a recipient or a network address in the store, in base64url, under the present secret
   * and then each former one.
   */
  subjects(kind: 'SMS' | 'EMAIL' | 'ip', value: string): readonly [string, ...string[]]
  /**
   * What makes the URL of a receipt unguessable: 96 bits of an HMAC-SHA-256, in base64url, under the present secret and
   * then each former one.
   */
  receiptTokens(about: string): readonly [string, ...string[]]
}

/** Whom a code is for: bound to that, its hash is worth nothing in another row. */
export interface CodeOwner {
  readonly brandSlug: string
  readonly channel: Channel
  /** The recipient in its normal form. */
  readonly identity: string
}

/** What an application's key is compared with. */
export interface Apps {
  /** Whether this pair was issued and is not revoked; compares in constant time, known appId or not. */
  accepts(appId: string, apiKey: string): Promise<boolean>
}

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
  readonly receiptUrl: string | null
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
 * `reason` is the vendor's code or the error's: no secret, no text, no recipient.
 */
export type Outcome =
  | { readonly kind: 'accepted'; readonly vendorId?: string }
  | { readonly kind: 'rejected'; readonly scope: RejectionScope; readonly reason: string }
  | { readonly kind: 'retryable'; readonly reason: string }
  | { readonly kind: 'unknown'; readonly reason: string; readonly vendorId?: string }

export type RejectionScope = 'recipient' | 'content' | 'account'

/** A way to send SMS. `send` answers within `timeoutMs` and never throws. */
export interface SmsProvider {
  readonly name: string
  send(sms: Sms, timeoutMs: number): Promise<Outcome>
  /** How it reports what became of messages; undefined: it doesn't. */
  readonly receipts?: ReceiptReader
}

/** Reads a vendor's delivery receipts, which arrive as HTTP requests. */
export interface ReceiptReader {
  /**
   * What tells the message that a receipt is about. `attempt`: each message carried a URL of its own (`Sms.receiptUrl`).
   * `vendorId`: the receipt names it as the provider did when it accepted it, and comes to one URL of the provider.
   */
  readonly namedBy: 'attempt' | 'vendorId'
  /**
   * @throws Failure `forbidden` where the vendor's signature is wrong, `validation_error` where it is not a receipt
   */
  read(call: ReceiptCall): readonly Receipt[]
  /** What the vendor wants to be answered, where it is particular; undefined: the usual envelope. */
  answer?(call: ReceiptCall, now: number): unknown
}

/** A request that a vendor made to tell of messages. */
export interface ReceiptCall {
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
export interface Receipt {
  /** Given where receipts are named by it. */
  readonly vendorId?: string
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

/** One provider call of a request, or one that was not made; a row of the delivery log. */
export interface Attempt {
  /** Counts those of the request, from 1. */
  readonly attempt: number
  /** When it began, epoch milliseconds. */
  readonly at: number
  readonly channel: Channel
  readonly route: SmsRoute | null
  readonly provider: string
  /** Key of the template. */
  readonly template: string | null
  /** Masked. */
  readonly recipient: string
  /** Which of the request's recipients it is, from 1, since masks may be alike; null: there is no other. */
  readonly position: number | null
  /** Keyed hash. */
  readonly recipientSubject: string
  readonly segments: Segments | null
  /** `skipped`: its circuit breaker was open, and there was another to ask. */
  readonly outcome: Outcome['kind'] | 'skipped'
  readonly errorClass: RejectionScope | 'retryable' | 'unknown' | null
  readonly reason: string | null
  readonly vendorId: string | null
  /** What a receipt names it by; null: none is expected. */
  readonly receiptKey: string | null
  readonly durationMs: number
  /** What a provider threw that should have answered; for the log line. */
  readonly error?: unknown
}

/**
 * One request on its way through the domain. `trail` collects what the log line and the story may say of it: no key, no
 * code, no full recipient, no text.
 */
export interface Call {
  readonly requestId: string
  /** When it came, epoch milliseconds. */
  readonly at: number
  readonly clientIp: string
  readonly trail: Trail
}

export interface Trail {
  operation?: Operation
  app?: string
  brand?: string
  channel?: Channel
  recipient?: string
  recipients?: number
  /** What went wrong and did not change the answer. */
  fault?: unknown
  /** Where the limits stood that judged it. */
  readonly limits: Standing[]
  /** How many attempts have begun. */
  begun: number
  readonly attempts: Attempt[]
}

/** Where a limit stood when it judged a request. */
export interface Standing {
  readonly limit: string
  readonly max: number
  /** Counted requests, this one included; null: there was room, and how much is not known. */
  readonly used: number | null
  /** Epoch milliseconds at which its window ends; null: not known. */
  readonly endsAt: number | null
  /** Whether it is what refused the request. */
  readonly refused: boolean
}

/** A message that the outbox holds for the developer, as the outbox page and its JSON show it. */
export interface OutboxMessage {
  readonly channel: Channel
  /** E.164 digits, or a mail address. */
  readonly to: string
  readonly route: SmsRoute | null
  readonly brandId: string | null
  readonly brandName: string | null
  readonly subject: string | null
  readonly text: string
  readonly html: string | null
  readonly templateKey: string | null
  readonly variables: Readonly<Record<string, string>> | null
  readonly requestId: string
}

export interface OutboxEntry extends OutboxMessage {
  /** Increases with each message. */
  readonly id: number
  /** ISO 8601, UTC. */
  readonly createdAt: string
}

/** Which messages: of one recipient in any spelling of it, and the first `limit` after an id or, without one, the last. */
export interface OutboxQuery {
  readonly identity?: string
  readonly after?: number
  readonly limit: number
}

/** Messages kept instead of sent, for development. */
export interface Outbox {
  add(message: OutboxMessage): Promise<void>
  /** Oldest first. */
  list(query: OutboxQuery): Promise<readonly OutboxEntry[]>
  get(id: number): Promise<OutboxEntry | undefined>
  /** Like `list`, but waits up to `waitMs`, or until the signal aborts, for a first message, from any process. */
  wait(query: OutboxQuery, waitMs: number, signal: AbortSignal): Promise<readonly OutboxEntry[]>
}
