import {
  and,
  type Column,
  eq,
  getTableColumns,
  gte,
  inArray,
  isNotNull,
  lt,
  lte,
  or,
  type SQL,
  sql,
  type Table,
} from 'drizzle-orm'
import {
  type Delivery,
  type DeliveryQuery,
  type EventLogReader,
  hashOf,
  type RequestTrace,
} from '../../domain/events/event-log.ts'
import type { Attempt, LimitStatus, Operation } from '../../domain/events/request-context.ts'
import { type Counted, verifiedStats } from '../../domain/events/stats.ts'
import type { DeliveryReportState, DeliveryReportStore } from '../../domain/messages/delivery-reports.ts'
import { otpTemplateKeys } from '../../domain/messages/templates.ts'
import { StatBuffer } from './stat-buffer.ts'

// The event log as both databases store it: table `requests` has a row for each request with its first attempt, table
// `attempts` the further ones. The delivery log is the union of both.

/** What both tables have of an attempt; in `requests` all of it is null where there was none. */
interface AttemptDetails {
  readonly route: Attempt['route']
  readonly template: string | null
  readonly position: number | null
  readonly segments: number | null
  readonly encoding: 'GSM-7' | 'UCS-2' | null
  readonly errorClass: Attempt['errorClass']
  readonly reason: string | null
  readonly providerMessageId: string | null
  readonly reportKey: string | null
}

/** A row of `requests`. */
export interface RequestRow extends AttemptDetails {
  readonly requestId: string
  readonly at: number
  readonly operation: Operation
  readonly app: string
  readonly brand: string | null
  readonly channel: RequestTrace['channel']
  /** Of the request; of the first attempt where it had several recipients. So is the hash. */
  readonly recipient: string | null
  readonly recipients: number | null
  readonly recipientHash: string | null
  readonly limits: readonly LimitStatus[]
  readonly status: number | null
  readonly error: string | null
  readonly message: string | null
  readonly durationMs: number | null
  readonly attemptAt: number | null
  readonly provider: string | null
  readonly outcome: Attempt['outcome'] | null
  readonly attemptDurationMs: number | null
}

/** A row of `attempts`. */
export interface AttemptRow extends AttemptDetails {
  readonly requestId: string
  readonly attempt: number
  readonly at: number
  readonly app: string
  readonly brand: string | null
  readonly channel: Attempt['channel']
  readonly recipient: string
  readonly recipientHash: string
  readonly provider: string
  readonly outcome: Attempt['outcome']
  readonly durationMs: number
}

/** What is saved of a request at a time: its row, and those of its further attempts that are new. */
export interface EventLogEntry {
  readonly request: RequestRow
  readonly attempts: readonly AttemptRow[]
}

/** The event log of a database. */
export interface EventLogStore extends EventLogReader, DeliveryReportStore {
  /**
   * Saves requests, each at most once, and adds up what happened, in one atomic step. What a row has already and an entry
   * does not know stays. A right code is counted here, with the message that carried it.
   */
  saveEntries(entries: readonly EventLogEntry[], counts: readonly Counted[]): Promise<void>
}

/** The rows for what is known of a request, and for these of its attempts. */
export function eventLogEntry(trace: RequestTrace, attempts: readonly Attempt[]): EventLogEntry {
  const { requestId, app, brand, end } = trace
  const first = attempts.find(({ attempt }) => attempt === 1)
  const hash = first?.recipientSubject ?? trace.recipientSubject
  return {
    request: {
      requestId,
      at: trace.at,
      operation: trace.operation,
      app,
      brand,
      channel: trace.channel ?? first?.channel ?? null,
      recipient: first?.recipient ?? trace.recipient,
      recipients: trace.recipients,
      recipientHash: hash === null ? null : hashOf(hash),
      limits: trace.limits,
      status: end?.status ?? null,
      error: end?.error ?? null,
      message: end?.message ?? null,
      durationMs: end?.durationMs ?? null,
      attemptAt: first?.at ?? null,
      provider: first?.provider ?? null,
      outcome: first?.outcome ?? null,
      attemptDurationMs: first?.durationMs ?? null,
      ...detailsOf(first),
    },
    attempts: attempts
      .filter((attempt) => attempt !== first)
      .map((each) => ({
        requestId,
        attempt: each.attempt,
        at: each.at,
        app,
        brand,
        channel: each.channel,
        recipient: each.recipient,
        recipientHash: hashOf(each.recipientSubject),
        provider: each.provider,
        outcome: each.outcome,
        durationMs: each.durationMs,
        ...detailsOf(each),
      })),
  }
}

function detailsOf(attempt: Attempt | undefined): AttemptDetails {
  return {
    route: attempt?.route ?? null,
    template: attempt?.template ?? null,
    position: attempt?.position ?? null,
    segments: attempt?.segments?.count ?? null,
    encoding: attempt?.segments?.encoding ?? null,
    errorClass: attempt?.errorClass ?? null,
    reason: attempt?.reason ?? null,
    providerMessageId: attempt?.providerMessageId ?? null,
    reportKey: attempt?.reportKey ?? null,
  }
}

/** Whether the recipient of a row is that of its first attempt only. */
function hasSeveralRecipients({ recipients }: Pick<RequestRow, 'recipients'>): boolean {
  return (recipients ?? 1) > 1
}

function traceOf(row: RequestRow): RequestTrace {
  const isOfAttempt = hasSeveralRecipients(row)
  const { requestId, at, operation, app, brand, channel, recipients, limits, status } = row
  return {
    requestId,
    at,
    operation,
    app,
    brand,
    channel,
    recipient: isOfAttempt ? null : row.recipient,
    recipients,
    recipientSubject: isOfAttempt ? null : row.recipientHash,
    limits,
    end:
      status === null
        ? null
        : { status, error: row.error, message: row.message, durationMs: row.durationMs ?? 0 },
  }
}

/** The first attempt of a request as a row of its own; undefined where it had none. */
function firstAttemptOf(row: RequestRow): AttemptRow | undefined {
  const { attemptAt: at, channel, recipient, recipientHash, provider, outcome } = row
  if (at === null || channel === null || recipient === null || recipientHash === null) return undefined
  if (provider === null || outcome === null) return undefined
  return {
    ...row,
    attempt: 1,
    at,
    channel,
    recipient,
    recipientHash,
    provider,
    outcome,
    durationMs: row.attemptDurationMs ?? 0,
  }
}

function deliveryOf(row: AttemptRow, report: DeliveryReportState | null): Delivery {
  const { segments, encoding } = row
  return {
    requestId: row.requestId,
    attempt: row.attempt,
    at: row.at,
    app: row.app,
    brand: row.brand,
    channel: row.channel,
    route: row.route,
    provider: row.provider,
    template: row.template,
    recipient: row.recipient,
    position: row.position,
    recipientSubject: row.recipientHash,
    segments: segments === null || encoding === null ? null : { count: segments, encoding },
    outcome: row.outcome,
    errorClass: row.errorClass,
    reason: row.reason,
    providerMessageId: row.providerMessageId,
    reportKey: row.reportKey,
    durationMs: row.durationMs,
    report: report && { status: report.status, reason: report.reason, at: report.at },
  }
}

/** The columns of a table, by the names of what they store. */
export type ColumnsOf<Row> = Readonly<Record<keyof Row, Column>>

/** The tables of the event log, and how their rows are read. */
export interface EventLogTables {
  readonly requests: ColumnsOf<RequestRow>
  readonly attempts: ColumnsOf<AttemptRow>
  /** The latest rows, the last one first, each with its delivery report. */
  readRequests(where: SQL | undefined, limit: number): Promise<readonly Reported<RequestRow>[]>
  readAttempts(where: SQL | undefined, limit: number): Promise<readonly Reported<AttemptRow>[]>
}

type Reported<Row> = Row & { readonly report: DeliveryReportState | null }

/** The reading side of the event log. */
export function createEventLogReader(tables: EventLogTables): EventLogReader {
  const { requests, attempts, readRequests, readAttempts } = tables

  /** The latest attempts that meet a condition on both tables, oldest first. */
  async function read(
    ofRequests: SQL | undefined,
    ofAttempts: SQL | undefined,
    limit: number,
  ): Promise<readonly Delivery[]> {
    const [first, further] = await Promise.all([
      readRequests(and(isNotNull(requests.outcome), ofRequests), limit),
      readAttempts(ofAttempts, limit),
    ])
    const all = further.map((row) => deliveryOf(row, row.report))
    for (const row of first) {
      const attempt = firstAttemptOf(row)
      if (attempt) all.push(deliveryOf(attempt, row.report))
    }
    return all.sort(byPlace).slice(-limit)
  }

  return {
    trace: async (requestId) => {
      const [row] = await readRequests(eq(requests.requestId, requestId), 1)
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
      const hashes = recipientSubjects.map(hashOf)
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

type Place = Pick<Delivery, 'requestId' | 'attempt'>

function byPlace(a: Place, b: Place): number {
  if (a.requestId === b.requestId) return a.attempt - b.attempt
  return a.requestId < b.requestId ? -1 : 1
}

function matching(
  { requestId, recipientHash }: Pick<ColumnsOf<AttemptRow>, 'requestId' | 'recipientHash'>,
  query: DeliveryQuery,
): SQL | undefined {
  const { recipientSubjects, since } = query
  return and(
    query.requestId === undefined ? undefined : eq(requestId, query.requestId),
    recipientSubjects && inArray(recipientHash, recipientSubjects.map(hashOf)),
    since === undefined ? undefined : gte(requestId, firstIdOf(since)),
  )
}

type CodeColumns = Readonly<Record<'recipientHash' | 'brand' | 'outcome' | 'template', Column>>

/** The condition that an attempt sent a code that may have arrived. */
export function carriesCode({ outcome, template }: Pick<CodeColumns, 'outcome' | 'template'>) {
  return and(
    inArray(outcome, sql.raw("('accepted', 'unknown')")),
    inArray(template, sql.raw(`(${otpTemplateKeys.map((key) => `'${key}'`).join()})`)),
  )
}

/** A message with a code, as a right code is counted by it. */
export interface SentCode {
  readonly requestId: string
  readonly attempt: number
  readonly provider: string
  readonly at: number
}

/** The requests whose codes were right. */
export function verifiedIn(entries: readonly EventLogEntry[]): readonly RequestRow[] {
  return entries
    .map(({ request }) => request)
    .filter((row) => row.operation === 'verify' && row.status !== null && row.error === null)
}

/**
 * What is counted of right codes.
 *
 * @param sentTo messages with a code to the recipient of a request in its brand, none sent after it: the last first
 *   attempt and the last further attempt
 */
export function rightCodeStats(
  verified: readonly RequestRow[],
  sentTo: (request: RequestRow) => readonly SentCode[],
): readonly Counted[] {
  const counted = new StatBuffer()
  for (const row of verified) {
    const [last] = [...sentTo(row)].sort((a, b) => byPlace(b, a))
    for (const statKey of verifiedStats(row, last)) counted.add(row.at, statKey)
  }
  return counted.take()
}

/** What a saved row becomes by another of its request: what is known replaces what was not, and stays known. */
export function mergedColumns(table: Table): Record<string, SQL> {
  return Object.fromEntries(
    Object.entries(getTableColumns(table))
      .filter(([, column]) => !column.primary)
      .map(([name, column]) => {
        const given = sql`excluded.${sql.identifier(column.name)}`
        return [name, column.notNull ? given : sql`coalesce(${given}, ${column})`]
      }),
  )
}

/** The least id that a request of this instant may have: the 48 bits of its time, and nothing else. */
export function firstIdOf(epochMs: number): string {
  const hex = Math.max(0, Math.floor(epochMs)).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-`
}

/** When a request came, by its id: epoch milliseconds. */
export function timeOfId(requestId: string): number {
  return Number.parseInt(requestId.replace('-', '').slice(0, 12), 16)
}
