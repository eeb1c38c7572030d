import { and, desc, eq, getTableColumns, gte, inArray, sql } from 'drizzle-orm'
import { type Delivery, type DeliveryQuery, hashOf } from '../../domain/events/event-log.ts'
import { type Counted, isVerified, statSteps, verifyBins } from '../../domain/events/stats.ts'
import { reportRanks } from '../../domain/messages/delivery-reports.ts'
import { otpTemplateKeys } from '../../domain/messages/templates.ts'
import {
  type EventLogEntry,
  type EventLogStore,
  firstIdOf,
  type StoredTrace,
  traceOf,
} from '../store/event-log.ts'
import type { ReadStats } from '../store/statistics.ts'
import type { Database } from './database.ts'
import type { Queryable } from './pool.ts'
import { deliveries, deliveryReports, traces } from './schema.ts'
import { asJson } from './text.ts'

const saveEntries = {
  name: 'otpost_keep_entries',
  text: 'SELECT otpost_keep_entries($1::jsonb, $2::jsonb, $3::int, $4::jsonb, $5::jsonb, $6::jsonb)',
}
const saveReports = {
  name: 'otpost_keep_receipts',
  text: 'SELECT otpost_keep_receipts($1::text, $2::jsonb, $3::jsonb, $4::int, $5::jsonb)',
}
const readStatsStatement = {
  name: 'otpost_tallies',
  text: `SELECT at, kind, channel, brand, provider, detail, sum(count)::bigint AS count FROM tallies
    WHERE step_ms = $1 AND at = $2 AND ($3::text IS NULL OR kind = $3) GROUP BY 1, 2, 3, 4, 5, 6`,
}

const steps = JSON.stringify(statSteps.map(({ stepMs }) => stepMs))

/**
 * Stories, the delivery log and receipts in PostgreSQL.
 *
 * @param part in which this process counts; others had better have others
 */
export function createEventLogStore(
  { orm, pool }: Pick<Database, 'orm'> & { readonly pool: Queryable },
  part: number,
): EventLogStore {
  return {
    saveEntries: async (entries, counts) => {
      await pool.query(saveEntries, [
        asJson(entries.map(kept)),
        asJson(counts),
        part,
        steps,
        JSON.stringify(otpTemplateKeys),
        JSON.stringify(verifyBins),
      ])
    },
    saveReports: async (provider, news) => {
      const items = news.map(([key, { status, reason, at }]) => [key, status, reason, at])
      await pool.query(saveReports, [provider, asJson(items), JSON.stringify(reportRanks), part, steps])
    },
    lastProviderOf: async (recipientSubjects, brandSlug) => {
      const [last] = await orm
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
      return last?.provider
    },
    trace: async (requestId) => {
      const [row] = await orm.select().from(traces).where(eq(traces.requestId, requestId)).limit(1)
      return row && traceOf(row.requestId, row.trace as StoredTrace)
    },
    deliveries: async ({ requestId, recipientSubjects, since, before, limit }: DeliveryQuery) => {
      const rows = await orm
        .select({ ...getTableColumns(deliveries), report: deliveryReports })
        .from(deliveries)
        .leftJoin(deliveryReports, eq(deliveryReports.key, deliveries.reportKey))
        .where(
          and(
            requestId === undefined ? undefined : eq(deliveries.requestId, requestId),
            recipientSubjects && inArray(deliveries.recipientHash, recipientSubjects.map(hashOf)),
            since === undefined ? undefined : gte(deliveries.requestId, firstIdOf(since)),
            before &&
              sql`(${deliveries.requestId}, ${deliveries.attempt}) < (${before.requestId}, ${before.attempt}::int)`,
          ),
        )
        .orderBy(desc(deliveries.requestId), desc(deliveries.attempt))
        .limit(limit)
      return rows.map(toDelivery).reverse()
    },
  }
}

/** An entry as the function takes it: with the application it is kept under, and what counts a right code. */
function kept([requestId, stored, attempts]: EventLogEntry) {
  const trace = traceOf(requestId, stored)
  const { at, channel, brand, recipientSubject } = trace
  const rightCode = isVerified(trace) ? [at, channel ?? '', brand ?? '', recipientSubject ?? ''] : null
  return [requestId, trace.app, stored, attempts, rightCode]
}

/** Reads tallies of a step of time, over the parts of all processes. */
export function statReader({ pool }: Pick<Database, 'pool'>): ReadStats {
  return (stepMs, at, kind) => pool.query<Counted>(readStatsStatement, [stepMs, at, kind ?? null])
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
