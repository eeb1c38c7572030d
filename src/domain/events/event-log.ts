import type { Channel } from '../contact.ts'
import type { DeliveryReportState } from '../messages/delivery-reports.ts'
import type { Attempt, LimitStatus, Operation, RequestContext } from './request-context.ts'

/** One request in the event log: no key, no code, no full recipient, no text. */
export interface RequestTrace {
  readonly requestId: string
  /** Epoch milliseconds at which it was received. */
  readonly at: number
  readonly operation: Operation
  readonly app: string
  readonly brand: string | null
  readonly channel: Channel | null
  /** Masked; null where it had none or several. */
  readonly recipient: string | null
  readonly recipients: number | null
  /** Null where there is none, or it is not stored. */
  readonly recipientSubject: string | null
  readonly limits: readonly LimitStatus[]
  /** Null while it is under way, or if the process ended meanwhile. */
  readonly end: RequestEnd | null
}

export interface RequestEnd {
  readonly status: number
  /** Null: success. */
  readonly error: string | null
  /** Which field was wrong, on validation_error. */
  readonly message: string | null
  readonly durationMs: number
}

/** A row of the delivery log. */
export interface Delivery extends Omit<Attempt, 'error'> {
  readonly requestId: string
  readonly app: string
  readonly brand: string | null
  readonly report: DeliveryReportState | null
}

/** The latest `limit` deliveries that match all given fields. */
export interface DeliveryQuery {
  readonly requestId?: string
  readonly recipientSubjects?: readonly string[]
  /** Epoch milliseconds. */
  readonly since?: number
  readonly before?: Pick<Delivery, 'requestId' | 'attempt'>
  readonly limit: number
}

/** Writing is asynchronous and never throws; errors are logged. */
export interface EventLog {
  /** Saves what is known of a request before and after each attempt, since the rest may take long. */
  note(context: RequestContext): void
}

export interface EventLogReader {
  trace(requestId: string): Promise<RequestTrace | undefined>
  /** Oldest first. */
  deliveries(query: DeliveryQuery): Promise<readonly Delivery[]>
  /** The provider that accepted, or may have accepted, the last code for a recipient and brand by SMS. */
  lastProviderOf(recipientSubjects: readonly string[], brandSlug: string): Promise<string | undefined>
}

/** The status of a message: its final delivery report, else the outcome of the attempt. */
export function statusOf({
  outcome,
  report,
}: Pick<Delivery, 'outcome' | 'report'>): Delivery['outcome'] | 'delivered' | 'failed' {
  return report && report.status !== 'pending' && (outcome === 'accepted' || outcome === 'unknown')
    ? report.status
    : outcome
}

/** Replaces the earlier trace of the request, and adds attempts. Never throws. */
export type SaveTrace = (trace: RequestTrace, attempts: readonly Attempt[]) => void
