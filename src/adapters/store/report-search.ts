import { and, gte, inArray, isNotNull, lt, type SQL } from 'drizzle-orm'
import {
  type DeliveredMessage,
  type ReportedMessage,
  requestIdOfKey,
} from '../../domain/delivery/delivery-reports.ts'
import { clockToleranceMs } from '../../domain/ground/ports.ts'
import { minuteMs } from '../../domain/ground/time.ts'
import type { StoreDatabase } from './database.ts'
import type { AttemptRow } from './event-rows.ts'
import { firstIdOf } from './request-ids.ts'

type Tables = {
  readonly orm: StoreDatabase['orm']
  readonly tables: Pick<StoreDatabase['tables'], 'attempts' | 'requests'>
}

interface Found extends Pick<AttemptRow, 'requestId' | 'reportKey' | 'brand' | 'template' | 'reason'> {
  readonly outcome: AttemptRow['outcome'] | null
}

/** The event log has no index by report key. Most reports arrive within minutes. */
export const earlyWindowsMs = Array.from({ length: 5 }, () => 2 * minuteMs)

/** @returns a search for the attempts with these report keys, in windows of time until then; it takes found keys out of the set */
export function reportSearch(database: Tables) {
  const read = attemptsIn(database)
  return async (
    keys: Set<string>,
    until: number,
    windowsMs: readonly number[],
  ): Promise<ReadonlyMap<string, Found>> => {
    const found = new Map<string, Found>()
    let before = until + clockToleranceMs
    for (const windowMs of windowsMs) {
      if (keys.size === 0) break
      const [from, end] = [firstIdOf(before - windowMs), firstIdOf(before)]
      for (const [key, row] of await read(keys, ({ requestId }) =>
        and(gte(requestId, from), lt(requestId, end)),
      )) {
        found.set(key, row)
        keys.delete(key)
      }
      before -= windowMs
    }
    return found
  }
}

/**
 * @returns the brands and templates of messages. A key of a provider's message ID is found for 10 minutes, in which
 * carriers reject; other failures are later.
 */
export function reportedMessages(database: Tables) {
  const read = attemptsIn(database)
  const search = reportSearch(database)
  return async (keys: readonly string[], until: number): Promise<ReadonlyMap<string, ReportedMessage>> => {
    const ids = keys.flatMap((key) => requestIdOfKey(key) ?? [])
    const others = new Set(keys.filter((key) => requestIdOfKey(key) === undefined))
    const own = await read(new Set(keys), ({ requestId }) => inArray(requestId, ids))
    const rows = [...own, ...(await search(others, until, earlyWindowsMs))]
    return new Map(
      rows.flatMap(([key, { brand, template }]) =>
        brand === null || template === null ? [] : [[key, { brand, template }]],
      ),
    )
  }
}

/**
 * @returns of these keys, which have the ID of their request, the delivered messages of requests that have ended. The others may not be
 * in the event log yet.
 */
export function deliveredMessages(database: Tables) {
  const read = attemptsIn(database)
  const { requests } = database.tables
  return async (keys: readonly string[]): Promise<ReadonlyMap<string, DeliveredMessage>> => {
    const ids = keys.flatMap((key) => requestIdOfKey(key) ?? [])
    const found = await read(new Set(keys), ({ requestId }) => inArray(requestId, ids))
    const ended = await database.orm
      .select({ requestId: requests.requestId, error: requests.error })
      .from(requests)
      .where(and(inArray(requests.requestId, ids), isNotNull(requests.status)))
    const errors = new Map(ended.map(({ requestId, error }) => [requestId, error]))
    return new Map(
      [...found].flatMap(([key, { requestId, brand, template, outcome, reason }]) => {
        const error = errors.get(requestId)
        if (error === undefined || outcome === null) return []
        return [[key, { brand: brand ?? '', template: template ?? '', outcome, reason, error }]]
      }),
    )
  }
}

function attemptsIn({ orm, tables: { attempts, requests } }: Tables) {
  return async (
    keys: ReadonlySet<string>,
    areIn: (table: typeof requests | typeof attempts) => SQL | undefined,
  ): Promise<ReadonlyMap<string, Found>> => {
    const found = new Map<string, Found>()
    for (const table of [requests, attempts]) {
      const { requestId, reportKey, brand, template, outcome, reason } = table
      const isIn = and(areIn(table), inArray(reportKey, [...keys]))
      const rows: Found[] = await orm
        .select({ requestId, reportKey, brand, template, outcome, reason })
        .from(table)
        .where(isIn)
      for (const row of rows) if (row.reportKey !== null) found.set(row.reportKey, row)
    }
    return found
  }
}
