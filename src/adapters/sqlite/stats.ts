import { and, eq, getTableColumns, lt, sql } from 'drizzle-orm'
import { type Counted, statSteps } from '../../domain/log/stats.ts'
import { statRows } from '../store/stat-buffer.ts'
import type { Database } from './database.ts'
import { preparedUpsert } from './prepared.ts'
import { stats } from './schema.ts'

export function statTable({ orm, driver }: Pick<Database, 'orm' | 'driver'>) {
  const { count, ...key } = getTableColumns(stats)
  const add = preparedUpsert({ orm, driver }, stats, Object.values(key), {
    count: sql`${count} + excluded.count`,
  })
  return { add: (counts: readonly Counted[]) => add(statRows(counts)) }
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
