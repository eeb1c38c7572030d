import type { Channel } from '../contact.ts'
import type { BreakerState } from '../messages/breaker.ts'
import type { SmsRoute } from '../messages/providers.ts'
import type { LimitName } from '../otp/limits.ts'
import type { Attempt } from './request-context.ts'

/** 60 minutes, 24 hours, 30 days. */
export const periods = ['hour', 'day', 'month'] as const
export type Period = (typeof periods)[number]

/** Counts of a time span. A rejected request counts in `limited` or `refused` only. */
export const noFigures = {
  /** /otp/send and /otp/resend with success, and without any provider that accepted. */
  sends: 0,
  sendsFailed: 0,
  /** /notify with success, and with notification_failed. */
  notified: 0,
  notifyFailed: 0,
  /** `max_attempts` counts as a wrong code. */
  verified: 0,
  wrongCodes: 0,
  /** rate_limited, cooldown_active. */
  limited: 0,
  /** Brand not approved, suspended, or without the template. */
  refused: 0,
  /** Attempts. */
  accepted: 0,
  failed: 0,
  unknown: 0,
  /** Delivery reports. */
  delivered: 0,
  undelivered: 0,
}

export type Figures = Readonly<typeof noFigures>

/** One step of a period; `at` is its start, epoch milliseconds. */
export interface Point extends Figures {
  readonly at: number
}

/** The figures of one channel, brand or provider. */
export interface Share extends Figures {
  readonly name: string
}

export interface FailureCount {
  readonly provider: string
  /** Null: unknown. */
  readonly errorClass: Attempt['errorClass']
  readonly count: number
}

/** From the message to the right code. */
export interface VerifyTimes {
  readonly count: number
  /** Ascending; null: longer than all others. */
  readonly bins: readonly { readonly upToSeconds: number | null; readonly count: number }[]
  /** Upper bounds of the bins; null: none, or beyond all bins. */
  readonly medianSeconds: number | null
  readonly p90Seconds: number | null
}

export interface Statistics {
  readonly period: Period
  /** Epoch milliseconds. */
  readonly from: number
  readonly until: number
  readonly stepMs: number
  readonly totals: Figures
  /** Oldest first, without gaps. */
  readonly points: readonly Point[]
  readonly byChannel: readonly Share[]
  readonly byBrand: readonly Share[]
  /** Delivery reports are counted by provider only. */
  readonly byProvider: readonly Share[]
  readonly failures: readonly FailureCount[]
  readonly verifyTimes: VerifyTimes
}

/** A limit that rejects requests now. */
export interface Limited {
  readonly limit: LimitName
  /** Null: not a limit of one app. */
  readonly app: string | null
  readonly brand: string | null
  /** Masked. */
  readonly recipient: string | null
  /** In this window. */
  readonly refusals: number
  /** Epoch milliseconds. */
  readonly endsAt: number
}

export type LastHour = Pick<Figures, 'accepted' | 'failed' | 'unknown'>

export interface ProviderHealth extends Omit<BreakerState, 'provider'> {
  readonly name: string
  readonly channel: Channel
  /** Empty for mail. */
  readonly routes: readonly SmsRoute[]
  readonly lastHour: LastHour
}

/** Verified of sent; null where nothing was sent. */
export function conversion({ sends, verified }: Pick<Figures, 'sends' | 'verified'>): number | null {
  return sends === 0 ? null : verified / sends
}
