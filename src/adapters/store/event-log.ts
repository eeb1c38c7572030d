import { and, type Column, desc, eq, gte, inArray, isNotNull, lt, lte, or, type SQL, sql } from 'drizzle-orm'
import type { Delivery, DeliveryQuery, EventLogReader } from '../../domain/events/event-log.ts'
import { type Counted, verifiedStats } from '../../domain/events/stats.ts'
import type { DeliveryReportStore } from '../../domain/messages/delivery-reports.ts'
import { otpTemplateKeys } from '../../domain/messages/templates.ts'
import type { StoreDatabase } from './database.ts'
import {
  type AttemptRow,
  deliveryOf,
  type EventLogEntry,
  firstAttemptOf,
  firstIdOf,
  traceOf,
  type VerifiedRequest,
} from './event-rows.ts'
import { StatBuffer } from './stat-buffer.ts'

export interface EventLogStore extends EventLogReader, EventLogWriter {}

export interface EventLogWriter extends DeliveryReportStore {
  /** Atomic; saves each request at most once. An entry never removes known values. */
  saveEntries(entries: readonly EventLogEntry[], counts: readonly Counted[]): Promise<void>
}

export function createEventLogReader({
  orm,
  tables: { requests, attempts, deliveryReports },
}: Pick<StoreDatabase, 'orm' | 'tables'>): EventLogReader {
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
    const keys = rows.flatMap(({ reportKey }) => reportKey ?? [])
    const reports =
      keys.length === 0
        ? []
        : await orm.select().from(deliveryReports).where(inArray(deliveryReports.key, keys))
    const reportOf = new Map(reports.map((report) => [report.key, report]))
    return rows.map((row) => deliveryOf(row, reportOf.get(row.reportKey ?? '')))
  }

  return {
    trace: async (requestId) => {
      const [row] = await orm.select().from(requests).where(eq(requests.requestId, requestId))
      return row && traceOf(row)
    },
    deliveries: (query) => {
      const { before } = query
      const own = matching(requests, query)
      const further = matching(attempts, query)
      return read(
        and(own, before && (before.attempt > 1 ? lte : lt)(requests.requestId, before.requestId)),
        and(
          further,
          before && lte(attempts.requestId, before.requestId),
          before && or(lt(attempts.requestId, before.requestId), lt(attempts.attempt, before.attempt)),
        ),
        query.limit,
      )
    },
    lastProviderOf: async (recipientSubjects, brandSlug) => {
      const hashes = [...recipientSubjects]
      const ofCode = (table: CodeColumns & Record<'channel', Column>) =>
        and(
          inArray(table.recipientHash, hashes),
          eq(table.brand, brandSlug),
          eq(table.channel, 'SMS'),
          carriesCode(table),
        )
      const [last] = await read(ofCode(requests), ofCode(attempts), 1)
      return last?.provider
    },
  }
}

type Place = Pick<AttemptRow, 'requestId' | 'attempt'>

function byPlace(a: Place, b: Place): number {
  if (a.requestId === b.requestId) return a.attempt - b.attempt
  return a.requestId < b.requestId ? -1 : 1
}

function matching(
  { requestId, recipientHash }: Readonly<Record<'requestId' | 'recipientHash', Column>>,
  query: DeliveryQuery,
): SQL | undefined {
  const { recipientSubjects, since } = query
  return and(
    query.requestId === undefined ? undefined : eq(requestId, query.requestId),
    recipientSubjects && inArray(recipientHash, [...recipientSubjects]),
    since === undefined ? undefined : gte(requestId, firstIdOf(since)),
  )
}

type CodeColumns = Readonly<Record<'recipientHash' | 'brand' | 'outcome' | 'template', Column>>

/** Matches attempts that sent a code that may have arrived. */
export function carriesCode({ outcome, template }: Pick<CodeColumns, 'outcome' | 'template'>) {
  return and(
    inArray(outcome, sql.raw("('accepted', 'unknown')")),
    inArray(template, sql.raw(`(${otpTemplateKeys.map((key) => `'${key}'`).join()})`)),
  )
}

export interface SentCode {
  readonly requestId: string
  readonly attempt: number
  readonly provider: string
  readonly at: number
}

/** @param sentTo the last first attempt and the last further attempt with a code for the person and brand */
export function rightCodeStats(
  verified: readonly VerifiedRequest[],
  sentTo: (request: VerifiedRequest) => readonly SentCode[],
): readonly Counted[] {
  const counted = new StatBuffer()
  for (const row of verified) {
    const [last] = [...sentTo(row)].sort((a, b) => byPlace(b, a))
    for (const statKey of verifiedStats(row, last)) counted.add(row.at, statKey)
  }
  return counted.take()
}
