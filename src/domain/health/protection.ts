import type { DestinationRule } from '../delivery/destination.ts'
import { see } from '../ground/advice.ts'
import type { GuardMode } from '../guard/guard.ts'
import { endWords, modeInForce, type StoredMode } from '../guard/mode.ts'
import { anyCountry, type Budget } from '../money/budgets.ts'
import type { PolicyRows } from '../policy/policy-store.ts'
import { found, type Problem, warn } from './problem.ts'
import { modeProblems } from './pumping-problems.ts'

// What limits the cost of SMS pumping. `serve` in production and doctor report what is missing.

interface ProtectionSettings {
  readonly smsCountries: readonly string[]
  /** GUARD. */
  readonly guard: GuardMode
}

export function missingProtection(
  { rules, budgets, guardMode }: Pick<PolicyRows, 'rules' | 'budgets' | 'guardMode'>,
  { smsCountries, guard }: ProtectionSettings,
  now: number,
): Problem[] {
  return [
    ...found(openDestinations(rules, smsCountries), unlimitedCost(budgets)),
    ...modeProblems({ mode: modeInForce(guardMode, guard, now).mode, pumping: [] }),
  ]
}

/** Without a rule that blocks all other countries. */
export function openDestinations(
  rules: readonly DestinationRule[],
  smsCountries: readonly string[],
): Problem | undefined {
  const all = rules.find(({ rule, brandSlug }) => rule === '*' && brandSlug === null)
  if (all ? all.action === 'block' : smsCountries.length > 0) return undefined
  return warn(
    'destinations',
    rules.length === 0 ? 'SMS go to every country.' : 'SMS go to every country that no rule blocks.',
    'Set SMS_COUNTRIES to the countries that you serve, such as SMS_COUNTRIES=IN,GB, or allow each of them and block all others.',
    see('destination set', { rule: 'COUNTRY', action: 'allow' }),
    see('destination set', { rule: '*', action: 'block' }),
    { docs: 'destinations' },
  )
}

/** A budget that only sends alerts limits nothing, one of notifications no codes, and one of a country, brand or app only these. */
export function limitsCost({ scope, stops, of }: Budget): boolean {
  return stops && of !== 'notifications' && (scope === 'server' || scope === anyCountry)
}

export function unlimitedCost(budgets: readonly Budget[]): Problem | undefined {
  if (budgets.some(limitsCost)) return undefined
  return warn(
    'budgets',
    'The cost of SMS is not limited.',
    'Set a budget for each country.',
    see('budget set', { scope: 'country:*', period: 'day', amount: 'N' }),
    { docs: 'budgets' },
  )
}

/** GUARD is set, but another mode is in force. @param set undefined: GUARD is not set */
export function ignoredGuard(
  set: GuardMode | undefined,
  stored: StoredMode | null,
  now: number,
): Problem | undefined {
  if (set === undefined || stored === null) return undefined
  const inForce = modeInForce(stored, set, now)
  // GUARD has an effect if it is in force, or follows a temporary mode.
  if (inForce.mode === set || inForce.next === set) return undefined
  return warn(
    'GUARD',
    `GUARD is ${set}, but has no effect: the mode of the SMS pumping guard is ${inForce.mode}${endWords(inForce)}.`,
    'GUARD is the mode at the first start on a database. Change the mode with the command, or correct GUARD.',
    see('guard mode', { mode: set }),
  )
}
