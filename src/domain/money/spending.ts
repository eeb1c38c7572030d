import { dayMs, type EpochMs, periodOf } from '../ground/time.ts'
import type { Micros } from './amounts.ts'

export interface DaySpend extends Spend {
  /** The start of the day in UTC. */
  readonly at: EpochMs
  readonly micros: Micros
}

interface SpendShare {
  readonly name: string
  readonly currency: string
  readonly micros: Micros
}

/** Of whole days in UTC, until today. The names are as URLs have them. */
export const spendingPeriods = ['today', '7-days', '30-days', 'this-month', 'last-month'] as const
export type SpendingPeriod = (typeof spendingPeriods)[number]

/** `until` is exclusive. */
export function spendingSpan(period: SpendingPeriod, now: number): { from: EpochMs; until: EpochMs } {
  const { start: today, end: until } = periodOf('day', now)
  const { start: month } = periodOf('month', now)
  switch (period) {
    case 'today':
      return { from: today, until }
    case '7-days':
      return { from: today - 6 * dayMs, until }
    case '30-days':
      return { from: today - 29 * dayMs, until }
    case 'this-month':
      return { from: month, until }
    case 'last-month':
      return { from: periodOf('month', month - 1).start, until: month }
  }
}

/** Sums by name and currency, the greatest first. */
export function spendBy(rows: readonly DaySpend[], nameOf: (row: DaySpend) => string): readonly SpendShare[] {
  const sums = new Map<string, SpendShare>()
  for (const row of rows) {
    const name = nameOf(row)
    const { currency } = row
    const key = `${currency} ${name}`
    sums.set(key, { name, currency, micros: (sums.get(key)?.micros ?? 0) + row.micros })
  }
  return [...sums.values()].sort((one, other) => other.micros - one.micros)
}

export interface Spend {
  /** ISO 4217, or `units`. */
  readonly currency: string
  /** ISO 3166-1, or null. */
  readonly country: string | null
  readonly app: string
  readonly brand: string
  readonly provider: string
}
