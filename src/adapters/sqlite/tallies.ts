import { sql } from 'drizzle-orm'
import type { LastHour, Period, Statistics } from '../../domain/statistics.ts'
import {
  type Counted,
  lastHourOf,
  periodStart,
  periodSteps,
  StatisticsSum,
  type Tally,
  tallySteps,
} from '../../domain/tallies.ts'
import type { Database } from './database.ts'

/** How often what happened in which minute: plain data, by position, for a step of the writer. */
export type TallyCount = readonly [
  at: number,
  kind: string,
  channel: string,
  brand: string,
  provider: string,
  detail: string,
  count: number,
]

/** Gathers tallies until they are written, so that those of a moment cost one row each. */
export class Tallies {
  private counts = new Map<string, { readonly at: number; readonly tally: Tally; count: number }>()

  /**
   * @param at when it happened, epoch milliseconds
   * @param times how often; -1 takes back what was counted before
   */
  add(at: number, tally: Tally, times = 1): void {
    const minute = at - (at % tallySteps[0].stepMs)
    // A few with every request: this is a third of the time of a JSON array, and none of the parts has a line break.
    const { kind, channel, brand, provider, detail } = tally
    const key = `${minute}\n${kind}\n${channel}\n${brand}\n${provider}\n${detail}`
    const known = this.counts.get(key)
    if (known) known.count += times
    else this.counts.set(key, { at: minute, tally, count: times })
  }

  /** What has gathered; begins anew. */
  take(): TallyCount[] {
    const { counts } = this
    if (counts.size === 0) return []
    this.counts = new Map()
    return Array.from(
      counts.values(),
      ({ at, tally: { kind, channel, brand, provider, detail }, count }): TallyCount => [
        at,
        kind,
        channel,
        brand,
        provider,
        detail,
        count,
      ],
    )
  }
}

/** Writes tallies; part of the step that calls it. */
export function tallyTable({ driver }: Pick<Database, 'driver'>) {
  const add = driver.prepare<(string | number)[]>(
    `INSERT INTO tallies (step_ms, at, kind, channel, brand, provider, detail, count) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET count = count + excluded.count`,
  )
  return {
    add(counts: readonly TallyCount[]): void {
      for (const [at, ...rest] of counts) {
        for (const { stepMs } of tallySteps) add.run(stepMs, at - (at % stepMs), ...rest)
      }
    },
  }
}

/** What the service did, added up from its tallies. */
export function createStatistics({ driver }: Pick<Database, 'driver'>) {
  const columns = 'at, kind, channel, brand, provider, detail, count'
  const ofStep = driver.prepare<[number, number], Counted>(
    `SELECT ${columns} FROM tallies WHERE step_ms = ? AND at = ?`,
  )
  const attemptsOfStep = driver.prepare<[number, number], Counted>(
    `SELECT ${columns} FROM tallies WHERE step_ms = ? AND at = ? AND kind = 'attempt'`,
  )

  /**
   * The rows of a period, step by step, with a turn of the event loop between steps: where hundreds of brands are busy
   * there are thousands in each, and whoever looks must not hold up what the service is there for.
   */
  async function* steps(
    period: Period,
    now: number,
    read: typeof ofStep,
  ): AsyncGenerator<readonly Counted[]> {
    const { stepMs } = periodSteps[period]
    for (let at = periodStart(period, now); at <= now; at += stepMs) {
      const rows = read.all(stepMs, at)
      if (rows.length === 0) continue
      yield rows
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  return {
    async statistics(period: Period, now: number): Promise<Statistics> {
      const sum = new StatisticsSum(period, now)
      for await (const rows of steps(period, now, ofStep)) for (const tally of rows) sum.add(tally)
      return sum.statistics
    },
    /** What each way to send was asked within the last hour, by `wayName`. */
    async lastHour(now: number): Promise<ReadonlyMap<string, LastHour>> {
      const counted: Counted[] = []
      for await (const rows of steps('hour', now, attemptsOfStep)) counted.push(...rows)
      return lastHourOf(counted)
    },
  }
}

/** Tallies removed in one step of the sweep. */
const batch = 500

/** Removes some that are older than they are kept; returns how many. Part of the step that calls it. */
export function sweepTallies({ orm }: Pick<Database, 'orm'>, now: number): number {
  let removed = 0
  for (const { stepMs, keptMs } of tallySteps) {
    // By the beginning of the key.
    removed += orm.run(
      sql`DELETE FROM tallies WHERE (step_ms, at, kind, channel, brand, provider, detail) IN
        (SELECT step_ms, at, kind, channel, brand, provider, detail FROM tallies
         WHERE step_ms = ${stepMs} AND at < ${now - keptMs} ORDER BY at LIMIT ${sql.raw(String(batch))})`,
    ).changes
  }
  return removed
}
