import type { BreakerState } from '../delivery/breaker.ts'
import type { ReportRejection } from '../delivery/delivery-reports.ts'
import type { ClockStep } from '../ground/clock-watch.ts'
import type { Channel } from '../ground/contact.ts'
import type { SmsRoute } from '../ground/providers.ts'
import type { EpochMs } from '../ground/time.ts'
import type { LimitName } from '../request/limit-names.ts'
import type { Attempt } from '../request/request-context.ts'

export const periods = ['hour', 'day', 'month'] as const
export type Period = (typeof periods)[number]

export const periodWords: Readonly<Record<Period, string>> = {
  hour: 'in the last hour',
  day: 'in the last 24 hours',
  month: 'in the last 30 days',
}

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

export interface Point extends Figures {
  readonly at: EpochMs
}

/** What was tried in a step. Unknown results count as failed. */
export interface Tries {
  readonly at: EpochMs
  readonly failed: number
  readonly all: number
}

export interface Share extends Figures {
  readonly name: string
}

export interface FailureCount {
  readonly provider: string
  readonly errorClass: Attempt['errorClass']
  readonly count: number
}

export interface VerifyTimes {
  readonly count: number
  readonly bins: readonly { readonly upToSeconds: number | null; readonly count: number }[]
  /** Upper bounds of bins. Null: no values, or above all bounds. */
  readonly medianSeconds: number | null
  readonly p90Seconds: number | null
}

/** Codes of failed sends that were delivered after all, and do not verify. */
export interface LateCodes {
  readonly provider: string
  readonly count: number
  /** False: the provider answered an error, or the connection broke. */
  readonly hasTimedOut: boolean
}

/** Delivery reports that this server rejected. */
export interface RejectedReports {
  /** Empty: the URL names no provider of this server. */
  readonly provider: string
  readonly why: ReportRejection
  readonly count: number
}

export interface Statistics {
  readonly period: Period
  readonly from: EpochMs
  readonly until: EpochMs
  readonly stepMs: number
  readonly totals: Figures
  /** Oldest first, without gaps. */
  readonly points: readonly Point[]
  readonly byChannel: readonly Share[]
  readonly byBrand: readonly Share[]
  /** Delivery reports are counted by provider only. */
  readonly byProvider: readonly Share[]
  /** Of each provider, oldest first. Steps without attempts are left out. */
  readonly tries: ReadonlyMap<string, readonly Tries[]>
  readonly failures: readonly FailureCount[]
  readonly verifyTimes: VerifyTimes
  /** The most first. */
  readonly late: readonly LateCodes[]
  /** The most first. */
  readonly rejectedReports: readonly RejectedReports[]
  /** Of the clocks of servers, oldest first. `at`: the start of the step in which it was set. */
  readonly clockSteps: readonly ClockStep[]
  /** The start of the latest step in which X-Forwarded-For from outside TRUSTED_PROXIES was ignored. */
  readonly forwardedIgnoredAt: EpochMs | null
}

export interface ActiveLimit {
  readonly limit: LimitName
  readonly app: string | null
  readonly brand: string | null
  readonly recipient: string | null
  /** The scope of the budget that rejects. */
  readonly budget?: string
  readonly refusals: number
  readonly endsAt: EpochMs
}

export type LastHour = Pick<Figures, 'accepted' | 'failed' | 'unknown'>

export interface ProviderHealth extends Omit<BreakerState, 'provider'> {
  readonly name: string
  readonly channel: Channel
  readonly routes: readonly SmsRoute[]
  readonly lastHour: LastHour
  /** False: never, in the days that the statistics have. */
  readonly hasAccepted: boolean
}

/** Carriers and wrong numbers cause fewer failures than this on a normal day. */
const normalFailureShare = 0.1

/** Whether more fails than on a normal day. */
export function isTrouble(failures: number, tries: number): boolean {
  return failures > 0 && failures / tries >= normalFailureShare
}

export interface Stretch extends Omit<Tries, 'at'> {
  readonly from: EpochMs
  readonly until: EpochMs
}

/** Of the successive steps with trouble, those with the most failures. */
export function worstStretch(tries: readonly Tries[], stepMs: number): Stretch | undefined {
  let worst: Stretch | undefined
  let current: Stretch | undefined
  for (const { at, failed, all } of tries) {
    const { from, ...before }: Stretch = current ?? { from: at, until: at, failed: 0, all: 0 }
    current = isTrouble(failed, all)
      ? { from, until: at + stepMs, failed: before.failed + failed, all: before.all + all }
      : undefined
    if (current && current.failed > (worst?.failed ?? 0)) worst = current
  }
  return worst
}

/** The latest minute with a failure: of codes, of notifications, and by the name of a provider. */
export type LastFailures = ReadonlyMap<string, EpochMs>

export function conversion({ sends, verified }: Pick<Figures, 'sends' | 'verified'>): number | null {
  return sends === 0 ? null : verified / sends
}
