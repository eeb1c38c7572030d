import { and, eq, getTableColumns, lt, sql } from 'drizzle-orm'
import { type Counted, statSteps } from '../../domain/events/stats.ts'
import { type StatRow, statRows } from '../store/stat-buffer.ts'
import type { Database } from './database.ts'
import { placeholders, prepared } from './prepared.ts'
import { stats } from './schema.ts'

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

const batch = 500

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
