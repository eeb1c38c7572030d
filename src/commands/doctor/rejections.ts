import type { PolicyFacts } from '../../adapters/store/condition.ts'
import { hourMs } from '../../domain/ground/time.ts'
import { rejectionSteps, rejectionWords, risingRejections } from '../../domain/log/rejections.ts'
import { lateWords, rejectedReportsIn, rejectedReportWords } from '../../domain/log/report-problems.ts'
import { lateCodesIn } from '../../domain/log/stats.ts'
import { type Finding, warn } from './finding.ts'

export function rejectionFindings(counts: PolicyFacts['rejections'], now: number): readonly Finding[] {
  return risingRejections(recentOf(counts, now)).map((rate) => {
    const { problem, remedy } = rejectionWords(rate)
    return warn('carriers', problem, `${remedy} See docs/dlt.md.`)
  })
}

/** What delivery reports of the last day reveal, and those that were rejected. */
export function reportFindings(
  counts: PolicyFacts['rejections'],
  now: number,
  providerTimeoutMs: number,
): readonly Finding[] {
  const ofDay = recentOf(counts, now).filter(({ stepMs }) => stepMs === hourMs)
  const period = 'in the last 24 hours'
  const late = lateCodesIn(ofDay).map((codes) => lateWords(codes, period, providerTimeoutMs))
  const rejected = rejectedReportsIn(ofDay).map((reports) => rejectedReportWords(reports, period))
  return [
    ...late.map(({ problem, remedy }) => warn('late codes', problem, remedy)),
    ...rejected.map(({ problem, remedy }) => warn('reports', problem, remedy)),
  ]
}

function recentOf(counts: PolicyFacts['rejections'], now: number): PolicyFacts['rejections'] {
  const steps = rejectionSteps(now)
  return counts.filter(({ stepMs, at }) => steps.some((step) => step.stepMs === stepMs && at >= step.from))
}
