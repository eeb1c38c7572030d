import type { DestinationRules } from '../delivery/destination.ts'
import { dayMs, type EpochMs, hourMs, minuteMs, periodOf } from '../ground/time.ts'
import { Guard, type GuardMode, isOfCountries } from '../guard/guard.ts'
import type { GuardStore } from '../guard/store.ts'
import { type CountryHistory, unknownCountry, VerifiedHistory } from '../guard/thresholds.ts'
import { type Claim, decide, type LimitCount, phoneHour, type StoredClaim } from '../limits/limits.ts'
import { anyCountry, type Budget, budgetClaim, inCountry, includes } from '../money/budgets.ts'
import type { Spend } from '../money/spending.ts'
import type { LimitName } from '../request/limit-names.ts'
import { isOfGuard } from '../request/request-context.ts'
import type { RequestTrace } from '../request/request-trace.ts'

/** A code that was sent, with the segments of each attempt that may have been sent; or one that was verified, without. */
export interface LoggedCode extends RequestTrace {
  readonly sends: readonly { readonly provider: string; readonly segments: number }[]
}

/** Verified codes of a country in a day that begins at `at`. */
export interface VerifiedDay {
  readonly at: EpochMs
  readonly country: string
  readonly count: number
}

export interface ReplayReader {
  /** Codes by SMS and e-mail, oldest first. @param after a request ID, or an instant */
  codes(after: string | EpochMs, until: EpochMs, limit: number): Promise<readonly LoggedCode[]>
  /** Of SMS that may have been sent, by day. */
  smsSegments(from: EpochMs, until: EpochMs): Promise<readonly SentSegments[]>
  verifiedDays(from: EpochMs, until: EpochMs): Promise<readonly VerifiedDay[]>
}

export interface SentSegments extends Omit<Spend, 'currency'> {
  readonly at: EpochMs
  readonly segments: number
}

export interface ReplaySettings {
  readonly guard: GuardMode
  readonly destinations: DestinationRules
  readonly phonePerHour: number
  readonly budgets: readonly Budget[]
  /** In the currency of the budgets. */
  readonly costOf: (code: LoggedCode) => number
  /** Of the server at that time. */
  readonly modeAt: (at: EpochMs) => GuardMode
}

export interface ReplaySum {
  requests: number
  denied: number
  /** Of the denied ones. */
  deniedVerified: number
  savedMicros: number
}

export type DenialReason = 'destination' | 'guard' | LimitName

const historyDays = 14

/** Buckets, windows and budgets are then as they were at `since`. */
export function replayStart(since: EpochMs): EpochMs {
  return periodOf('day', since - dayMs).start
}

/** Of the days that `Replay` needs. */
export function historyStart(since: EpochMs): EpochMs {
  return replayStart(since) - historyDays * dayMs
}

/** Takes the codes of the event log, oldest first, through the guard, the limits and the rules of other settings (design D58). */
export class Replay {
  readonly total = newSum()
  /** Null: no country, or an e-mail. */
  readonly byCountry = new Map<string | null, ReplaySum>()
  readonly byApp = new Map<string, ReplaySum>()
  readonly byDay = new Map<EpochMs, ReplaySum>()
  readonly byReason = new Map<DenialReason, number>()
  /** Codes of a time in which the guard was off, so that the log has no verdict on them. */
  unjudged = 0
  /** Codes to numbers that may have a prefix with another rule than their country. */
  undecided = 0
  private now: EpochMs
  private readonly history: ReplayedHistory
  private readonly guard: Guard
  private readonly windows = new Map<string, LimitCount>()
  /** By recipient and brand. */
  private readonly codes = new Map<
    string,
    { readonly expiresAt: EpochMs; readonly sums: readonly ReplaySum[]; readonly isDenied: boolean }
  >()
  private readonly known = new Set<string>()

  constructor(
    private readonly settings: ReplaySettings,
    private readonly since: EpochMs,
    days: readonly VerifiedDay[],
  ) {
    this.now = replayStart(since)
    const now = () => this.now
    const log = { info() {}, warn() {}, error() {} }
    this.history = new ReplayedHistory(days, now)
    this.guard = new Guard({ store: this.history, now, log, mode: () => 'deny', node: 'replay' })
  }

  async take(code: LoggedCode): Promise<void> {
    const before = this.now
    this.now = Math.max(before, code.at)
    if (Math.floor(this.now / minuteMs) > Math.floor(before / minuteMs)) {
      if (this.settings.guard === 'deny') await this.guard.sync()
      for (const all of [this.windows, this.codes])
        for (const [key, { expiresAt }] of all) if (expiresAt <= this.now) all.delete(key)
    }
    // Of a review number, or a repeated request.
    if (code.operation === 'verify' && code.flags.length > 0) return
    const key = `${code.recipientHash} ${code.brand}`
    const sent = this.codes.get(key)
    this.codes.delete(key)
    if (code.operation === 'verify') {
      if (!sent?.isDenied) this.verified(code)
      else for (const sum of sent.sums) sum.deniedVerified++
      return
    }
    const reason = this.denialOf(code)
    const sums = code.at < this.since ? [] : this.sumsOf(code)
    for (const sum of sums) {
      sum.requests++
      if (!reason) continue
      sum.denied++
      sum.savedMicros += this.settings.costOf(code)
    }
    if (reason && sums.length > 0) this.byReason.set(reason, (this.byReason.get(reason) ?? 0) + 1)
    // No code lives longer than an hour.
    this.codes.set(key, { expiresAt: this.now + hourMs, sums, isDenied: reason !== undefined })
  }

  private sumsOf({ at, country, app }: LoggedCode): readonly ReplaySum[] {
    return [
      this.total,
      this.byCountry.getOrInsertComputed(country, newSum),
      this.byApp.getOrInsertComputed(app, newSum),
      this.byDay.getOrInsertComputed(periodOf('day', at).start, newSum),
    ]
  }

  private verified({ recipientHash: recipient, channel, country }: LoggedCode): void {
    if (this.settings.guard !== 'deny' || recipient === null) return
    const phone = channel === 'SMS' ? { to: numberOf(recipient), country } : null
    if (this.guard.verified({ recipient, phone }) && phone) this.history.add(country ?? unknownCountry)
    this.known.add(recipient)
  }

  /** A denied code counts nowhere. */
  private denialOf(code: LoggedCode): DenialReason | undefined {
    const claims = code.channel === 'SMS' ? [...this.hourClaims(code), ...this.budgetClaims(code)] : []
    const open = (claim: StoredClaim) => {
      const window = this.windows.get(windowKey(claim))
      return window && window.expiresAt > this.now ? window : undefined
    }
    const { decision, changes } = decide(claims, open, this.now)
    const limit = decision.allowed ? undefined : claims[decision.refusedBy]?.limit
    if (limit === 'recipient-hour') return limit
    if (this.isBlocked(code)) return 'destination'
    const isSent = !limit && code.sends.length > 0
    if (this.settings.guard === 'deny' && this.isGuarded(code, isSent)) return 'guard'
    if (isSent) for (const change of changes) this.windows.set(windowKey(change), change)
    return limit ?? undefined
  }

  private hourClaims({ recipientHash, limits, sends }: LoggedCode): readonly Claim[] {
    const recorded = limits.find(({ limit }) => limit === 'recipient-hour')
    // Some codes do not have the limit.
    if (recipientHash === null || !recorded) return []
    // The window was opened a moment after the request began.
    if (recorded.used === 1 && recorded.endsAt !== null) this.now = Math.max(this.now, recorded.endsAt - hourMs)
    // Each further attempt counts, and none is refused.
    const further = Math.max(0, sends.length - 1)
    const { claims = [] } = phoneHour([recipientHash], this.settings.phonePerHour)
    return claims.map((claim) => ({ ...claim, units: 1 + further, max: claim.max + further }))
  }

  private budgetClaims(code: LoggedCode): readonly Claim[] {
    const { app, brand, country } = code
    const budgets = this.settings.budgets.filter((budget) => includes(budget, 'codes'))
    const scopes = ['server', `brand:${brand}`, `app:${app}`, `country:${country}`]
    const own = budgets.filter(({ scope }) => scopes.includes(scope))
    const others = own.some(({ scope }) => scope === scopes[3])
      ? []
      : budgets.filter(({ scope }) => scope === anyCountry).map((budget) => inCountry(budget, country))
    const micros = Math.floor(this.settings.costOf(code))
    return [...own, ...others].map((budget) => budgetClaim(budget, micros, this.now))
  }

  private isBlocked({ at, channel, recipient, country, brand }: LoggedCode): boolean {
    if (channel !== 'SMS') return false
    const possible = this.settings.destinations.mayApply(recipient ?? '', country, brand)
    const blocks = possible.filter(({ action }) => action === 'block').length
    if (at >= this.since && blocks > 0 && blocks < possible.length) this.undecided++
    return blocks === possible.length
  }

  private isGuarded(code: LoggedCode, isSent: boolean): boolean {
    const { at, country, recipientHash: recipient, brand, flags } = code
    if (recipient === null) return false
    const isAllowedCountry = country !== null && this.settings.destinations.allowsCountry(country, brand)
    const phone = code.channel === 'SMS' ? { to: numberOf(recipient), country, isAllowedCountry } : null
    const mode = this.settings.modeAt(at)
    const found = flags.find(isOfGuard)
    // The guard of that time knew prefixes, IP addresses and devices.
    if (found && mode === 'record')
      if (!phone || !isOfCountries(found) || this.history.denies(country, isAllowedCountry)) return true
    const pass = this.guard.enter({ recipient, phone, ip: null, device: null, isTrustedUser: false })
    if (mode === 'off') {
      if (at >= this.since) this.unjudged++
      if (pass.isOpenToKnown && this.known.has(recipient)) pass.admitKnown()
      if (pass.verdict) pass.confirm()
      if (pass.verdict?.isDenied) return true
    }
    if (!isSent) pass.undo()
    return false
  }
}

/** The verified codes of each time. */
class ReplayedHistory implements GuardStore {
  private readonly days = new Map<string, Map<EpochMs, number>>()
  /** Of the codes that are verified in the replay. */
  private readonly times = new Map<string, EpochMs[]>()
  private read: VerifiedHistory

  constructor(
    days: readonly VerifiedDay[],
    private readonly now: () => EpochMs,
  ) {
    for (const { at, country, count } of days)
      this.days.getOrInsertComputed(country, () => new Map()).set(at, count)
    this.read = new VerifiedHistory([], now())
  }

  add(country: string): void {
    this.times.getOrInsertComputed(country, () => []).push(this.now())
  }

  /** Whether the buckets of the country deny, which those of a home country do not. */
  denies(country: string | null, isAllowed: boolean): boolean {
    return this.read.of(country ?? unknownCountry, isAllowed, this.now()).isDenied
  }

  async verifiedHistory(): Promise<readonly CountryHistory[]> {
    const now = this.now()
    const { start: today } = periodOf('day', now)
    const history = Array.from(new Set([...this.days.keys(), ...this.times.keys()]), (country) => {
      const [days, times = []] = [this.days.get(country), this.times.get(country)]
      const before = Array.from({ length: historyDays }, (_, day) => days?.get(today - (day + 1) * dayMs) ?? 0)
      const since = (at: EpochMs) => countSince(times, at)
      const inFortnight = before.reduce((sum, count) => sum + count, since(today))
      return {
        country,
        bestDay: Math.max(...before),
        inFortnight,
        inDay: since(now - dayMs),
        inHour: since(now - hourMs),
      }
    })
    this.read = new VerifiedHistory(history, now)
    return history
  }

  // Nothing is shared with other processes.
  async saveBuckets(): Promise<void> {}
  async saveBlocks(): Promise<void> {}
  bucketsSince = async () => []
  prefixes = async () => []
  isVerified = async () => false
}

/** @param times ascending */
function countSince(times: readonly EpochMs[], at: EpochMs): number {
  let [low, high] = [0, times.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((times[middle] ?? 0) < at) low = middle + 1
    else high = middle
  }
  return times.length - low
}

/** In place of the number, which the log does not have: each is alone in its prefix. */
function numberOf(recipientHash: string): string {
  return `${recipientHash}0000`
}

function windowKey({ subject, name }: Pick<StoredClaim, 'subject' | 'name'>): string {
  return `${subject[0]} ${name}`
}

function newSum(): ReplaySum {
  return { requests: 0, denied: 0, deniedVerified: 0, savedMicros: 0 }
}
