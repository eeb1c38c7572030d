/** @jsxImportSource preact */

import { countryWords } from '../../../domain/delivery/destination.ts'
import type { Alert } from '../../../domain/ground/alert.ts'
import { capitalized, percent } from '../../../domain/ground/format.ts'
import { dayMs, periodOf } from '../../../domain/ground/time.ts'
import { formatMicros, type Micros } from '../../../domain/money/amounts.ts'
import {
  anyCountry,
  type Budget,
  type BudgetStatus,
  budgetListing,
  budgetName,
} from '../../../domain/money/budgets.ts'
import {
  type DaySpend,
  type SpendingPeriod,
  spendBy,
  spendingPeriods,
  type spendingSpan,
} from '../../../domain/money/spending.ts'
import { budgetLift, budgetRemove, budgetSet, priceImport } from '../../../domain/operator/money.ts'
import { Badge, Empty, ExactTime, rich, Time } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { actions, Card, columnsOf, consolePage, end, FormLink, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

interface MoneyModel {
  readonly budgets: readonly BudgetStatus[]
  /** Of the prices. */
  readonly currency: string
  readonly isBuiltIn: boolean
  readonly period: SpendingPeriod
  readonly span: ReturnType<typeof spendingSpan>
  /** In that time. */
  readonly spending: readonly DaySpend[]
  /** Newest first. */
  readonly alerts: readonly Alert[]
  /** The budget that the form begins with. */
  readonly edited: Budget | undefined
  /** What a lift would send. */
  readonly liftWarning: string | undefined
}

const periodNames: Readonly<Record<SpendingPeriod, string>> = {
  today: 'Today',
  '7-days': '7 days',
  '30-days': '30 days',
  'this-month': 'This month',
  'last-month': 'Last month',
}

export function moneyPage(pageContext: PageContext, model: MoneyModel): string {
  const { spending } = model
  return consolePage(
    pageContext,
    {
      title: 'Money',
      section: 'money',
      actions: (
        <nav class="switch" aria-label="Period">
          {spendingPeriods.map((period) => (
            <a
              key={period}
              href={`/admin/money?period=${period}`}
              aria-current={period === model.period ? 'true' : undefined}
            >
              {periodNames[period]}
            </a>
          ))}
        </nav>
      ),
    },
    <div class="columns wide-first loose">
      <div class="stack">
        <Total model={model} />
        <Spending title="By country" spending={spending} nameOf={countryOf} />
        <Budgets model={model} now={pageContext.now} />
        <Spending title="By brand" spending={spending} nameOf={({ brand }) => brand || 'no brand'} />
        <Spending title="By app" spending={spending} nameOf={({ app }) => app} />
        <Days spending={spending} />
      </div>
      <div class="stack">
        <BudgetFormCard model={model} />
        <Prices model={model} />
        <Alerts model={model} />
      </div>
    </div>,
  )
}

function countryOf({ country }: DaySpend): string {
  return country === null ? 'No country' : countryWords(country)
}

function Budgets({ model: { budgets, liftWarning }, now }: { model: MoneyModel; now: number }) {
  if (budgets.length === 0) {
    return (
      <Card title="Budgets">
        <Empty title="The cost of SMS is not limited">
          Set a budget with the form on this page, or run `otpost budget set 'country:*' --per day --amount
          50` on the server.
        </Empty>
      </Card>
    )
  }
  return (
    <Card
      class="budgets"
      title="Budgets"
      hint="An exhausted budget rejects SMS until its period ends, in UTC. With `country:*`, each country without a budget of its own has the amount; the figures are of the country that spent most. The forecast is the amount at the end of the period if spending goes on as now."
    >
      <Table
        caption="Budgets"
        columns={[...columnsOf(budgetListing, 'scope', 'spent', 'remaining', 'forecast'), actions]}
        rows={budgets.map((status) => budgetCells(status, now, liftWarning))}
        empty=""
      />
    </Card>
  )
}

function budgetCells(status: BudgetStatus, now: number, liftWarning = '') {
  const { budget, spentMicros, remainingMicros, forecastMicros, resetsAt, isStopping } = status
  const { scope, of, amountMicros, currency, period, liftedUntil, countsFrom } = budget
  const name = budgetName(budget)
  const which = { scope, of }
  return [
    <span class="two-lines">
      <code>{scope}</code>
      {of !== 'all' && <small>only {of}</small>}
      <small>
        {formatMicros(amountMicros, currency)} per {period}
      </small>
      <small>
        resets <Time at={resetsAt} />
      </small>
      {countsFrom > periodOf(period, now).start && (
        <small>
          counts from <ExactTime at={countsFrom} toMinute />, when it was set
        </small>
      )}
      {!budget.stops && <small>only alerts</small>}
      {budget.stops && !isStopping && liftedUntil !== null && (
        <small>
          lifted until <ExactTime at={liftedUntil} toMinute />
        </small>
      )}
    </span>,
    <span class="two-lines">
      <span class="nowrap">{rounded(spentMicros, currency)}</span>
      <small>{percent(status.percent / 100)}</small>
      {scope === anyCountry &&
        status.counters.slice(0, mostCountries).map(({ budget: { country = null }, spentMicros }) => (
          <small key={country}>
            {countryWords(country)} {rounded(spentMicros, currency)}
          </small>
        ))}
    </span>,
    status.state === 'exhausted' ? (
      <Badge tone={isStopping ? 'bad' : 'warn'}>exhausted</Badge>
    ) : (
      <span class="nowrap">{rounded(remainingMicros, currency)}</span>
    ),
    forecastMicros === null ? '–' : <span class="nowrap">{rounded(forecastMicros, currency)}</span>,
    <div class="actions">
      <FormLink small href={`/admin/money?${new URLSearchParams(which)}#field-scope`}>
        Edit<span class="sr-only"> {name}</span>
      </FormLink>
      {budget.stops && (
        <ActionButton
          of={budgetLift}
          with={{ ...which, duration: isStopping ? '12h' : '0m' }}
          confirm={
            isStopping
              ? `Lift ${name} for 12 hours? It rejects no SMS in that time. ${liftWarning}`.trim()
              : undefined
          }
        >
          {isStopping ? 'Lift for 12 h' : 'End the lift'}
          <span class="sr-only"> {name}</span>
        </ActionButton>
      )}
      <ActionButton
        of={budgetRemove}
        with={which}
        confirm={`Remove the budget ${name}? It limits no cost any more.`}
        kind="danger"
      >
        Remove<span class="sr-only"> {name}</span>
      </ActionButton>
    </div>,
  ]
}

const mostCountries = 5

/** With two decimals, in one line. */
function rounded(micros: Micros, currency: string): string {
  return formatMicros(Math.round(micros / 1e4) * 1e4, currency).replace(' ', '\u00a0')
}

function Total({ model: { spending, span } }: { model: MoneyModel }) {
  const totals = spendBy(spending, () => '')
  const [from, last] = [span.from, span.until - dayMs].map((at) => new Date(at).toISOString().slice(0, 10))
  return (
    <Card title="Cost of SMS" hint={`${from === last ? from : `${from} to ${last}`}, in UTC.`}>
      <p class="sum">
        {totals.length === 0
          ? 'Nothing'
          : totals.map(({ micros, currency }) => rounded(micros, currency)).join(' and ')}
      </p>
    </Card>
  )
}

const mostRows = 20

interface SpendingProps extends Pick<MoneyModel, 'spending'> {
  readonly title: string
  readonly nameOf: (row: DaySpend) => string
}

function Spending({ title, spending, nameOf }: SpendingProps) {
  const shares = spendBy(spending, nameOf)
  const totals = new Map(spendBy(spending, () => '').map(({ currency, micros }) => [currency, micros]))
  return (
    <Card
      title={title}
      hint={shares.length > mostRows ? `The ${mostRows} with the greatest cost.` : undefined}
    >
      <Table
        caption={`Cost of SMS ${title.toLowerCase()}`}
        figures
        columns={[capitalized(title.slice('By '.length)), end('Cost'), end('Share')]}
        rows={shares
          .slice(0, mostRows)
          .map(({ name, currency, micros }) => [
            <bdi class="breaks">{name}</bdi>,
            rounded(micros, currency),
            percent(micros / Math.max(1, totals.get(currency) ?? 0)),
          ])}
        empty="No SMS."
      />
    </Card>
  )
}

function Days({ spending }: Pick<MoneyModel, 'spending'>) {
  const days = spendBy(spending, ({ at }) => new Date(at).toISOString().slice(0, 10))
  return (
    <Card title="By day" hint="In UTC. Days without SMS are left out.">
      <Table
        caption="Cost of SMS by day"
        figures
        columns={['Day', end('Cost')]}
        rows={[...days]
          .sort((one, other) => (one.name < other.name ? 1 : -1))
          .map(({ name, currency, micros }) => [name, rounded(micros, currency)])}
        empty="No SMS."
      />
    </Card>
  )
}

function BudgetFormCard({ model: { edited, currency } }: { model: MoneyModel }) {
  const start = edited && {
    scope: edited.scope,
    of: edited.of,
    period: edited.period,
    amount: String(edited.amountMicros / 1e6),
    alertAt: edited.alertAt.join(','),
    stops: edited.stops,
  }
  return (
    <Card
      title="Set a budget"
      hint="Replaces the budget of the same scope and messages. With the same period it keeps what was spent."
    >
      <ActionForm
        of={budgetSet}
        start={start}
        labels={{ amount: `Amount in ${currency}` }}
        submit="Save budget"
      />
    </Card>
  )
}

function Prices({ model: { currency, isBuiltIn } }: { model: MoneyModel }) {
  return (
    <Card
      id="prices"
      title="Prices"
      hint={
        isBuiltIn
          ? 'No prices are imported. Costs are in units of the built-in prices: one unit is the price of an SMS to the cheapest countries.'
          : `Prices are imported in ${currency}.`
      }
    >
      <ActionForm of={priceImport} id="price-file" submit="Import prices" />
      <p class="hint">
        {rich(
          'It replaces all prices of the providers that the file names. For a file of over 300 KB, run `otpost price import FILE` on the server.',
        )}
      </p>
    </Card>
  )
}

function Alerts({ model: { alerts } }: { model: MoneyModel }) {
  return (
    <Card title="Latest alerts" hint="Sent to `ALERT_EMAIL` and `ALERT_WEBHOOK_URL`, if they are set.">
      <Table
        caption="Latest alerts"
        columns={['Alert', 'Time']}
        rows={alerts.map(({ at, title }) => [title, <Time at={at} />])}
        empty="None."
      />
    </Card>
  )
}
