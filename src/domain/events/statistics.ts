import type { Channel } from '../contact.ts'
import type { SmsRoute } from '../messages/providers.ts'
import type { LimitName } from '../otp/limits.ts'
import type { Attempt } from './request-context.ts'

/** The spans that an operator looks back over: 60 minutes by the minute, 24 hours by the hour, 30 days by the day. */
export const periods = ['hour', 'day', 'month'] as const
export type Period = (typeof periods)[number]

/** What happened in a span of time. Each is a whole number; a request that was refused counts nowhere but there. */
export interface Figures {
  /** Codes handed over: /otp/send and /otp/resend answered with success. */
  readonly sends: number
  /** Codes that no provider took. */
  readonly sendsFailed: number
  /** /notify answered with success, and with notification_failed. */
  readonly notified: number
  readonly notifyFailed: number
  /** Right codes, and wrong ones; whatever is tried after three wrong ones is wrong too. */
  readonly verified: number
  readonly wrongCodes: number
  /** Requests that a limit refused: rate_limited, cooldown_active. */
  readonly limited: number
  /** Requests whose brand may not send: it is unknown, pending or suspended, or has not enabled the template. */
  readonly refused: number
  /** Messages that providers took, by attempt, and attempts that failed or were left open. */
  readonly accepted: number
  readonly failed: number
  readonly unknown: number
  /** What delivery reports said of messages. */
  readonly delivered: number
  readonly undelivered: number
}

/** The figures of one step of a period; `at` is when it begins, epoch milliseconds. */
export interface Point extends Figures {
  readonly at: number
}

/** The figures of one channel, brand or provider. */
export interface Share extends Figures {
  readonly name: string
}

/** Failed attempts of one kind. */
export interface FailureCount {
  readonly provider: string
  /** Null: it was left open, as after a time-out, or not known. */
  readonly errorClass: Attempt['errorClass']
  readonly count: number
}

/** How long people took from the SMS or mail to the right code. */
export interface VerifyTimes {
  readonly count: number
  /** Ascending; null: longer than all others. */
  readonly bins: readonly { readonly upToSeconds: number | null; readonly count: number }[]
  /** Upper bounds of the bins in which the median and the 90th percentile lie; null: nobody did, or beyond all bins. */
  readonly medianSeconds: number | null
  readonly p90Seconds: number | null
}

/** What the service did in a period, for one who looks at it. */
export interface Statistics {
  readonly period: Period
  /** Epoch milliseconds: from the beginning of the first step until now. */
  readonly from: number
  readonly until: number
  readonly stepMs: number
  readonly totals: Figures
  /** Oldest first, without gaps. */
  readonly points: readonly Point[]
  readonly byChannel: readonly Share[]
  readonly byBrand: readonly Share[]
  /** Delivery reports are counted by provider alone. */
  readonly byProvider: readonly Share[]
  readonly failures: readonly FailureCount[]
  readonly verifyTimes: VerifyTimes
}

/** A limit that refuses requests now. */
export interface Limited {
  readonly limit: LimitName
  /** Where it is a limit of the app; null: it holds over all apps. */
  readonly app: string | null
  readonly brand: string | null
  /** Masked. */
  readonly recipient: string | null
  /** Requests it has refused in this window. */
  readonly refusals: number
  /** Epoch milliseconds at which it frees. */
  readonly endsAt: number
}

/** What a provider was asked within the last hour, by attempt. */
export type LastHour = Pick<Figures, 'accepted' | 'failed' | 'unknown'>

/** How a provider is doing. */
export interface ProviderHealth {
  readonly name: string
  readonly channel: Channel
  /** The routes it is on; empty for mail. */
  readonly routes: readonly SmsRoute[]
  /** See `BreakerState`. */
  readonly state: 'closed' | 'open' | 'half-open'
  readonly failuresInARow: number
  /** How much longer its circuit is open; 0 unless it is. */
  readonly openMs: number
  readonly lastHour: LastHour
}

/** Verified of sent; null where nothing was sent. */
export function conversion({ sends, verified }: Pick<Figures, 'sends' | 'verified'>): number | null {
  return sends === 0 ? null : verified / sends
}
