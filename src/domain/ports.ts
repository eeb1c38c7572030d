import type { Channel } from './contact.ts'
import type { SmsRoute } from './messages/providers.ts'

/** The time in epoch milliseconds. */
export type Clock = () => number

/** The log of the process: JSON lines of these fields and this message. */
export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

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
  newApiKey(): ApiKey
  /**
   * What records of a recipient or an IP address are stored under: 132 bits of a keyed hash, in base64url, under the present
   * secret key and then each previous one.
   */
  subjects(kind: 'SMS' | 'EMAIL' | 'ip', value: string): readonly [string, ...string[]]
  /**
   * What makes the URL of a receipt unguessable: 96 bits of an HMAC-SHA-256, in base64url, under the present
   * secret.
   */
  callbackToken(about: string): string
  /** Whether this is the token of it, under any of the secrets; compares in constant time. */
  isCallbackToken(about: string, token: string): boolean
}

/** A new API key: `otp_live_`, 256 random bits and a checksum, by which those who search for leaked keys know it. */
export interface ApiKey {
  /** Told once and kept nowhere. */
  readonly key: string
  /** What is stored to compare with, in base64url. */
  readonly sha256: string
  /** How it ends, to tell it from others. */
  readonly lastFour: string
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
