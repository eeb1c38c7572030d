import type { DeliveryReportState } from '../delivery/delivery-reports.ts'
import type { Channel } from '../ground/contact.ts'
import type { EpochMs } from '../ground/time.ts'
import type {
  Attempt,
  Flag,
  LimitStatus,
  Operation,
  RequestContext,
  RequestEnd,
} from '../request/request-context.ts'
import type {
  CallFilter,
  DeliveryFilter,
  DeliveryStatus,
  Found,
  LogCount,
  LogFilters,
  LogList,
  PageOfLog,
} from './log-search.ts'

/** No API key, code, full recipient or text. */
export interface RequestTrace {
  readonly requestId: string
  readonly at: EpochMs
  readonly operation: Operation
  readonly app: string
  readonly brand: string | null
  readonly channel: Channel | null
  /** Masked. Null: no recipient, or several. */
  readonly recipient: string | null
  readonly recipients: number | null
  readonly recipientSubject: string | null
  /** ISO 3166-1. Null: no phone number, several recipients, or a number of no country. */
  readonly country: string | null
  /** The caller's. */
  readonly reference: string | null
  readonly flags: readonly Flag[]
  /** Of the body, as `unknownFieldsOf` returns them. */
  readonly unknownFields: readonly string[]
  readonly limits: readonly LimitStatus[]
  /** Null: in progress, or the process ended first. */
  readonly end: RequestEnd | null
}

export interface Delivery extends Omit<Attempt, 'error' | 'cost'> {
  readonly requestId: string
  readonly app: string
  readonly brand: string | null
  readonly report: DeliveryReportState | null
}

/** With its attempts, oldest first. */
export interface Call extends RequestTrace {
  readonly deliveries: readonly Delivery[]
}

export interface DeliveryQuery extends DeliveryFilter, PageOfLog {}

export interface NamedRequest extends Pick<RequestTrace, 'requestId' | 'app' | 'at'> {
  /** False: it has the provider message ID. */
  readonly isReference: boolean
}

/** Asynchronous. Never throws: errors are logged. */
export interface EventLog {
  /** Saves the request before and after each attempt, since an attempt may take long. */
  note(context: RequestContext): void
  /** Resolves when all notes so far are stored or lost. */
  flush(): Promise<void>
}

export interface EventLogReader {
  trace(requestId: string): Promise<RequestTrace | undefined>
  /** Oldest first. */
  deliveries(query: DeliveryQuery): Promise<readonly Delivery[]>
  findDeliveries(filter: DeliveryFilter, page: PageOfLog): Promise<Found<Delivery>>
  findCalls(filter: CallFilter, page: PageOfLog): Promise<Found<Call>>
  /** Reads as much of the log as one search. */
  countFound(list: LogList, filters: LogFilters): Promise<LogCount>
  /** Requests with this reference or whose ID ends with these 8 characters, and messages with this provider message ID. */
  named(name: string): Promise<{
    /** At most 20, newest first. */
    readonly found: readonly NamedRequest[]
    /** Earlier requests were not read. Null: all were. */
    readonly since: EpochMs | null
  }>
  /** Of the latest 20,000 requests those that the guard denied or recorded, newest first. */
  guarded(limit: number): Promise<readonly RequestTrace[]>
}

export function statusOf({ outcome, report }: Pick<Delivery, 'outcome' | 'report'>): DeliveryStatus {
  return report && report.status !== 'pending' && (outcome === 'accepted' || outcome === 'unknown')
    ? report.status
    : outcome
}

const reasonNames: Readonly<Record<string, string>> = {
  'time-out': 'timed out',
  'keeps failing': 'circuit open',
}

/** Why an attempt failed, or was skipped: the class of a rejection, and the code of the provider. Empty: it did not. */
export function whyOf({
  outcome,
  errorClass,
  reason,
  report,
}: Pick<Delivery, 'outcome' | 'errorClass' | 'reason'> & {
  readonly report: { readonly reason: string | null } | null
}): string {
  const given = reason ?? report?.reason
  const named = given && (reasonNames[given] ?? given)
  // The class of any other failure is its status.
  return [outcome === 'rejected' ? errorClass : null, named].filter(Boolean).join(': ')
}

/** Other requests are not saved. */
export type SavedRequest = RequestContext & Required<Pick<RequestContext, 'operation' | 'app'>>

/** Saves the request with its attempts so far, as it is at the time of the write. Never throws. */
export type SaveRequest = (request: SavedRequest) => void
