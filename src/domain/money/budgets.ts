import type { Claim } from '../otp/limits.ts'
import type { EpochMs } from '../time.ts'

export const budgetPeriods = ['day', 'month'] as const
export type BudgetPeriod = (typeof budgetPeriods)[number]

/** A limit of money for a calendar period in UTC (design D42). */
export interface Budget {
  /** `server`, `brand:SLUG`, `app:APPID` or `country:CC`. */
  readonly scope: string
  readonly period: BudgetPeriod
  /** Millionths of `currency`. */
  readonly amountMicros: number
  /** ISO 4217, or `units`. */
  readonly currency: string
  /** Percentages that send an alert, ascending. */
  readonly alertAt: readonly number[]
  /** False: it only sends alerts. */
  readonly stops: boolean
  /** Until then it does not stop messages. Null: not lifted. */
  readonly liftedUntil: EpochMs | null
  readonly countsFrom: EpochMs
}

/** The start and the end (exclusive) of the period that contains `now`. */
export function periodOf(period: BudgetPeriod, now: number): { start: EpochMs; end: EpochMs } {
  const date = new Date(now)
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  return period === 'day'
    ? { start: Date.UTC(year, month, day), end: Date.UTC(year, month, day + 1) }
    : { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) }
}

/** The counter of what was spent. A budget that replaces another one has a new counter. */
export function counterOf({ scope, period, countsFrom }: Pick<Budget, 'scope' | 'period' | 'countsFrom'>): {
  readonly subject: readonly [string]
  readonly name: string
} {
  return { subject: [`budget:${scope}`], name: `${period}:${countsFrom}` }
}

export function budgetClaim(budget: Budget, micros: number, now: number): Claim {
  const { stops, liftedUntil, amountMicros, period } = budget
  const isStopping = stops && (liftedUntil === null || liftedUntil <= now)
  return {
    limit: 'budget',
    ...counterOf(budget),
    max: isStopping ? amountMicros : Number.MAX_SAFE_INTEGER,
    units: micros,
    windowMs: 0,
    endsAt: periodOf(period, now).end,
    counted: true,
    failure: 'rate_limited',
    scope: '',
  }
}
