import type { Spend } from '../events/stats.ts'
import { dayMs, type EpochMs, periodOf } from '../time.ts'
import type { Micros } from './amounts.ts'

export interface DaySpend extends Spend {
  /** The start of the day in UTC. */
  readonly at: EpochMs
  readonly micros: Micros
}

export interface SpendShare {
  readonly name: string
  readonly currency: string
  readonly todayMicros: Micros
  /** Of seven days, with today. */
  readonly weekMicros: Micros
  /** Of 30 days, with today. */
  readonly monthMicros: Micros
}

/** The first of 30 days, with today. */
export function spendingSince(now: number): EpochMs {
  return periodOf('day', now).start - 29 * dayMs
}

/** Sums by name and currency; the greatest sum of 30 days first. */
export function spendBy(
  rows: readonly DaySpend[],
  nameOf: (row: DaySpend) => string,
  now: number,
): readonly SpendShare[] {
  const today = periodOf('day', now).start
  const sums = new Map<string, SpendShare>()
  for (const row of rows) {
    const { at, micros, currency } = row
    const name = nameOf(row)
    const key = JSON.stringify([name, currency])
    const sum = sums.get(key) ?? { name, currency, todayMicros: 0, weekMicros: 0, monthMicros: 0 }
    sums.set(key, {
      ...sum,
      todayMicros: sum.todayMicros + (at >= today ? micros : 0),
      weekMicros: sum.weekMicros + (at >= today - 6 * dayMs ? micros : 0),
      monthMicros: sum.monthMicros + micros,
    })
  }
  return [...sums.values()].sort((one, other) => other.monthMicros - one.monthMicros)
}
