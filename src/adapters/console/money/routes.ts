import { unitCurrency } from '../../../domain/money/amounts.ts'
import { budgetStatuses } from '../../../domain/money/budgets.ts'
import { type SpendingPeriod, spendingPeriods, spendingSpan } from '../../../domain/money/spending.ts'
import {
  type BudgetRequest,
  defaultAlertAt,
  liftBudget,
  removeBudget,
  setBudget,
} from '../../../domain/operator/money.ts'
import { done, html } from '../answers.ts'
import type { PageContext } from '../page-context.ts'
import { field, orAgain, type PageHandler, type PageRequest } from '../page-handler.ts'
import { moneyPage } from './page.tsx'

const latestAlerts = 10

export function moneyRoutes({ get, post, ports, settings }: PageHandler): void {
  const { brands, apps, prices } = ports
  const portsOf = ({ by }: PageRequest) => ({ ...by, brands, apps, prices, isCountry: settings.isCountry })

  get('/admin/money', async ({ url }, pageContext) => {
    const scope = url.searchParams.get('scope')
    const budget = (await ports.policy.rows()).budgets.find((each) => each.scope === scope)
    const form = {
      ...noBudget,
      ...(budget && {
        scope: budget.scope,
        period: budget.period,
        amount: String(budget.amountMicros / 1e6),
        alertAt: budget.alertAt.join(','),
        stops: budget.stops,
      }),
    }
    const period = spendingPeriods.find((each) => each === url.searchParams.get('period'))
    return shown(pageContext, form, null, period)
  })
  post('/admin/money', async (pageRequest, pageContext) => {
    const { form, visit } = pageRequest
    const asked: BudgetRequest = {
      scope: field(form, 'scope'),
      period: field(form, 'period'),
      amount: field(form, 'amount'),
      alertAt: field(form, 'alertAt'),
      stops: form.has('stops'),
    }
    return orAgain(
      async () => {
        const { scope } = await setBudget(portsOf(pageRequest), asked)
        return done(visit, '/admin/money', `Saved the budget ${scope}. Takes effect immediately.`)
      },
      (text) => shown(pageContext, asked, text),
    )
  })
  post('/admin/money/lift', async (pageRequest, pageContext) => {
    const [scope, duration] = [field(pageRequest.form, 'scope'), field(pageRequest.form, 'duration')]
    return orAgain(
      async () => {
        const { liftedUntil } = await liftBudget(portsOf(pageRequest), scope, duration)
        const text = liftedUntil === null ? `Budget ${scope} is not lifted.` : `Lifted the budget ${scope}.`
        return done(pageRequest.visit, '/admin/money', text)
      },
      (text) => shown(pageContext, noBudget, text),
    )
  })
  post('/admin/money/remove', async (pageRequest) => {
    const { scope } = await removeBudget(portsOf(pageRequest), field(pageRequest.form, 'scope'))
    return done(pageRequest.visit, '/admin/money', `Removed the budget ${scope}.`)
  })

  async function shown(
    pageContext: PageContext,
    form: BudgetRequest,
    problem: string | null = null,
    period: SpendingPeriod = 'this-month',
  ): Promise<Response> {
    const { now } = pageContext
    const span = spendingSpan(period, now)
    const [{ budgets }, currency, spending, alerts] = await Promise.all([
      ports.policy.rows(),
      ports.priceCurrency(),
      ports.eventLog.spending(span.from, span.until),
      ports.alerts.latest(latestAlerts),
    ])
    const model = {
      budgets: await budgetStatuses(ports.budgets, budgets, now),
      currency,
      isBuiltIn: currency === unitCurrency,
      period,
      span,
      spending,
      alerts: alerts.filter(({ at }) => at <= now),
      form,
      problem,
    }
    return html(moneyPage(pageContext, model), problem === null ? 200 : 409)
  }
}

const noBudget: BudgetRequest = { scope: '', period: 'day', amount: '', alertAt: defaultAlertAt, stops: true }
