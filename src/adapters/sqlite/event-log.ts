import { eq, getTableColumns, sql } from 'drizzle-orm'
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
import type { EventLogWriter } from '../store/event-log.ts'
import { type VerifiedNumber, verifiedIn, verifiedRenewalMs } from '../store/event-rows.ts'
import { statRows } from '../store/stat-buffer.ts'
import type { Database } from './database.ts'
import { writeEffect } from './effects.ts'
import { placeholders, prepared, preparedUpsert } from './prepared.ts'
import { createRecipientIndex } from './recipient-index.ts'
import { tables } from './schema.ts'

const { attempts, deliveryReports, requests, stats, verifiedNumbers } = tables

export function createEventLogWriter(
  database: Pick<Database, 'orm' | 'driver' | 'statement' | 'writer'>,
): EventLogWriter {
  const { writer } = database
  const write = prepareWrites(database)
  const recipientIndex = createRecipientIndex(database)
  const counted = statTable(database)
  return {
    saveEntries: (entries, counts) =>
      writer.write(() => {
        write.requests(entries.flatMap(({ isJob, request }) => (isJob ? [] : request)))
        write.attempts(entries.flatMap((entry) => entry.attempts))
        recipientIndex.addLate(entries)
        for (const number of verifiedIn(entries)) write.verified.run(number)
        counted.add(counts)
      }),
    saveReports: (provider, reports, writesEvents) =>
      writer.write(() => {
        const saved: SavedReport[] = []
        for (const report of bestReports(reports)) {
          const before = write.reportBefore.get(report)
          if (!outranks(report, before)) continue
          write.report.run(report)
          saved.push({ report, before })
        }
        counted.add(reportCounts(provider, saved))
        if (writesEvents)
          for (const event of reportEvents(saved)) writeEffect(database, { kind: 'event', event })
        return reportChanges(saved)
      }),
  }
}

function prepareWrites({ orm, driver }: Pick<Database, 'orm' | 'driver'>) {
  const given = sql.placeholder
  return {
    requests: preparedUpsert({ orm, driver }, requests, [requests.requestId]),
    attempts: preparedUpsert({ orm, driver }, attempts, [attempts.requestId, attempts.attempt]),
    verified: prepared<VerifiedNumber>(
      driver,
      orm
        .insert(verifiedNumbers)
        .values(placeholders(verifiedNumbers))
        .onConflictDoUpdate({
          target: verifiedNumbers.subject,
          set: { verifiedAt: sql`excluded.verified_at` },
          setWhere: sql`excluded.verified_at - ${verifiedNumbers.verifiedAt} > ${sql.raw(String(verifiedRenewalMs))}`,
        }),
    ),
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

function statTable({ orm, driver }: Pick<Database, 'orm' | 'driver'>) {
  const { count, ...key } = getTableColumns(stats)
  const add = preparedUpsert({ orm, driver }, stats, Object.values(key), {
    count: sql`${count} + excluded.count`,
  })
  return { add: (counts: readonly Counted[]) => add(statRows(counts)) }
}
