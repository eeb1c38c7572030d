import type { PolicyFacts } from '../../adapters/store/condition.ts'
import { rejectionSteps, rejectionWords, risingRejections } from '../../domain/events/rejections.ts'
import { type Finding, warn } from './finding.ts'

export function rejectionFindings(counts: PolicyFacts['rejections'], now: number): readonly Finding[] {
  const isRecent = ({ stepMs, at }: (typeof counts)[number]) =>
    rejectionSteps(now).some((step) => step.stepMs === stepMs && at >= step.from)
  return risingRejections(counts.filter(isRecent)).map((rate) => {
    const { problem, remedy } = rejectionWords(rate)
    return warn('carriers', problem, `${remedy} See docs/dlt.md.`)
  })
}
