import { type EpochMs, hourMs } from '../ground/time.ts'
import { type Bucket, type BucketKind, type BucketRow, newBucket, restoreRow } from './bucket.ts'
import type { CountryCodes, GuardCount, GuardPeriod, GuardTotals } from './counts.ts'
import type { GuardMode } from './guard.ts'
import type { ModeInForce } from './mode.ts'
import { type PumpingStatus, pumpingStatuses } from './pumping.ts'
import type { GuardPrefix, GuardStore } from './store.ts'
import { type CountryHistory, VerifiedHistory } from './thresholds.ts'

/** What `guard status --json` prints. Times are ISO 8601. */
export interface GuardStatus {
  readonly mode: GuardMode
  /** Null: the mode has no end. */
  readonly modeUntil: string | null
  /** The mode that follows. */
  readonly nextMode: GuardMode | null
  /** ISO 3166-1: at least a fifth of the verified codes of 14 days each. */
  readonly homeCountries: readonly string[]
  readonly blocked: readonly PrefixStatus[]
  readonly allowed: readonly PrefixStatus[]
  /** Fullest first, at most 20. */
  readonly buckets: readonly BucketStatus[]
  readonly pumping: readonly PumpingStatus[]
  /** In the last 24 hours; most unverified codes first. */
  readonly countries: readonly CountryStatus[]
  readonly lastHour: GuardTotals
  readonly last24Hours: GuardTotals
}

export interface PrefixStatus {
  /** With `+`. */
  readonly prefix: string
  /** ISO 3166-1. Null: none, or several. */
  readonly country: string | null
  readonly by: GuardPrefix['by']
  readonly since: string
  readonly until: string
  /** Unverified codes to the prefix, rounded; older codes count less. Null: of an operator's entry. */
  readonly unverified: number | null
}

export interface BucketStatus {
  readonly kind: BucketKind
  /** A prefix with `+`, a country, or the hash of an IP address. */
  readonly key: string
  /** Unverified codes, rounded to tenths, like `threshold`. */
  readonly level: number
  readonly threshold: number
}

/** In the last 24 hours. */
export interface CountryStatus extends CountryCodes, GuardTotals {
  /** From 0 to 1. Null: none was sent. */
  readonly conversion: number | null
}

/** Reads what the status shows. */
export interface GuardReader extends Pick<GuardStore, 'prefixes' | 'bucketsSince' | 'verifiedHistory'> {
  /** In the last 24 hours, unless another period is given. */
  countries(now: EpochMs, period?: 'hour'): Promise<readonly CountryCodes[]>
  /** Rows of the kind `flagged` of all nodes: the 200 with the most codes. */
  flaggedSince(since: EpochMs): Promise<readonly BucketRow[]>
  guardCounts(period: GuardPeriod, now: EpochMs): Promise<readonly GuardCount[]>
}

export interface PumpingPorts {
  readonly guard: GuardReader
  /** ISO 3166-1. Null: none, or several. */
  readonly countryOfPrefix: (digits: string) => string | null
}

const mostBuckets = 20

/**
 * @param input.prefixes expired ones may be included
 * @param input.rows of all nodes, not older than two days
 * @param input.history as the guard's store returns it
 * @param input.isAllowedCountry whether a rule allows the country
 * @param input.countryOfPrefix null: none, or several
 */
export function guardStatus(
  input: {
    readonly mode: ModeInForce
    readonly prefixes: readonly GuardPrefix[]
    readonly rows: readonly BucketRow[]
    readonly history: readonly CountryHistory[]
    readonly pumping: readonly PumpingStatus[]
    readonly countries: readonly CountryCodes[]
    readonly counts: { readonly lastHour: readonly GuardCount[]; readonly lastDay: readonly GuardCount[] }
    isAllowedCountry(country: string): boolean
    countryOfPrefix(prefix: string): string | null
  },
  now: EpochMs,
): GuardStatus {
  const { prefixes, rows, history, countries, counts } = input
  const { mode, until, next } = input.mode
  const verified = new VerifiedHistory(history, now)
  const thresholdOf = ({ kind, key }: BucketRow) =>
    verified.thresholdOf(kind, key, input.isAllowedCountry(key), now)
  const buckets = restored(rows, thresholdOf, now)
  const statusOf = ({ prefix, by, createdAt, expiresAt }: GuardPrefix): PrefixStatus => {
    const { sent = 0, verified = 0 } = buckets.get(`prefix ${prefix}`)?.bucket ?? {}
    return {
      prefix: `+${prefix}`,
      country: input.countryOfPrefix(prefix),
      by,
      since: new Date(createdAt).toISOString(),
      until: new Date(expiresAt).toISOString(),
      unverified: by === 'operator' ? null : Math.max(0, Math.round(sent - verified)),
    }
  }
  const effective = effectivePrefixes(prefixes, now)
  const statusesOf = (action: GuardPrefix['action']) =>
    effective.filter((entry) => entry.action === action).map(statusOf)
  return {
    mode,
    modeUntil: until === null ? null : new Date(until).toISOString(),
    nextMode: next,
    homeCountries: verified.homes(),
    blocked: statusesOf('block'),
    allowed: statusesOf('allow'),
    buckets: fullest(buckets),
    pumping: input.pumping,
    countries: countriesOf(countries, counts.lastDay),
    lastHour: totalsOf(counts.lastHour),
    last24Hours: totalsOf(counts.lastDay),
  }
}

/** Those that have not ended, by prefix. An operator's entry takes precedence over the guard's. */
export function effectivePrefixes(prefixes: readonly GuardPrefix[], now: EpochMs): readonly GuardPrefix[] {
  const active = prefixes.filter(({ expiresAt }) => expiresAt > now)
  const byOperator = active.filter(({ by }) => by === 'operator')
  const isOverruled = ({ by, prefix }: GuardPrefix) =>
    by === 'guard' && byOperator.some((other) => prefix.startsWith(other.prefix))
  return active
    .filter((entry) => !isOverruled(entry))
    .sort((one, other) => (one.prefix < other.prefix ? -1 : 1))
}

function countriesOf(codes: readonly CountryCodes[], counts: readonly GuardCount[]): CountryStatus[] {
  const known = new Map(codes.map((each) => [each.country, each]))
  const names = new Set([...known.keys(), ...counts.map(({ country }) => country)])
  const all = Array.from(names, (country): CountryStatus => {
    const { sent, verified } = known.get(country) ?? { sent: 0, verified: 0 }
    const totals = totalsOf(counts.filter((each) => each.country === country))
    return { country, sent, verified, conversion: sent === 0 ? null : verified / sent, ...totals }
  })
  const unverified = ({ sent, verified, denied }: CountryStatus) => sent - verified + denied
  return all.sort((one, other) => unverified(other) - unverified(one))
}

function totalsOf(counts: readonly GuardCount[]): GuardTotals {
  const sumOf = (verdict: GuardCount['verdict']) =>
    counts.reduce((sum, each) => sum + (each.verdict === verdict ? each.count : 0), 0)
  return { denied: sumOf('denied'), recorded: sumOf('recorded') }
}

interface RestoredBucket {
  readonly bucket: Bucket
  readonly threshold: number
}

function restored(
  rows: readonly BucketRow[],
  thresholdOf: (row: BucketRow) => number,
  now: EpochMs,
): ReadonlyMap<string, RestoredBucket> {
  const found = new Map<string, RestoredBucket>()
  for (const row of rows) {
    const name = `${row.kind} ${row.key}`
    const known = found.get(name) ?? {
      bucket: newBucket(row.kind, row.key, now),
      threshold: thresholdOf(row),
    }
    found.set(name, known)
    restoreRow(known.bucket, row, known.threshold, now)
  }
  return found
}

function fullest(buckets: ReadonlyMap<string, RestoredBucket>): BucketStatus[] {
  return [...buckets.values()]
    .filter(({ bucket: { kind, level } }) => kind !== 'ip-country' && kind !== 'device-country' && level > 0)
    .sort((one, other) => other.bucket.level / other.threshold - one.bucket.level / one.threshold)
    .slice(0, mostBuckets)
    .map(({ bucket: { kind, key, level }, threshold }) => {
      return {
        kind,
        key: kind === 'prefix' || kind === 'spared' ? `+${key}` : key,
        level: tenths(level),
        threshold: tenths(threshold),
      }
    })
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10
}

/** Without a query if the guard has found nothing in the last hour. */
export async function readPumping(
  { guard, countryOfPrefix }: PumpingPorts,
  prefixes: readonly GuardPrefix[],
  counts: readonly GuardCount[],
  now: EpochMs,
  isOfAttack?: (count: GuardCount) => boolean,
): Promise<readonly PumpingStatus[]> {
  if (counts.length === 0) return []
  const [recent, codes, flagged] = await Promise.all([
    guard.guardCounts('lately', now),
    guard.countries(now, 'hour'),
    guard.flaggedSince(now - hourMs),
  ])
  const input = {
    counts,
    recent,
    codes,
    flagged,
    prefixes: effectivePrefixes(prefixes, now),
    countryOfPrefix,
  }
  return pumpingStatuses(input, now, isOfAttack)
}
