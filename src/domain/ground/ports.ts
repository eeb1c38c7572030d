import type { Channel } from './contact.ts'
import type { SmsRoute } from './providers.ts'
import type { EpochMs } from './time.ts'

export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Requests overtake each other, so stored times may be this far ahead. Later ones: the clock was set back. */
export const clockToleranceMs = 5000

/** Whether something that began at `at` began before the clock was set back. */
export function isFromBeforeStep(at: EpochMs, now: EpochMs): boolean {
  return at > now + clockToleranceMs
}

/** Hashes use the present secret key; previous keys are still accepted. */
export interface Secrets {
  newId(): string
  /** Of a request in the event log, which is in the order of these IDs. */
  newRequestId(at: EpochMs): string
  /** Six digits, uniform, from a cryptographic source. */
  newCode(): string
  /** HMAC-SHA-256 of a code for its owner under each secret key, in base64url. Stored only for review numbers. */
  keyedCodes(owner: CodeOwner, code: string): readonly [string, ...string[]]
  /** The stored hash of a keyed code: SHA-256 over the record's ID and the keyed code, in base64url. */
  saltedHash(recordId: string, keyedCode: string): string
  newApiKey(): ApiKey
  /** `whsec_` and 256 random bits in base64, as Standard Webhooks describe. */
  newWebhookSecret(): string
  /** The `webhook-id` of an event. Sorts by its time. */
  newEventId(at: EpochMs): string
  /** The hashed identifier of a recipient, IP address, device, Idempotency-Key or part of what a code is for: 132 bits in base64url, under each secret key. */
  subjects(
    kind:
      | ('SMS' | 'EMAIL' | 'mailbox' | 'ip' | 'device' | 'operator')
      | ('idempotency-key' | 'idempotency-body' | 'code-part'),
    value: string,
  ): readonly [string, ...string[]]
  /** 96 bits of an HMAC-SHA-256 in base64url, under the present secret key. */
  callbackToken(about: string): string
  /** Accepts every secret key; compares in constant time. */
  isCallbackToken(about: string, token: string): boolean
}

/** Encrypts under the secret key what must be readable later. Previous keys still decrypt. */
export interface Sealing {
  /** @param owner names the row; the text cannot be unsealed for another one */
  seal(text: string, owner: string): string
  /** Undefined if no secret key opens it. `isOld`: a previous key sealed it. */
  unseal(sealed: string, owner: string): { readonly text: string; readonly isOld: boolean } | undefined
}

/** `otp_live_`, 256 random bits, and a checksum for secret scanners. */
export interface ApiKey {
  readonly key: string
  readonly sha256: string
  readonly lastFour: string
}

/** Part of the hash, so that it is invalid in another row. */
export interface CodeOwner {
  readonly brandSlug: string
  readonly channel: Channel
  readonly to: string
}

export interface Apps {
  /** Whether the pair was issued and is not revoked; compares in constant time. Without an IP address, no use is noted. */
  accepts(appId: string, apiKey: string, clientIp?: string): boolean | Promise<boolean>
  /** The app to which the key was issued, unless it is revoked or the app is in APP_CREDENTIALS; finds it by its hash. */
  appOf(apiKey: string, clientIp: string): Promise<string | undefined>
}

export interface OutboxMessage {
  readonly channel: Channel
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
  readonly id: number
  readonly createdAt: string
}

/** The first `limit` messages after an ID, or else the last `limit`. */
export interface OutboxQuery {
  readonly to?: string
  readonly after?: number
  readonly limit: number
}

/** Development messages that are stored instead of sent. */
export interface Outbox {
  add(message: OutboxMessage): Promise<void>
  list(query: OutboxQuery): Promise<readonly OutboxEntry[]>
  get(id: number): Promise<OutboxEntry | undefined>
  /** Deletes all messages. */
  clear(): Promise<void>
  /** Like `list`, but waits up to `waitMs`, or until the signal aborts, for a message of any process. */
  wait(query: OutboxQuery, waitMs: number, signal: AbortSignal): Promise<readonly OutboxEntry[]>
}
