/** @jsxImportSource preact */
import { countryWords } from '../../../domain/destinations/destination.ts'
import { formatMicros, type Micros } from '../../../domain/money/amounts.ts'
import { type BudgetStatus, percentSpent } from '../../../domain/money/budgets.ts'
import { type DaySpend, spendBy } from '../../../domain/money/spending.ts'
import {
  Badge,
  Button,
  Choice,
  Empty,
  ExactTime,
  Field,
  rich,
  Select,
  Time,
} from '../../pages/components.tsx'
import { Card, consolePage, Form, FormLink, Problem, Table } from '../components.tsx'
import type { MoneyModel, PageContext } from '../models.ts'

export function moneyPage(pageContext: PageContext, model: MoneyModel): string {
  const { now } = pageContext
  const { spending } = model
  return consolePage(
    pageContext,
    { title: 'Money', section: 'money' },
    <div class="columns wide-first loose">
      <div class="stack">
        <Budgets budgets={model.budgets} />
        <Spending title="By country" now={now} spending={spending} nameOf={countryOf} />
        <Spending
          title="By brand"
          now={now}
          spending={spending}
          nameOf={({ brand }) => brand || 'no brand'}
        />
        <Spending title="By app" now={now} spending={spending} nameOf={({ app }) => app} />
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

function Budgets({ budgets }: Pick<MoneyModel, 'budgets'>) {
  if (budgets.length === 0) {
    return (
      <Card title="Budgets">
        <Empty title="The cost of SMS is not limited">
          Set a budget for the server with the form on this page, or run `otpost budget set server --per day
          --amount 50` on the server.
        </Empty>
      </Card>
    )
  }
  return (
    <Card
      title="Budgets"
      hint="An exhausted budget rejects SMS until its period ends, in UTC. The forecast is the amount at the end of the period if spending goes on as now."
    >
      <Table
        caption="Budgets"
        columns={[
          'Scope',
          { title: 'Spent', align: 'end' },
          { title: 'Remaining', align: 'end' },
          { title: 'Forecast', align: 'end' },
          'Resets',
          { title: 'Actions', align: 'end', isQuiet: true },
        ]}
        rows={budgets.map(budgetCells)}
        empty=""
      />
    </Card>
  )
}

function budgetCells(status: BudgetStatus) {
  const { budget, spentMicros, remainingMicros, forecastMicros, resetsAt, isStopping } = status
  const { scope, amountMicros, currency, period, liftedUntil } = budget
  return [
    <span class="two-lines">
      <code>{scope}</code>
      <small>
        {formatMicros(amountMicros, currency)} per {period}
      </small>
    </span>,
    <span class="two-lines">
      <span>{rounded(spentMicros, currency)}</span>
      <small>{percentSpent(budget, spentMicros)} %</small>
    </span>,
    remainingMicros === 0 ? (
      <Badge tone={isStopping ? 'bad' : 'warn'}>exhausted</Badge>
    ) : (
      rounded(remainingMicros, currency)
    ),
    forecastMicros === null ? '–' : rounded(forecastMicros, currency),
    <span class="two-lines">
      <Time at={resetsAt} />
      {!budget.stops && <small>only alerts</small>}
      {budget.stops && !isStopping && liftedUntil !== null && (
        <small>
          lifted until <ExactTime at={liftedUntil} toMinute />
        </small>
      )}
    </span>,
    <div class="actions">
      <FormLink small href={`/admin/money?scope=${encodeURIComponent(scope)}#field-scope`}>
        Edit<span class="sr-only"> {scope}</span>
      </FormLink>
      {budget.stops && (
        <Form
          action="/admin/money/lift"
          confirm={isStopping ? `Lift ${scope} for 12 hours? It rejects no SMS in that time.` : undefined}
          hidden={{ scope, duration: isStopping ? '12h' : '0m' }}
        >
          <Button small>
            {isStopping ? 'Lift for 12 h' : 'End the lift'}
            <span class="sr-only"> {scope}</span>
          </Button>
        </Form>
      )}
      <Form
        action="/admin/money/remove"
        confirm={`Remove the budget ${scope}? It limits no cost any more.`}
        hidden={{ scope }}
      >
        <Button kind="danger" small>
          Remove<span class="sr-only"> {scope}</span>
        </Button>
      </Form>
    </div>,
  ]
}

/** With two decimals, in one line. */
function rounded(micros: Micros, currency: string): string {
  return formatMicros(Math.round(micros / 1e4) * 1e4, currency).replace(' ', '\u00a0')
}

const mostRows = 20

function Spending({
  title,
  now,
  spending,
  nameOf,
}: {
  title: string
  now: number
  spending: readonly DaySpend[]
  nameOf: (row: DaySpend) => string
}) {
  const shares = spendBy(spending, nameOf, now)
  return (
    <Card
      title={title}
      hint={shares.length > mostRows ? `The ${mostRows} with the greatest cost.` : undefined}
    >
      <Table
        caption={`Cost of SMS ${title.toLowerCase()}`}
        figures
        columns={[
          title.slice('By '.length).replace(/^./, (first) => first.toUpperCase()),
          { title: 'Today', align: 'end' },
          { title: '7 days', align: 'end' },
          { title: '30 days', align: 'end' },
        ]}
        rows={shares
          .slice(0, mostRows)
          .map(({ name, currency, todayMicros, weekMicros, monthMicros }) => [
            <bdi class="breaks">{name}</bdi>,
            rounded(todayMicros, currency),
            rounded(weekMicros, currency),
            rounded(monthMicros, currency),
          ])}
        empty="No SMS in 30 days."
      />
    </Card>
  )
}

function Days({ spending }: Pick<MoneyModel, 'spending'>) {
  const days = spendBy(spending, ({ at }) => new Date(at).toISOString().slice(0, 10), 0)
  return (
    <Card title="By day" hint="The last 30 days, in UTC. Days without SMS are left out.">
      <Table
        caption="Cost of SMS by day"
        figures
        columns={['Day', { title: 'Cost', align: 'end' }]}
        rows={[...days]
          .sort((one, other) => (one.name < other.name ? 1 : -1))
          .map(({ name, currency, monthMicros }) => [name, rounded(monthMicros, currency)])}
        empty="No SMS in 30 days."
      />
    </Card>
  )
}

function BudgetFormCard({ model: { form, problem, currency } }: { model: MoneyModel }) {
  return (
    <Card
      title="Set a budget"
      hint="Replaces the budget of the same scope. With the same period it keeps what was spent."
    >
      <Problem text={problem} />
      <Form action="/admin/money" submit="Save budget">
        <Field
          label="Scope"
          name="scope"
          required
          isCode
          value={form.scope}
          hint="`server`, `brand:SLUG`, `app:APPID` or `country:CC`."
        />
        <Select
          label="Period"
          name="period"
          value={form.period}
          options={{ day: 'day, in UTC', month: 'calendar month, in UTC' }}
        />
        <Field label={`Amount in ${currency}`} name="amount" required isCode value={form.amount} />
        <Field
          label="Alerts"
          name="alertAt"
          isCode
          value={form.alertAt}
          hint="Percentages of the amount, separated by commas. Empty for none."
        />
        <Choice
          label="Reject SMS when it is exhausted"
          name="stops"
          checked={form.stops}
          hint="Otherwise it only counts and sends alerts."
        />
      </Form>
    </Card>
  )
}

function Prices({ model: { currency, isBuiltIn } }: { model: MoneyModel }) {
  return (
    <Card title="Prices">
      <p class="hint">
        {rich(
          isBuiltIn
            ? 'No prices are imported. Costs are in units of the built-in prices: one unit is the price of an SMS to the cheapest countries. To import the prices of your providers, run `otpost price import FILE` on the server.'
            : `Prices are imported in ${currency}. To replace them, run \`otpost price import FILE\` on the server. \`otpost price check NUMBER\` prints the price of an SMS.`,
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
