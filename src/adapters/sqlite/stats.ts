import { and, eq, getTableColumns, lt, type SQL, sql } from 'drizzle-orm'
import { type Counted, statSteps } from '../../domain/events/stats.ts'
import { type StatRow, statRows } from '../store/stat-buffer.ts'
import type { ReadStats } from '../store/statistics.ts'
import type { Database } from './database.ts'
import { placeholders, prepared } from './prepared.ts'
import { stats } from './schema.ts'

/** Adds to what was counted; part of the step that calls it. */
export function statTable({ orm, driver }: Pick<Database, 'orm' | 'driver'>) {
  const add = prepared<StatRow>(
    driver,
    orm
      .insert(stats)
      .values(placeholders(stats))
      .onConflictDoUpdate({
        target: [
          stats.stepMs,
          stats.at,
          stats.kind,
          stats.channel,
          stats.brand,
          stats.provider,
          stats.detail,
        ],
        set: { count: sql`${stats.count} + excluded.count` },
      }),
  )
  return {
    add(counts: readonly Counted[]): void {
      for (const row of statRows(counts)) add.run(row)
    },
  }
}

/** Reads what was counted in a step of time. */
export function statReader({ orm, driver }: Pick<Database, 'orm' | 'driver'>): ReadStats {
  const { placeholder } = sql
  const { stepMs, ...columns } = getTableColumns(stats)
  const read = (condition?: SQL) =>
    prepared<{ stepMs: number; at: number; kind: string }, Counted>(
      driver,
      orm
        .select(columns)
        .from(stats)
        .where(and(eq(stepMs, placeholder('stepMs')), eq(stats.at, placeholder('at')), condition)),
    )
  const [all, ofKind] = [read(), read(eq(stats.kind, placeholder('kind')))]
  return async (stepMs, at, kind) =>
    kind === undefined ? all.all({ stepMs, at, kind: '' }) : ofKind.all({ stepMs, at, kind })
}

/** Rows removed of each step of time in one step of the sweep. */
const batch = 500

/** Removes some that are older than they are stored for; returns how many. Part of the step that calls it. */
export function sweepStats({ orm }: Pick<Database, 'orm'>, now: number): number {
  let removed = 0
  for (const { stepMs, retentionMs } of statSteps) {
    const { count: _, ...key } = getTableColumns(stats)
    const some = orm
      .select(key)
      .from(stats)
      .where(and(eq(stats.stepMs, stepMs), lt(stats.at, now - retentionMs)))
      .orderBy(stats.at)
      .limit(batch)
    removed += orm
      .delete(stats)
      .where(sql`(${sql.join(Object.values(key), sql`, `)}) IN ${some}`)
      .run().changes
  }
  return removed
}
