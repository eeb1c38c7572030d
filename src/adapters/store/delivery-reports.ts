import { type Counted, reportStat } from '../../domain/events/stats.ts'
import {
  type DeliveryReportState,
  type MessageReport,
  reportRanks,
} from '../../domain/messages/delivery-reports.ts'
import { StatBuffer } from './stat-buffer.ts'

/** The report that counts of each message, in the order of keys: every server locks them in that order. */
export function bestReports(reports: readonly MessageReport[]): readonly MessageReport[] {
  const best = new Map<string, MessageReport>()
  for (const report of reports) {
    if (outranks(report, best.get(report.key))) best.set(report.key, report)
  }
  return [...best.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
}

/** Whether a report replaces the one that came before it. */
export function outranks(
  { status }: Pick<DeliveryReportState, 'status'>,
  before: Pick<DeliveryReportState, 'status'> | undefined,
): boolean {
  return before === undefined || reportRanks[status] > reportRanks[before.status]
}

/** A report that was saved, and the one it replaced. */
export interface SavedReport {
  readonly report: MessageReport
  readonly before: Pick<DeliveryReportState, 'status' | 'at'> | undefined
}

/** What saved reports change in the statistics: each message counts once, by its last report. */
export function reportCounts(provider: string, saved: readonly SavedReport[]): readonly Counted[] {
  const counted = new StatBuffer()
  for (const { report, before } of saved) {
    const [was, is] = [before && reportStat(provider, before.status), reportStat(provider, report.status)]
    if (before && was) counted.add(before.at, was, -1)
    if (is) counted.add(report.at, is)
  }
  return counted.take()
}
