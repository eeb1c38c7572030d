import { and, desc, eq, getTableColumns, lte, sql } from 'drizzle-orm'
import type { MessageReport } from '../../domain/messages/delivery-reports.ts'
import { bestReports, outranks, reportCounts, type SavedReport } from '../store/delivery-reports.ts'
import {
  type AttemptRow,
  carriesCode,
  createEventLogReader,
  type EventLogStore,
  type EventLogTables,
  mergedColumns,
  type RequestRow,
  rightCodeStats,
  type SentCode,
  verifiedIn,
} from '../store/event-log.ts'
import type { Database } from './database.ts'
import { placeholders, prepared } from './prepared.ts'
import { attempts, deliveryReports, requests } from './schema.ts'
import { statTable } from './stats.ts'

/** The event log and delivery reports in SQLite. */
export function createEventLogStore(database: Pick<Database, 'orm' | 'driver' | 'writer'>): EventLogStore {
  const { writer } = database
  const write = prepareWrites(database)
  const stats = statTable(database)
  return {
    ...createEventLogReader(tablesOf(database)),
    saveEntries: (entries, counts) =>
      writer.write(() => {
        for (const entry of entries) {
          write.request.run(entry.request)
          for (const attempt of entry.attempts) write.attempt.run(attempt)
        }
        stats.add([...counts, ...rightCodeStats(verifiedIn(entries), write.sentTo)])
      }),
    saveReports: (provider, reports) =>
      writer.write(() => {
        const saved: SavedReport[] = []
        for (const report of bestReports(reports)) {
          const before = write.reportBefore.get(report)
          if (!outranks(report, before)) continue
          write.report.run(report)
          saved.push({ report, before })
        }
        stats.add(reportCounts(provider, saved))
      }),
  }
}

/** How the event log is read. */
export function tablesOf({ orm }: Pick<Database, 'orm'>) {
  return {
    requests,
    attempts,
    readRequests: async (where, limit) =>
      orm
        .select({ ...getTableColumns(requests), report: deliveryReports })
        .from(requests)
        .leftJoin(deliveryReports, eq(deliveryReports.key, requests.reportKey))
        .where(where)
        .orderBy(desc(requests.requestId))
        .limit(limit)
        .all(),
    readAttempts: async (where, limit) =>
      orm
        .select({ ...getTableColumns(attempts), report: deliveryReports })
        .from(attempts)
        .leftJoin(deliveryReports, eq(deliveryReports.key, attempts.reportKey))
        .where(where)
        .orderBy(desc(attempts.requestId), desc(attempts.attempt))
        .limit(limit)
        .all(),
  } satisfies EventLogTables
}

function prepareWrites({ orm, driver }: Pick<Database, 'orm' | 'driver'>) {
  const given = sql.placeholder
  const sent = (table: typeof requests | typeof attempts) =>
    and(eq(table.recipientHash, given('recipientHash')), eq(table.brand, given('brand')), carriesCode(table))
  const first = prepared<RequestRow, SentCode>(
    driver,
    orm
      .select({
        requestId: sql<string>`${requests.requestId}`.as('requestId'),
        attempt: sql<number>`1`.as('attempt'),
        provider: requests.provider,
        at: sql<number>`${requests.attemptAt}`.as('at'),
      })
      .from(requests)
      .where(and(sent(requests), lte(requests.attemptAt, given('at'))))
      .orderBy(desc(requests.requestId))
      .limit(1),
  )
  const further = prepared<RequestRow, SentCode>(
    driver,
    orm
      .select({
        requestId: sql<string>`${attempts.requestId}`.as('requestId'),
        attempt: attempts.attempt,
        provider: attempts.provider,
        at: attempts.at,
      })
      .from(attempts)
      .where(and(sent(attempts), lte(attempts.at, given('at'))))
      .orderBy(desc(attempts.requestId), desc(attempts.attempt))
      .limit(1),
  )
  return {
    request: prepared<RequestRow>(
      driver,
      orm
        .insert(requests)
        .values(placeholders(requests))
        .onConflictDoUpdate({ target: requests.requestId, set: mergedColumns(requests) }),
    ),
    attempt: prepared<AttemptRow>(
      driver,
      orm.insert(attempts).values(placeholders(attempts)).onConflictDoNothing(),
    ),
    sentTo: (request: RequestRow) =>
      [first.get(request), further.get(request)].filter((code) => code !== undefined),
    reportBefore: prepared<MessageReport, MessageReport>(
      driver,
      orm
        .select()
        .from(deliveryReports)
        .where(eq(deliveryReports.key, given('key'))),
    ),
    report: prepared<MessageReport>(
      driver,
      orm
        .insert(deliveryReports)
        .values(placeholders(deliveryReports))
        .onConflictDoUpdate({
          target: deliveryReports.key,
          set: { status: sql`excluded.status`, reason: sql`excluded.reason`, at: sql`excluded.at` },
        }),
    ),
  }
}
