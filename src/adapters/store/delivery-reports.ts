import {
  type DeliveryReportState,
  type MessageReport,
  type ReportChange,
  reportRanks,
} from '../../domain/delivery/delivery-reports.ts'
import { longestReason } from '../../domain/delivery/message-events.ts'
import type { NewEvent } from '../../domain/ground/webhook-events.ts'
import { type Counted, reportStat } from '../../domain/log/stats.ts'
import { StatBuffer } from './stat-buffer.ts'

/** Sorted by key, the order in which all servers lock them. */
export function bestReports(reports: readonly MessageReport[]): readonly MessageReport[] {
  const best = new Map<string, MessageReport>()
  for (const report of reports) {
    if (outranks(report, best.get(report.key))) best.set(report.key, report)
  }
  return [...best.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
}

export function outranks(
  { status }: Pick<DeliveryReportState, 'status'>,
  before: Pick<DeliveryReportState, 'status'> | undefined,
): boolean {
  return before === undefined || reportRanks[status] > reportRanks[before.status]
}

export interface SavedReport {
  readonly report: MessageReport
  readonly before: DeliveryReportState | undefined
}

/** `message.delivered` and `message.failed` (design D45). */
export function reportEvents(saved: readonly SavedReport[]): readonly NewEvent[] {
  return saved.flatMap(({ report: { key: reportKey, status, reason, at } }) => {
    if (status === 'pending') return []
    const id = Bun.randomUUIDv7('hex', at)
    const type = `message.${status}` as const
    const about = { requestId: null, reportKey, position: null, status }
    return [{ id, at, type, ...about, reason: reason?.slice(0, longestReason) ?? null }]
  })
}

/** Each message counts once, by its latest report. */
export function reportCounts(provider: string, saved: readonly SavedReport[]): readonly Counted[] {
  const counted = new StatBuffer()
  for (const { report, before } of saved) {
    const [was, is] = [before && reportStat(provider, before.status), reportStat(provider, report.status)]
    if (before && was) counted.add(before.at, was, -1)
    if (is) counted.add(report.at, is)
  }
  return counted.take()
}

export function reportChanges(saved: readonly SavedReport[]): readonly ReportChange[] {
  return saved.flatMap(({ report: { key, status, reason, at }, before }): ReportChange[] => {
    if (status === 'pending') return []
    const change = { key, status, reason, at, times: 1 } as const
    return before?.status === 'failed'
      ? [change, { key, status: 'failed', reason: before.reason, at: before.at, times: -1 }]
      : [change]
  })
}
