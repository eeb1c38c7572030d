import type {
  DeliveredMessage,
  ReportedMessage,
  ReportRejection,
  reportRanks,
} from '../delivery/delivery-reports.ts'
import type { ClockStep } from '../ground/clock-watch.ts'
import type { Channel } from '../ground/contact.ts'
import { dayMs, type EpochMs, hourMs, minuteMs } from '../ground/time.ts'
import { unknownCountry } from '../guard/bucket.ts'
import type { GuardCount } from '../guard/counts.ts'
import type { Spend } from '../money/spending.ts'
import {
  type Attempt,
  guardDecision,
  isBlocked,
  isReview,
  mayBeSent,
  type Operation,
} from '../request/request-context.ts'
import type { SavedRequest } from './event-log.ts'
import { callResults } from './log-search.ts'
import {
  type FailureCount,
  type Figures,
  type LastFailures,
  type LastHour,
  noFigures,
  type Period,
  type Point,
  type Share,
  type Statistics,
  type VerifyTimes,
} from './statistics.ts'

// Events are counted as they happen, since the event log may have millions of rows.

type StatKind =
  | Operation
  | 'attempt'
  | 'report'
  | 'rejected'
  | 'late'
  | 'report-rejected'
  | 'verify-time'
  | 'forwarded-ignored'
  | 'clock'
  | CountryStatKind
  | 'guard'
  | 'spend'

/** Codes by SMS. */
type CountryStatKind = 'sms' | 'sms-verified'

/**
 * `detail`: an error code, `validation_error destination`, `ok`, `replayed`, `review`, outcome and class, a report status, a bin in seconds, or a country.
 * Separated by spaces, of an accepted SMS: the outcome and the template; of `rejected`: the template and the reason of its
 * delivery report; of `late`: whether the attempt timed out; of `report-rejected`: why; of `guard`: a bucket, a verdict, a country and an app; of `spend`, which counts millionths: a currency, a country
 * and an app.
 */
export interface StatKey {
  readonly kind: StatKind
  readonly channel: Channel | ''
  readonly brand: string
  readonly provider: string
  readonly detail: string
}

export const statSteps = [
  { stepMs: minuteMs, retentionMs: 2 * hourMs },
  { stepMs: hourMs, retentionMs: 2 * dayMs },
  { stepMs: dayMs, retentionMs: 400 * dayMs },
] as const

export const periodSteps: Readonly<Record<Period, { readonly stepMs: number; readonly count: number }>> = {
  hour: { stepMs: minuteMs, count: 60 },
  day: { stepMs: hourMs, count: 24 },
  month: { stepMs: dayMs, count: 30 },
}

export function requestStats(request: SavedRequest, error = 'ok'): StatKey[] {
  const { operation, channel, brand = '', attempts, verified, replayOf } = request
  const taken = attempts.findLast(({ outcome }) => outcome === 'accepted' || outcome === 'unknown')
  const sender = operation === 'send' || operation === 'resend' ? taken : verified
  const about = { channel: channel ?? '', brand, provider: sender?.provider ?? '' } as const
  const cause = isBlocked(request, error) ? `${error} destination` : error
  const detail = replayOf === undefined ? cause : 'replayed'
  const ended: StatKey = { kind: operation, ...about, detail }
  // No code was sent by SMS, or verified by the person who received it.
  if (isReview(request)) return [{ ...ended, detail: error === 'ok' ? 'review' : detail }]
  if (!verified) return [ended]
  const bin = verifyBins.find((seconds) => verified.ageMs <= seconds * 1000)
  return [ended, { kind: 'verify-time', ...about, detail: bin === undefined ? 'more' : String(bin) }]
}

export function attemptStat(
  attempt: Pick<Attempt, 'channel' | 'provider' | 'outcome' | 'errorClass' | 'template'>,
  brand = '',
): StatKey {
  const { channel, provider, outcome, errorClass } = attempt
  const template = channel === 'SMS' && outcome === 'accepted' ? attempt.template : null
  const second = errorClass ?? template
  return {
    kind: 'attempt',
    channel,
    brand,
    provider,
    detail: second === null ? outcome : `${outcome} ${second}`,
  }
}

export function reportStat(provider: string, status: keyof typeof reportRanks): StatKey | undefined {
  if (status === 'pending') return undefined
  return { kind: 'report', channel: 'SMS', brand: '', provider, detail: status }
}

/** Of an SMS whose delivery report says that it failed. */
export function rejectedStat(
  { brand, template }: ReportedMessage,
  provider: string,
  reason: string | null,
): StatKey {
  return { kind: 'rejected', channel: 'SMS', brand, provider, detail: `${template} ${reason ?? ''}` }
}

/** Of a code that was delivered although its send failed. Undefined: it was not. */
export function lateStat(
  { brand, outcome, reason, error }: DeliveredMessage,
  provider: string,
): StatKey | undefined {
  if (outcome !== 'unknown' || error !== 'sms_failed') return undefined
  return { kind: 'late', channel: 'SMS', brand, provider, detail: reason === timedOut ? timedOut : 'error' }
}

const timedOut = 'time-out'

/** @param provider empty: none of this server */
export function rejectedReportStat(provider: string, why: ReportRejection): StatKey {
  return { kind: 'report-rejected', channel: 'SMS', brand: '', provider, detail: why }
}

/** Upper bounds in seconds, from the send to the right code. */
export const verifyBins = [5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300] as const

/** X-Forwarded-For of a peer outside TRUSTED_PROXIES (design D21). */
export const ignoredForwardedStat: StatKey = {
  kind: 'forwarded-ignored',
  channel: '',
  brand: '',
  provider: '',
  detail: '',
}

/** Counts seconds. @param byMs negative: the clock was set back */
export function clockStat(byMs: number): StatKey {
  return { kind: 'clock', channel: '', brand: '', provider: '', detail: byMs < 0 ? 'back' : 'forward' }
}

/** @param country ISO 3166-1, or null */
export function countryStat(kind: CountryStatKind, country: string | null): StatKey {
  return { kind, channel: 'SMS', brand: '', provider: '', detail: country ?? unknownCountry }
}

/** Of a code that may have been sent by SMS, or was verified. */
export function countryStatOf(request: SavedRequest): StatKey | undefined {
  const { operation, channel, country, attempts, verified } = request
  if (channel !== 'SMS' || isReview(request)) return undefined
  if (verified) return countryStat('sms-verified', country ?? null)
  const isSent = operation !== 'notify' && attempts.some(mayBeSent)
  return isSent ? countryStat('sms', country ?? null) : undefined
}

/** Of a code that the guard denied, or would have denied. */
export function guardStat(request: SavedRequest, error: string | undefined): StatKey | undefined {
  const decision = guardDecision(request, error)
  if (!decision) return undefined
  const { bucket, verdict } = decision
  const { country, app, brand = '' } = request
  const detail = `${bucket} ${verdict} ${country ?? unknownCountry} ${app}`
  return { kind: 'guard', channel: 'SMS', brand, provider: '', detail }
}

export function guardCountOf({
  brand,
  detail,
  count,
}: Pick<Counted, 'brand' | 'detail' | 'count'>): GuardCount {
  const [bucket, verdict, country = unknownCountry, ...app] = detail.split(' ') as [
    GuardCount['bucket'],
    GuardCount['verdict'],
    ...string[],
  ]
  return { bucket, verdict, country, app: app.join(' '), brand, count }
}

/** Its count is the price in millionths of the currency. */
export function spendStat({ currency, country, app, brand, provider }: Spend): StatKey {
  return {
    kind: 'spend',
    channel: 'SMS',
    brand,
    provider,
    detail: `${currency} ${country ?? unknownCountry} ${app}`,
  }
}

export function spendOf({ brand, provider, detail }: Pick<StatKey, 'brand' | 'provider' | 'detail'>): Spend {
  const [currency = '', country = '', ...app] = detail.split(' ')
  return {
    currency,
    country: country === unknownCountry ? null : country,
    app: app.join(' '),
    brand,
    provider,
  }
}

export interface Counted extends StatKey {
  readonly at: EpochMs
  readonly count: number
}

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
  return figureNames.get(`${kind === 'resend' ? 'send' : kind} ${detail.split(' ')[0]}`)
}

export function periodStart(period: Period, now: number): number {
  const { stepMs, count } = periodSteps[period]
  return Math.floor(now / stepMs) * stepMs - (count - 1) * stepMs
}

/** The starts of all steps of a period, oldest first. */
export function stepsOf(period: Period, now: number): readonly EpochMs[] {
  const { stepMs, count } = periodSteps[period]
  const from = periodStart(period, now)
  return Array.from({ length: count }, (_, index) => from + index * stepMs)
}

const notedKinds: readonly StatKind[] = ['late', 'report-rejected', 'clock', 'forwarded-ignored']

/** Add the counts of its steps, oldest first. */
export class StatisticsSum {
  private readonly from: EpochMs
  private readonly totals: typeof noFigures = { ...noFigures }
  private readonly steps: ReadonlyMap<number, typeof noFigures>
  private readonly channels = new Shares()
  private readonly brands = new Shares()
  private readonly providers = new Shares()
  private readonly tries = new Map<string, Map<EpochMs, { failed: number; all: number }>>()
  private readonly failures = new Map<string, FailureCount>()
  private readonly times: Counted[] = []
  /** Of kinds that have no figure. */
  private readonly noted: Counted[] = []

  constructor(
    private readonly period: Period,
    private readonly now: number,
  ) {
    this.from = periodStart(period, now)
    this.steps = new Map(stepsOf(period, now).map((at) => [at, { ...noFigures }]))
  }

  add(statKey: Counted): void {
    if (statKey.kind === 'verify-time') this.times.push(statKey)
    if (notedKinds.includes(statKey.kind)) this.noted.push(statKey)
    const figure = figureOf(statKey)
    if (figure === undefined) return
    const { at, channel, brand, provider, count } = statKey
    this.totals[figure] += count
    const shares = [this.channels.of(channel), this.brands.of(brand), this.providers.of(provider)]
    for (const figures of [this.steps.get(at), ...shares]) if (figures) figures[figure] += count
    if (statKey.kind === 'attempt') this.addTries(statKey, figure !== 'accepted')
    if (statKey.kind === 'attempt' && (figure === 'failed' || figure === 'unknown')) this.addFailure(statKey)
  }

  private addTries({ at, provider, count }: Counted, isFailure: boolean): void {
    const steps = this.tries.get(provider) ?? new Map<EpochMs, { failed: number; all: number }>()
    const step = steps.get(at) ?? { failed: 0, all: 0 }
    step.all += count
    if (isFailure) step.failed += count
    this.tries.set(provider, steps.set(at, step))
  }

  private addFailure({ provider, detail, count }: Counted): void {
    const [, errorClass = null] = detail.split(' ') as [string, FailureCount['errorClass']?]
    const key = `${provider} ${errorClass}`
    const before = this.failures.get(key)?.count ?? 0
    this.failures.set(key, { provider, errorClass, count: before + count })
  }

  get statistics(): Statistics {
    return {
      period: this.period,
      from: this.from,
      until: this.now,
      stepMs: periodSteps[this.period].stepMs,
      totals: this.totals,
      points: Array.from(this.steps, ([at, figures]): Point => ({ at, ...figures })),
      byChannel: this.channels.list(),
      byBrand: this.brands.list(),
      byProvider: this.providers.list(),
      tries: new Map(
        Array.from(this.tries, ([name, steps]) => [
          name,
          Array.from(steps, ([at, step]) => ({ at, ...step })).sort((one, other) => one.at - other.at),
        ]),
      ),
      failures: [...this.failures.values()].sort((a, b) => b.count - a.count),
      verifyTimes: verifyTimes(this.times),
      late: providerCounts(this.noted, 'late').map(({ provider, detail, count }) => ({
        provider,
        count,
        hasTimedOut: detail === timedOut,
      })),
      rejectedReports: providerCounts(this.noted, 'report-rejected').map(({ provider, detail, count }) => ({
        provider,
        why: detail === 'signature' || detail === 'form' ? detail : 'url',
        count,
      })),
      clockSteps: clockStepsOf(this.noted.filter(({ kind }) => kind === 'clock')),
      forwardedIgnoredAt: this.noted.findLast(({ kind }) => kind === 'forwarded-ignored')?.at ?? null,
    }
  }
}

/** By channel and provider (`wayName`), since `outbox` serves both channels. */
export function lastHourOf(counted: readonly Counted[]): ReadonlyMap<string, LastHour> {
  const ways = new Map<string, { accepted: number; failed: number; unknown: number }>()
  for (const statKey of counted) {
    const figure = figureOf(statKey)
    if (figure !== 'accepted' && figure !== 'failed' && figure !== 'unknown') continue
    const name = wayName(statKey.channel, statKey.provider)
    const way = ways.get(name) ?? { accepted: 0, failed: 0, unknown: 0 }
    way[figure] += statKey.count
    ways.set(name, way)
  }
  return ways
}

/** @param counted of minutes */
export function lastFailuresOf(counted: readonly Counted[]): LastFailures {
  const latest = new Map<string, EpochMs>()
  for (const statKey of counted) {
    const figure = figureOf(statKey)
    const isAttempt = figure === 'failed' || figure === 'unknown'
    if (!isAttempt && figure !== 'sendsFailed' && figure !== 'notifyFailed') continue
    const name = isAttempt ? statKey.provider : figure
    latest.set(name, Math.max(statKey.at, latest.get(name) ?? 0))
  }
  return latest
}

export function wayName(channel: Channel | '', provider: string): string {
  return `${channel} ${provider}`
}

class Shares {
  private readonly byName = new Map<string, typeof noFigures>()

  of(name: string): typeof noFigures | undefined {
    if (name === '') return undefined
    const known = this.byName.get(name)
    if (known) return known
    const fresh = { ...noFigures }
    this.byName.set(name, fresh)
    return fresh
  }

  list(): Share[] {
    const busy = ({ sends, notified, accepted, limited, refused, blocked }: Figures) =>
      sends + notified + accepted + limited + refused + blocked
    return Array.from(this.byName, ([name, figures]): Share => ({ name, ...figures })).sort(
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
function clockStepsOf(counts: readonly Counted[]): readonly ClockStep[] {
  return counts.map(({ at, detail, count }) => ({ at, byMs: count * (detail === 'back' ? -1000 : 1000) }))
}

function verifyTimes(counted: readonly Counted[]): VerifyTimes {
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
  return { count, bins, medianSeconds: quantile(0.5), p90Seconds: quantile(0.9) }
}
