import { modeInForce } from '../../../domain/guard/mode.ts'
import { readBudgets } from '../../../domain/health/facts.ts'
import { liftWarning, readGuardWarnings } from '../../../domain/health/pumping-problems.ts'
import { withCallCap } from '../../../domain/money/budgets.ts'
import { spendingPeriods, spendingSpan } from '../../../domain/money/spending.ts'
import { html } from '../answers.ts'
import type { PageHandler } from '../page-handler.ts'
import { moneyPage } from './page.tsx'

const latestAlerts = 10
/** The list of a select. */
const mostApps = 1000

export function moneyRoutes({ get, ports, settings }: PageHandler): void {
  const { numbers } = settings

  get('/admin/money', async ({ url: { searchParams: query } }, pageContext) => {
    const { now } = pageContext
    const [scope, of] = ['scope', 'of'].map((name) => query.get(name))
    const period = spendingPeriods.find((each) => each === query.get('period')) ?? 'this-month'
    const span = spendingSpan(period, now)
    const [{ budgets, guardMode }, { currency }, spending, alerts, brands, apps] = await Promise.all([
      ports.policy.rows(),
      ports.priceList(),
      ports.eventLog.spending(span.from, span.until),
      ports.alerts.latest(latestAlerts),
      ports.brands.list(),
      ports.apps.list(),
    ])
    const { mode } = modeInForce(guardMode, settings.guard, now)
    const warnings = await readGuardWarnings({ ...ports, ...numbers }, mode, now)
    const model = {
      liftWarning: liftWarning(warnings),
      budgets: await readBudgets(ports, withCallCap(budgets, settings.routes.others.voice), now),
      currency,
      period,
      span,
      spending,
      alerts: alerts.filter(({ at }) => at <= now),
      edited: budgets.find((each) => each.scope === scope && each.of === (of ?? 'all')),
      brands: brands.map(({ slug }) => slug),
      apps: [...new Set([...ports.apps.configured, ...apps.map(({ appId }) => appId)])].slice(0, mostApps),
      countries: numbers.countries,
    }
    return html(moneyPage(pageContext, model))
  })
}
