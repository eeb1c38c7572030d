import type {
  DeliveredMessage,
  ReportedMessage,
  ReportRejection,
  reportRanks,
} from '../delivery/delivery-reports.ts'
import type { Channel } from '../ground/contact.ts'
import { dayMs, type EpochMs, hourMs, minuteMs } from '../ground/time.ts'
import type { GuardCount } from '../guard/counts.ts'
import { unknownCountry } from '../guard/thresholds.ts'
import type { Spend } from '../money/spending.ts'
import {
  type Attempt,
  guardDecision,
  isBlocked,
  isReview,
  mayBeSent,
  type Operation,
  testAppId,
} from '../request/request-context.ts'
import type { SavedRequest } from './event-log.ts'

// Events are counted as they happen, since the event log may have millions of rows.

export type StatKind =
  | Operation
  | 'attempt'
  | 'report'
  | 'rejected'
  | 'late'
  | 'report-rejected'
  | 'verify-time'
  | 'forwarded-ignored'
  | 'issuer'
  | 'clock'
  | CountryStatKind
  | 'notify-sms'
  | 'guard'
  | 'spend'
  | 'limited'

/** Codes by SMS. `sms-verified-again`: verified, and not credited by the guard. */
type CountryStatKind = 'sms' | 'sms-verified' | 'sms-verified-again'

/**
 * `detail`: an error code, `validation_error destination`, `ok`, `replayed`, `review`, outcome and class, a report status, a bin in seconds, or a country.
 * Separated by spaces, of an accepted SMS: the outcome and the template; of `rejected`: the template and the reason of its
 * delivery report; of `late`: whether the attempt timed out; of `report-rejected`: why; of `guard`: a bucket, a verdict, a country and an app; of `spend`, which counts millionths: a currency, a country
 * and an app. Of `notify-sms`: a country and an app. Of `limited`: nothing, by the calls per minute of an app.
 */
export interface StatKey {
  readonly kind: StatKind
  readonly channel: Channel | ''
  readonly brand: string
  readonly provider: string
  readonly detail: string
  /** Of ended requests. */
  readonly app?: string | undefined
}

/** Charts compare minutes with those of the day before, and hours with those of the week before. */
export const statSteps = [
  { stepMs: minuteMs, retentionMs: 4 * dayMs },
  { stepMs: hourMs, retentionMs: 98 * dayMs },
  { stepMs: dayMs, retentionMs: 400 * dayMs },
] as const

export function requestStats(request: SavedRequest, error = 'ok'): StatKey[] {
  const { operation, channel, brand = '', attempts, verified, replayOf, limits } = request
  const app = request.app === testAppId ? undefined : request.app
  const taken = attempts.findLast(({ outcome }) => outcome === 'accepted' || outcome === 'unknown')
  const sender = operation === 'verify' || operation === 'notify' ? verified : taken
  const provider = sender?.provider ?? ''
  const cause = isBlocked(request, error) ? `${error} destination` : error
  const detail = replayOf === undefined ? cause : 'replayed'
  const ended: StatKey = { kind: operation, channel: channel ?? '', brand, provider, detail, app }
  if (limits.some(({ limit, refused }) => refused && limit === 'app-minute'))
    return [ended, { ...serverStat('limited', ''), app }]
  // No code was sent by SMS, or verified by the person who received it.
  if (isReview(request)) return [{ ...ended, detail: error === 'ok' ? 'review' : detail }]
  const ageMs = verified?.ageMs ?? null
  if (ageMs === null) return [ended]
  const bin = verifyBins.find((seconds) => ageMs <= seconds * 1000)
  return [
    ended,
    { ...ended, app: undefined, kind: 'verify-time', detail: bin === undefined ? 'more' : String(bin) },
  ]
}

export function attemptStat(
  attempt: Pick<Attempt, 'channel' | 'provider' | 'outcome' | 'errorClass' | 'template'>,
  brand = '',
): StatKey {
  const { channel, provider, outcome, errorClass } = attempt
  const template = channel === 'SMS' && outcome === 'accepted' ? attempt.template : null
  const second = errorClass ?? template
  const detail = second === null ? outcome : `${outcome} ${second}`
  return { kind: 'attempt', channel, brand, provider, detail }
}

function smsStat(kind: StatKind, detail: string, { brand = '', provider = '' } = {}): StatKey {
  return { kind, channel: 'SMS', brand, provider, detail }
}

export function reportStat(provider: string, status: keyof typeof reportRanks): StatKey | undefined {
  return status === 'pending' ? undefined : smsStat('report', status, { provider })
}

/** Of an SMS whose delivery report says that it failed. */
export function rejectedStat(
  { brand, template }: ReportedMessage,
  provider: string,
  reason: string | null,
): StatKey {
  return smsStat('rejected', `${template} ${reason ?? ''}`, { brand, provider })
}

/** Of a code that was delivered although its send failed. Undefined: it was not. */
export function lateStat(
  { brand, outcome, reason, error }: DeliveredMessage,
  provider: string,
): StatKey | undefined {
  if (outcome !== 'unknown' || error !== 'sms_failed') return undefined
  return smsStat('late', reason === timedOut ? timedOut : 'error', { brand, provider })
}

export const timedOut = 'time-out'

/** @param provider empty: none of this server */
export function rejectedReportStat(provider: string, why: ReportRejection): StatKey {
  return smsStat('report-rejected', why, { provider })
}

/** Upper bounds in seconds, from the send to the right code. */
export const verifyBins: readonly number[] = [5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300]

/** X-Forwarded-For of a peer outside TRUSTED_PROXIES (design D21). */
export const ignoredForwardedStat: StatKey = serverStat('forwarded-ignored', '')

/** A proof whose issuer is no URL. */
export const unnamedProofStat: StatKey = serverStat('issuer', '')

/** Counts seconds. @param byMs negative: the clock was set back */
export function clockStat(byMs: number): StatKey {
  return serverStat('clock', byMs < 0 ? 'back' : 'forward')
}

function serverStat(kind: StatKind, detail: string): StatKey {
  return { kind, channel: '', brand: '', provider: '', detail }
}

/** @param country ISO 3166-1, or null */
export function countryStat(kind: CountryStatKind, country: string | null): StatKey {
  return smsStat(kind, country ?? unknownCountry)
}

/** Of a code that may have been sent by SMS, or was verified. */
export function countryStatOf(request: SavedRequest): StatKey | undefined {
  const { operation, channel, country, attempts, verified, isUnreported = false } = request
  if (channel !== 'SMS' || isReview(request)) return undefined
  if (verified)
    return countryStat(verified.isCredited === false ? 'sms-verified-again' : 'sms-verified', country ?? null)
  const isSent = operation !== 'notify' && !isUnreported && attempts.some(mayBeSent)
  return isSent ? countryStat('sms', country ?? null) : undefined
}

/** Of a code that the guard denied, or would have denied. */
export function guardStat(request: SavedRequest, error: string | undefined): StatKey | undefined {
  const decision = guardDecision(request, error)
  const { channel, country, app, brand = '' } = request
  // An e-mail costs no SMS, and would count as one to no country.
  if (!decision || channel === 'EMAIL') return undefined
  const { bucket, verdict } = decision
  return smsStat('guard', `${bucket} ${verdict} ${country ?? unknownCountry} ${app}`, { brand })
}

export function guardCountOf(counted: Pick<Counted, 'brand' | 'detail' | 'count'>): GuardCount {
  const { brand, detail, count } = counted
  const [bucket, verdict, country = unknownCountry, ...app] = detail.split(' ') as [
    GuardCount['bucket'],
    GuardCount['verdict'],
    ...string[],
  ]
  return { bucket, verdict, country, app: app.join(' '), brand, count }
}

/** Of an SMS notification that may have been sent. */
export function notifyStat(country: string | null, app: string): StatKey {
  return smsStat('notify-sms', `${country ?? unknownCountry} ${app}`)
}

/** Its count is the price in millionths of the currency. */
export function spendStat({ currency, country, app, brand, provider }: Spend): StatKey {
  return smsStat('spend', `${currency} ${country ?? unknownCountry} ${app}`, { brand, provider })
}

export function spendOf({ brand, provider, detail }: Pick<StatKey, 'brand' | 'provider' | 'detail'>): Spend {
  const [currency = '', code = '', ...app] = detail.split(' ')
  const country = code === unknownCountry ? null : code
  return { currency, country, app: app.join(' '), brand, provider }
}

export interface Counted extends StatKey {
  readonly at: EpochMs
  readonly count: number
}
