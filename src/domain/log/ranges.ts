import { dayMs, type EpochMs, hourMs, minuteMs } from '../ground/time.ts'
import { type Span, spanOf } from './log-search.ts'
import { statSteps } from './stats.ts'

// Time spans of the statistics, and the steps in which they are read.

export const periods = ['hour', 'day', 'week', 'month'] as const
export type Period = (typeof periods)[number]

/** `range`: two times. */
export const periodWords: Readonly<Record<Period | 'range', string>> = {
  hour: 'in the last hour',
  day: 'in the last 24 hours',
  week: 'in the last 7 days',
  month: 'in the last 30 days',
  range: 'in this time',
}

export const periodSteps: Readonly<Record<Period, { readonly stepMs: number; readonly count: number }>> = {
  hour: { stepMs: minuteMs, count: 60 },
  day: { stepMs: hourMs, count: 24 },
  week: { stepMs: hourMs, count: 7 * 24 },
  month: { stepMs: dayMs, count: 30 },
}

/** `from` is the start of a step. The last step is unfinished unless it ends at `until`. */
export interface Range extends Span {
  readonly period: Period | 'range'
  readonly stepMs: number
  /** Of steps. */
  readonly count: number
}

export function periodStart(period: Period, now: number): EpochMs {
  const { stepMs, count } = periodSteps[period]
  return floorTo(stepMs, now) - (count - 1) * stepMs
}

export function rangeOf(period: Period, now: number): Range {
  return { period, from: periodStart(period, now), until: now, ...periodSteps[period] }
}

/** More would be slow to read, and too fine to see. */
const mostSteps = 400

/** The shortest steps that the statistics have for this time. Undefined: they have nothing of it. */
export function rangeBetween(from: number, until: number, now: number): Range | undefined {
  const [start, end] = [Math.max(from, now - statSteps[2].retentionMs), Math.min(until, now)]
  if (!(start < end)) return undefined
  const step = statSteps.find(
    ({ stepMs, retentionMs }) => end - start <= mostSteps * stepMs && start >= now - retentionMs,
  )
  const { stepMs } = step ?? statSteps[2]
  const first = floorTo(stepMs, start)
  const count = Math.ceil((end - first) / stepMs)
  return { period: 'range', from: first, until: Math.min(first + count * stepMs, now), stepMs, count }
}

/** The rows of the event log of a range, in whole minutes. */
export function rowsIn({ period, from, until }: Omit<Range, 'stepMs' | 'count'>): ReturnType<typeof spanOf> {
  return spanOf({ from, until: period === 'range' ? until - 1 : until })
}

/** The starts of all steps, oldest first. */
export function stepsOf({ from, stepMs, count }: Omit<Range, 'period' | 'until'>): readonly EpochMs[] {
  return Array.from({ length: count }, (_, index) => from + index * stepMs)
}

/** Whether the step at this time goes on at the end of the range. */
export function isUnfinished(at: EpochMs, { until, stepMs }: Pick<Range, 'until' | 'stepMs'>): boolean {
  return at + stepMs > until
}

/** The same time of the day before, or of the week before for more than two days. Days have none. */
export function earlier(range: Range): (Range & { readonly words: string }) | undefined {
  const { from, until, stepMs, count } = range
  if (stepMs === dayMs) return undefined
  const [words, ms] = until - from <= 2 * dayMs ? ['Day before', dayMs] : ['Week before', 7 * dayMs]
  return { period: 'range', from: from - ms, until: from - ms + count * stepMs, stepMs, count, words }
}

/** The same time in the next shorter steps. Undefined: the statistics have none, or too many. */
export function finerSteps({ from, until }: Span, stepMs: number, now: number): Range | undefined {
  const finer = statSteps.findLast((each) => each.stepMs < stepMs)
  if (!finer || from < now - finer.retentionMs) return undefined
  const count = Math.ceil((until - from) / finer.stepMs)
  return count > mostSteps ? undefined : { period: 'range', from, until, stepMs: finer.stepMs, count }
}

function floorTo(stepMs: number, at: number): EpochMs {
  return Math.floor(at / stepMs) * stepMs
}
