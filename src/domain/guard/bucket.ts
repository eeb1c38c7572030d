import { isFromBeforeStep } from '../ground/ports.ts'
import { dayMs, type EpochMs, hourMs } from '../ground/time.ts'

/** Design D41: the time in which a full bucket leaks empty. Buckets of the kind `number` do not leak: they are emptied 24 hours after their first code. */
export const bucketPeriodsMs = {
  number: dayMs,
  prefix: hourMs,
  'country-hour': hourMs,
  'country-day': dayMs,
  'quiet-hour': hourMs,
  'quiet-day': dayMs,
  abroad: dayMs,
  'ip-hour': hourMs,
  'ip-day': dayMs,
  'ip-country': dayMs,
  'device-hour': hourMs,
  'device-day': dayMs,
  'device-country': dayMs,
  spared: hourMs,
  'known-country': hourMs,
  'known-ip': dayMs,
  'known-device': dayMs,
  flagged: hourMs,
} as const

/**
 * `number`, `prefix`, `country`, `ip` and `device`: of one each. `quiet`: all countries without a verified code in 14 days.
 * `abroad`: all that are not home. `spared`: codes that passed the
 * block of their prefix. `known`: codes that passed because their number verified one before. `flagged`: codes of a
 * prefix that were denied or recorded; operators see them, and no verdict depends on them.
 */
export type BucketKind = keyof typeof bucketPeriodsMs

/** Those that have one bucket for an hour and one for a day. */
export type PairKind = 'country' | 'quiet' | ClientKind

/** What the end user's request comes from. */
export type ClientKind = 'ip' | 'device'

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

/**
 * An attacker tries the same prefixes again and again, and would take each unit that leaks from a full bucket of a
 * country. So prefixes with this many suspects may fill this part of the bucket. The rest is for users with numbers of other
 * prefixes.
 */
const manySuspects = 2
export const shareOfSuspected = 2 / 3
/** What time may take from the suspects: two remain two for ten hours, and one remains one for a day. */
const suspectLoss = 0.5
/** Of a prefix, in the memory of its bucket: below, no user verified a code lately. */
const leastVerified = 0.25

/** A bucket as one process stored it. */
export interface BucketRow {
  readonly kind: BucketKind
  /** E.164 digits without the last four, ISO 3166-1 code, a keyed hash, or the latter two with a space. Empty: of all. */
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
  const { kind, updatedAt } = bucket
  // Then `updatedAt` is when it was empty last.
  if (now === updatedAt || (kind === 'number' && now > updatedAt && now < updatedAt + dayMs)) return
  bucket.updatedAt = now
  if (now < updatedAt) return
  bucket.level = leaked(kind, bucket.level, threshold, updatedAt, now)
  const kept = keptShare(kind, updatedAt, now)
  // Own counts of all processes add up only if each forgets by time alone.
  const keptHere =
    bucket.sent > manyCodes
      ? Math.max(halved(now - updatedAt, memoryOfManyMs), Math.min(kept, manyCodes / bucket.sent))
      : kept
  bucket.sent *= keptHere
  bucket.verified *= keptHere
  bucket.suspects *= kept
  bucket.ownSent *= kept
  bucket.ownVerified *= kept
}

function leaked(kind: BucketKind, level: number, threshold: number, from: EpochMs, to: EpochMs): number {
  if (kind === 'number') return 0
  return Math.max(0, level - (threshold * Math.max(0, to - from)) / bucketPeriodsMs[kind])
}

/** Of counts, how much a process remembers. */
function keptShare(kind: BucketKind, from: EpochMs, to: EpochMs): number {
  if (kind === 'number') return 0
  return halved(Math.max(0, to - from), kind === 'flagged' ? memoryOfFlaggedMs : memoryMs)
}

function halved(elapsedMs: number, halfLifeMs: number): number {
  return 2 ** (-elapsedMs / halfLifeMs)
}

/** Of the codes of a row, those that were not verified. */
export function unverifiedAt({ kind, sent, verified, updatedAt }: BucketRow, now: EpochMs): number {
  return Math.max(0, sent - verified) * keptShare(kind, updatedAt, now)
}

/** Absorbs rounding errors; less than what leaks in 10 ms. */
const tolerance = 1e-6

/** Whether one more unverified code than `most` is too many. */
export function isFull(bucket: Bucket, most: number): boolean {
  return hasReached(bucket, most) && isMostlyUnverified(bucket)
}

export function hasReached({ level }: Bucket, most: number): boolean {
  return level + 1 > most + tolerance
}

/**
 * Whether at least half of the codes are unverified: two thirds in buckets of 15 codes or more, with a transition from
 * 10. Otherwise the first minutes of a launch, with most codes still pending, would close a bucket of genuine traffic.
 * The bucket of all countries abroad denies only to countries with many unverified codes, so that half is enough there.
 */
export function isMostlyUnverified({ kind, sent, verified }: Bucket): boolean {
  const least = kind === 'abroad' ? sent / 2 : sent / 3
  return verified <= Math.max(Math.min(sent / 2, 5), least) + tolerance
}

/** Whether a user of the prefix verified a code lately. */
export function isUsed(prefix: Bucket): boolean {
  return prefix.verified >= leastVerified
}

/** Whether the prefix may fill only a part of the bucket of its country. It must be advanced. */
export function hasSuspects({ suspects }: Bucket): boolean {
  return suspects >= manySuspects - suspectLoss
}

/** Whether several codes and no verified one were sent to the prefix lately. It must be advanced. */
export function isUnused(prefix: Bucket): boolean {
  return !isUsed(prefix) && prefix.sent - prefix.verified >= manySuspects - suspectLoss
}

/** Milliseconds until a bucket that is full to `most` accepts a code. */
export function resetsInMs({ kind, level }: Bucket, threshold: number, most: number): number {
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

/**
 * One code verified.
 * @param rise by how much the code raised the level
 * @param isCredited otherwise it counts as if it was never sent
 */
export function drain(bucket: Bucket, rise: number, isCredited: boolean): void {
  bucket.level = Math.max(0, bucket.level - rise)
  if (isCredited) {
    bucket.verified++
    bucket.ownVerified++
  } else unsend(bucket)
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
  unsend(bucket)
}

function unsend(bucket: Bucket): void {
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
  const kept = last ? keptShare(row.kind, last.updatedAt, row.updatedAt) : 0
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
  const kept = keptShare(row.kind, row.updatedAt, now)
  bucket.level = Math.max(bucket.level, leaked(row.kind, row.level, threshold, row.updatedAt, now))
  bucket.sent += row.sent * kept
  bucket.verified += row.verified * kept
}

export function rowOf(bucket: Bucket, node: string): BucketRow {
  const { kind, key, level, ownSent, ownVerified, updatedAt } = bucket
  return { kind, key, node, level, sent: ownSent, verified: ownVerified, updatedAt }
}
