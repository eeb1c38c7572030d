import type { PolicyFacts } from '../../adapters/store/condition.ts'
import { rejectionSteps } from '../../domain/events/rejections.ts'
import { isTrouble } from '../../domain/events/statistics.ts'
import { hourMs } from '../../domain/time.ts'
import { type Finding, warn } from './finding.ts'

/** @param counts of attempts, among others */
export function providerFindings(counts: PolicyFacts['rejections'], now: number): readonly Finding[] {
  const [lastDay] = rejectionSteps(now)
  const recent = counts.filter(
    ({ kind, stepMs, at }) => kind === 'attempt' && stepMs === hourMs && at >= (lastDay?.from ?? now),
  )
  const byProvider = Map.groupBy(recent, ({ provider }) => provider)
  return [...byProvider].flatMap(([provider, attempts]) => {
    const all = sumOf(attempts)
    const failed = all - sumOf(attempts.filter(({ detail }) => detail.startsWith('accepted')))
    if (!isTrouble(failed, all)) return []
    return warn(
      'providers',
      `${provider}: ${failed} of ${all} attempts failed or have an unknown result in the last 24 hours.`,
      'See the reasons with `otpost deliveries --since 1d`, or in the console.',
    )
  })
}

function sumOf(counts: PolicyFacts['rejections']): number {
  return counts.reduce((sum, { count }) => sum + count, 0)
}
