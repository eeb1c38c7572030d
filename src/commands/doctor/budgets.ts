import type { AlertConfig } from '../../config/config.ts'
import { type Finding, found, ok, warn } from './finding.ts'

/** @param budgets their scopes */
export function budgetFindings(
  budgets: readonly string[],
  { email, webhook }: AlertConfig,
): readonly Finding[] {
  const hasTarget = email !== undefined || webhook !== undefined
  return found(
    budgets.length === 0
      ? warn(
          'budgets',
          'The cost of SMS is not limited.',
          'Set a budget with `otpost budget set server --per day --amount N`. See docs/budgets.md.',
        )
      : ok('budgets', `${budgets.join(', ')}.`),
    budgets.length > 0 &&
      !hasTarget &&
      warn(
        'alerts',
        'Alerts of budgets are only in the log, the metrics and the console.',
        'Set ALERT_EMAIL, or ALERT_WEBHOOK_URL and ALERT_WEBHOOK_SECRET. See docs/budgets.md.',
      ),
  )
}
