import { isFromBeforeStep, type Log } from '../ground/ports.ts'
import { type Clock, dayMs, type EpochMs } from '../ground/time.ts'
import { type Block, Blocks, blockMs, OperatorPrefixes } from './blocks.ts'
import {
  addRow,
  addSuspect,
  advance,
  type Bucket,
  type BucketKind,
  type BucketRow,
  bucketPeriodsMs,
  type ClientKind,
  drain,
  fill,
  hasReached,
  hasSuspects,
  isFull,
  isMostlyUnverified,
  isUnused,
  isUsed,
  type PairKind,
  resetsInMs,
  restoreRow,
  rowOf,
  shareOfSuspected,
  unfill,
} from './bucket.ts'
import { Buckets, type Client, clientOfKey, countryOfClient, type Pair } from './buckets.ts'
import type { GuardPrefix, GuardStore } from './store.ts'
import {
  type CountryStanding,
  clientThresholds,
  countriesThreshold,
  fixedThresholds,
  numberThresholds,
  type PairThresholds,
  prefixThreshold,
  quietThresholds,
  unknownCountry,
  VerifiedHistory,
} from './thresholds.ts'

export type GuardMode = 'off' | 'record' | 'deny'

export interface GuardPorts {
  readonly store: GuardStore
  readonly now: Clock
  readonly log: Log
  readonly mode: () => GuardMode
  /** Unique for each process, also after a restart. */
  readonly node: string
}

/** A code that is about to be sent. */
export interface GuardedSend {
  /** The keyed hash of the recipient. */
  readonly recipient: string
  /** Null: the code is sent by e-mail. */
  readonly phone: GuardedPhone | null
  /** Keyed hashes of the end user's IP address and device. Null: the app did not give it. */
  readonly ip: string | null
  readonly device: string | null
  /** Whether the user is signed in to the app already: judged by IP address and device alone. */
  readonly isTrustedUser: boolean
  /** No one says which of its codes are verified: judged by prefix, IP address and device alone, and no country counts it. */
  readonly isUnreported?: boolean
}

export interface GuardedPhone {
  /** E.164, without `+`. */
  readonly to: string
  /** ISO 3166-1; null for numbers of no country. */
  readonly country: string | null
  /** Whether a rule allows the country: SMS_COUNTRIES or `destination set`. */
  readonly isAllowedCountry: boolean
}

/** A code that was verified. */
export interface VerifiedSend extends Pick<GuardedSend, 'recipient'> {
  readonly phone: Pick<GuardedPhone, 'to' | 'country'> | null
}

export const guardReasons = [
  'blocked-prefix',
  'prefix',
  'number',
  'ip-hour',
  'ip-day',
  'ip-countries',
  'device-hour',
  'device-day',
  'device-countries',
  'country-hour',
  'country-day',
  'quiet-hour',
  'quiet-day',
  'abroad',
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
  /** False: mode `record` or a home country, and no operator has blocked the prefix. */
  readonly isDenied: boolean
  readonly byOperator: boolean
}

interface Judgement extends Omit<GuardVerdict, 'isDenied' | 'byOperator'> {
  /** Of a home country. */
  readonly isOnlyRecorded?: boolean
}

export interface GuardPass {
  /** Set if the code is denied or recorded. Call `confirm` then. */
  readonly verdict: GuardVerdict | null
  /** Whether the code may pass because its number verified one within 180 days. Call `admitKnown` then. */
  readonly isOpenToKnown: boolean
  /** Removes the verdict if the trust in the number is not used up; its code then counts like others. */
  admitKnown(): void
  /** The code was denied, or sent and recorded. Not if a limit rejected the request. */
  confirm(): void
  /** A budget rejected the code. */
  stopped(): void
  /** Call it if the code was certainly not sent. */
  undo(): void
}

const syncIntervalMs = 5000
const historyIntervalMs = 60_000
/** The clocks of the nodes may differ by this much. */
const clockDifferenceMs = 30_000
const mostRowsPerSync = 1000
const leastSharedLevel = 2
const mostCodes = 50_000
const longestCodeMs = 600_000
const roundingErrorMs = 0.001

/** Of a number that verified a code within 180 days: codes that pass in a day though a bucket is full. */
const trusted = { unverified: 3, codes: 10 } as const
/** Verified codes of one number in a day that others profit from: an attacker has few numbers of their own. */
const mostCredited = 1
/** Prefixes of home countries that are blocked at a time, about a fiftieth of the users. More are only recorded. */
const mostHomeBlocks = 50
/** A country of which this many codes are unverified, and at least half, is limited with all others of that kind. */
const leastSuspicious = 3
/** More than what leaks from the day bucket of a country without history in an hour, so that an hour after an attack a user passes. */
const dayTolerance = 0.2

/** A code whose verification does not simply drain the buckets of its prefix and country. */
interface RememberedCode {
  readonly isFilled: boolean
  /** Of its clients, and those of kind `known`. */
  readonly buckets: readonly Bucket[]
  /** Buckets that were full, and that it passed all the same. */
  readonly full: ReadonlySet<Bucket> | undefined
}

/** What a code changed. */
interface Filled {
  readonly buckets: readonly Bucket[]
  /** By how much the level of each rose. */
  readonly rises: readonly number[]
  /** The block that it passed with one of its verified codes. */
  readonly block: Block | undefined
}

const unguarded: GuardPass = {
  verdict: null,
  isOpenToKnown: false,
  admitKnown() {},
  confirm() {},
  stopped() {},
  undo() {},
}

/**
 * Limits unverified codes per number, prefix, country, and IP address and device of the end user (design D41).
 *
 * Each process judges in memory and exchanges its buckets with the others every 5 s. N processes send at most N ×
 * threshold unverified codes to a bucket before each of them knows that it is full: at most one interval to write, and
 * one to read.
 */
export class Guard {
  private readonly buckets: Buckets
  private readonly blocks: Blocks
  private readonly operators: OperatorPrefixes
  private history: VerifiedHistory
  private readonly allowedCountries = new Set<string>()
  /** By recipient; two generations, so that the oldest are dropped at once. */
  private codes = new Map<string, RememberedCode>()
  private olderCodes: Map<string, RememberedCode> = new Map()
  private codesSince = Number.NEGATIVE_INFINITY
  private changed: Bucket[] = []
  private historyReadAt = Number.NEGATIVE_INFINITY
  private bucketsReadAt: EpochMs | undefined
  private syncedAt = Number.NEGATIVE_INFINITY
  private syncing: Promise<void> | undefined

  constructor(private readonly ports: GuardPorts) {
    const { store, log } = ports
    this.buckets = new Buckets(ports.now())
    this.blocks = new Blocks(store, (error) =>
      log.warn({ err: error }, 'The pumping guard could not store the block of a prefix. It retries in 5 s.'),
    )
    this.operators = new OperatorPrefixes(store)
    this.history = new VerifiedHistory([], ports.now())
  }

  /** Judges a code, and counts it unless it is denied. */
  enter(send: GuardedSend): GuardPass {
    const mode = this.ports.mode()
    if (mode === 'off') return unguarded
    const now = this.ports.now()
    this.syncWhenDue(now)
    const operator = send.phone ? this.operators.of(send.phone.to, now) : undefined
    if (operator?.action === 'allow') return unguarded
    if (operator) return new Pass(this, send, blockedByOperator(operator, now), undefined)
    const judgement = this.judge(send, now)
    if (judgement === null) return new Pass(this, send, null, this.fill(send, now, { isKnown: false }))
    const { isOnlyRecorded = false } = judgement
    const resetsInMs = judgement.bucket === 'prefix' ? blockMs : judgement.resetsInMs
    const verdict = {
      ...judgement,
      resetsInMs: rounded(resetsInMs),
      isDenied: mode === 'deny' && !isOnlyRecorded,
      byOperator: false,
    }
    const filled = isOnlyRecorded ? this.fill(send, now, { isKnown: false }) : undefined
    return new Pass(this, send, verdict, filled)
  }

  /**
   * Judges a further message with a code that was counted: without that count. Fills nothing, and records nothing that it does not deny.
   * @param isKnown its number verified one within 180 days
   */
  enterAgain(send: GuardedSend, isKnown: boolean): GuardPass {
    const mode = this.ports.mode()
    const now = this.ports.now()
    const operator = send.phone ? this.operators.of(send.phone.to, now) : undefined
    if (mode === 'off' || operator?.action === 'allow') return unguarded
    if (operator) return new Pass(this, send, blockedByOperator(operator, now), undefined)
    const judgement = mode === 'deny' && !isKnown ? this.judgeOthers(send, now) : null
    if (judgement === null || judgement.isOnlyRecorded) return unguarded
    return new Pass(this, send, { ...judgement, isDenied: true, byOperator: false }, undefined)
  }

  /**
   * A code was verified: drains what it filled.
   * @returns whether it counts as verified for the buckets that its number shares with others
   */
  verified({ recipient, phone }: VerifiedSend): boolean {
    if (this.ports.mode() === 'off') return true
    const now = this.ports.now()
    this.syncWhenDue(now)
    const code = this.forget(recipient)
    const number = this.buckets.find('number', recipient)
    if (number) advance(number, fixedThresholds.number, now)
    const isCredited = number === undefined || number.verified < mostCredited
    const drainOne = (bucket: Bucket, threshold: number) => {
      advance(bucket, threshold, now)
      drain(bucket, code?.full?.has(bucket) ? 0 : 1, isCredited || bucket === number)
      this.markChanged(bucket)
    }
    if (phone) {
      const key = prefixOf(phone.to)
      const prefix = this.buckets.find('prefix', key)
      if (prefix) prefix.suspects = 0
      const flagged = this.buckets.find('flagged', key)
      if (code?.isFilled === false && flagged) drainOne(flagged, prefixThreshold)
      if (code?.isFilled === false || this.operators.of(phone.to, now)?.action === 'allow') return isCredited
      if (number) drainOne(number, fixedThresholds.number)
      if (prefix) drainOne(prefix, prefixThreshold)
      const block = isCredited ? this.blocks.find(key, now) : undefined
      if (block) block.verified++
      const country = phone.country ?? unknownCountry
      this.visitCountry(country, now, drainOne)
      if (isCredited) this.history.add(country)
    }
    for (const bucket of code?.buckets ?? []) drainOne(bucket, fixedThresholds[bucket.kind] ?? 1)
    return isCredited
  }

  /** Replaces operators' entries. Others are ignored. Cheap if the array is the same as before. */
  applyOperatorPrefixes(entries: readonly GuardPrefix[]): void {
    this.operators.apply(entries)
  }

  /**
   * Exchanges buckets and blocks with the store: call it once before the first send. Failures are logged, and the next
   * call tries again.
   */
  sync(): Promise<void> {
    const previous = this.syncing ?? Promise.resolve()
    const current = previous.then(() => this.exchange())
    this.syncing = current
    return current.finally(() => {
      if (this.syncing === current) this.syncing = undefined
    })
  }

  /** Of `GuardPass`: undefined if the trust in the number is used up, or that in the country or client of such numbers. */
  admitKnown(send: GuardedSend): Filled | undefined {
    const now = this.ports.now()
    const number = this.buckets.find('number', send.recipient)
    if (number) advance(number, fixedThresholds.number, now)
    if (number && (number.level >= trusted.unverified || number.sent >= trusted.codes)) return undefined
    const isFullOne = this.knownKeys(send).some(([kind, key]) => this.isFullOf(kind, key, now))
    return isFullOne ? undefined : this.fill(send, now, { isKnown: true })
  }

  /** Of `GuardPass`. */
  confirmed(send: GuardedSend, { bucket, isDenied, byOperator }: GuardVerdict, isFilled: boolean): void {
    const now = this.ports.now()
    // A verified code that was not counted must not drain the buckets.
    if (!isDenied && !isFilled) this.remember(send.recipient, now, uncounted)
    if (byOperator || !send.phone) return
    const { to, country } = send.phone
    const prefix = prefixOf(to)
    const flagged = this.buckets.get('flagged', prefix, now)
    advance(flagged, prefixThreshold, now)
    fill(flagged, prefixThreshold)
    this.markChanged(flagged)
    if (!isFilled && isOfCountries(bucket)) {
      const suspected = this.buckets.get('prefix', prefix, now)
      advance(suspected, prefixThreshold, now)
      addSuspect(suspected, to, true)
    }
    if (bucket !== 'prefix' || isFilled) return
    const known = this.buckets.find('prefix', prefix)
    if (!known) return
    advance(known, prefixThreshold, now)
    // Limits may have rejected concurrent requests that filled it.
    if (isFull(known, prefixThreshold))
      this.blocks.block(prefix, this.standingOf(country ?? unknownCountry, now).isHome, now)
  }

  /** Whether the next code of this kind would be denied or recorded. */
  isFullFor(send: GuardedSend): boolean {
    return this.judge(send, this.ports.now()) !== null
  }

  /** Of `GuardPass`. */
  undone({ block, buckets, rises }: Filled): void {
    if (block) block.verified++
    for (const [at, bucket] of buckets.entries()) {
      unfill(bucket, rises[at] ?? 0)
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

  private judge(send: GuardedSend, now: EpochMs): Judgement | null {
    const { phone } = send
    const country = phone?.country ?? unknownCountry
    const clients = send.ip === null && send.device === null ? noClients : this.clientsOf(send)
    let byClient: Judgement | null = null
    for (const client of clients) byClient ??= judgeClient(client, phone && country, now)
    if (phone === null || send.isTrustedUser) return byClient
    const key = prefixOf(phone.to)
    const prefix = this.buckets.find('prefix', key)
    if (prefix) advance(prefix, prefixThreshold, now)
    const standing = this.history.of(country, phone.isAllowedCountry, now)
    const { isHome } = standing
    const byPrefix = this.judgePrefix(key, prefix, isHome, now)
    if (send.isUnreported) return byPrefix ?? byClient
    const isSpared =
      isHome &&
      prefix !== undefined &&
      isUsed(prefix) &&
      isClean(send, clients) &&
      !this.isFullOf('spared', key, now)
    if (byPrefix && !byPrefix.isOnlyRecorded && !isSpared) return byPrefix
    const byNumber = this.judgeNumber(send.recipient, isHome, now)
    const byOther = byNumber ?? byClient ?? this.judgeCountry(country, standing, prefix, now)
    return byOther ?? (isSpared ? null : byPrefix)
  }

  /** As if the code had not been counted. */
  private judgeOthers(send: GuardedSend, now: EpochMs): Judgement | null {
    const { phone, recipient } = send
    const before: (readonly [bucket: Bucket, level: number, sent: number])[] = []
    const takeOut = (bucket: Bucket, threshold: number) => {
      advance(bucket, threshold, now)
      before.push([bucket, bucket.level, bucket.sent])
      bucket.level = Math.max(0, bucket.level - 1)
      bucket.sent = Math.max(0, bucket.sent - 1)
    }
    for (const bucket of this.clientBuckets(send, now)) takeOut(bucket, fixedThresholds[bucket.kind] ?? 1)
    if (phone) {
      takeOut(this.buckets.get('prefix', prefixOf(phone.to), now), prefixThreshold)
      takeOut(this.buckets.get('number', recipient, now), fixedThresholds.number)
      this.visitCountry(phone.country ?? unknownCountry, now, takeOut)
    }
    const judgement = this.judge(send, now)
    for (const [bucket, level, sent] of before) Object.assign(bucket, { level, sent })
    return judgement
  }

  private judgePrefix(
    key: string,
    prefix: Bucket | undefined,
    isHome: boolean,
    now: EpochMs,
  ): Judgement | null {
    const block = this.blocks.find(key, now)
    if (block && block.verified === 0 && (prefix === undefined || isMostlyUnverified(prefix))) {
      const level = prefix?.level ?? 0
      return {
        bucket: 'blocked-prefix',
        threshold: prefixThreshold,
        level,
        resetsInMs: block.expiresAt - now,
      }
    }
    if (!prefix || !isFull(prefix, prefixThreshold)) return null
    const judgement = judgementOf('prefix', prefix, prefixThreshold)
    return isHome && this.blocks.homesAt(now) >= mostHomeBlocks
      ? { ...judgement, isOnlyRecorded: true }
      : judgement
  }

  private judgeNumber(recipient: string, isHome: boolean, now: EpochMs): Judgement | null {
    const number = this.buckets.find('number', recipient)
    if (!number) return null
    const threshold = numberThresholds[isHome ? 'home' : 'abroad']
    advance(number, threshold, now)
    if (!isFull(number, threshold)) return null
    return { bucket: 'number', threshold, level: number.level, resetsInMs: number.updatedAt + dayMs - now }
  }

  /** By the buckets of the country, and those that it shares with others. */
  private judgeCountry(
    country: string,
    standing: CountryStanding,
    prefix: Bucket | undefined,
    now: EpochMs,
  ): Judgement | null {
    const { isHome, isQuiet, isDenied } = standing
    const isLimited = prefix !== undefined && hasSuspects(prefix)
    const isSuspect = prefix !== undefined && (isLimited || isUnused(prefix))
    const pair = this.buckets.findCountry(country)
    const own = pair ? judgePair('country', pair, standing, isLimited && !isHome, now) : null
    if (own) return isDenied ? own : { ...own, isOnlyRecorded: true }
    if (isHome) return null
    const { quiet, abroad } = this.buckets
    const byQuiet = isQuiet ? judgePair('quiet', quiet, quietThresholds, isLimited, now) : null
    if (byQuiet || !(isSuspect || isSuspicious(standing, pair))) return byQuiet
    return judgeDay('abroad', abroad, this.history.abroad(), isSuspect, now)
  }

  private fill(send: GuardedSend, now: EpochMs, { isKnown }: { readonly isKnown: boolean }): Filled {
    const { recipient, phone, isTrustedUser } = send
    const prefix = phone && prefixOf(phone.to)
    const known = prefix === null ? undefined : this.buckets.find('prefix', prefix)
    if (known && phone && !isKnown && !isTrustedUser) addSuspect(known, phone.to, false)
    const ofClients = this.clientBuckets(send, now)
    if (isKnown)
      for (const [kind, key] of this.knownKeys(send)) ofClients.push(this.buckets.get(kind, key, now))
    else if (prefix !== null && ofClients.length > 0 && this.isOverPrefix(prefix, now))
      ofClients.push(this.buckets.get('spared', prefix, now))
    // A country that verified few codes for a while, such as during a provider's outage, is open again once its codes are verified.
    const full = isKnown || isTrustedUser ? new Set<Bucket>() : undefined
    const buckets: Bucket[] = []
    const rises: number[] = []
    const fillOne = (bucket: Bucket, threshold: number, share: number) => {
      advance(bucket, threshold, now)
      const rise = fill(bucket, threshold * share)
      buckets.push(bucket)
      rises.push(rise)
      if (full && rise < 1 && threshold > 1) full.add(bucket)
      this.markChanged(bucket)
    }
    for (const bucket of ofClients) fillOne(bucket, fixedThresholds[bucket.kind] ?? 1, 1)
    let block: Block | undefined
    if (prefix !== null) fillOne(this.buckets.get('prefix', prefix, now), prefixThreshold, 1)
    if (phone && prefix !== null && !send.isUnreported) {
      fillOne(this.buckets.get('number', recipient, now), fixedThresholds.number, 1)
      const country = phone.country ?? unknownCountry
      if (phone.isAllowedCountry) this.allowedCountries.add(country)
      else this.allowedCountries.delete(country)
      this.visitCountry(country, now, fillOne)
      block = this.blocks.find(prefix, now)
      if (block?.verified === 0) block = undefined
      if (block) block.verified--
    }
    this.remember(recipient, now, { isFilled: true, buckets: ofClients, full })
    return { buckets, rises, block }
  }

  /**
   * Visits the buckets of a code to the country. Creates them.
   * @param visit with the threshold, and the share of it that such codes may fill
   */
  private visitCountry(
    country: string,
    now: EpochMs,
    visit: (bucket: Bucket, threshold: number, share: number) => void,
  ): void {
    const { buckets, history } = this
    const pair = buckets.country(country, now)
    const standing = this.standingOf(country, now)
    if (!standing.isHome) {
      advance(pair.day, standing.day, now)
      // Codes that the bucket never denies leave a part to those of other countries.
      visit(buckets.abroad, history.abroad(), isSuspicious(standing, pair) ? 1 : shareOfSuspected)
    }
    visit(pair.hour, standing.hour, 1)
    visit(pair.day, standing.day, 1)
    if (!standing.isQuiet) return
    visit(buckets.quiet.hour, quietThresholds.hour, 1)
    visit(buckets.quiet.day, quietThresholds.day, 1)
  }

  /** Creates them. */
  private clientBuckets({ ip, device, phone }: GuardedSend, now: EpochMs): Bucket[] {
    const found: Bucket[] = []
    const add = (kind: ClientKind, key: string | null) => {
      if (key === null) return
      const client = this.buckets.client(kind, key, now)
      found.push(client.hour, client.day)
      if (phone) found.push(countryOfClient(client, phone.country ?? unknownCountry, now))
    }
    add('ip', ip)
    add('device', device)
    return found
  }

  private clientsOf({ ip, device }: GuardedSend): readonly Client[] {
    const ofIp = ip === null ? undefined : this.buckets.findClient('ip', ip)
    const ofDevice = device === null ? undefined : this.buckets.findClient('device', device)
    return [ofIp, ofDevice].filter((client) => client !== undefined)
  }

  private knownKeys({ phone, ip, device }: GuardedSend) {
    const keys = [
      ['known-country', phone && (phone.country ?? unknownCountry)],
      ['known-ip', ip],
      ['known-device', device],
    ] as const
    return keys.flatMap(([kind, key]) => (key === null ? [] : [[kind, key] as const]))
  }

  private isFullOf(kind: 'spared' | `known-${'country' | ClientKind}`, key: string, now: EpochMs): boolean {
    const bucket = this.buckets.find(kind, key)
    if (!bucket) return false
    advance(bucket, fixedThresholds[kind], now)
    return isFull(bucket, fixedThresholds[kind])
  }

  /** Whether a code to the prefix passes its block, or its full bucket. */
  private isOverPrefix(key: string, now: EpochMs): boolean {
    const prefix = this.buckets.find('prefix', key)
    if (!prefix) return false
    advance(prefix, prefixThreshold, now)
    return isFull(prefix, prefixThreshold) || this.blocks.find(key, now) !== undefined
  }

  private markChanged(bucket: Bucket): void {
    const { kind, level, isChanged, isSaved } = bucket
    if (isChanged) return
    // A number is a person's, and of use for a day only.
    if (kind === 'number' || (kind === 'prefix' && !isSaved && level < leastSharedLevel)) return
    bucket.isChanged = true
    this.changed.push(bucket)
  }

  /** Remembers what `verified` cannot know. */
  private remember(recipient: string, now: EpochMs, code: RememberedCode): void {
    this.forget(recipient)
    if (code.isFilled && code.buckets.length === 0 && !code.full?.size) return
    if (this.codes.size >= mostCodes / 2 || now - this.codesSince >= longestCodeMs) {
      this.olderCodes = this.codes
      this.codes = new Map()
      this.codesSince = now
    }
    this.codes.set(recipient, code)
  }

  private forget(recipient: string): RememberedCode | undefined {
    const code = this.codes.get(recipient) ?? this.olderCodes.get(recipient)
    if (code) {
      this.codes.delete(recipient)
      this.olderCodes.delete(recipient)
    }
    return code
  }

  private async exchange(): Promise<void> {
    const { store, node, log } = this.ports
    const now = this.ports.now()
    // An unused bucket would otherwise not leak until the clock has caught up.
    if (isFromBeforeStep(this.syncedAt, now))
      for (const bucket of this.buckets.all()) advance(bucket, this.thresholdOf(bucket, now), now)
    this.syncedAt = now
    try {
      await this.saveBuckets(now)
      const entries = await store.prefixes()
      for (const prefix of this.blocks.apply(entries, now)) this.emptyPrefix(prefix)
      await this.blocks.save()
      await this.operators.renew(entries, now)
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

  /** Otherwise the next code would begin another block. */
  private emptyPrefix(key: string): void {
    const bucket = this.buckets.find('prefix', key)
    if (!bucket) return
    bucket.level = 0
    this.markChanged(bucket)
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
    if (isSaved || isOfCountries(kind)) return true
    const client = kind === 'ip-country' ? 'ip' : kind === 'device-country' ? 'device' : undefined
    const clientLevel = client && this.buckets.findClient(client, clientOfKey(key))?.day.level
    return (clientLevel ?? level) >= leastSharedLevel
  }

  private standingOf(country: string, now: EpochMs): CountryStanding {
    return this.history.of(country, this.allowedCountries.has(country), now)
  }

  private thresholdOf({ kind, key }: Pick<BucketRow, 'kind' | 'key'>, now: EpochMs): number {
    return this.history.thresholdOf(kind, key, this.allowedCountries.has(key), now)
  }

  private async readHistory(now: EpochMs): Promise<void> {
    const sinceMs = now - this.historyReadAt
    if (sinceMs >= 0 && sinceMs < historyIntervalMs) return
    this.history = new VerifiedHistory(await this.ports.store.verifiedHistory(), now)
    this.historyReadAt = now
  }

  private applyRow(row: BucketRow, isFirst: boolean): void {
    const now = this.ports.now()
    const threshold = this.thresholdOf(row, now)
    const bucket = this.buckets.of(row.kind, row.key, now)
    advance(bucket, threshold, now)
    if (isFirst) restoreRow(bucket, row, threshold, now)
    else addRow(bucket, row, threshold)
  }
}

class Pass implements GuardPass {
  constructor(
    private readonly guard: Guard,
    private readonly send: GuardedSend,
    public verdict: GuardVerdict | null,
    private filled: Filled | undefined,
  ) {}

  get isOpenToKnown(): boolean {
    const { verdict, filled, send } = this
    return verdict !== null && !verdict.byOperator && filled === undefined && send.phone !== null
  }

  admitKnown(): void {
    if (this.isOpenToKnown) this.filled = this.guard.admitKnown(this.send)
    if (this.filled) this.verdict = null
  }

  confirm(): void {
    if (this.verdict) this.guard.confirmed(this.send, this.verdict, this.filled !== undefined)
  }

  stopped(): void {
    const { guard, send, verdict, filled } = this
    if (verdict) guard.confirmed(send, { ...verdict, isDenied: true }, filled !== undefined)
    // The buckets of an attack stay full, so that the guard still finds it while a budget stops it.
    else if (filled && guard.isFullFor(send)) this.filled = undefined
  }

  undo(): void {
    if (this.filled) this.guard.undone(this.filled)
    this.filled = undefined
  }
}

const noClients: readonly Client[] = []
const uncounted: RememberedCode = { isFilled: false, buckets: [], full: undefined }

function blockedByOperator({ expiresAt }: GuardPrefix, now: EpochMs): GuardVerdict {
  return {
    bucket: 'blocked-prefix',
    threshold: prefixThreshold,
    level: 0,
    resetsInMs: rounded(expiresAt - now),
    isDenied: true,
    byOperator: true,
  }
}

function rounded(resetsInMs: number): number {
  return Math.max(1000, Math.ceil(resetsInMs - roundingErrorMs))
}

function prefixOf(digits: string): string {
  return digits.slice(0, -4)
}

/** Whether the request is known to come from an IP address or device without unverified codes. */
function isClean({ ip, device }: GuardedSend, clients: readonly Client[]): boolean {
  return (ip !== null || device !== null) && clients.every(({ day }) => day.level < 1)
}

/**
 * Whether most codes to the country are unverified, so that it is limited with all others of that kind.
 * @param pair must be advanced
 */
function isSuspicious({ isQuiet }: CountryStanding, pair: Pair | undefined): boolean {
  if (isQuiet || !pair) return isQuiet
  const { sent, verified } = pair.day
  return sent - verified >= leastSuspicious && verified <= sent / 2
}

/** Whether a full bucket of this name is that of a country or of several. */
export function isOfCountries(name: GuardReason | BucketKind): boolean {
  return bucketsOfCountries.has(name)
}

const bucketsOfCountries: ReadonlySet<GuardReason | BucketKind> = new Set([
  'country-hour',
  'country-day',
  'quiet-hour',
  'quiet-day',
  'abroad',
])

/** @param country null: the code is sent by e-mail */
function judgeClient(
  { kind, hour, day, countries }: Client,
  country: string | null,
  now: EpochMs,
): Judgement | null {
  const pair = judgePair(kind, { hour, day }, clientThresholds, false, now)
  if (pair || country === null || countries.size < countriesThreshold) return pair
  const [level1, name] = [fixedThresholds['ip-country'], `${kind}-country`] as const
  let level = 0
  let firstEmptyMs = Number.POSITIVE_INFINITY
  for (const [code, bucket] of countries) {
    advance(bucket, level1, now)
    if (code === country || bucket.level === 0) continue
    level++
    firstEmptyMs = Math.min(firstEmptyMs, (bucket.level * bucketPeriodsMs[name]) / level1)
  }
  if (level < countriesThreshold || !isMostlyUnverified(day)) return null
  return { bucket: `${kind}-countries`, threshold: countriesThreshold, level, resetsInMs: firstEmptyMs }
}

function judgePair(
  kind: PairKind,
  { hour, day }: Pair,
  thresholds: PairThresholds,
  isLimited: boolean,
  now: EpochMs,
): Judgement | null {
  advance(hour, thresholds.hour, now)
  const share = isLimited ? shareOfSuspected : 1
  return isTooFull(hour, thresholds.hour * share, isLimited)
    ? judgementOf(`${kind}-hour`, hour, thresholds.hour, share)
    : judgeDay(`${kind}-day`, day, thresholds.day, isLimited, now)
}

function judgeDay(
  name: 'abroad' | `${PairKind}-day`,
  day: Bucket,
  threshold: number,
  isLimited: boolean,
  now: EpochMs,
): Judgement | null {
  advance(day, threshold, now)
  const share = isLimited ? shareOfSuspected : 1
  const tolerance = isOfCountries(day.kind) ? dayTolerance : 0
  return isTooFull(day, threshold * share + tolerance, isLimited)
    ? judgementOf(name, day, threshold, share, tolerance)
    : null
}

/** @param isLimited of a suspected prefix, which would otherwise hide behind the verified codes of users */
function isTooFull(bucket: Bucket, most: number, isLimited: boolean): boolean {
  return isLimited ? hasReached(bucket, most) : isFull(bucket, most)
}

function judgementOf(
  name: 'abroad' | 'prefix' | `${PairKind}-${'hour' | 'day'}`,
  bucket: Bucket,
  threshold: number,
  share = 1,
  tolerance = 0,
): Judgement {
  const most = threshold * share
  return {
    bucket: name,
    threshold: most,
    level: bucket.level,
    resetsInMs: resetsInMs(bucket, threshold, most + tolerance),
  }
}
