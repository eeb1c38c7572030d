import { instant, type Listing } from '../ground/listing.ts'
import { type CalendarPeriod, type EpochMs, hourMs, periodOf } from '../ground/time.ts'
import { unknownCountry } from '../guard/thresholds.ts'
import type { Claim } from '../limits/limits.ts'
import type { BudgetName, BudgetOf } from '../request/limit-names.ts'
import { formatMicros, type Micros } from './amounts.ts'

/** A limit of money for a calendar period in UTC (design D42). Each scope has at most one for each `of`. */
export interface Budget {
  /** `server`, `brand:SLUG`, `app:APPID`, `country:CC` or `country:*`. */
  readonly scope: string
  readonly of: BudgetOf
  /** Of one counter of `country:*`. Stored budgets have none. */
  readonly country?: string
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

/** Each country without a budget of its own has this much. */
export const anyCountry = 'country:*'

/** The budget with the counter of a country. @param country null: of a number of no known country */
export function inCountry(budget: Budget, country: string | null): Budget {
  return { ...budget, country: country ?? unknownCountry }
}

/** As people and alerts name it: unique among budgets and counters. */
export function budgetName({ scope, of, country }: Pick<BudgetName, 'scope' | 'of' | 'country'>): string {
  return `${scope}${country === undefined ? '' : ` (${country})`}${of === 'all' ? '' : ` of ${of}`}`
}

export function includes({ of }: Budget, messages: Exclude<BudgetOf, 'all'>): boolean {
  return of === 'all' || of === messages
}

/** The counter of what was spent. A budget that replaces another one has a new counter. */
export function counterOf({ scope, of, country, period, countsFrom }: Budget): {
  readonly subject: readonly [string]
  readonly name: string
} {
  const subject = country === undefined ? `budget:${scope}` : `${countryCounters}${country}`
  return { subject: [subject], name: `${period}:${of}:${countsFrom}` }
}

/** The subjects of all counters of `country:*` begin so. */
export const countryCounters = `budget:${anyCountry}:`

/**
 * The budgets, `country:*` once for each of its counters that is in use.
 * @param budgets all budgets: a country may have its own
 * @param subjects of counters
 */
export function countersOf(budgets: readonly Budget[], subjects: readonly string[]): readonly Budget[] {
  const countries = new Set(
    subjects.flatMap((each) => (each.startsWith(countryCounters) ? each.slice(countryCounters.length) : [])),
  )
  return budgets.flatMap((budget) => {
    if (budget.scope !== anyCountry) return [budget]
    const used = [...countries].filter((country) => {
      const own = budgets.filter(({ scope }) => scope === `country:${country}`)
      return (['codes', 'notifications'] as const).some(
        (each) => includes(budget, each) && !own.some((other) => includes(other, each)),
      )
    })
    return used.map((country) => inCountry(budget, country))
  })
}

/** Whether it rejects messages once it is exhausted. */
function isStopping({ stops, liftedUntil }: Budget, now: number): boolean {
  return stops && (liftedUntil === null || liftedUntil <= now)
}

export function budgetClaim(budget: Budget, micros: number, now: number): Claim {
  const { scope, of, country, currency, amountMicros, period } = budget
  const { subject, name } = counterOf(budget)
  return {
    limit: 'budget',
    budget: { scope, of, country, currency },
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

export type CounterStatus = ReturnType<typeof counterStatus>

/** `country:*`: that of the country that has spent most. */
export interface BudgetStatus extends CounterStatus {
  /** Of `country:*` one for each country with a counter, otherwise one. Those that spent most are first. */
  readonly counters: readonly CounterStatus[]
}

/** @param spentMicros the count of `counterOf` in the present period */
export function counterStatus(budget: Budget, spentMicros: Micros, now: number) {
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

export interface Spent {
  readonly budget: Budget
  readonly micros: Micros
}

export interface BudgetCounters {
  /**
   * What was spent in the present period, in the order of `countersOf`.
   * @param budgets all budgets
   */
  spent(budgets: readonly Budget[], now: number): Promise<readonly Spent[]>
}

/** In the order of `budgets`. */
export async function budgetStatuses(
  counters: BudgetCounters,
  budgets: readonly Budget[],
  now: number,
): Promise<readonly BudgetStatus[]> {
  const spent = await counters.spent(budgets, now)
  return budgets.map((budget) => {
    const own = spent
      .filter((each) => each.budget.scope === budget.scope && each.budget.of === budget.of)
      .map((each) => counterStatus(each.budget, each.micros, now))
      .sort((one, other) => other.spentMicros - one.spentMicros)
    return { ...(own[0] ?? counterStatus(budget, 0, now)), budget, counters: own }
  })
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
export function spentWords(budget: Budget, percent: number): string {
  const { period, amountMicros, currency } = budget
  return `Budget ${budgetName(budget)}: ${percent}% of ${formatMicros(amountMicros, currency)} per ${period} spent`
}

const mostListed = 10

/** The countries that spent most of `country:*`, at most 10. */
export function countriesOf({ counters }: BudgetStatus) {
  return counters
    .slice(0, mostListed)
    .flatMap(({ budget: { country }, spentMicros, remainingMicros }) =>
      country === undefined ? [] : { country, spent: spentMicros / 1e6, remaining: remainingMicros / 1e6 },
    )
}

export const budgetListing = {
  scope: { title: 'Scope', value: ({ budget }) => budget.scope },
  of: { title: 'Of', value: ({ budget }) => budget.of },
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
  countries: {
    title: 'Countries',
    value: countriesOf,
    text: (status) =>
      countriesOf(status)
        .map(({ country, spent }) => `${country} ${spent}`)
        .join(', ') || '-',
  },
  resetsAt: { title: 'Resets at', value: ({ resetsAt }) => instant(resetsAt) },
  alerts: { title: 'Alerts', value: ({ budget }) => budget.alertAt },
  stops: { title: 'Stops', value: ({ budget }) => budget.stops },
  liftedUntil: { title: 'Lifted until', value: ({ budget }) => instant(budget.liftedUntil) },
} satisfies Listing<BudgetStatus>
