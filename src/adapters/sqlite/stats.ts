import { sql } from 'drizzle-orm'
import { type Counted, statSteps } from '../../domain/events/stats.ts'
import type { StatCount } from '../store/stat-buffer.ts'
import type { ReadStats } from '../store/statistics.ts'
import type { Database } from './database.ts'

/** Writes tallies; part of the step that calls it. */
export function statTable({ driver }: Pick<Database, 'driver'>) {
  const add = driver.prepare<(string | number)[]>(
    `INSERT INTO tallies (step_ms, at, kind, channel, brand, provider, detail, count) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET count = count + excluded.count`,
  )
  return {
    add(counts: readonly StatCount[]): void {
      for (const [at, ...rest] of counts) {
        for (const { stepMs } of statSteps) add.run(stepMs, at - (at % stepMs), ...rest)
      }
    },
  }
}

/** Reads tallies of a step of time. */
export function statReader({ driver }: Pick<Database, 'driver'>): ReadStats {
  const columns = 'at, kind, channel, brand, provider, detail, count'
  const all = driver.prepare<[number, number], Counted>(
    `SELECT ${columns} FROM tallies WHERE step_ms = ? AND at = ?`,
  )
  const ofKind = driver.prepare<[number, number, string], Counted>(
    `SELECT ${columns} FROM tallies WHERE step_ms = ? AND at = ? AND kind = ?`,
  )
  return async (stepMs, at, kind) => (kind === undefined ? all.all(stepMs, at) : ofKind.all(stepMs, at, kind))
}

/** Tallies removed in one step of the sweep. */
const batch = 500

/** Removes some that are older than they are kept; returns how many. Part of the step that calls it. */
export function sweepStats({ orm }: Pick<Database, 'orm'>, now: number): number {
  let removed = 0
  for (const { stepMs, retentionMs } of statSteps) {
    // By the beginning of the key.
    removed += orm.run(
      sql`DELETE FROM tallies WHERE (step_ms, at, kind, channel, brand, provider, detail) IN
        (SELECT step_ms, at, kind, channel, brand, provider, detail FROM tallies
         WHERE step_ms = ${stepMs} AND at < ${now - retentionMs} ORDER BY at LIMIT ${sql.raw(String(batch))})`,
    ).changes
  }
  return removed
}
