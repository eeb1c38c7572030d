import type { EpochMs } from './time.ts'

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
