import { instant, type Listing } from '../ground/listing.ts'
import { type CalendarPeriod, type EpochMs, hourMs, periodOf } from '../ground/time.ts'
import type { Claim } from '../limits/limits.ts'
import { formatMicros, type Micros } from './amounts.ts'

/** A limit of money for a calendar period in UTC (design D42). */
export interface Budget {
  /** `server`, `brand:SLUG`, `app:APPID` or `country:CC`. */
  readonly scope: string
  readonly period: CalendarPeriod
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

/** The counter of what was spent. A budget that replaces another one has a new counter. */
export function counterOf({ scope, period, countsFrom }: Pick<Budget, 'scope' | 'period' | 'countsFrom'>): {
  readonly subject: readonly [string]
  readonly name: string
} {
  return { subject: [`budget:${scope}`], name: `${period}:${countsFrom}` }
}

/** Whether it rejects messages once it is exhausted. */
function isStopping({ stops, liftedUntil }: Budget, now: number): boolean {
  return stops && (liftedUntil === null || liftedUntil <= now)
}

export function budgetClaim(budget: Budget, micros: number, now: number): Claim {
  const { scope, currency, amountMicros, period } = budget
  const { subject, name } = counterOf(budget)
  return {
    limit: 'budget',
    budget: { scope, currency },
    subject,
    name,
    max: isStopping(budget, now) ? amountMicros : Number.MAX_SAFE_INTEGER,
    units: micros,
    windowMs: 0,
    period,
    counted: true,
    failure: 'rate_limited',
    scope: '',
  }
}

export type BudgetStatus = ReturnType<typeof budgetStatus>

/** @param spentMicros the count of `counterOf` in the present period */
export function budgetStatus(budget: Budget, spentMicros: Micros, now: number) {
  const { start, end } = periodOf(budget.period, now)
  const measuredMs = now - Math.max(start, budget.countsFrom)
  return {
    budget,
    spentMicros,
    /** Of a budget that only sends alerts, too. */
    remainingMicros: Math.max(0, budget.amountMicros - spentMicros),
    resetsAt: end,
    /** At the end of the period, if spending goes on as so far. Null in its first hour, when it would be a guess. */
    forecastMicros:
      measuredMs < hourMs ? null : spentMicros + Math.round((spentMicros / measuredMs) * (end - now)),
    isStopping: isStopping(budget, now),
  }
}

export interface BudgetCounters {
  /** What was spent in the present period, in the order of `budgets`. */
  spent(budgets: readonly Budget[], now: number): Promise<readonly Micros[]>
}

/** In the order of `budgets`. */
export async function budgetStatuses(
  counters: BudgetCounters,
  budgets: readonly Budget[],
  now: number,
): Promise<readonly BudgetStatus[]> {
  const spent = await counters.spent(budgets, now)
  return budgets.map((budget, index) => budgetStatus(budget, spent[index] ?? 0, now))
}

/** Whole percent of the amount, rounded down. */
export function percentSpent({ amountMicros }: Pick<Budget, 'amountMicros'>, spentMicros: Micros): number {
  return Math.floor((spentMicros / amountMicros) * 100)
}

/** Of `alertAt`. */
export function percentagesReached(
  { amountMicros, alertAt }: Pick<Budget, 'amountMicros' | 'alertAt'>,
  spentMicros: Micros,
): number[] {
  return alertAt.filter((percent) => spentMicros * 100 >= amountMicros * percent)
}

/** Without the period at the end. */
export function spentWords({ scope, period, amountMicros, currency }: Budget, percent: number): string {
  return `Budget ${scope}: ${percent}% of ${formatMicros(amountMicros, currency)} per ${period} spent`
}

export const budgetListing = {
  scope: { title: 'Scope', value: ({ budget }) => budget.scope },
  per: { title: 'Per', value: ({ budget }) => budget.period },
  amount: {
    title: 'Amount',
    value: ({ budget }) => budget.amountMicros / 1e6,
    text: ({ budget }) => `${budget.amountMicros / 1e6} ${budget.currency}`,
  },
  currency: { value: ({ budget }) => budget.currency },
  spent: { title: 'Spent', isNumber: true, value: ({ spentMicros }) => spentMicros / 1e6 },
  remaining: { title: 'Remaining', isNumber: true, value: ({ remainingMicros }) => remainingMicros / 1e6 },
  forecast: {
    title: 'Forecast',
    isNumber: true,
    value: ({ forecastMicros }) => (forecastMicros === null ? null : forecastMicros / 1e6),
  },
  resetsAt: { title: 'Resets at', value: ({ resetsAt }) => instant(resetsAt) },
  alerts: { title: 'Alerts', value: ({ budget }) => budget.alertAt },
  stops: { title: 'Stops', value: ({ budget }) => budget.stops },
  liftedUntil: { title: 'Lifted until', value: ({ budget }) => instant(budget.liftedUntil) },
} satisfies Listing<BudgetStatus>
