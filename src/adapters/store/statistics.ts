import type { LastHour, Period, Statistics } from '../../domain/events/statistics.ts'
import {
  type Counted,
  lastHourOf,
  periodStart,
  periodSteps,
  StatisticsSum,
} from '../../domain/events/stats.ts'

/** Reads what was counted in one step of time; of attempts alone where that is asked. */
export type ReadStats = (stepMs: number, at: number, kind?: 'attempt') => Promise<readonly Counted[]>

/** What the service did, added up from what was counted. */
export function createStatistics(read: ReadStats) {
  /**
   * The rows of a period, step by step, with a turn of the event loop between steps: where hundreds of brands are busy
   * there are thousands in each, and whoever looks must not hold up what the service is there for.
   */
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
    /** What each way to send was asked within the last hour, by `wayName`. */
    async lastHour(now: number): Promise<ReadonlyMap<string, LastHour>> {
      const counted: Counted[] = []
      for await (const rows of steps('hour', now, 'attempt')) counted.push(...rows)
      return lastHourOf(counted)
    },
  }
}
