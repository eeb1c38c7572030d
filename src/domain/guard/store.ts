import type { EpochMs } from '../ground/time.ts'
import type { BucketRow } from './bucket.ts'
import type { CountryHistory } from './thresholds.ts'

/** What the guards of all processes share (design D41). Rows of buckets are useless after two days. */
export interface GuardStore {
  /** Inserts or replaces by kind, key and node. At most 1,000 rows. */
  saveBuckets(rows: readonly BucketRow[]): Promise<void>
  /** Rows of other nodes with `updatedAt` of at least `since`, except of the kind `flagged`. */
  bucketsSince(since: EpochMs, exceptNode: string): Promise<readonly BucketRow[]>
  /** Inserts or replaces entries by prefix and `by`: an operator's entry and the guard's block of a prefix are two. */
  saveBlocks(blocks: readonly GuardPrefix[]): Promise<void>
  /** Entries that have not ended. The guard reads its own; `Guard.applyOperatorPrefixes` takes operators'. */
  prefixes(): Promise<readonly GuardPrefix[]>
  /** Whether the number verified a code within 180 days. `subjects`: its hashes under each secret key. */
  isVerified(subjects: readonly string[]): Promise<boolean>
  /** Countries with a verified code in the last 14 days; `unknownCountry` for numbers without a country. */
  verifiedHistory(): Promise<readonly CountryHistory[]>
}

/** Allows or blocks the numbers that begin with `prefix`, until `expiresAt` (design D41). */
export interface GuardPrefix {
  /** Digits without `+`. */
  readonly prefix: string
  readonly by: 'guard' | 'operator'
  readonly action: 'allow' | 'block'
  readonly createdAt: EpochMs
  /** Exclusive. */
  readonly expiresAt: EpochMs
}
