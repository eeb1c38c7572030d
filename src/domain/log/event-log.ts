import type { Delivery } from '../delivery/delivery-reports.ts'
import type { EpochMs } from '../ground/time.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { RequestTrace } from '../request/request-trace.ts'
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

/** With its attempts, oldest first. */
export interface LoggedRequest extends RequestTrace {
  readonly deliveries: readonly Delivery[]
}

export interface DeliveryQuery extends DeliveryFilter, PageOfLog {}

interface NamedRequest extends Pick<RequestTrace, 'requestId' | 'app' | 'at'> {
  /** False: it has the provider message ID. */
  readonly isReference: boolean
}

export interface EventLogReader {
  trace(requestId: string): Promise<RequestTrace | undefined>
  /** Oldest first. */
  deliveries(query: DeliveryQuery): Promise<readonly Delivery[]>
  findDeliveries(filter: DeliveryFilter, page: PageOfLog): Promise<Found<Delivery>>
  findCalls(filter: CallFilter, page: PageOfLog): Promise<Found<LoggedRequest>>
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
