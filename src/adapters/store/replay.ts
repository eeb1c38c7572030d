import { and, eq, gt, gte, inArray, isNotNull, lt, or, sql } from 'drizzle-orm'
import { dayMs } from '../../domain/ground/time.ts'
import type { ReplayReader } from '../../domain/log/replay.ts'
import { mayBeSent } from '../../domain/request/request-context.ts'
import type { StoreDatabase, Tables } from './database.ts'
import { firstAttemptOf, traceOf } from './event-rows.ts'
import { firstIdOf, timeOfId } from './request-ids.ts'

export function createReplayReader({
  orm,
  tables,
}: Pick<StoreDatabase, 'orm' | 'tables'>): Omit<ReplayReader, 'verifiedHistory'> {
  const { requests, attempts } = tables

  async function segmentsOf(table: Tables['requests' | 'attempts'], at: number) {
    const { requestId, app, country, outcome, channel, segments } = table
    const brand = sql<string>`coalesce(${table.brand}, '')`
    const provider = sql<string>`coalesce(${table.provider}, '')`
    const isOfDay = and(gte(requestId, firstIdOf(at)), lt(requestId, firstIdOf(at + dayMs)))
    const isSent = and(eq(channel, 'SMS'), inArray(sql`${outcome}`, ['accepted', 'unknown']))
    const rows = await orm
      .select({ app, brand, provider, country, segments: sql<number>`CAST(sum(${segments}) AS bigint)` })
      .from(table)
      .where(and(isOfDay, isSent))
      .groupBy(app, brand, provider, country)
    return rows.map((row) => ({ ...row, at, segments: Number(row.segments) }))
  }

  return {
    oldest: async () => {
      const { requestId } = requests
      const [first] = await orm.select({ requestId }).from(requests).orderBy(requestId).limit(1)
      return first && timeOfId(first.requestId)
    },
    codes: async (after, until, limit) => {
      const { requestId, operation, outcome, status } = requests
      const isSent = and(inArray(operation, ['send', 'resend']), isNotNull(outcome))
      const isCode = or(isSent, and(eq(operation, 'verify'), eq(status, 200)))
      const first = typeof after === 'string' ? gt(requestId, after) : gte(requestId, firstIdOf(after))
      const rows = await orm
        .select()
        .from(requests)
        .where(and(first, lt(requestId, firstIdOf(until)), isCode))
        .orderBy(requestId)
        .limit(limit)
      const ids = rows.flatMap((row) => (row.operation === 'verify' ? [] : row.requestId))
      const further = await orm.select().from(attempts).where(inArray(attempts.requestId, ids))
      const furtherOf = Map.groupBy(further, (row) => row.requestId)
      return rows.map((row) => ({
        ...traceOf(row),
        sends: [firstAttemptOf(row) ?? [], furtherOf.get(row.requestId) ?? []]
          .flat()
          .filter(mayBeSent)
          .map(({ provider, segments }) => ({ provider, segments: segments ?? 0 })),
      }))
    },
    smsSegments: async (from, until) => {
      const found = []
      for (let day = from; day < until; day += dayMs)
        for (const table of [requests, attempts]) found.push(...(await segmentsOf(table, day)))
      return found
    },
  }
}
