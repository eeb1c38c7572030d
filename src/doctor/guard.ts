import { type Config, guardSetting } from '../config/config.ts'
import { utc } from '../domain/ground/format.ts'
import { modeInForce } from '../domain/guard/mode.ts'
import { type Finding, found, ok } from '../domain/health/problem.ts'
import { ignoredGuard } from '../domain/health/protection.ts'
import { modeProblems } from '../domain/health/pumping-problems.ts'
import type { StoredFacts } from './facts.ts'

/** Besides the problems of the guard, which have the mode if codes were recorded. */
export function guardFindings(
  { health: { guard }, guardMode }: StoredFacts,
  config: Config,
): readonly Finding[] {
  const isReported = guard.pumping.some(({ recorded }) => recorded > 0)
  const now = Date.now()
  const { until, next } = modeInForce(guardMode, config.guard, now)
  const following = until === null ? '' : ` until ${utc(until)}. Then its mode is ${next}`
  return [
    ...found(
      guard.mode === 'deny' && ok('guard', `The SMS pumping guard denies${following}.`),
      ignoredGuard(guardSetting(config), guardMode, now),
    ),
    ...(isReported ? [] : modeProblems(guard)),
  ]
}
