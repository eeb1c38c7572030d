import type { Channel } from './contact.ts'
import type { SmsRoute } from './messages/providers.ts'

/** The time in epoch milliseconds. */
export type Clock = () => number

export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/**
 * How far ahead of `now` a stored time may be: requests overtake each other, also between processes. A time further ahead
 * is from before the clock was set back: its code is void, its window is shortened to its length from now.
 */
export const clockToleranceMs = 5000

/** Randomness and keyed hashing under the secret keys: the present one makes hashes, previous ones are still accepted. */
export interface Secrets {
  newId(): string
  /** Six digits, uniform, from a cryptographic source. */
  newCode(): string
  /** 128 random bits in base64url. */
  newRecordId(): string
  /** HMAC-SHA-256 of a code for its owner, in base64url, under the present and each previous secret key. Never stored. */
  keyedCodes(owner: CodeOwner, code: string): readonly [string, ...string[]]
  /** The stored hash of a keyed code: SHA-256 over the record's id and it, in base64url. */
  saltedHash(recordId: string, keyedCode: string): string
  newApiKey(): ApiKey
  /** The stored identifier of a recipient or IP address: 132 bits of a keyed hash, in base64url, under each secret key. */
  subjects(kind: 'SMS' | 'EMAIL' | 'ip', value: string): readonly [string, ...string[]]
  /** The unguessable part of a callback URL: 96 bits of an HMAC-SHA-256, in base64url, under the present secret key. */
  callbackToken(about: string): string
  /** Checks a token under every secret key in constant time. */
  isCallbackToken(about: string, token: string): boolean
}

/** A new API key: `otp_live_`, 256 random bits, and a checksum for secret scanners. */
export interface ApiKey {
  /** Shown once and never stored. */
  readonly key: string
  /** In base64url. */
  readonly sha256: string
  readonly lastFour: string
}

/** The owner of a code. Its hash is invalid in another row. */
export interface CodeOwner {
  readonly brandSlug: string
  readonly channel: Channel
  readonly identity: string
}

export interface Apps {
  /** Whether this pair was issued and is not revoked; compares in constant time. */
  accepts(appId: string, apiKey: string): Promise<boolean>
}

export interface OutboxMessage {
  readonly channel: Channel
  /** E.164 digits, or an e-mail address. */
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
  /** ISO 8601, UTC. */
  readonly createdAt: string
}

/** The first `limit` messages after an id or, without one, the last `limit`; optionally of one recipient. */
export interface OutboxQuery {
  readonly identity?: string
  readonly after?: number
  readonly limit: number
}

/** Development messages that are stored instead of sent. */
export interface Outbox {
  add(message: OutboxMessage): Promise<void>
  /** Oldest first. */
  list(query: OutboxQuery): Promise<readonly OutboxEntry[]>
  get(id: number): Promise<OutboxEntry | undefined>
  /** Like `list`, but waits up to `waitMs` or until the signal aborts for a first message, from any process. */
  wait(query: OutboxQuery, waitMs: number, signal: AbortSignal): Promise<readonly OutboxEntry[]>
}
