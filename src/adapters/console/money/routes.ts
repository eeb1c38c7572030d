import { modeInForce } from '../../../domain/guard/mode.ts'
import { readBudgets } from '../../../domain/health/facts.ts'
import { liftWarning, readGuardWarnings } from '../../../domain/health/pumping-problems.ts'
import { unitCurrency } from '../../../domain/money/amounts.ts'
import { spendingPeriods, spendingSpan } from '../../../domain/money/spending.ts'
import { checkPrice } from '../../../domain/operator/money.ts'
import { html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler } from '../page-handler.ts'
import { type MoneyModel, moneyPage } from './page.tsx'

const latestAlerts = 10
/** The list of a select. */
const mostApps = 1000

export function moneyRoutes({ get, post, ports, settings }: PageHandler): void {
  const { routes, contacts, numbers } = settings

  get('/admin/money', ({ url }, pageContext) => shown(pageContext, url.searchParams))
  // A phone number is not in a URL.
  post('/admin/money/check', async ({ form, url }, pageContext) => {
    const number = field(form, 'number')
    const digits = contacts.phone(number)?.to
    if (digits === undefined) {
      const problem = `The number ${contacts.faultOf(number, 'SMS')}`
      return shown(pageContext, url.searchParams, { number, result: null, problem }, 400)
    }
    const { country, kind } = numbers.destinationOf(digits)
    const configured = [...routes.plain, ...routes.template]
    const found = checkPrice(await ports.priceList(), digits, kind, configured)
    const result = { ...found, formatted: numbers.formatPhone(digits), country }
    return shown(pageContext, url.searchParams, { number, result, problem: null })
  })

  async function shown(
    pageContext: PageContext,
    query: URLSearchParams,
    check: MoneyModel['check'] = { number: '', result: null, problem: null },
    status = 200,
  ): Promise<Response> {
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
      budgets: await readBudgets(ports, budgets, now),
      currency,
      isBuiltIn: currency === unitCurrency,
      period,
      span,
      spending,
      alerts: alerts.filter(({ at }) => at <= now),
      edited: budgets.find((each) => each.scope === scope && each.of === (of ?? 'all')),
      brands: brands.map(({ slug }) => slug),
      apps: [...new Set([...ports.apps.configured, ...apps.map(({ appId }) => appId)])].slice(0, mostApps),
      countries: numbers.countries,
      check,
    }
    return html(moneyPage(pageContext, model), status)
  }
}
