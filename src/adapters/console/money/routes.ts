import { modeInForce } from '../../../domain/guard/mode.ts'
import { readBudgets } from '../../../domain/health/facts.ts'
import { liftWarning, readGuardWarnings } from '../../../domain/health/pumping-problems.ts'
import { unitCurrency } from '../../../domain/money/amounts.ts'
import { spendingPeriods, spendingSpan } from '../../../domain/money/spending.ts'
import { html } from '../answers.ts'
import type { PageHandler } from '../page-handler.ts'
import { moneyPage } from './page.tsx'

const latestAlerts = 10

export function moneyRoutes({ get, ports, settings }: PageHandler): void {
  get('/admin/money', async ({ url }, pageContext) => {
    const { now } = pageContext
    const [scope, of] = ['scope', 'of'].map((name) => url.searchParams.get(name))
    const period = spendingPeriods.find((each) => each === url.searchParams.get('period')) ?? 'this-month'
    const span = spendingSpan(period, now)
    const [{ budgets, guardMode }, currency, spending, alerts] = await Promise.all([
      ports.policy.rows(),
      ports.priceCurrency(),
      ports.eventLog.spending(span.from, span.until),
      ports.alerts.latest(latestAlerts),
    ])
    const { countryOfPrefix } = settings.numbers
    const { mode } = modeInForce(guardMode, settings.guard, now)
    const warnings = await readGuardWarnings({ guard: ports.guard, countryOfPrefix }, mode, now)
    const model = {
      liftWarning: liftWarning(warnings),
      budgets: await readBudgets(ports, budgets, now),
      currency,
      isBuiltIn: currency === unitCurrency,
      period,
      span,
      spending,
      alerts: alerts.filter(({ at }) => at <= now),
      edited: budgets.find((each) => each.scope === scope && each.of === (of ?? 'all')),
    }
    return html(moneyPage(pageContext, model))
  })
}
