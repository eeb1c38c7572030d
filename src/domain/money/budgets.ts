import { utc } from '../ground/format.ts'
import { instant, type Listing } from '../ground/listing.ts'
import { type CalendarPeriod, type EpochMs, hourMs, periodOf } from '../ground/time.ts'
import { unknownCountry } from '../guard/thresholds.ts'
import type { Claim } from '../limits/limits.ts'
import type { BudgetName, BudgetOf } from '../request/limit-names.ts'
import { formatMicros, type Micros } from './amounts.ts'

/** A limit of money for a calendar period in UTC (design D42). Each scope has at most one for each `of`. */
export interface Budget {
  /** `server`, `brand:SLUG`, `app:APPID`, `country:CC`, `country:*` or `way:WAY`. */
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

/** Counts the calls of a server that has no `way:voice` budget (design D54). It is not stored. */
export const callCap: Budget = {
  scope: 'way:voice',
  of: 'all',
  period: 'day',
  amountMicros: 100e6,
  currency: 'calls',
  alertAt: [80, 100],
  stops: true,
  liftedUntil: null,
  countsFrom: 0,
}

/** Those of a server. @param voice undefined: it makes no calls */
export function withCallCap(budgets: readonly Budget[], voice: unknown): readonly Budget[] {
  const isCapped = budgets.some((each) => each.scope === callCap.scope && includes(each, 'codes'))
  return isCapped || voice === undefined ? budgets : [...budgets, callCap]
}

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

/** `will be used up`: before the period ends, if spending goes on as so far. */
export type BudgetState = 'ok' | 'near' | 'will be used up' | 'exhausted'

/** A message that a budget rejected. */
export interface Refused {
  /** What it costs, at least. */
  readonly micros: Micros
  /** The end of the period in which it was rejected. */
  readonly until: EpochMs
}

/** Keeps the dearest message of the period. @param all by the name of the counter */
export function addRefused(all: Map<string, Refused>, name: string, refused: Refused): void {
  const known = all.get(name)
  if (known?.until !== refused.until || known.micros < refused.micros) all.set(name, refused)
}

/** @param spentMicros the count of `counterOf` in the present period */
export function counterStatus(budget: Budget, spentMicros: Micros, now: number, refused?: Refused) {
  const { start, end } = periodOf(budget.period, now)
  const { amountMicros } = budget
  const since = Math.max(start, budget.countsFrom)
  const measuredMs = now - since
  const remainingMicros = Math.max(0, amountMicros - spentMicros)
  const isStoppingNow = isStopping(budget, now)
  const leastMicros = refused && refused.until > now ? refused.micros : 1
  const isExhausted = isStoppingNow && remainingMicros < Math.max(1, leastMicros)
  const forecastMicros =
    measuredMs < hourMs ? null : spentMicros + Math.round((spentMicros / measuredMs) * (end - now))
  const isUsedUp = isExhausted || remainingMicros === 0
  const usedUpAt =
    isUsedUp || forecastMicros === null || forecastMicros <= amountMicros
      ? null
      : since + Math.round((amountMicros / spentMicros) * measuredMs)
  const percent = percentSpent(budget, spentMicros)
  const isNear = percent >= nearPercent(budget)
  const state: BudgetState = isUsedUp
    ? 'exhausted'
    : usedUpAt !== null
      ? 'will be used up'
      : isNear
        ? 'near'
        : 'ok'
  return {
    budget,
    spentMicros,
    /** Of a budget that only sends alerts, too. */
    remainingMicros,
    resetsAt: end,
    /** At the end of the period, if spending goes on as so far. Null in its first hour, when it would be a guess. */
    forecastMicros,
    /** When the amount is spent, if spending goes on as so far. Null: not in this period, or it is spent. */
    usedUpAt,
    isStopping: isStoppingNow,
    /** It rejects messages, because nothing is left, or less than a message costs. */
    isExhausted,
    /** Less than 100 if something is left. */
    percent,
    isNear,
    state,
  }
}

/** The counters that reject messages, if they rejected these. */
export function exhaustedCounters(
  { counters }: BudgetStatus,
  refused: ReadonlyMap<string, Refused>,
  now: number,
): readonly CounterStatus[] {
  return counters.filter(({ budget, spentMicros, isExhausted }) => {
    const { isExhausted: isRefusing } = counterStatus(
      budget,
      spentMicros,
      now,
      refused.get(budgetName(budget)),
    )
    return isExhausted || isRefusing
  })
}

/** From here on it is a warning: 80%, or the first alert. */
export function nearPercent({ alertAt }: Pick<Budget, 'alertAt'>): number {
  return Math.min(80, ...alertAt)
}

/** Such as `used up on 27 Nov`, or `used up at 2026-11-27 14:05 UTC` of a budget per day. */
export function usedUpWords({ budget: { period }, usedUpAt }: CounterStatus): string | undefined {
  if (usedUpAt === null) return undefined
  const time = new Date(usedUpAt)
  return period === 'day'
    ? `used up at ${utc(usedUpAt).slice(0, 16)} UTC`
    : `used up on ${time.getUTCDate()} ${time.toLocaleString('en', { month: 'short', timeZone: 'UTC' })}`
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

/**
 * In the order of `budgets`.
 * @param refused messages that they rejected, by the name of the counter
 */
export async function budgetStatuses(
  counters: BudgetCounters,
  budgets: readonly Budget[],
  now: number,
  refused: ReadonlyMap<string, Refused> = new Map(),
): Promise<readonly BudgetStatus[]> {
  const spent = await counters.spent(budgets, now)
  return budgets.map((budget) => {
    const own = spent
      .filter((each) => each.budget.scope === budget.scope && each.budget.of === budget.of)
      .map((each) => counterStatus(each.budget, each.micros, now, refused.get(budgetName(each.budget))))
      .sort((one, other) => other.spentMicros - one.spentMicros)
    return { ...(own[0] ?? counterStatus(budget, 0, now)), budget, counters: own }
  })
}

/** Whole percent of the amount, rounded down. */
function percentSpent({ amountMicros }: Pick<Budget, 'amountMicros'>, spentMicros: Micros): number {
  return Math.floor((spentMicros * 100) / amountMicros)
}

/** Of `alertAt`. */
export function percentagesReached(
  { amountMicros, alertAt }: Pick<Budget, 'amountMicros' | 'alertAt'>,
  spentMicros: Micros,
): number[] {
  return alertAt.filter((percent) => spentMicros * 100 >= amountMicros * percent)
}

/** Without the period at the end. */
export function spentWords(budget: Budget, percent: number, spentMicros: Micros): string {
  const { period, amountMicros, currency } = budget
  const amount = `${formatMicros(amountMicros, currency)} per ${period}`
  const isReached = spentMicros * 100 >= amountMicros * percent
  return `Budget ${budgetName(budget)}: ${isReached ? `${percent}% of ${amount} spent` : `less is left of ${amount} than a message costs`}`
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
  state: {
    title: 'State',
    value: ({ state }) => state,
    text: (status) => usedUpWords(status) ?? status.state,
  },
  percent: { value: ({ percent }) => percent },
  usedUpAt: { value: ({ usedUpAt }) => instant(usedUpAt) },
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
