import { type EventLogReader, hashOf, type RequestTrace } from '../../domain/events/event-log.ts'
import type { Attempt, LimitStatus, Operation } from '../../domain/events/request-context.ts'
import type { DeliveryReportStore } from '../../domain/messages/delivery-reports.ts'
import type { StatCount } from './stat-buffer.ts'

// How every store keeps the journal: what a request left behind as plain data, by position.

/** What the journal keeps of a request, as plain data that is written as it is: by position, since there are many. */
export type EventLogEntry = readonly [
  requestId: string,
  trace: StoredTrace,
  attempts: readonly (readonly (string | number | null)[])[],
]

/** The journal as a database keeps it. */
export interface EventLogStore extends EventLogReader, DeliveryReportStore {
  /**
   * Keeps these requests, or replaces what was kept of them, adds their attempts, and counts what happened; one atomic
   * step. A right code is counted here, with the message that it came by.
   */
  saveEntries(entries: readonly EventLogEntry[], counts: readonly StatCount[]): Promise<void>
}

/** The parts of an attempt by position, by the names of their columns. */
export const attemptColumns = [
  'request_id',
  'attempt',
  'at',
  'app',
  'brand',
  'channel',
  'route',
  'provider',
  'template',
  'recipient_hash',
  'recipient',
  'position',
  'segments',
  'encoding',
  'outcome',
  'error_class',
  'reason',
  'vendor_id',
  'receipt_key',
  'duration_ms',
] as const

/** A request as the journal keeps it. */
export function eventLogEntry(trace: RequestTrace, attempts: readonly Attempt[]): EventLogEntry {
  const { requestId, app, brand } = trace
  const rows = attempts.map((attempt) => [
    requestId,
    attempt.attempt,
    attempt.at,
    app,
    brand,
    attempt.channel,
    attempt.route,
    attempt.provider,
    attempt.template,
    hashOf(attempt.recipientSubject),
    attempt.recipient,
    attempt.position,
    attempt.segments?.count ?? null,
    attempt.segments?.encoding ?? null,
    attempt.outcome,
    attempt.errorClass,
    attempt.reason,
    attempt.providerMessageId,
    attempt.reportKey,
    attempt.durationMs,
  ])
  return [requestId, encode(trace), rows]
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

/** A story by position, as it is stored as JSON. */
export type StoredTrace = readonly [
  at: number,
  operation: Operation,
  app: string,
  brand: string | null,
  channel: RequestTrace['channel'],
  recipient: string | null,
  recipients: number | null,
  limits: readonly (readonly [
    limit: LimitStatus['limit'],
    max: number,
    used: number | null,
    endsAt: number | null,
    0 | 1,
  ])[],
  end: readonly [status: number, error: string | null, message: string | null, durationMs: number] | null,
  /** Missing in those from before it was kept. */
  recipientHash?: string | null,
]

function encode({
  at,
  operation,
  app,
  brand,
  channel,
  recipient,
  recipients,
  recipientSubject,
  limits,
  end,
}: RequestTrace): StoredTrace {
  return [
    at,
    operation,
    app,
    brand,
    channel,
    recipient,
    recipients,
    limits.map(
      ({ limit, max, used, endsAt, refused }) => [limit, max, used, endsAt, refused ? 1 : 0] as const,
    ),
    end && [end.status, end.error, end.message, end.durationMs],
    recipientSubject && hashOf(recipientSubject),
  ]
}

/** A story as it was kept. */
export function traceOf(
  requestId: string,
  [at, operation, app, brand, channel, recipient, recipients, limits, end, recipientHash]: StoredTrace,
): RequestTrace {
  return {
    requestId,
    at,
    operation,
    app,
    brand,
    channel,
    recipient,
    recipients,
    recipientSubject: recipientHash ?? null,
    limits: limits.map(
      ([limit, max, used, endsAt, refused]): LimitStatus => ({
        limit,
        max,
        used,
        endsAt,
        refused: refused === 1,
      }),
    ),
    end: end && { status: end[0], error: end[1], message: end[2], durationMs: end[3] },
  }
}
