import { and, eq, gte, sql } from 'drizzle-orm'
import type { Period, Statistics } from '../../domain/statistics.ts'
import {
  type Counted,
  periodStart,
  periodSteps,
  statisticsOf,
  type Tally,
  tallySteps,
} from '../../domain/tallies.ts'
import type { Database } from './database.ts'
import { tallies } from './schema.ts'

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
export function createStatistics({ orm }: Pick<Database, 'orm'>) {
  return async (period: Period, now: number): Promise<Statistics> => {
    const rows = orm
      .select({
        at: tallies.at,
        kind: tallies.kind,
        channel: tallies.channel,
        brand: tallies.brand,
        provider: tallies.provider,
        detail: tallies.detail,
        count: tallies.count,
      })
      .from(tallies)
      .where(and(eq(tallies.stepMs, periodSteps[period].stepMs), gte(tallies.at, periodStart(period, now))))
      .all()
    return statisticsOf(period, now, rows as Counted[])
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
