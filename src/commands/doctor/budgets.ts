import type { BudgetFacts } from '../../adapters/store/condition.ts'
import type { AlertConfig } from '../../config/config.ts'
import { budgetCondition, isExhausted } from '../../domain/health/conditions.ts'
import { budgetStatus } from '../../domain/money/budgets.ts'
import { type Finding, fail, found, ok, warn } from './finding.ts'

export function budgetFindings(
  budgets: readonly BudgetFacts[],
  { email, webhook }: AlertConfig,
  now: number,
): readonly Finding[] {
  const hasTarget = email !== undefined || webhook !== undefined
  const statuses = budgets.map(({ budget, spentMicros, reported }) => ({
    status: budgetStatus(budget, spentMicros, now),
    reported,
  }))
  const exhausted = statuses.filter(({ status, reported }) => isExhausted(status, false, reported))
  const others = statuses.filter((each) => !exhausted.includes(each))
  return found(
    ...exhausted.map(({ status }) => {
      const { problem, remedy } = budgetCondition(status)
      return fail('budgets', problem, remedy)
    }),
    budgets.length === 0 &&
      warn(
        'budgets',
        'The cost of SMS is not limited.',
        'Set a budget with `otpost budget set server --per day --amount N`. See docs/budgets.md.',
      ),
    others.length > 0 && ok('budgets', `${others.map(({ status }) => status.budget.scope).join(', ')}.`),
    budgets.length > 0 &&
      !hasTarget &&
      warn(
        'alerts',
        'Alerts are only in the log, the metrics and the console.',
        'Set ALERT_EMAIL, or ALERT_WEBHOOK_URL and ALERT_WEBHOOK_SECRET. See docs/monitoring.md.',
      ),
  )
}
