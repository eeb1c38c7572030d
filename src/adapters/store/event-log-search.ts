import { and, desc, eq, gte, inArray, isNotNull, like, lt, lte, or, type SQL, sql } from 'drizzle-orm'
import type { Delivery } from '../../domain/delivery/delivery-reports.ts'
import type { DeliveryQuery, EventLogReader, LoggedRequest } from '../../domain/log/event-log.ts'
import {
  type CallFilter,
  type LogPosition,
  mostCounted,
  type PageOfLog,
} from '../../domain/log/log-search.ts'
import type { StoreDatabase, Tables } from './database.ts'
import { type AttemptRow, deliveryOf, firstAttemptOf, type RequestRow, traceOf } from './event-rows.ts'
import { createLogSearch, logFilters, pageOf, type SearchWindows } from './log-search.ts'

/** The log has no index by reference or message ID. This search reads more of it, since it has no other filter. */
const nameWindows: SearchWindows = { rows: 10_000, most: 50 }
const mostNamed = 20

/** A count may get all rows of a window at once. */
const countWindows: SearchWindows = { rows: 2000, most: 100 }

/** Requests that are found by an attempt after the first. */
const mostFurther = 1000

type LogTable = Tables['requests' | 'attempts']
type LogDatabase = Pick<StoreDatabase, 'orm' | 'tables' | 'ofRecipient' | 'hasReport'>

type Searches = Pick<EventLogReader, 'deliveries' | 'findDeliveries' | 'findCalls' | 'countFound' | 'named'>

export function createEventLogSearch(database: LogDatabase, windows?: SearchWindows): Searches {
  const search = createLogSearch(database.orm, windows)
  const conditions = conditionsIn(database)
  return {
    ...createDeliverySearch(database, search, conditions),
    ...createCallSearch(database, search, conditions),
    countFound: createCount(database, createLogSearch(database.orm, windows ?? countWindows), conditions),
    named: createNameSearch(database, createLogSearch(database.orm, windows ?? nameWindows)),
  }
}

type Search = ReturnType<typeof createLogSearch>
type Conditions = ReturnType<typeof conditionsIn>

function conditionsIn(database: LogDatabase) {
  const { orm, tables, ofRecipient } = database
  const { requests, attempts } = tables
  const { isDelivery, isCall } = logFilters(database)

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

  /** What `isCall` cannot find in the requests themselves. */
  async function furtherTo(
    { recipientHashes }: CallFilter,
    { before }: PageOfLog,
  ): Promise<readonly string[]> {
    if (recipientHashes === undefined) return []
    const { requestId } = attempts
    const rows = await orm
      .select({ requestId })
      .from(attempts)
      .where(and(ofRecipient(attempts, recipientHashes), before && lt(requestId, before.requestId)))
      .orderBy(desc(requestId))
      .limit(mostFurther)
    return rows.map((row) => row.requestId)
  }

  return {
    areDeliveries,
    furtherTo,
    areCalls: (filter: CallFilter, further: readonly string[], before?: LogPosition, from?: string) =>
      and(isCall(filter, further), isWithin(requests, before, from)),
  }
}

function isWithin(
  { requestId }: LogTable,
  before: LogPosition | undefined,
  from: string | undefined,
): SQL | undefined {
  return and(from === undefined ? undefined : gte(requestId, from), before && lt(requestId, before.requestId))
}

function createDeliverySearch(
  database: LogDatabase,
  search: Search,
  { areDeliveries }: Conditions,
): Pick<Searches, 'deliveries' | 'findDeliveries'> {
  const { orm, tables } = database
  const { requests, attempts } = tables

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
    return withReports(database, rows.sort(byPlace).slice(-query.limit))
  }

  return {
    deliveries,
    findDeliveries: async (filter, { before, limit }) => {
      const newest = async (page: PageOfLog, from?: string) =>
        (await deliveries({ ...filter, ...page }, from)).toReversed()
      // An index finds these.
      const isIndexed = filter.requestId !== undefined || filter.recipientHashes !== undefined
      if (isIndexed) return pageOf(await newest({ before, limit: limit + 1 }), limit)
      return search([requests, attempts], filter, { before, limit }, newest)
    },
  }
}

function createCallSearch(
  database: LogDatabase,
  search: Search,
  { areCalls, furtherTo }: Conditions,
): Pick<Searches, 'findCalls'> {
  const { orm, tables } = database
  const { requests, attempts } = tables

  async function withAttempts(rows: readonly RequestRow[]): Promise<readonly LoggedRequest[]> {
    const ids = rows.map(({ requestId }) => requestId)
    const further = await orm.select().from(attempts).where(inArray(attempts.requestId, ids))
    const all = [...rows.flatMap((row) => firstAttemptOf(row) ?? []), ...further]
    const byRequest = Map.groupBy(
      await withReports(database, all.sort(byPlace)),
      ({ requestId }) => requestId,
    )
    return rows.map((row) => ({ ...traceOf(row), deliveries: byRequest.get(row.requestId) ?? [] }))
  }

  return {
    findCalls: async (filter, page) => {
      const further = await furtherTo(filter, page)
      const { rows, next } = await search([requests], filter, page, async ({ before, limit }, from) => {
        const found = await orm
          .select()
          .from(requests)
          .where(areCalls(filter, further, before, from))
          .orderBy(desc(requests.requestId))
          .limit(limit)
        return found.map((row) => ({ ...row, attempt: 1 }))
      })
      return { rows: await withAttempts(rows), next }
    },
  }
}

function createCount(
  { orm, tables }: LogDatabase,
  search: Search,
  { areCalls, areDeliveries, furtherTo }: Conditions,
): Searches['countFound'] {
  const { requests, attempts } = tables
  return async (list, filters) => {
    const page = { limit: mostCounted }
    const further = list === 'calls' ? await furtherTo(filters, page) : []
    const first = { requestId: requests.requestId, attempt: sql<number>`1`, to: requests.recipientHash }
    const others = { requestId: attempts.requestId, attempt: attempts.attempt, to: attempts.recipientHash }
    const newest = async ({ before, limit }: PageOfLog, from?: string) => {
      const [ofRequests, ofAttempts] =
        list === 'calls'
          ? [areCalls(filters, further, before, from)]
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
    const searched = list === 'calls' ? [requests] : [requests, attempts]
    const { rows, next } = await search(searched, filters, page, newest)
    return {
      rows: rows.length,
      requests: new Set(rows.map(({ requestId }) => requestId)).size,
      recipients: new Set(rows.flatMap(({ to }) => to ?? [])).size,
      isMore: next !== null,
    }
  }
}

function createNameSearch({ orm, tables }: LogDatabase, search: Search): Searches['named'] {
  const { requests, attempts } = tables
  return async (name) => {
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
    const { rows, next } = await search([requests], {}, { limit: mostNamed }, newest)
    return { found: rows, since: next?.at ?? null }
  }
}

export async function withReports(
  { orm, tables: { deliveryReports } }: Pick<StoreDatabase, 'orm' | 'tables'>,
  rows: readonly AttemptRow[],
): Promise<readonly Delivery[]> {
  const keys = rows.flatMap(({ reportKey }) => reportKey ?? [])
  const reports =
    keys.length === 0
      ? []
      : await orm.select().from(deliveryReports).where(inArray(deliveryReports.key, keys))
  const reportOf = new Map(reports.map((report) => [report.key, report]))
  return rows.map((row) => deliveryOf(row, reportOf.get(row.reportKey ?? '')))
}

function byPlace(a: LogPosition, b: LogPosition): number {
  if (a.requestId === b.requestId) return a.attempt - b.attempt
  return a.requestId < b.requestId ? -1 : 1
}
