import type { Config } from '../config/config.ts'
import { docsAt } from '../domain/ground/docs.ts'
import type { HealthFacts } from '../domain/health/facts.ts'
import { type Finding, found, ok, warn } from '../domain/health/problem.ts'
import { budgetProblems } from '../domain/health/problems.ts'
import { unlimitedCost } from '../domain/health/protection.ts'
import { budgetName } from '../domain/money/budgets.ts'

/** Besides the problems of the budgets. */
export function budgetFindings(
  health: HealthFacts,
  { email, webhook }: Config['alerts'],
): readonly Finding[] {
  const { budgets } = health
  const hasTarget = email !== undefined || webhook !== undefined
  const fine = budgets.filter((each) => budgetProblems({ ...health, budgets: [each] }).length === 0)
  return found(
    unlimitedCost(budgets.map(({ budget }) => budget)),
    fine.length > 0 && ok('budgets', `${fine.map(({ budget }) => budgetName(budget)).join(', ')}.`),
    budgets.length > 0 &&
      !hasTarget &&
      warn(
        'alerts',
        'Alerts are only in the log, the metrics and the console.',
        `Set ALERT_EMAIL, or ALERT_WEBHOOK_URL and ALERT_WEBHOOK_SECRET. See ${docsAt('monitoring.md')}.`,
      ),
  )
}
