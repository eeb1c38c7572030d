import { and, desc, eq, gte, inArray, isNotNull, lt, lte, notInArray, or, type SQL, sql } from 'drizzle-orm'
import type { Delivery, DeliveryQuery, EventLogReader } from '../../domain/events/event-log.ts'
import type { PageOfLog, Place } from '../../domain/events/log-search.ts'
import { otherFlags } from '../../domain/events/request-context.ts'
import type { Counted } from '../../domain/events/stats.ts'
import type { MessageReport, ReportChange } from '../../domain/messages/delivery-reports.ts'
import type { ReadMessages, RecipientJob } from '../../domain/messages/message-query.ts'
import type { NotifyOrder } from '../../domain/messages/queue.ts'
import type { StoreDatabase } from './database.ts'
import { type AttemptRow, deliveryOf, type EventLogEntry, firstAttemptOf, traceOf } from './event-rows.ts'
import { createIdSearch } from './id-search.ts'
import { createLogSearch, logFilters, pageOf, type SearchWindows } from './log-search.ts'
import { reportedMessages } from './report-search.ts'

export interface EventLogStore extends StoredEventLog, EventLogWriter {}

export interface StoredEventLog extends EventLogReader {
  readonly messages: ReadMessages
  readonly reportedMessages: ReturnType<typeof reportedMessages>
}

export interface EventLogWriter {
  /** Atomic; saves each request at most once. An entry never removes known values. */
  saveEntries(entries: readonly EventLogEntry[], counts: readonly Counted[]): Promise<void>
  /** As of `DeliveryReportStore`. Resolves to the messages that failed, or failed no longer. */
  saveReports(
    provider: string,
    reports: readonly MessageReport[],
    writesEvents: boolean,
  ): Promise<readonly ReportChange[]>
}

/** The guard's flags have no index. */
const mostSearched = 20_000

export function createEventLogReader(
  { orm, tables, ofRecipient }: Pick<StoreDatabase, 'orm' | 'tables' | 'ofRecipient'>,
  windows?: SearchWindows,
): StoredEventLog {
  const { requests, attempts, deliveryReports, notifyOrders, notifyJobs } = tables
  const searchLog = createLogSearch(orm, windows)

  async function read(
    ofRequests: SQL | undefined,
    ofAttempts: SQL | undefined,
    limit: number,
  ): Promise<readonly Delivery[]> {
    const [first, further] = await Promise.all([
      orm
        .select()
        .from(requests)
        .where(and(isNotNull(requests.outcome), ofRequests))
        .orderBy(desc(requests.requestId))
        .limit(limit),
      orm
        .select()
        .from(attempts)
        .where(ofAttempts)
        .orderBy(desc(attempts.requestId), desc(attempts.attempt))
        .limit(limit),
    ])
    const rows = [...first.flatMap((row) => firstAttemptOf(row) ?? []), ...further]
      .sort(byPlace)
      .slice(-limit)
    return withReports(rows)
  }

  async function withReports(rows: readonly AttemptRow[]): Promise<readonly Delivery[]> {
    const keys = rows.flatMap(({ reportKey }) => reportKey ?? [])
    const reports =
      keys.length === 0
        ? []
        : await orm.select().from(deliveryReports).where(inArray(deliveryReports.key, keys))
    const reportOf = new Map(reports.map((report) => [report.key, report]))
    return rows.map((row) => deliveryOf(row, reportOf.get(row.reportKey ?? '')))
  }

  async function orderOf(requestId: string): Promise<{ order?: OrderRow | undefined; jobs: RecipientJob[] }> {
    const { appId, brandSlug, channel, reference, createdAt } = notifyOrders
    const { position, masked, state, updatedAt } = notifyJobs
    const [[order], jobs] = await Promise.all([
      orm
        .select({ appId, brandSlug, channel, reference, createdAt })
        .from(notifyOrders)
        .where(eq(notifyOrders.requestId, requestId)),
      orm
        .select({ position, masked, state, updatedAt })
        .from(notifyJobs)
        .where(eq(notifyJobs.requestId, requestId)),
    ])
    return { order, jobs }
  }

  const { isDelivery, isCall } = logFilters({ tables, ofRecipient })

  async function deliveries(query: DeliveryQuery, from?: string): Promise<readonly Delivery[]> {
    const { before } = query
    return read(
      and(
        isDelivery(requests, query),
        from === undefined ? undefined : gte(requests.requestId, from),
        before && (before.attempt > 1 ? lte : lt)(requests.requestId, before.requestId),
      ),
      and(
        isDelivery(attempts, query),
        from === undefined ? undefined : gte(attempts.requestId, from),
        before && lte(attempts.requestId, before.requestId),
        before && or(lt(attempts.requestId, before.requestId), lt(attempts.attempt, before.attempt)),
      ),
      query.limit,
    )
  }

  return {
    trace: async (requestId) => {
      const [row] = await orm.select().from(requests).where(eq(requests.requestId, requestId))
      return row && traceOf(row)
    },
    messages: async (requestId) => {
      const [[row], further] = await Promise.all([
        orm.select().from(requests).where(eq(requests.requestId, requestId)),
        orm.select().from(attempts).where(eq(attempts.requestId, requestId)).orderBy(attempts.attempt),
      ])
      const first = row && firstAttemptOf(row)
      // Only these may have an order. A crash can lose the entry of the event log, but not the order.
      const isAsync = !row || row.status === null || row.status === 202
      const [deliveries, { order, jobs }] = await Promise.all([
        withReports(first ? [first, ...further] : further),
        isAsync ? orderOf(requestId) : noOrder,
      ])
      const request = row ? traceOf(row) : order && orderedRequest(requestId, order, jobs.length)
      return request && { request, deliveries, jobs }
    },
    deliveries,
    findDeliveries: async (filter, { before, limit }) => {
      const newest = async (page: PageOfLog, from?: string) =>
        (await deliveries({ ...filter, ...page }, from)).toReversed()
      // An index finds these.
      const isIndexed = filter.requestId !== undefined || filter.recipientSubjects !== undefined
      if (isIndexed) return pageOf(await newest({ before, limit: limit + 1 }), limit)
      return searchLog([requests, attempts], filter, { before, limit }, newest)
    },
    findCalls: (filter, page) =>
      searchLog([requests], filter, page, async ({ before, limit }, from) => {
        const rows = await orm
          .select()
          .from(requests)
          .where(
            and(
              isCall(filter),
              from === undefined ? undefined : gte(requests.requestId, from),
              before && lt(requests.requestId, before.requestId),
            ),
          )
          .orderBy(desc(requests.requestId))
          .limit(limit)
        return rows.map((row) => ({ ...traceOf(row), attempt: 1 }))
      }),
    named: createIdSearch({ orm, tables: { attempts, requests } }),
    reportedMessages: reportedMessages({ orm, tables: { attempts, requests } }),
    guarded: async (limit) => {
      const { requestId, guard } = requests
      const latest = sql`(SELECT ${requestId} FROM ${requests} ORDER BY ${requestId} DESC LIMIT ${mostSearched})`
      const rows = await orm
        .select()
        .from(requests)
        .where(and(inArray(requestId, latest), notInArray(guard, [...otherFlags])))
        .orderBy(desc(requestId))
        .limit(limit)
      return rows.map(traceOf)
    },
  }
}

type OrderRow = Pick<NotifyOrder, 'appId' | 'brandSlug' | 'channel' | 'reference' | 'createdAt'>

const noOrder = { order: undefined, jobs: [] }

function orderedRequest(requestId: string, order: OrderRow, recipients: number) {
  const { appId: app, brandSlug: brand, channel, reference, createdAt: at } = order
  const end = { status: 202, error: null, message: null, durationMs: 0 }
  const operation = 'notify' as const
  return {
    requestId,
    at,
    operation,
    app,
    brand,
    channel,
    recipient: null,
    recipients,
    reference,
    flags: [],
    end,
  }
}

function byPlace(a: Place, b: Place): number {
  if (a.requestId === b.requestId) return a.attempt - b.attempt
  return a.requestId < b.requestId ? -1 : 1
}
