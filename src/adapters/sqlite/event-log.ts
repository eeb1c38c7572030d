import { and, desc, eq, getTableColumns, gte, inArray, sql } from 'drizzle-orm'
import { type Delivery, type DeliveryQuery, hashOf } from '../../domain/events/event-log.ts'
import { isVerified, reportStat, verifiedStats } from '../../domain/events/stats.ts'
import { type DeliveryReportState, reportRanks } from '../../domain/messages/delivery-reports.ts'
import { otpTemplateKeys } from '../../domain/messages/templates.ts'
import { attemptColumns, type EventLogStore, firstIdOf, traceOf } from '../store/event-log.ts'
import { StatBuffer } from '../store/stat-buffer.ts'
import type { Database } from './database.ts'
import { deliveries, deliveryReports, traces } from './schema.ts'
import { statTable } from './stats.ts'

/** Stories, the delivery log and receipts in SQLite. */
export function createEventLogStore({ orm, driver, writer }: Database): EventLogStore {
  const write = prepareWrites({ orm, driver })
  const statCounts = statTable({ driver })
  return {
    saveEntries: (entries, counts) =>
      writer.write(() => {
        const counted = new StatBuffer()
        for (const [requestId, stored, attempts] of entries) {
          write.trace.run(requestId, JSON.stringify(stored))
          for (const attempt of attempts) write.delivery.run(...attempt)
          if (stored[1] !== 'verify') continue
          const trace = traceOf(requestId, stored)
          if (!isVerified(trace)) continue
          const sent = write.lastCode.get(trace.recipientSubject ?? '', trace.brand ?? '')
          for (const statKey of verifiedStats(trace, sent)) counted.add(trace.at, statKey)
        }
        statCounts.add([...counts, ...counted.take()])
      }),
    saveReports: (provider, news) =>
      writer.write(() => {
        const counted = new StatBuffer()
        for (const [key, { status, reason, at }] of news) {
          const before = write.reportBefore.get(key)
          const { changes } = write.report.run(key, status, reason, at)
          // A vendor may say the same again and again, and take back that a message failed.
          if (changes === 0) continue
          const [was, is] = [before && reportStat(provider, before.status), reportStat(provider, status)]
          if (before && was) counted.add(before.at, was, -1)
          if (is) counted.add(at, is)
        }
        statCounts.add(counted.take())
      }),
    lastProviderOf: async (recipientSubjects, brandSlug) =>
      orm
        .select({ provider: deliveries.provider })
        .from(deliveries)
        .where(
          and(
            inArray(deliveries.recipientHash, recipientSubjects.map(hashOf)),
            eq(deliveries.brand, brandSlug),
            eq(deliveries.channel, 'SMS'),
            inArray(deliveries.outcome, ['accepted', 'unknown']),
            inArray(deliveries.template, [...otpTemplateKeys]),
          ),
        )
        .orderBy(desc(deliveries.requestId), desc(deliveries.attempt))
        .limit(1)
        .get()?.provider,
    trace: async (requestId) => {
      const row = orm.select().from(traces).where(eq(traces.requestId, requestId)).get()
      return row && traceOf(row.requestId, JSON.parse(row.trace))
    },
    deliveries: async ({ requestId, recipientSubjects, since, before, limit }: DeliveryQuery) =>
      orm
        .select({ ...getTableColumns(deliveries), report: deliveryReports })
        .from(deliveries)
        .leftJoin(deliveryReports, eq(deliveryReports.key, deliveries.reportKey))
        .where(
          and(
            requestId === undefined ? undefined : eq(deliveries.requestId, requestId),
            recipientSubjects && inArray(deliveries.recipientHash, recipientSubjects.map(hashOf)),
            since === undefined ? undefined : gte(deliveries.requestId, firstIdOf(since)),
            before &&
              sql`(${deliveries.requestId}, ${deliveries.attempt}) < (${before.requestId}, ${before.attempt})`,
          ),
        )
        .orderBy(desc(deliveries.requestId), desc(deliveries.attempt))
        .limit(limit)
        .all()
        .map(toDelivery)
        .reverse(),
  }
}

/** Made by Drizzle, run without it: one of each goes with every message. */
function prepareWrites({ orm, driver }: Pick<Database, 'orm' | 'driver'>) {
  const insertTrace = orm
    .insert(traces)
    .values({ requestId: '', trace: '' })
    .onConflictDoUpdate({ target: traces.requestId, set: { trace: sql`excluded.story` } })
    .toSQL()
  const insertDelivery = `INSERT OR REPLACE INTO deliveries (${attemptColumns.join()}) VALUES (${attemptColumns.map(() => '?').join()})`
  const rank = (column: string) =>
    `CASE ${column} ${Object.entries(reportRanks)
      .map(([status, value]) => `WHEN '${status}' THEN ${value}`)
      .join(' ')} END`
  const insertReport = `INSERT INTO receipts (key, status, reason, at) VALUES (?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET status = excluded.status, reason = excluded.reason, at = excluded.at
    WHERE ${rank('excluded.status')} > ${rank('receipts.status')}`
  return {
    lastCode: driver.prepare<[string, string], { provider: string; at: number }>(
      `SELECT provider, at FROM deliveries WHERE recipient_hash = ? AND brand = ? AND outcome IN ('accepted', 'unknown')
       AND template IN (${otpTemplateKeys.map((key) => `'${key}'`).join()}) ORDER BY request_id DESC, attempt DESC LIMIT 1`,
    ),
    reportBefore: driver.prepare<[string], Pick<DeliveryReportState, 'status' | 'at'>>(
      'SELECT status, at FROM receipts WHERE key = ?',
    ),
    report: driver.prepare<[string, string, string | null, number]>(insertReport),
    trace: driver.prepare<[string, string]>(insertTrace.sql),
    delivery: driver.prepare<(string | number | null)[]>(insertDelivery),
  }
}

type Row = typeof deliveries.$inferSelect & { report: typeof deliveryReports.$inferSelect | null }

function toDelivery({ recipientHash, segments, encoding, report, ...row }: Row): Delivery {
  return {
    ...row,
    recipientSubject: recipientHash,
    segments: segments === null || encoding === null ? null : { count: segments, encoding },
    report: report && { status: report.status, reason: report.reason, at: report.at },
  }
}
