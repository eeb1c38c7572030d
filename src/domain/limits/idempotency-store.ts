import type { EpochMs } from '../ground/time.ts'

/** A request with an Idempotency-Key that begins (design D43). */
export interface NewKey {
  /** The keyed hash of the app, path and key; also the subject of its limit. */
  readonly hash: string
  readonly requestId: string
  readonly bodyHash: string
  /** The process that handles it. */
  readonly owner: string
  readonly expiresAt: EpochMs
}

export interface StoredKey extends NewKey {
  /** Null: in progress. */
  readonly status: number | null
  /** JSON. */
  readonly answer: string | null
}

/** The name of the limit of one that each key has. */
export const keyLimitName = 'key'

export interface IdempotencyKeys {
  /** @param hashes of one key, under each secret key. Undefined: never used, not kept, or expired. */
  find(hashes: readonly string[]): Promise<StoredKey | undefined>
  /** Deletes the row and its limit, unless the request has ended or another one uses the key. */
  release(key: Pick<StoredKey, 'hash' | 'requestId'>): Promise<void>
}
