import type { DestinationRules } from '../delivery/destination.ts'
import { dayMs, type EpochMs, hourMs, minuteMs, periodOf } from '../ground/time.ts'
import { Guard, type GuardMode, isOfCountries } from '../guard/guard.ts'
import { type CountryHistory, unknownCountry, VerifiedHistory } from '../guard/thresholds.ts'
import { type Claim, decide, type LimitCount, phoneHour, type StoredClaim } from '../limits/limits.ts'
import { anyCountry, type Budget, budgetClaim, inCountry, includes } from '../money/budgets.ts'
import type { Spend } from '../money/spending.ts'
import { isOfGuard } from '../request/request-context.ts'
import type { RequestTrace } from '../request/request-trace.ts'

/** A code that was sent, with each attempt that may have been sent; or one that was verified, without. */
export interface LoggedCode extends RequestTrace {
  readonly sends: readonly { readonly provider: string; readonly segments: number }[]
}

/** Of a day in UTC, which begins at `at`. */
export interface SentSegments extends Omit<Spend, 'currency'> {
  readonly at: EpochMs
  readonly segments: number
}

export interface ReplayReader {
  /** When the oldest request began. */
  oldest(): Promise<EpochMs | undefined>
  /** Codes by SMS and e-mail, oldest first. @param after a request ID, or an instant */
  codes(after: string | EpochMs, until: EpochMs, limit: number): Promise<readonly LoggedCode[]>
  /** Of all SMS that may have been sent. */
  smsSegments(from: EpochMs, until: EpochMs): Promise<readonly SentSegments[]>
  verifiedHistory(at: EpochMs): Promise<readonly CountryHistory[]>
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

const historyMs = 5 * minuteMs

/** Buckets, windows and budgets are then as they were at `since`. */
export function replayStart(since: EpochMs): EpochMs {
  return periodOf('day', since - dayMs).start
}

/** Takes the codes of the event log, oldest first, through the guard, the limits and the rules of other settings (design D58). */
export class Replay {
  readonly total = newSum()
  /** Null: no country, or an e-mail. */
  readonly byCountry = new Map<string | null, ReplaySum>()
  readonly byApp = new Map<string, ReplaySum>()
  readonly byDay = new Map<EpochMs, ReplaySum>()
  /** Codes of a time in which the guard was off, so that the log has no verdict on them. */
  unjudged = 0
  /** Codes to numbers that may have a prefix with another rule than their country. */
  undecided = 0
  private now: EpochMs
  private prunedAt = Number.NEGATIVE_INFINITY
  private readonly guard: Guard
  private historyReadAt = Number.NEGATIVE_INFINITY
  private countries: readonly CountryHistory[] = []
  private history: VerifiedHistory
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
    private readonly verifiedHistory: ReplayReader['verifiedHistory'],
  ) {
    this.now = replayStart(since)
    this.history = new VerifiedHistory([], this.now)
    // Nothing is shared with other processes.
    const none = async () => {}
    const store = {
      saveBuckets: none,
      saveBlocks: none,
      bucketsSince: async () => [],
      prefixes: async () => [],
      isVerified: async () => false,
      verifiedHistory: async () => this.countries,
    }
    const log = { info() {}, warn() {}, error() {} }
    this.guard = new Guard({ store, now: () => this.now, log, mode: () => 'deny', node: 'replay' })
  }

  async take(code: LoggedCode): Promise<void> {
    this.now = Math.max(this.now, code.at)
    if (this.now >= this.prunedAt + hourMs) {
      this.prunedAt = this.now
      for (const all of [this.windows, this.codes])
        for (const [key, { expiresAt }] of all) if (expiresAt <= this.now) all.delete(key)
    }
    // Of a review number, or a repeated request.
    if (code.operation === 'verify' && code.flags.length > 0) return
    const key = `${code.recipientHash} ${code.brand}`
    const sent = this.codes.get(key)
    this.codes.delete(key)
    if (code.operation === 'verify') {
      if (!sent?.isDenied) this.verify(code)
      else for (const sum of sent.sums) sum.deniedVerified++
      return
    }
    const isDenied = await this.denies(code)
    const sums = code.at < this.since ? [] : this.sumsOf(code)
    for (const sum of sums) {
      sum.requests++
      if (!isDenied) continue
      sum.denied++
      sum.savedMicros += this.settings.costOf(code)
    }
    // No code lives longer than an hour.
    this.codes.set(key, { expiresAt: this.now + hourMs, sums, isDenied })
  }

  private sumsOf({ at, country, app }: LoggedCode): readonly ReplaySum[] {
    return [
      this.total,
      this.byCountry.getOrInsertComputed(country, newSum),
      this.byApp.getOrInsertComputed(app, newSum),
      this.byDay.getOrInsertComputed(periodOf('day', at).start, newSum),
    ]
  }

  private verify({ recipientHash: recipient, channel, country }: LoggedCode): void {
    if (this.settings.guard !== 'deny' || recipient === null) return
    const phone = channel === 'SMS' ? { to: numberOf(recipient), country } : null
    this.guard.verified({ recipient, phone })
    this.known.add(recipient)
  }

  /** A denied code counts nowhere. */
  private async denies(code: LoggedCode): Promise<boolean> {
    const claims = code.channel === 'SMS' ? [...this.hourClaims(code), ...this.budgetClaims(code)] : []
    const open = (claim: StoredClaim) => {
      const window = this.windows.get(windowKey(claim))
      return window && window.expiresAt > this.now ? window : undefined
    }
    const { decision, changes } = decide(claims, open, this.now)
    const limit = decision.allowed ? undefined : claims[decision.refusedBy]?.limit
    if (limit === 'recipient-hour' || this.isBlocked(code)) return true
    const isSent = !limit && code.sends.length > 0
    if (this.settings.guard === 'deny' && (await this.isGuarded(code, isSent))) return true
    if (isSent) for (const change of changes) this.windows.set(windowKey(change), change)
    return limit !== undefined
  }

  private hourClaims({ recipientHash, limits, sends }: LoggedCode): readonly Claim[] {
    const recorded = limits.find(({ limit }) => limit === 'recipient-hour')
    // Some codes do not have the limit.
    if (recipientHash === null || !recorded) return []
    // The window was opened a moment after the request began.
    if (recorded.used === 1 && recorded.endsAt !== null)
      this.now = Math.max(this.now, recorded.endsAt - hourMs)
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

  private async isGuarded(code: LoggedCode, isSent: boolean): Promise<boolean> {
    const { at, country, recipientHash: recipient, brand, flags } = code
    const mode = this.settings.modeAt(at)
    const found = flags.find(isOfGuard)
    if (recipient === null || (mode !== 'off' && !(found && mode === 'record'))) return false
    const isAllowedCountry = country !== null && this.settings.destinations.allowsCountry(country, brand)
    const phone = code.channel === 'SMS' ? { to: numberOf(recipient), country, isAllowedCountry } : null
    await this.readHistory()
    // The guard of that time knew prefixes, IP addresses and devices. The buckets of a home country deny nothing.
    if (mode === 'record' && found) {
      const { isDenied } = this.history.of(country ?? unknownCountry, isAllowedCountry, this.now)
      return !phone || !isOfCountries(found) || isDenied
    }
    if (at >= this.since) this.unjudged++
    const pass = this.guard.enter({ recipient, phone, ip: null, device: null, isTrustedUser: false })
    if (pass.isOpenToKnown && this.known.has(recipient)) pass.admitKnown()
    if (pass.verdict) pass.confirm()
    if (!isSent) pass.undo()
    return pass.verdict?.isDenied ?? false
  }

  private async readHistory(): Promise<void> {
    if (this.now < this.historyReadAt + historyMs) return
    this.historyReadAt = this.now
    this.countries = await this.verifiedHistory(this.now)
    this.history = new VerifiedHistory(this.countries, this.now)
    await this.guard.sync()
  }
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
