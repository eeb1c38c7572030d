import { isFromBeforeStep, type Log } from '../ground/ports.ts'
import { type Clock, dayMs, type EpochMs, hourMs } from '../ground/time.ts'
import {
  addRow,
  addSuspect,
  advance,
  type Bucket,
  type BucketKind,
  type BucketRow,
  bucketPeriodsMs,
  countryShare,
  countryThresholds,
  drain,
  fill,
  fixedThresholds,
  ipCountriesThreshold,
  ipCountryLevel,
  ipDayThreshold,
  ipHourThreshold,
  isFull,
  isMostlyUnverified,
  newBucket,
  noHistory,
  prefixThreshold,
  resetsInMs,
  restoreRow,
  rowOf,
  unfill,
  unknownCountry,
  type VerifiedCounts,
} from './bucket.ts'
import type { GuardPrefix, GuardStore } from './store.ts'

export type GuardMode = 'off' | 'record' | 'deny'

export interface GuardPorts {
  readonly store: GuardStore
  readonly now: Clock
  readonly log: Log
  readonly mode: GuardMode
  /** Unique for each process, also after a restart. */
  readonly node: string
}

/** A code that is about to be sent by SMS. */
export interface GuardedSend {
  /** E.164, without `+`. */
  readonly to: string
  /** ISO 3166-1; null for numbers of no country. */
  readonly country: string | null
  /** The hashed IP address of the end user. */
  readonly ip: string | null
  /** Whether a rule allows the country: SMS_COUNTRIES or `destination set`. */
  readonly isAllowedCountry: boolean
}

export const guardReasons = [
  'blocked-prefix',
  'prefix',
  'ip-hour',
  'ip-day',
  'ip-countries',
  'country-hour',
  'country-day',
] as const

/** Why a code is denied. */
export type GuardReason = (typeof guardReasons)[number]

export interface GuardVerdict {
  readonly bucket: GuardReason
  /** Of the bucket; for a suspected prefix, the part of it that the prefix may fill. */
  readonly threshold: number
  /** Unverified codes in the bucket, or countries. */
  readonly level: number
  /** At least 1,000. */
  readonly resetsInMs: number
  /** False: mode `record`, and no operator has blocked the prefix. */
  readonly isDenied: boolean
  readonly byOperator: boolean
}

type Judgement = Omit<GuardVerdict, 'isDenied' | 'byOperator'>

export interface GuardPass {
  /** Set if the code is denied, or would be denied in mode `record`. Call `admit` or `confirm` then. */
  readonly verdict: GuardVerdict | null
  /** The number verified within 180 days: its code counts like others, and the verdict is removed. */
  admit(): void
  /** The code was denied or, in mode `record`, sent. Not if a limit rejected the request. */
  confirm(): void
  /** Call it if the code was certainly not sent. */
  undo(): void
}

const blockMs = 12 * hourMs
const syncIntervalMs = 5000
const historyIntervalMs = 60_000
/** The clocks of the nodes may differ by this much. */
const clockDifferenceMs = 30_000
const mostRowsPerSync = 1000
const leastSharedLevel = 2
const mostBuckets = 50_000
const mostCodes = 50_000
const longestCodeMs = 600_000
const roundingErrorMs = 0.001

interface Country {
  readonly hour: Bucket
  readonly day: Bucket
  isAllowed: boolean
  history: VerifiedCounts
  /** Codes verified here since `history` was read. */
  verifiedSince: number
}

interface Ip {
  readonly hour: Bucket
  readonly day: Bucket
  readonly countries: Map<string, Bucket>
}

interface Block {
  createdAt: EpochMs
  expiresAt: EpochMs
  /** Codes of the prefix that were verified since; each allows one more. */
  verified: number
  isSaved: boolean
}

/** A code whose verification does not simply drain the buckets of its prefix and country. */
interface RememberedCode {
  readonly ip: string | null
  readonly isFilled: boolean
}

/** What a code changed. */
interface Filled {
  /** Buckets, and by how much the level of each rose. */
  readonly rises: readonly (readonly [Bucket, number])[]
  /** The block that it passed with one of its verified codes. */
  readonly block: Block | undefined
}

const unguarded: GuardPass = { verdict: null, admit() {}, confirm() {}, undo() {} }

/**
 * Limits unverified codes per prefix, country and end-user IP address (design D41).
 *
 * Each process judges in memory and exchanges its buckets with the others every 5 s. N processes send at most N ×
 * threshold unverified codes to a bucket before each of them knows that it is full: at most one interval to write, and
 * one to read.
 */
export class Guard {
  private readonly prefixes = new Map<string, Bucket>()
  /** By prefix: codes that were denied or recorded by this process. */
  private readonly flagged = new Map<string, Bucket>()
  private readonly countries = new Map<string, Country>()
  private readonly ips = new Map<string, Ip>()
  /** By recipient; two generations, so that the oldest are dropped at once. */
  private codes = new Map<string, RememberedCode>()
  private olderCodes: Map<string, RememberedCode> = new Map()
  private codesSince = Number.NEGATIVE_INFINITY
  private blocks = new Map<string, Block>()
  private operatorEntries: readonly GuardPrefix[] = []
  private operatorPrefixes = new Map<string, GuardPrefix>()
  /** Of operators' prefixes, longest first. */
  private operatorLengths: readonly number[] = []
  private changed: Bucket[] = []
  private historyReadAt = Number.NEGATIVE_INFINITY
  private bucketsReadAt: EpochMs | undefined
  private syncedAt = Number.NEGATIVE_INFINITY
  private syncing: Promise<void> | undefined
  private isSavingBlocks = false

  constructor(private readonly ports: GuardPorts) {}

  /** Judges a code, and counts it unless it is denied. */
  enter(send: GuardedSend): GuardPass {
    if (this.ports.mode === 'off') return unguarded
    const now = this.ports.now()
    this.syncWhenDue(now)
    const operator = this.operatorEntry(send.to, now)
    if (operator?.action === 'allow') return unguarded
    const prefix = prefixOf(send.to)
    const verdict = operator
      ? {
          bucket: 'blocked-prefix' as const,
          threshold: prefixThreshold,
          level: 0,
          resetsInMs: operator.expiresAt - now,
        }
      : this.judge(send, prefix, now)
    if (verdict === null) return new Pass(this, send, null, this.fill(send, prefix, now, false))
    const resetsInMs = verdict.bucket === 'prefix' ? blockMs : verdict.resetsInMs
    const rounded = Math.max(1000, Math.ceil(resetsInMs - roundingErrorMs))
    const byOperator = operator !== undefined
    const isDenied = byOperator || this.ports.mode === 'deny'
    return new Pass(this, send, { ...verdict, resetsInMs: rounded, isDenied, byOperator }, undefined)
  }

  /** A code was verified: drains what it filled. */
  verified({ to, country }: { readonly to: string; readonly country: string | null }): void {
    if (this.ports.mode === 'off') return
    const now = this.ports.now()
    this.syncWhenDue(now)
    const code = this.forget(to)
    const key = prefixOf(to)
    const prefix = this.prefixes.get(key)
    if (prefix) prefix.suspects = 0
    const flagged = this.flagged.get(key)
    if (code?.isFilled === false && flagged) this.drain(flagged, prefixThreshold, now)
    if (code?.isFilled === false || this.operatorEntry(to, now)?.action === 'allow') return
    if (prefix) this.drain(prefix, prefixThreshold, now)
    const block = this.blocks.get(key)
    if (block) block.verified++
    const found = this.countryOf(country, now)
    found.verifiedSince++
    const { hour, day } = this.thresholds(found, found.isAllowed, now)
    this.drain(found.hour, hour, now)
    this.drain(found.day, day, now)
    const ip = code?.ip ? this.ips.get(code.ip) : undefined
    if (!ip) return
    this.drain(ip.hour, ipHourThreshold, now)
    this.drain(ip.day, ipDayThreshold, now)
    const ofCountry = ip.countries.get(country ?? unknownCountry)
    if (ofCountry) this.drain(ofCountry, ipCountryLevel, now)
  }

  /** Replaces operators' entries. Others are ignored. Cheap if the array is the same as before. */
  applyOperatorPrefixes(entries: readonly GuardPrefix[]): void {
    if (entries === this.operatorEntries) return
    this.operatorEntries = entries
    const byOperator = entries.filter(({ by }) => by === 'operator')
    this.operatorPrefixes = new Map(byOperator.map((entry) => [entry.prefix, entry]))
    this.operatorLengths = [...new Set(byOperator.map(({ prefix }) => prefix.length))].sort((a, b) => b - a)
  }

  /**
   * Exchanges buckets and blocks with the store: call it once before the first send. Failures are logged, and the next
   * call tries again.
   */
  sync(): Promise<void> {
    if (this.ports.mode === 'off') return Promise.resolve()
    const previous = this.syncing ?? Promise.resolve()
    const current = previous.then(() => this.exchange())
    this.syncing = current
    return current.finally(() => {
      if (this.syncing === current) this.syncing = undefined
    })
  }

  /** Of `GuardPass`. */
  admitted(send: GuardedSend): Filled {
    return this.fill(send, prefixOf(send.to), this.ports.now(), true)
  }

  /** Of `GuardPass`. */
  confirmed(send: GuardedSend, { bucket, isDenied, byOperator }: GuardVerdict): void {
    const now = this.ports.now()
    // A verified code that was not counted must not drain the buckets.
    if (!isDenied) this.remember(send, now, false)
    const prefix = prefixOf(send.to)
    if (!byOperator) {
      const flagged = bucketIn(this.flagged, 'flagged', prefix, now)
      advance(flagged, prefixThreshold, now)
      fill(flagged, prefixThreshold)
      this.markChanged(flagged)
    }
    if (bucket === 'country-hour' || bucket === 'country-day') {
      const suspected = bucketIn(this.prefixes, 'prefix', prefix, now)
      advance(suspected, prefixThreshold, now)
      addSuspect(suspected, send.to, true)
    }
    if (bucket !== 'prefix') return
    const known = this.prefixes.get(prefix)
    if (!known) return
    advance(known, prefixThreshold, now)
    // Limits may have rejected concurrent requests that filled it.
    if (isFull(known, prefixThreshold)) this.block(prefix, now)
  }

  /** Of `GuardPass`. */
  undone({ block, rises }: Filled): void {
    if (block) block.verified++
    for (const [bucket, rise] of rises) {
      unfill(bucket, rise)
      this.markChanged(bucket)
    }
  }

  /**
   * Call it every second, so that buckets are stored also if no further request arrives, and blocks keep their length after the clock was
   * set back.
   */
  tick(): void {
    const now = this.ports.now()
    if (this.changed.length > 0 || isFromBeforeStep(this.syncedAt, now)) this.syncWhenDue(now)
  }

  private syncWhenDue(now: EpochMs): void {
    const sinceMs = now - this.syncedAt
    if (this.syncing === undefined && (sinceMs >= syncIntervalMs || sinceMs < 0)) void this.sync()
  }

  private operatorEntry(digits: string, now: EpochMs): GuardPrefix | undefined {
    for (const length of this.operatorLengths) {
      const entry = this.operatorPrefixes.get(digits.slice(0, length))
      if (entry && entry.expiresAt > now) return entry
    }
    return undefined
  }

  private judge(send: GuardedSend, key: string, now: EpochMs): Judgement | null {
    const prefix = this.prefixes.get(key)
    if (prefix) advance(prefix, prefixThreshold, now)
    const block = this.blockOf(key, now)
    if (block && block.verified === 0 && (prefix === undefined || isMostlyUnverified(prefix))) {
      const level = prefix?.level ?? 0
      return {
        bucket: 'blocked-prefix',
        threshold: prefixThreshold,
        level,
        resetsInMs: block.expiresAt - now,
      }
    }
    if (prefix && isFull(prefix, prefixThreshold)) return verdictOf('prefix', prefix, prefixThreshold)
    const ip = send.ip === null ? undefined : this.ips.get(send.ip)
    const byIp = ip && judgeIp(ip, send.country ?? unknownCountry, now)
    return byIp ?? this.judgeCountry(send, countryShare(prefix), now)
  }

  private judgeCountry(
    { country, isAllowedCountry }: GuardedSend,
    share: number,
    now: EpochMs,
  ): Judgement | null {
    const found = this.countries.get(country ?? unknownCountry)
    if (!found) return null
    const { hour, day } = this.thresholds(found, isAllowedCountry, now)
    advance(found.hour, hour, now)
    advance(found.day, day, now)
    if (isFull(found.hour, hour * share)) return verdictOf('country-hour', found.hour, hour, share)
    if (isFull(found.day, day * share)) return verdictOf('country-day', found.day, day, share)
    return null
  }

  private thresholds(country: Country, isAllowed: boolean, now: EpochMs): { day: number; hour: number } {
    const { history, verifiedSince } = country
    const ageMs = now - this.historyReadAt
    const inDay = (ageMs < dayMs ? history.inDay : 0) + verifiedSince
    const inHour = (ageMs < hourMs ? history.inHour : 0) + verifiedSince
    return countryThresholds({ bestDay: history.bestDay, inDay, inHour }, isAllowed)
  }

  private fill(send: GuardedSend, prefix: string, now: EpochMs, isVerifiedNumber: boolean): Filled {
    this.remember(send, now, true)
    const known = this.prefixes.get(prefix)
    if (known && !isVerifiedNumber) addSuspect(known, send.to, false)
    const rises = this.bucketsOf(send, prefix, now)
    for (const pair of rises) {
      const [bucket, threshold] = pair
      advance(bucket, threshold, now)
      // Its verification drains one, also from a full bucket.
      const isOver = isVerifiedNumber && bucket.kind !== 'ip-country'
      pair[1] = fill(bucket, isOver ? Number.POSITIVE_INFINITY : threshold)
      this.markChanged(bucket)
    }
    const block = this.blocks.get(prefix)
    if (!block || block.verified === 0) return { rises, block: undefined }
    block.verified--
    return { rises, block }
  }

  /** The buckets that a code fills, with their thresholds. Creates them. */
  private bucketsOf(send: GuardedSend, prefix: string, now: EpochMs): [Bucket, number][] {
    const country = this.countryOf(send.country, now)
    country.isAllowed = send.isAllowedCountry
    const { hour, day } = this.thresholds(country, send.isAllowedCountry, now)
    const buckets: [Bucket, number][] = [
      [bucketIn(this.prefixes, 'prefix', prefix, now), prefixThreshold],
      [country.hour, hour],
      [country.day, day],
    ]
    if (send.ip === null) return buckets
    const ip = this.ipOf(send.ip, now)
    buckets.push([ip.hour, ipHourThreshold], [ip.day, ipDayThreshold])
    buckets.push([ipCountryBucket(ip, send.country ?? unknownCountry, now), ipCountryLevel])
    return buckets
  }

  private drain(bucket: Bucket, threshold: number, now: EpochMs): void {
    advance(bucket, threshold, now)
    drain(bucket)
    this.markChanged(bucket)
  }

  private markChanged(bucket: Bucket): void {
    if (bucket.isChanged) return
    bucket.isChanged = true
    this.changed.push(bucket)
  }

  private countryOf(code: string | null, now: EpochMs): Country {
    const key = code ?? unknownCountry
    const known = this.countries.get(key)
    if (known) return known
    const country = {
      hour: newBucket('country-hour', key, now),
      day: newBucket('country-day', key, now),
      isAllowed: false,
      history: noHistory,
      verifiedSince: 0,
    }
    this.countries.set(key, country)
    return country
  }

  private ipOf(key: string, now: EpochMs): Ip {
    const known = this.ips.get(key)
    if (known) return known
    const hour = newBucket('ip-hour', key, now)
    const ip = { hour, day: newBucket('ip-day', key, now), countries: new Map<string, Bucket>() }
    dropEmptiest(this.ips, ({ day }) => levelAt(day, now))
    this.ips.set(key, ip)
    return ip
  }

  /** Remembers what `verified` cannot know: the IP address, and whether the code was counted. */
  private remember({ to, ip }: GuardedSend, now: EpochMs, isFilled: boolean): void {
    this.forget(to)
    if (ip === null && isFilled) return
    if (this.codes.size >= mostCodes / 2 || now - this.codesSince >= longestCodeMs) {
      this.olderCodes = this.codes
      this.codes = new Map()
      this.codesSince = now
    }
    this.codes.set(to, { ip, isFilled })
  }

  private forget(to: string): RememberedCode | undefined {
    const code = this.codes.get(to) ?? this.olderCodes.get(to)
    if (code) {
      this.codes.delete(to)
      this.olderCodes.delete(to)
    }
    return code
  }

  private blockOf(prefix: string, now: EpochMs): Block | undefined {
    const block = this.blocks.get(prefix)
    if (block && block.expiresAt <= now) {
      this.blocks.delete(prefix)
      return undefined
    }
    return block
  }

  private block(prefix: string, now: EpochMs): void {
    if (this.blockOf(prefix, now)) return
    this.blocks.set(prefix, { createdAt: now, expiresAt: now + blockMs, verified: 0, isSaved: false })
    // A crash before the next exchange must not end it.
    if (!this.isSavingBlocks) void this.saveNewBlocks()
  }

  /** Blocks that begin meanwhile are saved by the next call, or by the next exchange. */
  private async saveNewBlocks(): Promise<void> {
    this.isSavingBlocks = true
    try {
      await this.saveBlocks()
    } catch (error) {
      this.ports.log.warn(
        { err: error },
        'The pumping guard could not store the block of a prefix. It retries in 5 s.',
      )
    }
    this.isSavingBlocks = false
  }

  private async exchange(): Promise<void> {
    const { store, node, log } = this.ports
    const now = this.ports.now()
    // An unused bucket would otherwise not leak until the clock has caught up.
    if (isFromBeforeStep(this.syncedAt, now))
      for (const bucket of this.buckets()) advance(bucket, this.thresholdOf(bucket, now), now)
    this.syncedAt = now
    try {
      await this.saveBuckets(now)
      const entries = await store.prefixes()
      this.applyBlocks(entries, now)
      await this.saveBlocks()
      await this.renewOperatorPrefixes(entries, now)
      await this.readHistory(now)
      const isFirst = this.bucketsReadAt === undefined
      const since = isFirst ? now - 2 * dayMs : Math.min(now, this.bucketsReadAt ?? now) - clockDifferenceMs
      const rows = await store.bucketsSince(since, node)
      this.bucketsReadAt = now
      for (const row of rows) this.applyRow(row, isFirst)
    } catch (error) {
      log.warn(
        { err: error },
        'The pumping guard could not exchange its buckets with the store. It retries in 5 s.',
      )
    }
  }

  private async saveBuckets(now: EpochMs): Promise<void> {
    const fullness = (bucket: Bucket) =>
      bucket.kind === 'flagged' ? 0 : bucket.level / this.thresholdOf(bucket, now)
    const candidates: Bucket[] = []
    for (const bucket of this.changed) {
      advance(bucket, this.thresholdOf(bucket, now), now)
      if (this.isShared(bucket)) candidates.push(bucket)
      else bucket.isChanged = false
    }
    if (candidates.length > mostRowsPerSync) candidates.sort((one, other) => fullness(other) - fullness(one))
    this.changed = candidates.splice(mostRowsPerSync)
    if (candidates.length === 0) return
    for (const bucket of candidates) bucket.isChanged = false
    try {
      await this.ports.store.saveBuckets(candidates.map((bucket) => rowOf(bucket, this.ports.node)))
    } catch (error) {
      for (const bucket of candidates) this.markChanged(bucket)
      throw error
    }
    for (const bucket of candidates) bucket.isSaved = true
  }

  /** Buckets of countries always: the first codes to a country without history count. */
  private isShared({ kind, key, level, isSaved }: Bucket): boolean {
    if (isSaved || kind === 'country-hour' || kind === 'country-day') return true
    const ipLevel = kind === 'ip-country' ? this.ips.get(ipOfKey(key))?.day.level : undefined
    return (ipLevel ?? level) >= leastSharedLevel
  }

  private thresholdOf({ kind, key }: Pick<BucketRow, 'kind' | 'key'>, now: EpochMs): number {
    if (kind !== 'country-hour' && kind !== 'country-day') return fixedThresholds[kind]
    const country = this.countryOf(key, now)
    const { hour, day } = this.thresholds(country, country.isAllowed, now)
    return kind === 'country-hour' ? hour : day
  }

  private async saveBlocks(): Promise<void> {
    const unsaved = [...this.blocks].filter(([, { isSaved }]) => !isSaved)
    if (unsaved.length === 0) return
    await this.ports.store.saveBlocks(
      unsaved.map(([prefix, { createdAt, expiresAt }]) => ({
        prefix,
        by: 'guard',
        action: 'block',
        createdAt,
        expiresAt,
      })),
    )
    for (const [, block] of unsaved) block.isSaved = true
  }

  /** @param readAt before the entries were read; they may lack later blocks */
  private applyBlocks(entries: readonly GuardPrefix[], readAt: EpochMs): void {
    const blocks = new Map(
      [...this.blocks].filter(([, { isSaved, createdAt }]) => !isSaved || createdAt >= readAt),
    )
    for (const { prefix, by, createdAt, expiresAt } of entries) {
      if (by === 'operator' || blocks.has(prefix)) continue
      const known = this.blocks.get(prefix)
      // Keep the object: a pass may refer to it.
      const isSame = known?.expiresAt === expiresAt
      blocks.set(prefix, isSame ? known : { createdAt, expiresAt, verified: 0, isSaved: true })
    }
    for (const block of blocks.values()) {
      if (!isFromBeforeStep(block.createdAt, readAt)) continue
      block.expiresAt = readAt + Math.min(blockMs, block.expiresAt - block.createdAt)
      block.createdAt = readAt
      block.isSaved = false
    }
    this.blocks = blocks
  }

  /** An operator's entry from before the clock was set back begins again, so that it keeps its length. */
  private async renewOperatorPrefixes(entries: readonly GuardPrefix[], now: EpochMs): Promise<void> {
    const renewed = entries
      .filter(({ by, createdAt }) => by === 'operator' && isFromBeforeStep(createdAt, now))
      .map((entry) => ({ ...entry, createdAt: now, expiresAt: now + entry.expiresAt - entry.createdAt }))
    if (renewed.length > 0) await this.ports.store.saveBlocks(renewed)
    // Another process may have renewed an entry that this one has read before.
    for (const entry of [...entries, ...renewed]) {
      const known = this.operatorPrefixes.get(entry.prefix)
      if (entry.by === 'operator' && known && isFromBeforeStep(known.createdAt, now))
        this.operatorPrefixes.set(entry.prefix, entry)
    }
  }

  private async readHistory(now: EpochMs): Promise<void> {
    const sinceMs = now - this.historyReadAt
    if (sinceMs >= 0 && sinceMs < historyIntervalMs) return
    const histories = await this.ports.store.verifiedHistory()
    this.historyReadAt = now
    for (const country of this.countries.values()) {
      country.history = noHistory
      country.verifiedSince = 0
    }
    for (const history of histories) this.countryOf(history.country, now).history = history
  }

  private applyRow(row: BucketRow, isFirst: boolean): void {
    const now = this.ports.now()
    const threshold = this.thresholdOf(row, now)
    const bucket = this.bucketOf(row, now)
    advance(bucket, threshold, now)
    if (isFirst) restoreRow(bucket, row, threshold, now)
    else addRow(bucket, row, threshold)
  }

  private *buckets(): Iterable<Bucket> {
    yield* this.prefixes.values()
    yield* this.flagged.values()
    for (const { hour, day } of this.countries.values()) yield* [hour, day]
    for (const { hour, day, countries } of this.ips.values()) yield* [hour, day, ...countries.values()]
  }

  private bucketOf({ kind, key }: BucketRow, now: EpochMs): Bucket {
    if (kind === 'prefix' || kind === 'flagged') {
      return bucketIn(kind === 'prefix' ? this.prefixes : this.flagged, kind, key, now)
    }
    if (kind === 'country-hour') return this.countryOf(key, now).hour
    if (kind === 'country-day') return this.countryOf(key, now).day
    if (kind === 'ip-country') return ipCountryBucket(this.ipOf(ipOfKey(key), now), key.slice(-2), now)
    const ip = this.ipOf(key, now)
    return kind === 'ip-hour' ? ip.hour : ip.day
  }
}

class Pass implements GuardPass {
  constructor(
    private readonly guard: Guard,
    private readonly send: GuardedSend,
    public verdict: GuardVerdict | null,
    private filled: Filled | undefined,
  ) {}

  admit(): void {
    this.filled ??= this.guard.admitted(this.send)
    this.verdict = null
  }

  confirm(): void {
    if (this.verdict) this.guard.confirmed(this.send, this.verdict)
  }

  undo(): void {
    if (this.filled) this.guard.undone(this.filled)
    this.filled = undefined
  }
}

function bucketIn(
  buckets: Map<string, Bucket>,
  kind: 'prefix' | 'flagged',
  prefix: string,
  now: EpochMs,
): Bucket {
  const known = buckets.get(prefix)
  if (known) return known
  const bucket = newBucket(kind, prefix, now)
  dropEmptiest(buckets, (each) => levelAt(each, now))
  buckets.set(prefix, bucket)
  return bucket
}

function prefixOf(digits: string): string {
  return digits.slice(0, -4)
}

function ipOfKey(key: string): string {
  return key.slice(0, -3)
}

function ipCountryBucket({ hour, countries }: Ip, country: string, now: EpochMs): Bucket {
  const known = countries.get(country)
  if (known) return known
  const bucket = newBucket('ip-country', `${hour.key} ${country}`, now)
  countries.set(country, bucket)
  return bucket
}

function judgeIp({ hour, day, countries }: Ip, country: string, now: EpochMs): Judgement | null {
  advance(hour, ipHourThreshold, now)
  advance(day, ipDayThreshold, now)
  if (isFull(hour, ipHourThreshold)) return verdictOf('ip-hour', hour, ipHourThreshold)
  if (isFull(day, ipDayThreshold)) return verdictOf('ip-day', day, ipDayThreshold)
  if (countries.size < ipCountriesThreshold) return null
  let level = 0
  let firstEmptyMs = Number.POSITIVE_INFINITY
  for (const [code, bucket] of countries) {
    advance(bucket, ipCountryLevel, now)
    if (code === country || bucket.level === 0) continue
    level++
    firstEmptyMs = Math.min(firstEmptyMs, (bucket.level * bucketPeriodsMs['ip-country']) / ipCountryLevel)
  }
  if (level < ipCountriesThreshold || !isMostlyUnverified(day)) return null
  return { bucket: 'ip-countries', threshold: ipCountriesThreshold, level, resetsInMs: firstEmptyMs }
}

function verdictOf(
  name: Exclude<BucketKind, 'ip-country' | 'flagged'>,
  bucket: Bucket,
  threshold: number,
  share = 1,
): Judgement {
  const most = threshold * share
  return {
    bucket: name,
    threshold: most,
    level: bucket.level,
    resetsInMs: resetsInMs(bucket, threshold, most),
  }
}

function levelAt(bucket: Bucket, now: EpochMs): number {
  advance(bucket, bucket.kind === 'ip-day' ? ipDayThreshold : prefixThreshold, now)
  return bucket.level
}

/** Drops a fifth of a map that is too large: the emptiest, and of equally empty entries the oldest. */
function dropEmptiest<Entry>(entries: Map<string, Entry>, levelOf: (entry: Entry) => number): void {
  if (entries.size < mostBuckets) return
  const levels = Float64Array.from(entries.values(), levelOf).sort()
  let excess = Math.floor(levels.length / 5)
  const highest = levels[excess] ?? 0
  for (const [key, entry] of entries) {
    if (excess === 0) return
    if (levelOf(entry) > highest) continue
    entries.delete(key)
    excess--
  }
}
