import { type Config, guardSetting } from '../config/config.ts'
import { endWords, modeInForce } from '../domain/guard/mode.ts'
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
  const end = endWords(modeInForce(guardMode, config.guard, now))
  return [
    ...found(
      guard.mode === 'deny' &&
        ok('guard', `The SMS pumping guard denies${end && `: its mode is deny${end}`}.`),
      ignoredGuard(guardSetting(config), guardMode, now),
    ),
    ...(isReported ? [] : modeProblems(guard)),
  ]
}
