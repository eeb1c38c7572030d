import { and, eq, sql } from 'drizzle-orm'
import type { LastHour, Period, Statistics } from '../../domain/events/statistics.ts'
import {
  type Counted,
  lastHourOf,
  periodStart,
  periodSteps,
  StatisticsSum,
} from '../../domain/events/stats.ts'
import type { StoreDatabase } from './database.ts'

export function createStatistics({ orm, tables: { stats } }: Pick<StoreDatabase, 'orm' | 'tables'>) {
  const { at, kind, channel, brand, provider, detail } = stats
  const columns = { at, kind, channel, brand, provider, detail }

  async function read(stepMs: number, from: number, ofKind?: 'attempt'): Promise<readonly Counted[]> {
    return orm
      .select({ ...columns, count: sql<number>`CAST(sum(${stats.count}) AS bigint)` })
      .from(stats)
      .where(and(eq(stats.stepMs, stepMs), eq(at, from), ofKind && eq(kind, ofKind)))
      .groupBy(...Object.values(columns))
  }

  /** With a turn of the event loop between steps, since a step may have thousands of rows. */
  async function* steps(period: Period, now: number, kind?: 'attempt'): AsyncGenerator<readonly Counted[]> {
    const { stepMs } = periodSteps[period]
    for (let at = periodStart(period, now); at <= now; at += stepMs) {
      const rows = await read(stepMs, at, kind)
      if (rows.length === 0) continue
      yield rows
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  return {
    async statistics(period: Period, now: number): Promise<Statistics> {
      const sum = new StatisticsSum(period, now)
      for await (const rows of steps(period, now)) for (const statKey of rows) sum.add(statKey)
      return sum.statistics
    },
    async lastHour(now: number): Promise<ReadonlyMap<string, LastHour>> {
      const counted: Counted[] = []
      for await (const rows of steps('hour', now, 'attempt')) counted.push(...rows)
      return lastHourOf(counted)
    },
  }
}
