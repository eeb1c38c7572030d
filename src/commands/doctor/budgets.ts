import type { AlertConfig } from '../../config/config.ts'
import type { Problem } from '../../domain/health/problem.ts'
import type { BudgetStatus } from '../../domain/money/budgets.ts'
import { type Finding, found, ok, warn } from './finding.ts'

/** @param problems with those of the budgets */
export function budgetFindings(
  budgets: readonly BudgetStatus[],
  problems: readonly Problem[],
  { email, webhook }: AlertConfig,
): readonly Finding[] {
  const hasTarget = email !== undefined || webhook !== undefined
  const hasProblem = problems.some(({ what }) => what === 'budgets')
  return found(
    budgets.length === 0 &&
      warn(
        'budgets',
        'The cost of SMS is not limited.',
        'Set a budget with `otpost budget set server --per day --amount N`. See docs/budgets.md.',
      ),
    budgets.length > 0 &&
      !hasProblem &&
      ok('budgets', `${budgets.map(({ budget }) => budget.scope).join(', ')}.`),
    budgets.length > 0 &&
      !hasTarget &&
      warn(
        'alerts',
        'Alerts are only in the log, the metrics and the console.',
        'Set ALERT_EMAIL, or ALERT_WEBHOOK_URL and ALERT_WEBHOOK_SECRET. See docs/monitoring.md.',
      ),
  )
}
