import {
  and,
  desc,
  eq,
  gte,
  inArray,
  isNotNull,
  like,
  lt,
  lte,
  notInArray,
  or,
  type SQL,
  sql,
} from 'drizzle-orm'
import type { Delivery, MessageReport, ReportChange } from '../../domain/delivery/delivery-reports.ts'
import type { NotifyOrder } from '../../domain/ground/notify-job.ts'
import type { Call, DeliveryQuery, EventLogReader } from '../../domain/log/event-log.ts'
import { type CallFilter, mostCounted, type PageOfLog, type Place } from '../../domain/log/log-search.ts'
import type { Counted } from '../../domain/log/stats.ts'
import type { ReadMessages, RecipientJob } from '../../domain/notify/message-query.ts'
import { otherFlags } from '../../domain/request/request-context.ts'
import type { StoreDatabase } from './database.ts'
import {
  type AttemptRow,
  deliveryOf,
  type EventLogEntry,
  firstAttemptOf,
  type RequestRow,
  traceOf,
} from './event-rows.ts'
import { createLogSearch, logFilters, pageOf, type SearchWindows } from './log-search.ts'
import { deliveredMessages, reportedMessages } from './report-search.ts'

export interface EventLogStore extends StoredEventLog, EventLogWriter {}

export interface StoredEventLog extends EventLogReader {
  readonly messages: ReadMessages
  readonly reportedMessages: ReturnType<typeof reportedMessages>
  readonly deliveredMessages: ReturnType<typeof deliveredMessages>
}

export interface EventLogWriter {
  /** Atomic; saves each request at most once. An entry never removes known values. */
  saveEntries(entries: readonly EventLogEntry[], counts: readonly Counted[]): Promise<void>
  /** As of `DeliveryReportStore`. Resolves to the messages that failed, failed no longer, or were delivered. */
  saveReports(
    provider: string,
    reports: readonly MessageReport[],
    writesEvents: boolean,
  ): Promise<readonly ReportChange[]>
}

/** The guard's flags have no index. */
const mostSearched = 20_000

/** The log has no index by reference or message ID. This search reads more of it, since it has no other filter. */
const nameWindows: SearchWindows = { rows: 1000, most: 500 }
const mostNamed = 20

/** Requests that are found by an attempt after the first. */
const mostFurther = 1000

export function createEventLogReader(
  {
    orm,
    tables,
    ofRecipient,
    hasReport,
  }: Pick<StoreDatabase, 'orm' | 'tables' | 'ofRecipient' | 'hasReport'>,
  windows?: SearchWindows,
): StoredEventLog {
  const { requests, attempts, deliveryReports, notifyOrders, notifyJobs } = tables
  const searchLog = createLogSearch(orm, windows)
  const searchNames = createLogSearch(orm, windows ?? nameWindows)

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

  const { isDelivery, isCall } = logFilters({ tables, ofRecipient, hasReport })

  /** In the requests, and in their further attempts. */
  function areDeliveries(query: DeliveryQuery, from?: string): readonly [SQL | undefined, SQL | undefined] {
    const { before } = query
    const ofRequests = and(
      isNotNull(requests.outcome),
      from === undefined ? undefined : gte(requests.requestId, from),
      before && (before.attempt > 1 ? lte : lt)(requests.requestId, before.requestId),
    )
    const ofAttempts = and(
      from === undefined ? undefined : gte(attempts.requestId, from),
      before && lte(attempts.requestId, before.requestId),
      before && or(lt(attempts.requestId, before.requestId), lt(attempts.attempt, before.attempt)),
    )
    return [isDelivery(requests, query, ofRequests), isDelivery(attempts, query, ofAttempts)]
  }

  async function deliveries(query: DeliveryQuery, from?: string): Promise<readonly Delivery[]> {
    const [ofRequests, ofAttempts] = areDeliveries(query, from)
    const [first, further] = await Promise.all([
      orm.select().from(requests).where(ofRequests).orderBy(desc(requests.requestId)).limit(query.limit),
      orm
        .select()
        .from(attempts)
        .where(ofAttempts)
        .orderBy(desc(attempts.requestId), desc(attempts.attempt))
        .limit(query.limit),
    ])
    const rows = [...first.flatMap((row) => firstAttemptOf(row) ?? []), ...further]
    return withReports(rows.sort(byPlace).slice(-query.limit))
  }

  function isWithin(
    { requestId }: typeof requests | typeof attempts,
    before: Place | undefined,
    from: string | undefined,
  ): SQL | undefined {
    return and(
      from === undefined ? undefined : gte(requestId, from),
      before && lt(requestId, before.requestId),
    )
  }

  async function withAttempts(rows: readonly RequestRow[]): Promise<readonly Call[]> {
    const ids = rows.map(({ requestId }) => requestId)
    const further = await orm.select().from(attempts).where(inArray(attempts.requestId, ids))
    const all = [...rows.flatMap((row) => firstAttemptOf(row) ?? []), ...further]
    const byRequest = Map.groupBy(await withReports(all.sort(byPlace)), ({ requestId }) => requestId)
    return rows.map((row) => ({ ...traceOf(row), deliveries: byRequest.get(row.requestId) ?? [] }))
  }

  /** What `isCall` cannot find in the requests themselves. */
  async function furtherTo(
    { recipientSubjects }: CallFilter,
    { before }: PageOfLog,
  ): Promise<readonly string[]> {
    if (recipientSubjects === undefined) return []
    const { requestId } = attempts
    const rows = await orm
      .select({ requestId })
      .from(attempts)
      .where(and(ofRecipient(attempts, recipientSubjects), before && lt(requestId, before.requestId)))
      .orderBy(desc(requestId))
      .limit(mostFurther)
    return rows.map((row) => row.requestId)
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
    findCalls: async (filter, page) => {
      const further = await furtherTo(filter, page)
      const { rows, next } = await searchLog([requests], filter, page, async ({ before, limit }, from) => {
        const found = await orm
          .select()
          .from(requests)
          .where(and(isCall(filter, further), isWithin(requests, before, from)))
          .orderBy(desc(requests.requestId))
          .limit(limit)
        return found.map((row) => ({ ...row, attempt: 1 }))
      })
      return { rows: await withAttempts(rows), next }
    },
    countFound: async (list, filters) => {
      const page = { limit: mostCounted }
      const further = list === 'calls' ? await furtherTo(filters, page) : []
      const first = { requestId: requests.requestId, attempt: sql<number>`1`, to: requests.recipientHash }
      const others = { requestId: attempts.requestId, attempt: attempts.attempt, to: attempts.recipientHash }
      const newest = async ({ before, limit }: PageOfLog, from?: string) => {
        const [ofRequests, ofAttempts] =
          list === 'calls'
            ? [and(isCall(filters, further), isWithin(requests, before, from))]
            : areDeliveries({ ...filters, before, limit }, from)
        const [ones, more] = await Promise.all([
          orm.select(first).from(requests).where(ofRequests).orderBy(desc(requests.requestId)).limit(limit),
          ofAttempts
            ? orm
                .select(others)
                .from(attempts)
                .where(ofAttempts)
                .orderBy(desc(attempts.requestId), desc(attempts.attempt))
                .limit(limit)
            : [],
        ])
        return [...ones, ...more].sort(byPlace).slice(-limit).toReversed()
      }
      const tables = list === 'calls' ? [requests] : [requests, attempts]
      const { rows, next } = await searchLog(tables, filters, page, newest)
      return {
        rows: rows.length,
        requests: new Set(rows.map(({ requestId }) => requestId)).size,
        recipients: new Set(rows.flatMap(({ to }) => to ?? [])).size,
        isMore: next !== null,
      }
    },
    named: async (name) => {
      const { requestId, app, at, reference, providerMessageId } = requests
      const [, end] = /^…?([0-9a-f]{8})$/.exec(name.toLowerCase()) ?? []
      const ofAttempt = {
        requestId: attempts.requestId,
        attempt: attempts.attempt,
        app: attempts.app,
        at: attempts.at,
      }
      const newest = async ({ before, limit }: PageOfLog, from?: string) => {
        const isNamed = or(
          eq(reference, name),
          eq(providerMessageId, name),
          end === undefined ? undefined : like(requestId, `%${end}`),
        )
        const [ones, more] = await Promise.all([
          orm
            .select({ requestId, app, at, reference })
            .from(requests)
            .where(and(isNamed, isWithin(requests, before, from)))
            .orderBy(desc(requestId))
            .limit(limit),
          orm
            .select(ofAttempt)
            .from(attempts)
            .where(and(eq(attempts.providerMessageId, name), isWithin(attempts, before, from)))
            .orderBy(desc(attempts.requestId), desc(attempts.attempt))
            .limit(limit),
        ])
        const rows = [
          ...ones.map((row) => ({ ...row, attempt: 1, isReference: row.reference === name })),
          ...more.map((row) => ({ ...row, isReference: false })),
        ]
        return rows.sort(byPlace).slice(-limit).toReversed()
      }
      const { rows, next } = await searchNames([requests], {}, { limit: mostNamed }, newest)
      return { found: rows, since: next?.at ?? null }
    },
    reportedMessages: reportedMessages({ orm, tables: { attempts, requests } }),
    deliveredMessages: deliveredMessages({ orm, tables: { attempts, requests } }),
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
    unknownFields: [],
    end,
  }
}

function byPlace(a: Place, b: Place): number {
  if (a.requestId === b.requestId) return a.attempt - b.attempt
  return a.requestId < b.requestId ? -1 : 1
}
