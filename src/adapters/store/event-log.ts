import { and, desc, eq, inArray, ne, notInArray, sql } from 'drizzle-orm'
import type { MessageReport, ReportChange } from '../../domain/delivery/delivery-reports.ts'
import type { NotifyOrder } from '../../domain/ground/notify-job.ts'
import type { EventLogReader } from '../../domain/log/event-log.ts'
import type { Counted } from '../../domain/log/stats.ts'
import type { ReadMessages, RecipientJob } from '../../domain/notify/message-query.ts'
import { otherFlags } from '../../domain/request/request-context.ts'
import type { StoreDatabase } from './database.ts'
import { createEventLogSearch, withReports } from './event-log-search.ts'
import { type EventLogEntry, firstAttemptOf, traceOf } from './event-rows.ts'
import { isClimbing } from './ladders.ts'
import type { SearchWindows } from './log-search.ts'
import { createReplayReader } from './replay.ts'
import { deliveredMessages, reportedMessages } from './report-search.ts'

export interface EventLogStore extends StoredEventLog, EventLogWriter {}

export interface StoredEventLog extends EventLogReader, ReturnType<typeof createReplayReader> {
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

type LogDatabase = Pick<StoreDatabase, 'orm' | 'tables' | 'ofRecipient' | 'hasReport'>

export function createEventLogReader(
  database: LogDatabase & Pick<StoreDatabase, 'reader'>,
  windows?: SearchWindows,
): StoredEventLog {
  const { reader: orm, tables } = database
  const { attempts, requests } = tables
  const large = { ...database, orm }
  return {
    ...createTraceReader(large),
    ...createEventLogSearch(large, windows),
    ...createReplayReader(large),
    messages: readMessages(database),
    reportedMessages: reportedMessages({ orm, tables: { attempts, requests } }),
    deliveredMessages: deliveredMessages({ orm, tables: { attempts, requests } }),
  }
}

/** Few rows, for callers of the API. */
function readMessages(database: LogDatabase): StoredEventLog['messages'] {
  const { orm, tables } = database
  const { ladders, requests, attempts } = tables
  return async (requestId) => {
    const [[row], further] = await Promise.all([
      orm.select().from(requests).where(eq(requests.requestId, requestId)),
      orm.select().from(attempts).where(eq(attempts.requestId, requestId)).orderBy(attempts.attempt),
    ])
    const first = row && firstAttemptOf(row)
    // Only these may have an order. A crash can lose the entry of the event log, but not the order.
    const isAsync = !row || row.status === null || row.status === 202
    const [deliveries, { order, jobs }] = await Promise.all([
      withReports(database, first ? [first, ...further] : further),
      isAsync ? orderOf(database, requestId) : noOrder,
    ])
    const request = row ? traceOf(row) : order && orderedRequest(requestId, order, jobs.length)
    const hasFailed = deliveries.some(({ report }) => report?.status === 'failed')
    const live = hasFailed ? await orm.select().from(ladders).where(isClimbing(ladders, requestId)) : []
    return request && { request, deliveries, jobs, isClimbing: live.length > 0 }
  }
}

function createTraceReader({
  orm,
  tables: { ladders, requests },
}: LogDatabase): Pick<StoredEventLog, 'trace' | 'guarded'> {
  return {
    trace: async (requestId) => {
      const [[row], [ladder]] = await Promise.all([
        orm.select().from(requests).where(eq(requests.requestId, requestId)),
        orm.select().from(ladders).where(eq(ladders.requestId, requestId)),
      ])
      return row && { ...traceOf(row), ladder }
    },
    guarded: async (limit) => {
      const { requestId, guard, operation } = requests
      const latest = sql`(SELECT ${requestId} FROM ${requests} ORDER BY ${requestId} DESC LIMIT ${mostSearched})`
      const rows = await orm
        .select()
        .from(requests)
        .where(and(inArray(requestId, latest), ne(operation, 'verify'), notInArray(guard, [...otherFlags])))
        .orderBy(desc(requestId))
        .limit(limit)
      return rows.map(traceOf)
    },
  }
}

async function orderOf(
  { orm, tables }: LogDatabase,
  requestId: string,
): Promise<{ order?: OrderRow | undefined; jobs: RecipientJob[] }> {
  const { notifyOrders, notifyJobs } = tables
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
