import type { Delivery } from '../delivery/delivery-reports.ts'
import { isoTime, isoTimeOr } from '../ground/time.ts'
import type { RequestTrace } from '../request/request-trace.ts'
import { type LoggedRequest, statusOf } from './event-log.ts'
import { resultOf } from './explain.ts'

// Rows of the event log for programs.

/** As `deliveries --json`. */
export function deliveryRow(delivery: Delivery) {
  const { recipientHash: _, segments, report, reportKey: __, at, ...row } = delivery
  return {
    at: isoTime(at),
    ...row,
    segments: segments?.count ?? null,
    encoding: segments?.encoding ?? null,
    status: statusOf({ ...row, report }),
    report: report && { ...report, at: isoTime(report.at) },
  }
}

/** As `explain --json`. */
export function traceRow(trace: RequestTrace, deliveries: readonly Delivery[]) {
  return {
    ...trace,
    at: isoTime(trace.at),
    limits: trace.limits.map((limit) => ({
      ...limit,
      endsAt: isoTimeOr(limit.endsAt),
    })),
    deliveries: deliveries.map(deliveryRow),
  }
}

/** As `explain --json`, with the result in words. */
export function callRow(call: LoggedRequest) {
  return { ...traceRow(call, call.deliveries), ...resultOf(call) }
}
