import type { BreakerState } from '../delivery/breaker.ts'
import type { ReportRejection } from '../delivery/delivery-reports.ts'
import type { ClockStep } from '../ground/clock-watch.ts'
import type { Channel } from '../ground/contact.ts'
import type { PhoneRoute } from '../ground/providers.ts'
import { type EpochMs, minuteMs } from '../ground/time.ts'
import type { LimitName } from '../request/limit-names.ts'
import type { Attempt } from '../request/request-context.ts'
import { callResults } from './log-search.ts'
import { type Range, rangeOf, stepsOf } from './ranges.ts'
import { type Counted, type StatKey, type StatKind, timedOut, verifyBins } from './stats.ts'

/** Counts of a time span. A rejected request counts only in `limited`, `refused` or `blocked`. */
export const noFigures = {
  /** /otp/send and /otp/resend: success, and no provider accepted the code. */
  sends: 0,
  sendsFailed: 0,
  notified: 0,
  notifyFailed: 0,
  verified: 0,
  wrongCodes: 0,
  limited: 0,
  /** Brand not approved, suspended, or without the template. */
  refused: 0,
  /** The destination is blocked. */
  blocked: 0,
  accepted: 0,
  failed: 0,
  unknown: 0,
  delivered: 0,
  undelivered: 0,
}

export type Figures = Readonly<typeof noFigures>

export type Statistics = StatisticsSum['statistics']
export type Point = Statistics['points'][number]
export type Share = ReturnType<Shares['list']>[number]
/** Codes of failed sends that were delivered after all, and do not verify. */
export type LateCodes = Statistics['late'][number]
/** Delivery reports that this server rejected. */
export type RejectedReports = Statistics['rejectedReports'][number]

/** What was tried in a step. Unknown results count as failed. */
export interface Tries {
  readonly at: EpochMs
  readonly failed: number
  readonly all: number
}

export interface ActiveLimit {
  readonly limit: LimitName
  readonly app: string | null
  readonly brand: string | null
  readonly recipient: string | null
  readonly refusals: number
  readonly endsAt: EpochMs
}

export type LastHour = Pick<Figures, 'accepted' | 'failed' | 'unknown'>

export interface ProviderHealth extends Omit<BreakerState, 'provider'> {
  readonly name: string
  readonly channel: Channel
  readonly routes: readonly PhoneRoute[]
  readonly lastHour: LastHour
  /** It delivers nothing. */
  readonly isForDevelopment?: boolean
  /** False: never, in the days that the statistics have. */
  readonly hasAccepted: boolean
  /** Null: operators have not paused it. */
  readonly pausedUntil: EpochMs | null
}

/** What a server knows of its providers itself. */
export type ProviderCircuit = Omit<ProviderHealth, 'lastHour' | 'hasAccepted' | 'pausedUntil'>

type ErrorClass = Attempt['errorClass']

const figureNames: ReadonlyMap<string, keyof Figures> = new Map([
  ['send ok', 'sends'],
  ['send sms_failed', 'sendsFailed'],
  ['send internal_error', 'sendsFailed'],
  ['notify ok', 'notified'],
  ['notify notification_failed', 'notifyFailed'],
  ['notify internal_error', 'notifyFailed'],
  ['verify ok', 'verified'],
  ['verify mismatch', 'wrongCodes'],
  ['verify max_attempts', 'wrongCodes'],
  ['attempt accepted', 'accepted'],
  ['attempt unknown', 'unknown'],
  ['attempt rejected', 'failed'],
  ['attempt retryable', 'failed'],
  ['report delivered', 'delivered'],
  ['report failed', 'undelivered'],
])
const brandErrors: ReadonlySet<string> = new Set(callResults.brand.errors)
const limitErrors: ReadonlySet<string> = new Set(callResults.limited.errors)

function figureOf({ kind, detail }: Pick<StatKey, 'kind' | 'detail'>): keyof Figures | undefined {
  if (limitErrors.has(detail)) return 'limited'
  if (brandErrors.has(detail)) return 'refused'
  if (detail === 'validation_error destination') return 'blocked'
  return figureNames.get(`${kind === 'resend' || kind === 'relay' ? 'send' : kind} ${detail.split(' ')[0]}`)
}

const notedKinds: readonly StatKind[] = ['late', 'report-rejected', 'clock', 'forwarded-ignored', 'issuer']

/** The kinds that `StatisticsSum` reads. */
export const countedKinds: readonly StatKind[] = [
  ...(['send', 'resend', 'relay', 'verify', 'notify', 'attempt', 'report', 'verify-time'] as const),
  ...notedKinds,
]

/** Add the counts of its steps, oldest first. */
export class StatisticsSum {
  private readonly totals: typeof noFigures = { ...noFigures }
  private readonly steps: ReadonlyMap<number, typeof noFigures>
  private readonly brands = new Shares()
  private readonly providers = new Shares()
  private readonly tries = new Map<string, Map<EpochMs, { failed: number; all: number }>>()
  private readonly failures = new Map<string, { provider: string; errorClass: ErrorClass; count: number }>()
  private readonly times: Counted[] = []
  /** Of kinds that have no figure. */
  private readonly noted: Counted[] = []

  constructor(private readonly range: Range) {
    this.steps = new Map(stepsOf(range).map((at) => [at, { ...noFigures }]))
  }

  add(statKey: Counted): void {
    if (statKey.kind === 'verify-time') this.times.push(statKey)
    if (notedKinds.includes(statKey.kind)) this.noted.push(statKey)
    const figure = figureOf(statKey)
    if (figure === undefined) return
    const { at, brand, provider, count } = statKey
    this.totals[figure] += count
    const shares = [this.brands.of(brand), this.providers.of(provider)]
    for (const figures of [this.steps.get(at), ...shares]) if (figures) figures[figure] += count
    if (statKey.kind === 'attempt') this.addTries(statKey, figure !== 'accepted')
    if (statKey.kind === 'attempt' && (figure === 'failed' || figure === 'unknown')) this.addFailure(statKey)
  }

  private addTries({ at, provider, count }: Counted, isFailure: boolean): void {
    const steps = this.tries.getOrInsertComputed(provider, () => new Map())
    const step = steps.getOrInsertComputed(at, () => ({ failed: 0, all: 0 }))
    step.all += count
    if (isFailure) step.failed += count
  }

  private addFailure({ provider, detail, count }: Counted): void {
    const [, errorClass = null] = detail.split(' ') as [string, ErrorClass?]
    const none = () => ({ provider, errorClass, count: 0 })
    this.failures.getOrInsertComputed(`${provider} ${errorClass}`, none).count += count
  }

  get statistics() {
    const triesIn = (steps: ReadonlyMap<EpochMs, Omit<Tries, 'at'>>): readonly Tries[] =>
      Array.from(steps, ([at, step]) => ({ at, ...step })).sort((one, other) => one.at - other.at)
    return {
      ...this.range,
      totals: this.totals as Figures,
      /** Oldest first, without gaps. */
      points: Array.from(this.steps, ([at, figures]) => ({ at, ...figures })),
      byBrand: this.brands.list(),
      /** Delivery reports are counted by provider only. */
      byProvider: this.providers.list(),
      /** Of each provider, oldest first. Steps without attempts are left out. */
      tries: new Map(Array.from(this.tries, ([name, steps]) => [name, triesIn(steps)])),
      failures: [...this.failures.values()].sort((a, b) => b.count - a.count),
      verifyTimes: verifyTimes(this.times),
      /** The most first. Not timed out: the provider answered an error, or the connection broke. */
      late: providerCounts(this.noted, 'late').map(({ provider, detail, count }) => {
        return { provider, count, hasTimedOut: detail === timedOut }
      }),
      /** The most first. Without a provider: the URL names none of this server. */
      rejectedReports: providerCounts(this.noted, 'report-rejected').map(({ provider, detail, count }) => {
        const why: ReportRejection = detail === 'signature' || detail === 'form' ? detail : 'url'
        return { provider, why, count }
      }),
      /** Of the clocks of servers, oldest first. `at`: the start of the step in which it was set. */
      clockSteps: this.noted.filter(({ kind }) => kind === 'clock').map(clockStepOf),
      /** The start of the latest step in which X-Forwarded-For from outside TRUSTED_PROXIES was ignored. */
      forwardedIgnoredAt: this.noted.findLast(({ kind }) => kind === 'forwarded-ignored')?.at ?? null,
      /** The start of the latest step with a proof that was signed without PUBLIC_URL. */
      unnamedProofAt: this.noted.findLast(({ kind }) => kind === 'issuer')?.at ?? null,
    }
  }
}

/** The last minutes, for what goes on now. */
export interface Lately {
  readonly hour: Statistics
  readonly fiveMinutes: Statistics
  /** Attempts of the last hour, by `wayName`. */
  readonly ways: ReadonlyMap<string, LastHour>
}

/** @param counted by minute, of the last hour */
export function latelyOf(counted: readonly Counted[], now: EpochMs): Lately {
  const hour = new StatisticsSum(rangeOf('hour', now))
  const fiveMinutes = new StatisticsSum(rangeOf('hour', now))
  for (const statKey of counted) {
    hour.add(statKey)
    if (statKey.at > now - 5 * minuteMs) fiveMinutes.add(statKey)
  }
  return { hour: hour.statistics, fiveMinutes: fiveMinutes.statistics, ways: waysOf(counted) }
}

/** By channel and provider (`wayName`), since `outbox` serves both channels. */
function waysOf(counted: readonly Counted[]): ReadonlyMap<string, LastHour> {
  const ways = new Map<string, { -readonly [Figure in keyof LastHour]: number }>()
  for (const statKey of counted) {
    const figure = figureOf(statKey)
    if (figure !== 'accepted' && figure !== 'failed' && figure !== 'unknown') continue
    const name = wayName(statKey.channel, statKey.provider)
    const none = () => ({ accepted: 0, failed: 0, unknown: 0 })
    ways.getOrInsertComputed(name, none)[figure] += statKey.count
  }
  return ways
}

/** Of the last 10 minutes. @param hour by minute */
export function lastFailuresOf({ points, tries, until }: Statistics): LastFailures {
  const isRecent = ({ at }: { readonly at: EpochMs }) => at + 11 * minuteMs > until
  const last = (name: string, all: readonly Tries[]) => {
    const found = all.findLast((each) => isRecent(each) && each.failed > 0)
    return found ? [[name, found.at] as const] : []
  }
  const requests = (['sendsFailed', 'notifyFailed'] as const).flatMap((figure) =>
    last(
      figure,
      points.map((point) => ({ at: point.at, failed: point[figure], all: point[figure] })),
    ),
  )
  return new Map([...requests, ...[...tries].flatMap(([name, all]) => last(name, all))])
}

export function wayName(channel: Channel | '', provider: string): string {
  return `${channel} ${provider}`
}

class Shares {
  private readonly byName = new Map<string, typeof noFigures>()

  of(name: string): typeof noFigures | undefined {
    return name === '' ? undefined : this.byName.getOrInsertComputed(name, () => ({ ...noFigures }))
  }

  list() {
    const busy = ({ sends, notified, accepted, limited, refused, blocked }: Figures) =>
      sends + notified + accepted + limited + refused + blocked
    return Array.from(this.byName, ([name, figures]) => ({ name, ...figures })).sort(
      (a, b) => busy(b) - busy(a) || (a.name < b.name ? -1 : 1),
    )
  }
}

/** Of this kind, by provider and detail; the most first. */
function providerCounts(
  counts: readonly Counted[],
  kind: StatKind,
): readonly Pick<Counted, 'provider' | 'detail' | 'count'>[] {
  const own = counts.filter((each) => each.kind === kind)
  return [...Map.groupBy(own, ({ provider, detail }) => `${provider} ${detail}`).values()]
    .map((all) => all.reduce((sum, each) => ({ ...each, count: sum.count + each.count })))
    .sort((one, other) => other.count - one.count)
}

/** `clockStat` counts seconds. */
function clockStepOf({ at, detail, count }: Counted): ClockStep {
  return { at, byMs: count * (detail === 'back' ? -1000 : 1000) }
}

/** The times are upper bounds of bins. Null: no values, or above all bounds. */
function verifyTimes(counted: readonly Counted[]) {
  const bins = [...verifyBins, null].map((upToSeconds) => {
    const detail = upToSeconds === null ? 'more' : String(upToSeconds)
    const own = counted.filter((statKey) => statKey.detail === detail)
    return { upToSeconds, count: own.reduce((sum, statKey) => sum + statKey.count, 0) }
  })
  const count = bins.reduce((sum, bin) => sum + bin.count, 0)
  const quantile = (share: number) => {
    let seen = 0
    for (const bin of bins) {
      seen += bin.count
      if (count > 0 && seen >= share * count) return bin.upToSeconds
    }
    return null
  }
  return {
    count,
    medianSeconds: quantile(0.5),
    p90Seconds: quantile(0.9),
    p95Seconds: quantile(0.95),
  }
}

/** Carriers and wrong numbers cause fewer failures than this on a normal day. */
const normalFailureShare = 0.1

/** Whether more fails than on a normal day. @param share from which it does */
export function isTrouble(failures: number, tries: number, share = normalFailureShare): boolean {
  return failures > 0 && failures / tries >= share
}

const longestPauseMs = 10 * minuteMs

/** When the trouble of the latest steps began. A short time without it does not end it. */
export function troubleSince(tries: readonly Tries[], stepMs: number, share?: number): EpochMs | undefined {
  let since: EpochMs | undefined
  let last = Number.NEGATIVE_INFINITY
  for (const { at, failed, all } of tries) {
    if (!isTrouble(failed, all, share)) continue
    if (at - last > Math.max(longestPauseMs, stepMs)) since = at
    last = at
  }
  return since
}

export function sumOfTries(tries: readonly Omit<Tries, 'at'>[]): Omit<Tries, 'at'> {
  const sum = (of: 'failed' | 'all') => tries.reduce((total, each) => total + each[of], 0)
  return { failed: sum('failed'), all: sum('all') }
}

/** The latest minute with a failure: of codes, of notifications, and by the name of a provider. */
export type LastFailures = ReadonlyMap<string, EpochMs>

export function conversion({ sends, verified }: Pick<Figures, 'sends' | 'verified'>): number | null {
  return sends === 0 ? null : verified / sends
}
