import {
  and,
  desc,
  eq,
  gte,
  inArray,
  isNotNull,
  isNull,
  like,
  lt,
  lte,
  not,
  or,
  type SQL,
  sql,
} from 'drizzle-orm'
import {
  type CallFilter,
  callResults,
  calls,
  type DeliveryFilter,
  type DeliveryStatus,
  type Found,
  type LogFilter,
  type LogPosition,
  type PageOfLog,
} from '../../domain/log/log-search.ts'
import type { StoreDatabase, Tables } from './database.ts'
import { firstIdOf, timeOfId } from './request-ids.ts'

// The event log has no index by what operators filter, since an index costs time in each send. A search reads windows of
// the newest rows by primary key: a long read of SQLite would keep the write-ahead log from starting again.

export interface SearchWindows {
  /** The first window has a tenth of them, which is enough for most pages. */
  readonly rows: number
  /** Of one search. */
  readonly most: number
}

/** 200,000 rows take 0.2 s on SQLite and 0.6 s on PostgreSQL; with a report for each, 1 s and 2.3 s. */
const defaultWindows: SearchWindows = { rows: 10_000, most: 20 }

type LogTable = Tables['requests' | 'attempts']

type ReadWindow<Row> = (page: PageOfLog, from: string | undefined) => Promise<readonly Row[]>

export function createLogSearch(orm: StoreDatabase['orm'], windows = defaultWindows) {
  /** The request at the end of a window. Null: the window has all rows. */
  async function endOf(
    table: LogTable,
    since: string,
    before: LogPosition | undefined,
    rows: number,
  ): Promise<string | null> {
    const { requestId } = table
    const isIn = and(
      gte(requestId, since),
      before && (before.attempt > 1 ? lte : lt)(requestId, before.requestId),
    )
    const [row] = await orm
      .select({ requestId })
      .from(table)
      .where(isIn)
      .orderBy(desc(requestId))
      .limit(1)
      .offset(rows - 1)
    return row?.requestId ?? null
  }

  /** @param read its rows are newest first */
  return async <Row extends LogPosition>(
    tables: readonly LogTable[],
    { since, until }: LogFilter,
    { before, limit }: PageOfLog,
    read: ReadWindow<Row>,
  ): Promise<Found<Row>> => {
    const first = since === undefined ? '' : firstIdOf(since)
    const rows: Row[] = []
    let next = before ?? (until === undefined ? undefined : { requestId: firstIdOf(until), attempt: 1 })
    for (let window = 0; window < windows.most; window++) {
      const size = window > 0 ? windows.rows : Math.ceil(windows.rows / 10)
      const ends = await Promise.all(tables.map((table) => endOf(table, first, next, size)))
      const end = ends.reduce((one, other) => ((one ?? '') > (other ?? '') ? one : other))
      rows.push(...(await read({ before: next, limit: limit + 1 - rows.length }, end ?? first)))
      if (rows.length > limit || end === null) return pageOf(rows, limit)
      next = { requestId: end, attempt: 1 }
    }
    return { rows, next: next ? placeOf(next) : null }
  }
}

/** @param rows one more than the limit, if there are more */
export function pageOf<Row extends LogPosition>(rows: readonly Row[], limit: number): Found<Row> {
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  return { rows: shown, next: last ? placeOf(last) : null }
}

function placeOf({ requestId, attempt }: LogPosition): Found<unknown>['next'] {
  return { requestId, attempt, at: timeOfId(requestId) }
}

/** Reports change these outcomes, as `statusOf` says. */
const reportable: readonly DeliveryStatus[] = ['accepted', 'unknown']
const reports: readonly DeliveryStatus[] = ['delivered', 'failed']

export function logFilters({
  tables: { requests, attempts },
  ofRecipient,
  hasReport,
}: Pick<StoreDatabase, 'tables' | 'ofRecipient' | 'hasReport'>) {
  function isOf(table: LogTable, { since, until, app, brand, channel, country }: LogFilter): SQL | undefined {
    return and(
      since === undefined ? undefined : gte(table.requestId, firstIdOf(since)),
      until === undefined ? undefined : lt(table.requestId, firstIdOf(until)),
      app === undefined ? undefined : eq(table.app, app),
      brand === undefined ? undefined : eq(table.brand, brand),
      channel === undefined ? undefined : eq(table.channel, channel),
      country === undefined ? undefined : eq(table.country, country),
    )
  }

  function hasStatus(
    table: LogTable,
    statuses: readonly DeliveryStatus[],
    isOther: SQL | undefined,
  ): SQL | undefined {
    const { outcome, reportKey } = table
    const isReportable = inArray(sql`${outcome}`, [...reportable])
    const isReported = (words: readonly DeliveryStatus[]) =>
      hasReport(
        reportKey,
        words,
        sql`SELECT ${reportKey} FROM ${table} WHERE ${and(isOther, isReportable, isNotNull(reportKey))}`,
      )
    const reported = statuses.filter((status) => reports.includes(status))
    const stored = statuses.filter((status) => !reports.includes(status))
    const isOpen = stored.some((status) => reportable.includes(status))
    return or(
      stored.length > 0
        ? and(
            inArray(sql`${outcome}`, stored),
            isOpen ? or(not(isReportable), isNull(reportKey), not(isReported(reports))) : undefined,
          )
        : undefined,
      reported.length > 0 ? and(isReportable, isReported(reported)) : undefined,
    )
  }

  return {
    /** @param isIn a part of the table */
    isDelivery(table: LogTable, filter: DeliveryFilter, isIn?: SQL): SQL | undefined {
      const { requestId, recipientHashes, statuses, provider, template, lang, errorClass } = filter
      const isOther = and(
        isIn,
        isOf(table, filter),
        requestId === undefined ? undefined : eq(table.requestId, requestId),
        recipientHashes && ofRecipient(table, recipientHashes),
        provider === undefined ? undefined : eq(table.provider, provider),
        template === undefined ? undefined : eq(table.template, template),
        lang === undefined ? undefined : eq(table.lang, lang),
        errorClass === undefined ? undefined : eq(table.errorClass, errorClass),
      )
      return and(isOther, statuses && hasStatus(table, statuses, isOther))
    },
    /** @param ofRecipient requests with further attempts to the recipient */
    isCall(filter: CallFilter, ofRecipient: readonly string[] = []): SQL | undefined {
      const { recipientHashes, provider, call, result } = filter
      return and(
        isOf(requests, filter),
        recipientHashes &&
          or(
            inArray(requests.recipientHash, [...recipientHashes]),
            inArray(requests.requestId, [...ofRecipient]),
          ),
        provider === undefined
          ? undefined
          : or(
              eq(requests.provider, provider),
              sql`EXISTS (SELECT 1 FROM ${attempts} WHERE ${attempts.requestId} = ${requests.requestId} AND ${attempts.provider} = ${provider})`,
            ),
        call && inArray(requests.operation, [...calls[call]]),
        result &&
          (result === 'success'
            ? and(isNull(requests.error), isNotNull(requests.status))
            : and(
                inArray(requests.error, [...callResults[result].errors]),
                result === 'destination' ? like(requests.guard, '%destination%') : undefined,
                // Only the limits of budgets have a scope.
                result === 'budget' ? like(requests.limits, '% refused of %') : undefined,
              )),
      )
    },
  }
}
