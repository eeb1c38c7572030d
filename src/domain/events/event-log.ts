import type { Channel } from '../contact.ts'
import type { DeliveryReportState } from '../messages/delivery-reports.ts'
import type { Attempt, LimitStatus, Operation, RequestContext } from './request-context.ts'

/**
 * How much of a recipient's keyed hash is stored, in characters: 132 bits, since the index over them is the one thing here
 * that is not in order.
 */
const hashLength = 22

/** What the event log stores of a recipient's keyed hash. */
export function hashOf(recipientSubject: string): string {
  return recipientSubject.slice(0, hashLength)
}

/** What became of one request, for whoever asks later; no key, no code, no full recipient, no text. */
export interface RequestTrace {
  readonly requestId: string
  /** When it came, epoch milliseconds. */
  readonly at: number
  readonly operation: Operation
  readonly app: string
  readonly brand: string | null
  readonly channel: Channel | null
  /** Masked; null where it had none or several. */
  readonly recipient: string | null
  readonly recipients: number | null
  /** The keyed hash of the one recipient of a code, or its beginning; null where there is none, or it is not stored. */
  readonly recipientSubject: string | null
  readonly limits: readonly LimitStatus[]
  /** Null while it is under way, and for ever where the process ended meanwhile. */
  readonly end: RequestEnd | null
}

export interface RequestEnd {
  readonly status: number
  /** The code of the answer's envelope; null: it was a success. */
  readonly error: string | null
  /** What was wrong with which field, on validation_error. */
  readonly message: string | null
  readonly durationMs: number
}

/** A row of the delivery log: an attempt, whose it was, and its delivery report. */
export interface Delivery extends Omit<Attempt, 'error'> {
  readonly requestId: string
  readonly app: string
  readonly brand: string | null
  readonly report: DeliveryReportState | null
}

/** Which deliveries: of a request, of a recipient (by any of its keyed hashes), since a time; the latest `limit` of them. */
export interface DeliveryQuery {
  readonly requestId?: string
  readonly recipientSubjects?: readonly string[]
  /** Epoch milliseconds. */
  readonly since?: number
  /** Only those before this one. */
  readonly before?: Pick<Delivery, 'requestId' | 'attempt'>
  readonly limit: number
}

/**
 * What requests leave behind for the operator. Writing never throws and is not waited for; what can't be written is told
 * in the log.
 */
export interface EventLog {
  /**
   * A request is about to have messages handed over, or an attempt to do so has ended: what is known of it by now is
   * saved, since the rest may take its time.
   */
  note(context: RequestContext): void
}

/** The reading side of the event log. */
export interface EventLogReader {
  trace(requestId: string): Promise<RequestTrace | undefined>
  /** Oldest first. */
  deliveries(query: DeliveryQuery): Promise<readonly Delivery[]>
  /**
   * The provider that accepted the last code for a recipient of a brand by SMS, or left it open; undefined: none is known.
   *
   * @param recipientSubjects the recipient by each key
   */
  lastProviderOf(recipientSubjects: readonly string[], brandSlug: string): Promise<string | undefined>
}

/** The status of a message: by its delivery report where there is one, else by the provider's answer. */
export function statusOf({
  outcome,
  report,
}: Pick<Delivery, 'outcome' | 'report'>): Delivery['outcome'] | 'delivered' | 'failed' {
  return report && report.status !== 'pending' && (outcome === 'accepted' || outcome === 'unknown')
    ? report.status
    : outcome
}

/** Saves a trace in the place of an earlier one of that request, and attempts beside earlier ones. Never throws. */
export type SaveTrace = (trace: RequestTrace, attempts: readonly Attempt[]) => void
