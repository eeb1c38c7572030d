import type { GuardPrefix } from '../operator/policy.ts'
import type { EpochMs } from '../time.ts'
import {
  type Bucket,
  type BucketKind,
  type BucketRow,
  type CountryHistory,
  countryThresholds,
  fixedThresholds,
  newBucket,
  noHistory,
  restoreRow,
} from './bucket.ts'
import type { GuardMode } from './guard.ts'

/** What `guard status --json` prints. Times are ISO 8601. */
export interface GuardStatus {
  readonly mode: GuardMode
  readonly blocked: readonly PrefixStatus[]
  readonly allowed: readonly PrefixStatus[]
  /** Fullest first, at most 20. Keys of IP addresses are hashed. */
  readonly buckets: readonly BucketStatus[]
  readonly countries: readonly CountryStatus[]
}

export interface PrefixStatus {
  readonly prefix: string
  readonly by: GuardPrefix['by']
  readonly until: string
}

export interface BucketStatus {
  readonly kind: BucketKind
  readonly key: string
  /** Unverified codes, rounded to tenths, like `threshold`. */
  readonly level: number
  readonly threshold: number
}

/** Codes in the last 24 hours. */
export interface CountryStatus {
  readonly country: string
  readonly sent: number
  readonly verified: number
}

const mostBuckets = 20

/**
 * @param input.prefixes expired ones may be included
 * @param input.rows of all nodes, not older than two days
 * @param input.history as the guard's store returns it
 * @param input.isAllowedCountry whether a rule allows the country
 */
export function guardStatus(
  input: {
    readonly mode: GuardMode
    readonly prefixes: readonly GuardPrefix[]
    readonly rows: readonly BucketRow[]
    readonly history: readonly CountryHistory[]
    readonly countries: readonly CountryStatus[]
    isAllowedCountry(country: string): boolean
  },
  now: EpochMs,
): GuardStatus {
  const { mode, prefixes, rows, history, countries } = input
  const histories = new Map(history.map((each) => [each.country, each]))
  const thresholdOf = ({ kind, key }: BucketRow) => {
    if (kind !== 'country-hour' && kind !== 'country-day') return fixedThresholds[kind]
    const { hour, day } = countryThresholds(histories.get(key) ?? noHistory, input.isAllowedCountry(key))
    return kind === 'country-hour' ? hour : day
  }
  // An operator's entry takes precedence over the guard's.
  const active = prefixes.filter(({ expiresAt }) => expiresAt > now)
  const isOverruled = ({ by, prefix }: GuardPrefix) =>
    by === 'guard' && active.some((other) => other.by === 'operator' && prefix.startsWith(other.prefix))
  const effective = active
    .filter((entry) => !isOverruled(entry))
    .sort((one, other) => one.prefix.localeCompare(other.prefix))
  const statusOf = ({ prefix, by, expiresAt }: GuardPrefix) => ({
    prefix,
    by,
    until: new Date(expiresAt).toISOString(),
  })
  return {
    mode,
    blocked: effective.filter(({ action }) => action === 'block').map(statusOf),
    allowed: effective.filter(({ action }) => action === 'allow').map(statusOf),
    buckets: fullest(rows, thresholdOf, now),
    countries: countries.toSorted((one, other) => other.sent - other.verified - (one.sent - one.verified)),
  }
}

function fullest(
  rows: readonly BucketRow[],
  thresholdOf: (row: BucketRow) => number,
  now: EpochMs,
): BucketStatus[] {
  const found = new Map<string, { readonly bucket: Bucket; readonly threshold: number }>()
  for (const row of rows) {
    if (row.kind === 'ip-country') continue
    const name = `${row.kind} ${row.key}`
    const known = found.get(name) ?? {
      bucket: newBucket(row.kind, row.key, now),
      threshold: thresholdOf(row),
    }
    found.set(name, known)
    restoreRow(known.bucket, row, known.threshold, now)
  }
  return [...found.values()]
    .filter(({ bucket }) => bucket.level > 0)
    .sort((one, other) => other.bucket.level / other.threshold - one.bucket.level / one.threshold)
    .slice(0, mostBuckets)
    .map(({ bucket: { kind, key, level }, threshold }) => {
      return { kind, key, level: tenths(level), threshold: tenths(threshold) }
    })
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10
}
