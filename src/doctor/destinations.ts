import type { DestinationConfig } from '../config/destinations.ts'
import { type DestinationRule, mobileCountryOf } from '../domain/delivery/destination.ts'
import { type Finding, fail, ok, warn } from '../domain/health/problem.ts'
import { openDestinations } from '../domain/health/protection.ts'
import { leftOutWays, ruleName, ruleProblems } from '../domain/operator/destinations.ts'

const what = 'destinations'

/** @param rules the stored ones */
export function destinationFindings(
  rules: readonly DestinationRule[],
  { routes, smsCountries }: DestinationConfig,
): readonly Finding[] {
  const broken = rules.flatMap((rule) =>
    ruleProblems(rule, routes).map((problem) =>
      fail(
        what,
        `SMS of the rule ${ruleName(rule)} fail. ${problem}`,
        'Correct the setting, or replace the rule with `otpost destination set`.',
      ),
    ),
  )
  const countries = new Set([...smsCountries, ...rules.map(({ rule }) => rule)])
  const shared = [...countries].flatMap((country) => {
    const other = mobileCountryOf(country)
    return other === undefined || countries.has(other) ? [] : [[country, other] as const]
  })
  const territories = shared.map(([country, other]) =>
    warn(
      what,
      `A rule names ${country}, but mobile numbers of ${country} have the country ${other}.`,
      `Set a rule for ${other} or for a prefix.`,
    ),
  )
  const narrow = rules.flatMap((rule) => {
    const problem = leftOutWays(rule, routes)
    return problem === null ? [] : warn(what, problem, 'If that is intended, leave it.')
  })
  return [summary(rules, smsCountries), ...broken, ...territories, ...narrow]
}

function summary(rules: readonly DestinationRule[], smsCountries: readonly string[]): Finding {
  const open = openDestinations(rules, smsCountries)
  if (open) return open
  const setting = smsCountries.length === 0 ? [] : [`SMS_COUNTRIES=${smsCountries.join(',')}`]
  const stored =
    rules.length === 0 ? [] : [rules.length === 1 ? '1 stored rule' : `${rules.length} stored rules`]
  return ok(what, `${[...setting, ...stored].join(' and ')}.`)
}
