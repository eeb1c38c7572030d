import { eq, getTableColumns, is, Placeholder, type SQL, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { MessageReport } from '../../domain/delivery/delivery-reports.ts'
import type { Counted } from '../../domain/log/stats.ts'
import {
  bestReports,
  outranks,
  reportChanges,
  reportCounts,
  reportEvents,
  type SavedReport,
} from '../store/delivery-reports.ts'
import { eventInsert } from '../store/effects.ts'
import type { EventLogWriter } from '../store/event-log.ts'
import { verifiedIn, verifiedRenewalMs } from '../store/event-rows.ts'
import { statRows } from '../store/stat-buffer.ts'
import { givenColumns, type Orm as StoreOrm, valuesOf } from '../store/statements.ts'
import { type Database, ormOn, type PostgresOrm } from './database.ts'
import type { Queryable } from './pool.ts'
import { tables } from './schema.ts'
import { asJson } from './text.ts'

const { attempts, deliveryReports, events, requests, stats, verifiedNumbers } = tables

/** @param part of the statistics, different for each process */
export function createEventLogWriter(
  { orm, pool }: Pick<Database, 'orm' | 'pool'>,
  part: number,
): EventLogWriter {
  const write = writesBy(orm)

  const addStats = (connection: Queryable, counts: readonly Counted[]) =>
    write.stats(
      connection,
      statRows(counts).map((row) => ({ ...row, part })),
    )

  return {
    saveEntries: (entries, counts) =>
      pool.transaction(async (connection) => {
        await write.requests(
          connection,
          entries.flatMap(({ isJob, request }) => (isJob ? [] : request)),
        )
        await write.attempts(
          connection,
          entries.flatMap((entry) => entry.attempts),
        )
        await write.verified(connection, verifiedIn(entries))
        await addStats(connection, counts)
      }),
    saveReports: (provider, reports, writesEvents) =>
      pool.transaction(async (connection) => {
        const best = bestReports(reports)
        if (best.length === 0) return []
        const inside = ormOn(connection)
        const saved = await saveBest(inside, best)
        await addStats(connection, reportCounts(provider, saved))
        if (writesEvents)
          for (const event of reportEvents(saved))
            await eventInsert(inside as unknown as StoreOrm, events, event)
        return reportChanges(saved)
      }),
  }
}

/** Saves and returns the reports that outrank those known of their messages. */
async function saveBest(orm: PostgresOrm, best: readonly MessageReport[]): Promise<readonly SavedReport[]> {
  const fresh = await orm
    .insert(deliveryReports)
    .values([...best])
    .onConflictDoNothing()
    .returning({ key: deliveryReports.key })
  const isFresh = new Set(fresh.map(({ key }) => key))
  const others = best.filter(({ key }) => !isFresh.has(key))
  const saved = best.filter(({ key }) => isFresh.has(key)).map((report) => ({ report, before: undefined }))
  if (others.length === 0) return saved
  // One key each: Citus locks rows of one machine in a statement.
  const locked = others.map(({ key }) =>
    orm.select().from(deliveryReports).where(eq(deliveryReports.key, key)).for('update'),
  )
  const known = (await Promise.all(locked)).flat()
  // A report that was deleted meanwhile is too old to matter.
  const replaced = known.flatMap((before) => {
    const report = others.find(({ key }) => key === before.key)
    return report && outranks(report, before) ? [{ report, before }] : []
  })
  if (replaced.length > 0) {
    await orm
      .insert(deliveryReports)
      .values(replaced.map(({ report }) => report))
      .onConflictDoUpdate({
        target: deliveryReports.key,
        set: { status: sql`excluded.status`, reason: sql`excluded.reason`, at: sql`excluded.at` },
      })
  }
  return [...saved, ...replaced]
}

/** Rows are one JSON parameter: writing their values into a statement takes Drizzle longer than the save. */
function writesBy(orm: PostgresOrm) {
  return {
    requests: prepared(
      'otpost_save_requests',
      requests,
      orm
        .insert(requests)
        .select(givenRows(requests))
        .onConflictDoUpdate({ target: requests.requestId, set: mergedColumns(requests) }),
    ),
    attempts: prepared(
      'otpost_save_attempts',
      attempts,
      orm.insert(attempts).select(givenRows(attempts)).onConflictDoNothing(),
    ),
    verified: prepared(
      'otpost_save_verified',
      verifiedNumbers,
      orm
        .insert(verifiedNumbers)
        // An update that changes nothing would still write the row. In one order on all servers, as below.
        .select(
          sql`SELECT * FROM (${givenRows(verifiedNumbers)}) AS given WHERE NOT EXISTS
            (SELECT 1 FROM verified_numbers AS known WHERE known.subject = given.subject
             AND given.verified_at - known.verified_at <= ${sql.raw(String(verifiedRenewalMs))}) ORDER BY subject`,
        )
        .onConflictDoUpdate({
          target: verifiedNumbers.subject,
          set: { verifiedAt: sql`greatest(excluded.verified_at, ${verifiedNumbers.verifiedAt})` },
        }),
    ),
    stats: prepared(
      'otpost_save_stats',
      stats,
      orm
        .insert(stats)
        // In one order on all servers, so that no two wait for each other.
        .select(sql`${givenRows(stats)} ORDER BY step_ms, at, kind, channel, brand, provider, detail, app`)
        .onConflictDoUpdate({
          target: [
            stats.part,
            stats.stepMs,
            stats.at,
            stats.kind,
            stats.channel,
            stats.brand,
            stats.provider,
            stats.detail,
            stats.app,
          ],
          set: { count: sql`${stats.count} + excluded.count` },
        }),
    ),
  }
}

/** A SELECT of the rows in a parameter. */
function givenRows(table: PgTable): SQL {
  return sql`SELECT ${givenColumns(table)} FROM jsonb_array_elements(${sql.placeholder('rows')}::jsonb) AS given (value)`
}

function prepared<Row extends object = object>(
  name: string,
  table: PgTable,
  query: { toSQL(): { sql: string; params: unknown[] } },
) {
  const { sql: text, params } = query.toSQL()
  return async (connection: Queryable, rows: readonly object[]): Promise<readonly Row[]> => {
    if (rows.length === 0) return []
    const json = asJson(valuesOf(table, rows))
    const values = params.map((param) => (is(param, Placeholder) ? json : param))
    return connection.query<Row>({ name, text }, values)
  }
}

/** Known values replace unknown ones and stay. */
function mergedColumns(table: PgTable): Record<string, SQL> {
  return Object.fromEntries(
    Object.entries(getTableColumns(table))
      .filter(([, column]) => !column.primary)
      .map(([name, column]) => {
        const given = sql`excluded.${sql.identifier(column.name)}`
        return [name, column.notNull ? given : sql`coalesce(${given}, ${column})`]
      }),
  )
}
