import { isFromBeforeStep } from '../ground/ports.ts'
import { dayMs, type EpochMs, hourMs } from '../ground/time.ts'

/** Design D41: the time in which a full bucket leaks empty. */
export const bucketPeriodsMs = {
  prefix: hourMs,
  'country-hour': hourMs,
  'country-day': dayMs,
  'ip-hour': hourMs,
  'ip-day': dayMs,
  'ip-country': dayMs,
  flagged: hourMs,
} as const

/**
 * Half-life of the counts of sent and verified codes. A long memory keeps countries with a few users a day open, and busy
 * genuine prefixes. A short memory of many codes stops attackers from hiding behind the verified codes of a country.
 * `bun run bench --only pumping` shows the effect.
 */
const memoryMs = dayMs
const memoryOfManyMs = 2 * hourMs
const manyCodes = 50
/** Of the codes of a prefix that were denied or recorded: which prefixes an attack uses now. */
const memoryOfFlaggedMs = hourMs

export type BucketKind = keyof typeof bucketPeriodsMs

export const prefixThreshold = 5
export const ipHourThreshold = 5
export const ipDayThreshold = 10
/**
 * An attacker tries the same prefixes again and again, and would take each unit that leaks from a full bucket of a
 * country. So prefixes with this many suspects may fill a part of the bucket. The rest is for users with numbers of other
 * prefixes.
 */
const manySuspects = 2
const shareOfSuspects = 2 / 3
/** What time may take from the suspects: two remain two for ten hours, and one remains one for a day. */
const suspectLoss = 0.5
/** Countries with unverified codes. */
export const ipCountriesThreshold = 3
/** Level of the bucket of one IP address and one country: above 0 for a day after an unverified code. */
export const ipCountryLevel = 1

/** Verified codes of a country. */
export interface VerifiedCounts {
  /** The most in one of the 14 days before today. */
  readonly bestDay: number
  readonly inDay: number
  readonly inHour: number
}

export interface CountryHistory extends VerifiedCounts {
  /** ISO 3166-1, or `unknownCountry`. */
  readonly country: string
}

/** The key of buckets for numbers of no country; CLDR's code for an unknown region. */
export const unknownCountry = 'ZZ'

export const noHistory: VerifiedCounts = { bestDay: 0, inDay: 0, inHour: 0 }

/** Design D41: the greatest numbers of unverified codes in a day and in an hour. */
export function countryThresholds(
  { bestDay, inDay, inHour }: VerifiedCounts,
  isAllowed: boolean,
): { readonly day: number; readonly hour: number } {
  const day = Math.max(20, 0.3 * bestDay, 0.3 * inDay)
  return { day, hour: Math.max(isAllowed ? 20 : 3, (0.2 * day) / 6, 0.2 * inHour) }
}

/** Those that do not follow the history of a country. */
export const fixedThresholds = {
  prefix: prefixThreshold,
  'ip-hour': ipHourThreshold,
  'ip-day': ipDayThreshold,
  'ip-country': ipCountryLevel,
  flagged: prefixThreshold,
} as const

/**
 * A bucket as one process stored it. `flagged` has the codes of a prefix that were denied or recorded: operators see them, and no
 * verdict depends on them.
 */
export interface BucketRow {
  readonly kind: BucketKind
  /** E.164 digits without the last four, ISO 3166-1 code, hashed IP address, or the latter two with a space. */
  readonly key: string
  readonly node: string
  /** As this process knew it: with the codes of all processes. */
  readonly level: number
  /** Codes that this process sent, and those that were verified at it; both halve in a day. */
  readonly sent: number
  readonly verified: number
  readonly updatedAt: EpochMs
}

/**
 * A leaky bucket of unverified codes: one more for a code sent, one less for a code verified. Each process has a copy
 * with the codes of all processes; `own` counts are the part that it publishes.
 */
export interface Bucket {
  readonly kind: BucketKind
  readonly key: string
  level: number
  sent: number
  verified: number
  /**
   * Of a prefix: numbers that requested codes since a bucket of the country denied one, at most `manySuspects`. Halves in
   * a day, and ends with a verified code. Other processes do not know it.
   */
  suspects: number
  /** The digits of the last of them: a user who tries again counts once. */
  lastSuspect: string
  ownSent: number
  ownVerified: number
  updatedAt: EpochMs
  isChanged: boolean
  isSaved: boolean
  /** The last row of each other process. */
  rows: Map<string, BucketRow> | undefined
}

export function newBucket(kind: BucketKind, key: string, now: EpochMs): Bucket {
  return {
    kind,
    key,
    level: 0,
    sent: 0,
    verified: 0,
    suspects: 0,
    lastSuspect: '',
    ownSent: 0,
    ownVerified: 0,
    updatedAt: now,
    isChanged: false,
    isSaved: false,
    rows: undefined,
  }
}

/** Leaks `threshold` a period, and forgets. A clock that was set back leaks nothing. */
export function advance(bucket: Bucket, threshold: number, now: EpochMs): void {
  const elapsedMs = now - bucket.updatedAt
  if (elapsedMs === 0) return
  bucket.updatedAt = now
  if (elapsedMs < 0) return
  bucket.level = leaked(bucket.kind, bucket.level, threshold, elapsedMs)
  const kept = keptShare(elapsedMs, memoryOf(bucket))
  // Own counts of all processes add up only if each forgets by time alone.
  const keptHere =
    bucket.sent > manyCodes
      ? Math.max(keptShare(elapsedMs, memoryOfManyMs), Math.min(kept, manyCodes / bucket.sent))
      : kept
  bucket.sent *= keptHere
  bucket.verified *= keptHere
  bucket.suspects *= kept
  bucket.ownSent *= kept
  bucket.ownVerified *= kept
}

function leaked(kind: BucketKind, level: number, threshold: number, elapsedMs: number): number {
  return Math.max(0, level - (threshold * elapsedMs) / bucketPeriodsMs[kind])
}

function memoryOf({ kind }: Pick<BucketRow, 'kind'>): number {
  return kind === 'flagged' ? memoryOfFlaggedMs : memoryMs
}

/** Of the codes of a row, those that were not verified. */
export function unverifiedAt({ kind, sent, verified, updatedAt }: BucketRow, now: EpochMs): number {
  return Math.max(0, sent - verified) * keptShare(Math.max(0, now - updatedAt), memoryOf({ kind }))
}

function keptShare(elapsedMs: number, halfLifeMs: number): number {
  return 2 ** (-elapsedMs / halfLifeMs)
}

/** Absorbs rounding errors; less than what leaks in 10 ms. */
const tolerance = 1e-6

/** Whether one more unverified code than `most` is too many. */
export function isFull(bucket: Bucket, most: number): boolean {
  return bucket.level + 1 > most + tolerance && isMostlyUnverified(bucket)
}

/**
 * Whether at least half of the codes are unverified: two thirds in buckets of 15 codes or more, with a transition from
 * 10. Otherwise the first minutes of a launch, with most codes still pending, would close a bucket of genuine traffic.
 */
export function isMostlyUnverified({ sent, verified }: Bucket): boolean {
  return verified <= Math.max(Math.min(sent / 2, 5), sent / 3) + tolerance
}

/** The share of the buckets of its country that a prefix may fill. The prefix must be advanced. */
export function countryShare(prefix: Bucket | undefined): number {
  const isSuspected = prefix !== undefined && prefix.suspects >= manySuspects - suspectLoss
  return isSuspected ? shareOfSuspects : 1
}

/** Milliseconds until a bucket that is full to `most` accepts a code. */
export function resetsInMs({ kind, level }: Bucket, threshold: number, most = threshold): number {
  return ((level + 1 - most) * bucketPeriodsMs[kind]) / threshold
}

/**
 * One code sent. A bucket that is full stays at `most`, so that a country which verified few codes for a while, for
 * example during a provider's outage, is open again as soon as its codes are verified.
 *
 * @returns by how much the level rose
 */
export function fill(bucket: Bucket, most: number): number {
  const before = bucket.level
  bucket.level = Math.max(before, Math.min(before + 1, most))
  bucket.sent++
  bucket.ownSent++
  return bucket.level - before
}

/** One code verified. */
export function drain(bucket: Bucket): void {
  bucket.level = Math.max(0, bucket.level - 1)
  bucket.verified++
  bucket.ownVerified++
}

/** This number of a prefix, which must be advanced, requested a code. The first suspect is one that is denied. */
export function addSuspect(prefix: Bucket, digits: string, isDenied: boolean): void {
  const isFirst = prefix.suspects < 1 - suspectLoss
  if (isFirst ? !isDenied : digits === prefix.lastSuspect) return
  prefix.lastSuspect = digits
  prefix.suspects = isFirst ? 1 : Math.min(prefix.suspects + 1, manySuspects)
}

/** One code certainly not sent, which raised the level by `rise`. */
export function unfill(bucket: Bucket, rise: number): void {
  bucket.level = Math.max(0, bucket.level - rise)
  bucket.sent = Math.max(0, bucket.sent - 1)
  bucket.ownSent = Math.max(0, bucket.ownSent - 1)
}

/** Adds what another process sent and verified since its last row. The bucket must be advanced. */
export function addRow(bucket: Bucket, row: BucketRow, most: number): void {
  bucket.rows ??= new Map()
  const last = bucket.rows.get(row.node)
  // A later row may be from before the clock was set back.
  if (last && last.updatedAt > row.updatedAt && !isFromBeforeStep(last.updatedAt, bucket.updatedAt)) return
  bucket.rows.set(row.node, row)
  const kept = last ? keptShare(Math.max(0, row.updatedAt - last.updatedAt), memoryMs) : 0
  const sent = row.sent - (last ? last.sent * kept : 0)
  const verified = row.verified - (last ? last.verified * kept : 0)
  // A part of the codes in a first row may have leaked.
  const added = Math.min(sent - verified, row.level)
  bucket.level = Math.max(0, Math.min(bucket.level + added, Math.max(bucket.level, most)))
  bucket.sent = Math.max(0, bucket.sent + sent)
  bucket.verified += verified
}

/** Like `addRow`, for rows from before this process started: each has the level of all processes. */
export function restoreRow(bucket: Bucket, row: BucketRow, threshold: number, now: EpochMs): void {
  bucket.rows ??= new Map()
  if (bucket.rows.has(row.node)) return
  bucket.rows.set(row.node, row)
  const ageMs = Math.max(0, now - row.updatedAt)
  const kept = keptShare(ageMs, memoryMs)
  bucket.level = Math.max(bucket.level, leaked(row.kind, row.level, threshold, ageMs))
  bucket.sent += row.sent * kept
  bucket.verified += row.verified * kept
}

export function rowOf(bucket: Bucket, node: string): BucketRow {
  const { kind, key, level, ownSent, ownVerified, updatedAt } = bucket
  return { kind, key, node, level, sent: ownSent, verified: ownVerified, updatedAt }
}
