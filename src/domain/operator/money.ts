import type { Actor, AuditEntry } from '../ground/audit.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { formatMicros, type Micros, parseMicros, unitCurrency } from '../money/amounts.ts'
import { type Budget, budgetPeriods } from '../money/budgets.ts'
import { type CheckedPrices, importProblems } from '../money/price-import.ts'
import type { FoundPrice, PriceGroup, PriceRow } from '../money/prices.ts'
import { priceListOf } from '../money/relative-prices.ts'
import type { PolicyChange } from '../policy/policy-store.ts'
import { nameKey } from '../texts/brand.ts'
import { existingBrand } from './brands.ts'
import type { AppStore } from './changes.ts'
import { oneOf, type RulePorts } from './destinations.ts'
import { durationIn } from './fields.ts'

export interface PriceStore {
  rows(): Promise<readonly PriceRow[]>
  /** All or nothing for readers. `decide` must be synchronous and runs several times; if it throws, nothing is stored. */
  change<Change extends PriceChange>(
    by: { readonly actor: Actor; readonly now: number },
    decide: (current: readonly PriceGroup[], budgets: readonly Budget[]) => Change,
  ): Promise<Change>
}

/** Replaces the prices of each provider that `save` names. */
export interface PriceChange {
  readonly save: readonly PriceRow[]
  readonly entry: Pick<AuditEntry, 'target' | 'details'>
}

export interface MoneyPorts extends RulePorts {
  readonly prices: PriceStore
  readonly apps: AppStore & { readonly configured: readonly string[] }
}

/** Fields as operators write them. */
export interface BudgetRequest {
  readonly scope: string
  readonly period: string
  /** A decimal, in the currency of the prices. */
  readonly amount: string
  /** Percentages separated by commas; empty for none. */
  readonly alertAt: string
  readonly stops: boolean
}

export const defaultAlertAt = '80,100'

/**
 * `budget set` (design D42). A new budget counts from now. A budget that keeps its period and currency keeps what was spent, and
 * until when it is lifted.
 */
export async function setBudget(ports: MoneyPorts, request: BudgetRequest): Promise<Budget> {
  const scope = await existingScope(ports, request.scope)
  const period = oneOf('period', budgetPeriods, request.period)
  const amountMicros = amountIn(request.amount)
  const alertAt = percentagesIn(request.alertAt)
  const currency = (await ports.prices.rows())[0]?.currency ?? unitCurrency
  const now = ports.now()
  const { budget } = await ports.policy.change({ actor: ports.actor, now }, ({ budgets }) => {
    const before = budgets.find((each) => each.scope === scope)
    const continues = before?.period === period && before.currency === currency
    const budget: Budget = {
      scope,
      period,
      amountMicros,
      currency,
      alertAt,
      stops: request.stops,
      liftedUntil: continues ? before.liftedUntil : null,
      countsFrom: continues ? before.countsFrom : now,
    }
    const details = budgetDetails(budget)
    return { budget, saveBudgets: [budget], entry: { action: 'budget.set', target: scope, details } }
  })
  return budget
}

function budgetDetails({ period, amountMicros, currency, alertAt, stops }: Budget): Record<string, string> {
  return {
    amount: `${formatMicros(amountMicros, currency)} per ${period}`,
    alerts: alertAt.length === 0 ? '-' : `${alertAt.join(', ')}%`,
    stops: stops ? 'yes' : 'no',
  }
}

/** `budget lift`: until then, it counts messages but rejects none. A duration of 0 ends the lift. */
export function liftBudget(ports: MoneyPorts, scopeText: string, duration: string): Promise<Budget> {
  const ms = durationIn(duration)
  const now = ports.now()
  const liftedUntil = ms === 0 ? null : now + ms
  return changeBudget(ports, scopeText, now, (budget) => ({
    saveBudgets: [{ ...budget, liftedUntil }],
    entry: {
      action: 'budget.lifted',
      target: budget.scope,
      details: { until: liftedUntil === null ? '-' : new Date(liftedUntil).toISOString() },
    },
    budget: { ...budget, liftedUntil },
  }))
}

/** `budget remove` */
export function removeBudget(ports: MoneyPorts, scopeText: string): Promise<Budget> {
  return changeBudget(ports, scopeText, ports.now(), (budget) => ({
    removeBudgets: [budget],
    entry: { action: 'budget.removed', target: budget.scope, details: budgetDetails(budget) },
    budget,
  }))
}

function changeBudget(
  ports: MoneyPorts,
  scopeText: string,
  now: number,
  decide: (budget: Budget) => PolicyChange & { readonly budget: Budget },
): Promise<Budget> {
  const scope = scopeIn(scopeText, ports.isCountry)
  return ports.policy
    .change({ actor: ports.actor, now }, ({ budgets }) => {
      const budget = budgets.find((each) => each.scope === scope)
      if (!budget)
        throw new OperatorError(`There is no budget ${scope}. \`otpost budget list\` lists the budgets.`)
      return decide(budget)
    })
    .then(({ budget }) => budget)
}

/** The scope in its stored form. */
function scopeIn(text: string, isCountry: (code: string) => boolean): string {
  const [, kind = '', name = ''] = /^(server|brand|app|country)(?::(.*))?$/.exec(text.trim()) ?? []
  if (kind === 'server' && !text.includes(':')) return kind
  if (kind === 'brand' && name !== '') return `brand:${nameKey(name)}`
  if (kind === 'app' && name !== '') return `app:${name}`
  const country = name.toUpperCase()
  if (kind === 'country' && isCountry(country)) return `country:${country}`
  throw new InvalidInput(
    kind === 'country'
      ? 'The country must be an ISO 3166-1 country code of two letters, such as country:GB.'
      : 'The scope must be server, brand:SLUG, app:APPID or country:CC, such as country:GB.',
  )
}

async function existingScope(ports: MoneyPorts, text: string): Promise<string> {
  const scope = scopeIn(text, ports.isCountry)
  const [kind = ''] = scope.split(':')
  const name = scope.slice(kind.length + 1)
  if (kind === 'brand') await existingBrand(ports.brands, name)
  if (kind === 'app') await requireApp(ports.apps, name)
  return scope
}

/** @throws OperatorError if the app does not exist */
export async function requireApp({ configured, list }: MoneyPorts['apps'], name: string): Promise<void> {
  if (configured.includes(name) || (await list()).some(({ appId }) => appId === name)) return
  throw new OperatorError(`App ${name} does not exist. \`otpost app list\` lists the apps.`)
}

const largestAmountMicros = 1e15

/** The amount of a budget. @throws OperatorError */
export function amountIn(text: string): Micros {
  const micros = parseMicros(text.trim())
  if (micros !== undefined && micros > 0 && micros <= largestAmountMicros) return micros
  throw new InvalidInput(
    'The amount must be a number above 0 and at most 1000000000, with a point and at most 6 decimals, such as 250 or 99.50.',
  )
}

const mostAlerts = 10
const largestAlert = 1000

/** @throws OperatorError */
export function percentagesIn(text: string): readonly number[] {
  const words = text.split(',').map((word) => word.trim())
  if (words.join('') === '') return []
  const percentages = [...new Set(words.map((word) => (/^\d{1,4}$/.test(word) ? Number(word) : 0)))]
  if (percentages.length > mostAlerts || percentages.some((each) => each < 1 || each > largestAlert))
    throw new InvalidInput(
      `The alerts must be at most ${mostAlerts} whole percentages from 1 to ${largestAlert}, separated by commas, such as 50,80,100.`,
    )
  return percentages.sort((a, b) => a - b)
}

export interface CheckedPrice extends FoundPrice {
  /** Null: no provider is configured. */
  readonly provider: string | null
}

/** `price check`: the price of one segment through each provider, the dearest first. A budget claims the dearest of the route. */
export function checkPrice(
  rows: readonly PriceRow[],
  digits: string,
  configured: readonly string[],
): { readonly currency: string; readonly prices: readonly [CheckedPrice, ...CheckedPrice[]] } {
  const list = priceListOf(rows)
  const [first = null, ...others] = new Set(configured)
  const found = (provider: string | null): CheckedPrice => ({ provider, ...list.find(digits, provider) })
  const prices: [CheckedPrice, ...CheckedPrice[]] = [found(first), ...others.map(found)]
  prices.sort((a, b) => b.priceMicros - a.priceMicros)
  return { currency: list.currency, prices }
}

/**
 * `price import` (design D42). Budgets in another currency would no longer count, so they must be removed first.
 * @returns `inUnits`: the scopes of the budgets that still count in units
 */
export async function storePrices(
  { prices, actor, now }: Pick<MoneyPorts, 'prices' | 'actor' | 'now'>,
  { rows: next, problems }: CheckedPrices,
): Promise<{ readonly count: number; readonly currency: string; readonly inUnits: readonly string[] }> {
  if (problems.length > 0) throw new OperatorError(problems.join('\n'))
  const currency = next[0]?.currency ?? unitCurrency
  const { inUnits } = await prices.change({ actor, now: now() }, (current, budgets) => {
    const conflicts = importProblems(current, next)
    const others = budgets.filter((budget) => ![currency, unitCurrency].includes(budget.currency))
    const [other] = others
    const all = other
      ? [
          ...conflicts,
          `The file has prices in ${currency}, but these budgets are in ${other.currency}: ${scopesOf(others)}. Remove them with \`otpost budget remove SCOPE\`, import the prices, then set the budgets again.`,
        ]
      : conflicts
    if (all.length > 0) throw new OperatorError(all.join('\n'))
    const details = {
      prices: String(next.length),
      currency,
      providers: [...new Set(next.map(({ provider }) => provider ?? 'any'))].join(', '),
    }
    return {
      save: next,
      inUnits: budgets.filter((budget) => budget.currency === unitCurrency).map(({ scope }) => scope),
      entry: { target: currency, details },
    }
  })
  return { count: next.length, currency, inUnits }
}

function scopesOf(budgets: readonly Budget[]): string {
  return budgets.map(({ scope }) => scope).join(', ')
}
