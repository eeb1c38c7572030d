/** @jsxImportSource preact */

import { useContext } from 'preact/hooks'
import { countryWords } from '../../../domain/delivery/destination.ts'
import type { Alert } from '../../../domain/ground/alert.ts'
import { capitalized, percent } from '../../../domain/ground/format.ts'
import { dayMs, periodOf } from '../../../domain/ground/time.ts'
import {
  formatMicros,
  type Micros,
  shownMicros,
  sumWords,
  unitCurrency,
} from '../../../domain/money/amounts.ts'
import {
  anyCountry,
  type Budget,
  type BudgetState,
  type BudgetStatus,
  budgetName,
  callCap,
  usedUpWords,
} from '../../../domain/money/budgets.ts'
import {
  type DaySpend,
  type SpendingPeriod,
  spendBy,
  spendingPeriods,
  type spendingSpan,
} from '../../../domain/money/spending.ts'
import {
  budgetLift,
  budgetRemove,
  budgetSet,
  priceImport,
  scopeOptions,
  scopeWords,
} from '../../../domain/operator/money.ts'
import { Badge, Empty, ExactTime, Now, rich, Time, type Tone, withTimes } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { actions, Card, consolePage, Drawing, end, FormLink, Table } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import { ChartFigure } from '../overview/chart.tsx'
import type { PageContext } from '../page-context.ts'

export interface MoneyModel {
  readonly budgets: readonly BudgetStatus[]
  /** Of the prices. */
  readonly currency: string
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
  /** Slugs. */
  readonly brands: readonly string[]
  readonly apps: readonly string[]
  readonly countries: readonly string[]
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
      scripts: ['charts.js'],
      styles: ['uplot.css'],
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
        <Budgets model={model} now={pageContext.now} />
        <Days model={model} />
        <Spending title="By country" spending={spending} nameOf={countryOf} />
        <Spending title="By brand" spending={spending} nameOf={({ brand }) => brand || 'no brand'} />
        <Spending title="By app" spending={spending} nameOf={({ app }) => app} />
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
      hint="An exhausted budget rejects SMS until its period ends, in UTC. The light part of a bar is the forecast: what is spent at the end of the period if spending goes on as so far."
    >
      <Table
        caption="Budgets"
        columns={['Budget', 'Spent', 'State', actions]}
        rows={budgets.toSorted(byUrgency).map((status) => budgetCells(status, now, liftWarning))}
        empty=""
      />
    </Card>
  )
}

/** The most urgent first. */
const tones: Readonly<Record<BudgetState, Tone>> = {
  exhausted: 'bad',
  'will be used up': 'warn',
  near: 'warn',
  ok: 'good',
}

const urgencies = Object.keys(tones)

function byUrgency(one: BudgetStatus, other: BudgetStatus): number {
  return urgencies.indexOf(one.state) - urgencies.indexOf(other.state)
}

function budgetCells(status: BudgetStatus, now: number, liftWarning = '') {
  const { budget, resetsAt, isStopping, state, forecastMicros } = status
  const { scope, of, amountMicros, currency, period, liftedUntil, countsFrom } = budget
  const name = budgetName(budget)
  const which = { scope, of }
  const isStored = currency !== callCap.currency
  const isLifted = budget.stops && !isStopping && liftedUntil !== null
  const countries = scope === anyCountry ? status.counters.slice(0, mostCountries) : []
  return [
    <span class="two-lines">
      <span>
        {scopeWords(scope)}
        {of !== 'all' && `, only ${of}`}
      </span>
      <small>
        {formatMicros(amountMicros, currency)} per {period}, resets <Time at={resetsAt} isUpcoming />
      </small>
      {countsFrom > periodOf(period, now).start && (
        <small>
          counts from <ExactTime at={countsFrom} toMinute />, when it was set
        </small>
      )}
    </span>,
    <div class="spent">
      <span>
        <span class="nowrap">{sumOf(status.spentMicros, currency)}</span>{' '}
        <small>
          {percent(status.percent / 100)}, {leftOf(status)} left
        </small>
      </span>
      <BudgetBar status={status} />
      {countries.map((counter) => (
        <small key={counter.budget.country}>
          {countryWords(counter.budget.country ?? null)} {sumOf(counter.spentMicros, currency)},{' '}
          {percent(counter.percent / 100)}
          {counter.isExhausted && ', exhausted'}
        </small>
      ))}
    </div>,
    <span class="two-lines">
      <Badge tone={isStopping || state === 'ok' ? tones[state] : 'warn'}>
        {withTimes(usedUpWords(status) ?? state)}
      </Badge>
      {forecastMicros !== null && state !== 'exhausted' && (
        <small class="nowrap">forecast {sumOf(forecastMicros, currency)}</small>
      )}
      {state === 'exhausted' && (
        <small>
          {isStopping ? 'SMS are rejected' : 'SMS are sent'}
          {status.remainingMicros > 0 && ': less is left than a message costs'}
        </small>
      )}
      {!budget.stops && <small>only alerts</small>}
      {isLifted && (
        <small>
          lifted until <ExactTime at={liftedUntil} toMinute />
        </small>
      )}
    </span>,
    <div class="actions">
      <FormLink small href={`/admin/money?${new URLSearchParams(which)}#field-scope`}>
        Edit<span class="sr-only"> {name}</span>
      </FormLink>
      {budget.stops && isStored && (
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
      {isStored && (
        <ActionButton
          of={budgetRemove}
          with={which}
          confirm={`Remove the budget ${name}? It limits no cost any more.`}
          kind="danger"
        >
          Remove<span class="sr-only"> {name}</span>
        </ActionButton>
      )}
    </div>,
  ]
}

const mostCountries = 5

function BudgetBar({ status }: { status: BudgetStatus }) {
  const { percent, state, forecastMicros, budget } = status
  const part = (value: number) => Math.max(0, Math.min(100, value)).toFixed(2)
  return (
    <Drawing class={`bar ${tones[state]}`} viewBox="0 0 100 1">
      <rect class="ahead" width={part(((forecastMicros ?? 0) * 100) / budget.amountMicros)} height="1" />
      <rect width={part(percent)} height="1" />
    </Drawing>
  )
}

/** In one line. */
function sumOf(micros: Micros, currency: string): string {
  return sumWords(micros, currency).replace(' ', '\u00a0')
}

/** Of the shown sum. */
function leftOf({ budget: { amountMicros, currency }, spentMicros }: BudgetStatus): string {
  return formatMicros(Math.max(0, amountMicros - shownMicros(spentMicros)), currency).replace(' ', '\u00a0')
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
            sumOf(micros, currency),
            percent(micros / Math.max(1, totals.get(currency) ?? 0)),
          ])}
        empty="No SMS."
      />
    </Card>
  )
}

/** Per currency, the one with the greatest cost first: after an import of prices there may be two. */
function Days({ model: { spending, span } }: { model: MoneyModel }) {
  const days = Array.from({ length: (span.until - span.from) / dayMs }, (_, day) => span.from + day * dayMs)
  const totals = spendBy(spending, () => '')
  const sums = spendBy(spending, ({ at }) => String(at))
  const microsOf = (at: number, currency: string) =>
    sums.find((sum) => sum.name === String(at) && sum.currency === currency)?.micros ?? 0
  const lines = totals.slice(0, 2).map(({ micros, currency }, line) => ({
    label: currency,
    sum: sumWords(micros, currency).split(' ')[0],
    kind: line === 0 ? ('area' as const) : ('gold' as const),
    values: days.map((at) => shownMicros(microsOf(at, currency)) / 1e6),
    rows: logUrl('deliveries', { channel: 'SMS' }),
  }))
  const [from, last] = [days[0], days.at(-1)].map((at = 0) => dayOf(at))
  const data = {
    stepSeconds: dayMs / 1000,
    at: days.map((at) => at / 1000),
    isOfUtcDays: true,
    isUnfinished: span.until > useContext(Now),
    lines,
  }
  return (
    <Card title="Cost of SMS" hint={`${from === last ? from : `${from} to ${last}`}, by day in UTC.`}>
      <p class="sum">
        {totals.length === 0
          ? 'Nothing'
          : totals.map(({ micros, currency }) => sumOf(micros, currency)).join(' and ')}
      </p>
      {days.length > 1 && totals.length > 0 && (
        <ChartFigure
          id="cost"
          caption="Cost of SMS by day"
          data={data}
          columns={['Day', ...lines.map(({ label }) => end(label))]}
          rows={days
            .toReversed()
            .map((at) => [dayOf(at), ...lines.map(({ label }) => sumOf(microsOf(at, label), label))])}
        />
      )}
    </Card>
  )
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

function BudgetFormCard({ model }: { model: MoneyModel }) {
  const { edited, currency, budgets } = model
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
        options={{
          scope: scopeOptions(
            model,
            budgets.map(({ budget }) => budget.scope),
          ),
        }}
        labels={{ amount: `Amount in ${currency}` }}
        submit="Save budget"
      />
    </Card>
  )
}

function Prices({ model: { currency } }: { model: MoneyModel }) {
  return (
    <Card
      id="prices"
      title="Prices"
      hint={
        currency === unitCurrency
          ? 'No prices are imported. Costs are in units of the built-in prices: one unit is the price of an SMS to the cheapest countries.'
          : `Prices are imported in ${currency}.`
      }
    >
      <ActionForm of={priceImport} id="price-file" submit="Import prices" />
      <p class="hint">
        <a href="/admin/destinations">Check the price of a number</a>.{' '}
        {rich(
          'An import replaces all prices of the providers that the file names. For a file of over 500 KB, run `otpost price import FILE` on the server.',
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
