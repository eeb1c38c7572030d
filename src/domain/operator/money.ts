import { countryName, countryOptions, isDear, kindInWords, type NumberKind } from '../delivery/destination.ts'
import { advice, see } from '../ground/advice.ts'
import { capitalized, counted, utc } from '../ground/format.ts'
import type { Listing } from '../ground/listing.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { phoneWays } from '../ground/providers.ts'
import { amountForm, formatMicros, type Micros, parseMicros, unitCurrency } from '../money/amounts.ts'
import { anyCountry, type Budget, budgetName } from '../money/budgets.ts'
import {
  type CheckedPrices,
  importProblems,
  isStored,
  type PriceStore,
  priceChanges,
} from '../money/price-import.ts'
import type { FoundPrice, PriceList } from '../money/prices.ts'
import type { PolicyChange, PolicyPorts } from '../policy/policy-store.ts'
import { nameKey } from '../texts/brand.ts'
import { action, type Group } from './action.ts'
import { existingBrand } from './brands.ts'
import { type AppStore, refuse } from './changes.ts'
import type { RulePorts } from './destinations.ts'
import { asNumber, durationIn, field, flag, list, oneOf, text } from './fields.ts'

export interface MoneyPorts extends RulePorts {
  readonly prices: PriceStore
  readonly apps: AppStore & { readonly configured: readonly string[] }
}

export const budgetGroup: Group = {
  name: 'budget',
  does: 'limit what SMS cost in a day or a month',
  entries: 'budgets',
  target: 'scope of the budget',
}

const scopeField = field(scopeText, {
  label: 'Scope',
  help: 'server, brand:SLUG, app:APPID, country:CC, country:* or way:WAY',
  hint: '`server`, `brand:SLUG`, `app:APPID`, `country:CC`, `country:*`, or `way:sms`, `way:voice` and so on.',
})

const ofField = field(
  oneOf('messages', { all: 'codes and notifications', codes: 'codes', notifications: 'notifications' }),
  {
    label: 'Messages',
    as: '--of <messages>',
    help: 'the messages that the budget counts',
    hint: '',
    byDefault: 'all',
  },
)

/** Design D42. A new budget counts from now. A budget that keeps its period and currency keeps what was spent, and its lift. */
export const budgetSet = action(budgetGroup, 'set', {
  role: 'operator',
  isSensitive: true,
  does: 'create or replace the budget of a scope',
  note: 'A budget with the same period and currency keeps what was spent. Otherwise it counts from now.\nEach scope may have a budget of all messages, one of codes and one of notifications.\nWith country:*, each country without a budget of its own has this amount.',
  fields: {
    scope: scopeField,
    of: ofField,
    period: field(oneOf('period', { day: 'day, in UTC', month: 'calendar month, in UTC' }), {
      label: 'Period',
      as: '--per <period>',
      help: 'the calendar period, in UTC',
      hint: '',
    }),
    amount: field(asNumber(amountIn), {
      label: 'Amount',
      as: '--amount <amount>',
      help: 'the amount, in the currency of the prices',
    }),
    alertAt: list(percentagesIn, {
      label: 'Alerts',
      as: '--alert <percentages>',
      help: 'the percentages that send an alert; "" for none',
      hint: 'Percentages of the amount, separated by commas. Empty for none.',
      byDefault: '80,100',
    }),
    stops: flag({
      label: 'Reject SMS when it is exhausted',
      as: '--no-stop',
      help: 'reject no messages: only count and send alerts',
      hint: 'Otherwise it only counts and sends alerts.',
    }),
  },
  audit: { 'budget.set': 'Budget set' },
  form: { path: 'money' },
  run: async (ports: MoneyPorts, { scope, of, period, amount: amountMicros, alertAt, stops }) => {
    await requireExisting(ports, scope)
    const currency = (await ports.prices.rows())[0]?.currency ?? unitCurrency
    const now = ports.now()
    const { budget } = await ports.policy.change({ actor: ports.actor, now }, ({ budgets }) => {
      const before = budgets.find((each) => each.scope === scope && each.of === of)
      const continues = before?.period === period && before.currency === currency
      const budget: Budget = {
        scope,
        of,
        period,
        amountMicros,
        currency,
        alertAt,
        stops,
        liftedUntil: continues ? before.liftedUntil : null,
        countsFrom: continues ? before.countsFrom : now,
      }
      const details = budgetDetails(budget)
      const isSame =
        continues &&
        before.amountMicros === amountMicros &&
        JSON.stringify(budgetDetails(before)) === JSON.stringify(details)
      if (isSame) return { budget: before, entry: null }
      return {
        budget,
        saveBudgets: [budget],
        entry: { action: 'budget.set', target: budgetName(budget), details },
      }
    })
    return budget
  },
  said: (budget) =>
    `Budget ${budgetName(budget)}: ${formatMicros(budget.amountMicros, budget.currency)} per ${budget.period}.`,
})

function budgetDetails({ period, amountMicros, currency, alertAt, stops }: Budget): Record<string, string> {
  return {
    amount: `${formatMicros(amountMicros, currency)} per ${period}`,
    alerts: alertAt.length === 0 ? '-' : `${alertAt.join(', ')}%`,
    stops: stops ? 'yes' : 'no',
  }
}

export const budgetLift = action(budgetGroup, 'lift', {
  role: 'operator',
  isSensitive: true,
  does: 'reject no messages because of a budget for a time',
  fields: {
    scope: scopeField,
    of: ofField,
    duration: field(durationIn, {
      label: 'For',
      as: '--for <duration>',
      help: 'such as 30m, 12h or 7d, at most 366d; 0m ends the lift',
    }),
  },
  audit: { 'budget.lifted': 'Budget lifted' },
  form: { path: 'money/lift' },
  run: (ports: MoneyPorts, { duration, ...which }) => {
    const now = ports.now()
    const liftedUntil = duration === 0 ? null : now + duration
    const details = { until: liftedUntil === null ? '-' : utc(liftedUntil) }
    return changeBudget(ports, which, now, (budget) => {
      const lifted = { ...budget, liftedUntil }
      const entry = { action: 'budget.lifted', target: budgetName(budget), details }
      return { budget: lifted, saveBudgets: [lifted], entry }
    })
  },
  said: (budget) =>
    budget.liftedUntil === null
      ? `Budget ${budgetName(budget)} is not lifted.`
      : `Budget ${budgetName(budget)} is lifted until ${utc(budget.liftedUntil)}.`,
})

export const budgetRemove = action(budgetGroup, 'remove', {
  role: 'operator',
  isSensitive: true,
  does: 'remove the budget of a scope',
  fields: { scope: scopeField, of: ofField },
  audit: { 'budget.removed': 'Budget removed' },
  form: { path: 'money/remove' },
  run: (ports: MoneyPorts, which) =>
    changeBudget(ports, which, ports.now(), (budget) => ({
      budget,
      removeBudgets: [budget],
      entry: { action: 'budget.removed', target: budgetName(budget), details: budgetDetails(budget) },
    })),
  said: (budget) => `Removed the budget ${budgetName(budget)}.`,
})

async function changeBudget(
  ports: MoneyPorts,
  { scope, of }: Pick<Budget, 'scope' | 'of'>,
  now: number,
  decide: (budget: Budget) => PolicyChange & { readonly budget: Budget },
): Promise<Budget> {
  requireScope(scope, ports.isCountry)
  const { budget } = await ports.policy.change({ actor: ports.actor, now }, ({ budgets }) => {
    const budget = budgets.find((each) => each.scope === scope && each.of === of)
    if (!budget)
      throw new OperatorError(
        `There is no budget ${budgetName({ scope, of })}.`,
        advice`${see('budget list')} lists the budgets.`,
      )
    return decide(budget)
  })
  return budget
}

/** As it is stored, if it is a scope. */
function scopeText(text: string): string {
  const [kind = '', name] = text.trim().split(/:(.*)/s)
  if (name === undefined) return kind
  return `${kind}:${kind === 'brand' ? nameKey(name) : kind === 'country' ? name.toUpperCase() : name}`
}

function requireScope(scope: string, isCountry: (code: string) => boolean): void {
  const [, kind = '', name = ''] = /^(brand|app|country|way):(.+)$/.exec(scope) ?? []
  if (scope === 'server' || scope === anyCountry || kind === 'brand' || kind === 'app') return
  if (kind === 'way' && phoneWays.some((way) => way === name)) return
  if (kind === 'country' && isCountry(name)) return
  throw new InvalidInput(
    kind === 'country'
      ? 'The country must be an ISO 3166-1 country code of two letters, such as country:GB, or * for all others.'
      : `The scope must be server, brand:SLUG, app:APPID, country:CC such as country:GB, country:*, or way: with ${phoneWays.join(', ')}.`,
  )
}

async function requireExisting(ports: MoneyPorts, scope: string): Promise<void> {
  requireScope(scope, ports.isCountry)
  const [kind = ''] = scope.split(':')
  const name = scope.slice(kind.length + 1)
  if (kind === 'brand') await existingBrand(ports.brands, name)
  if (kind === 'app') await requireApp(ports.apps, name)
}

/** @throws OperatorError if the app does not exist */
export async function requireApp({ configured, list }: MoneyPorts['apps'], name: string): Promise<void> {
  if (configured.includes(name) || (await list()).some(({ appId }) => appId === name)) return
  throw new OperatorError(`App ${name} does not exist.`, advice`${see('app list')} lists the apps.`)
}

const largestAmountMicros = 1e15

/** Of a budget. */
function amountIn(text: string): Micros {
  const micros = parseMicros(text)
  if (micros !== undefined && micros > 0 && micros <= largestAmountMicros) return micros
  throw new InvalidInput(`The amount must be a number above 0 and at most 1000000000, ${amountForm}.`)
}

const mostAlerts = 10
const largestAlert = 1000

function percentagesIn(words: readonly string[]): readonly number[] {
  const percentages = [...new Set(words.map((word) => (/^\d{1,4}$/.test(word) ? Number(word) : 0)))]
  if (percentages.length > mostAlerts || percentages.some((each) => each < 1 || each > largestAlert))
    throw new InvalidInput(
      `The alerts must be at most ${mostAlerts} whole percentages from 1 to ${largestAlert}, separated by commas, such as 50,80,100.`,
    )
  return percentages.sort((a, b) => a - b)
}

interface CheckedPrice extends FoundPrice {
  /** Null: no provider is configured. */
  readonly provider: string | null
  /** Of the number. */
  readonly kind: NumberKind
}

export const priceListing = {
  provider: { title: 'Provider', value: ({ provider }) => provider },
  prefix: {
    title: 'Prefix',
    value: ({ prefix }) => (prefix === null ? null : `+${prefix}`),
    text: ({ prefix, kind }) =>
      prefix === null ? `${isDear(kind) ? kindInWords(kind) : 'unknown'}: the dearest price` : `+${prefix}`,
  },
  price: { title: 'Price', isNumber: true, value: ({ priceMicros }) => priceMicros / 1e6 },
} satisfies Listing<CheckedPrice>

/** `price check`: the price of one segment through each provider, the dearest first. A budget claims the dearest of the route. */
export function checkPrice(
  list: PriceList,
  digits: string,
  kind: NumberKind,
  configured: readonly string[],
): { readonly currency: string; readonly prices: readonly [CheckedPrice, ...CheckedPrice[]] } {
  const [first = null, ...others] = new Set(configured)
  const found = (provider: string | null): CheckedPrice => ({
    provider,
    kind,
    ...list.find(digits, kind, provider),
  })
  const prices: [CheckedPrice, ...CheckedPrice[]] = [found(first), ...others.map(found)]
  prices.sort((a, b) => b.priceMicros - a.priceMicros)
  return { currency: list.currency, prices }
}

/** The scopes that a budget can have, in groups: words by scope. @param scopes of the budgets */
export function scopeOptions(
  { brands, apps, countries }: Readonly<Record<'brands' | 'apps' | 'countries', readonly string[]>>,
  scopes: readonly string[],
) {
  const named = (kind: string, names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [`${kind}:${name}`, name]))
  const ofCountries = Object.entries(countryOptions(countries)).map(([code, name]) => [
    `country:${code}`,
    name,
  ])
  const groups = {
    Countries: {
      [anyCountry]: 'Each country without a budget of its own',
      ...Object.fromEntries(ofCountries),
    },
    Ways: named('way', phoneWays),
    Brands: named('brand', brands),
    Apps: named('app', apps),
  }
  // Of a brand or an app that was removed.
  const others = scopes.filter(
    (scope) => scope !== 'server' && !Object.values(groups).some((group) => Object.hasOwn(group, scope)),
  )
  const all = { ...groups, Others: Object.fromEntries(others.map((scope) => [scope, scope])) }
  return {
    server: 'The server: all apps and brands',
    ...Object.fromEntries(Object.entries(all).filter(([, group]) => Object.keys(group).length > 0)),
  }
}

/** Such as `Latvia`, or `Brand acme`. */
export function scopeWords(scope: string): string {
  const [kind = '', name = ''] = scope.split(/:(.*)/)
  if (scope === anyCountry) return 'Each other country'
  return kind === 'country' ? countryName(name) : `${capitalized(kind)} ${name}`.trim()
}

export interface PriceImportPorts extends PolicyPorts, Pick<MoneyPorts, 'prices'> {
  /** Of the text of a price file. */
  readonly parsePrices: (text: string) => CheckedPrices | Promise<CheckedPrices>
}

export const priceGroup: Group = {
  name: 'price',
  does: 'import what SMS cost, and look up a price',
  entries: 'prices',
  target: 'currency',
}

/** Design D42. */
export const priceImport = action(priceGroup, 'import', {
  role: 'operator',
  isSensitive: true,
  does: 'store the prices of a CSV file',
  note: 'It replaces all prices of the providers that the file names. Rows without a provider are one group.',
  fields: {
    prices: field(text, {
      label: 'Text of the price file',
      as: '<file>',
      help: 'the CSV file with the header row prefix,currency,price or prefix,currency,price,provider',
      hint: 'Choose a file or paste its text: CSV with the header row `prefix,currency,price` or `prefix,currency,price,provider`.',
      placeholder: 'prefix,currency,price\n+44,EUR,0.04',
      isFile: 'long',
    }),
  },
  audit: { 'price.imported': 'Prices imported' },
  form: { path: 'money/prices' },
  // Budgets in another currency would no longer count, so they must be removed first.
  run: async ({ parsePrices, prices, actor, now }: PriceImportPorts, { prices: text }) => {
    const { rows: next, problems } = await parsePrices(text)
    if (problems.length > 0) throw new OperatorError(problems.join('\n'))
    const currency = next[0]?.currency ?? unitCurrency
    if (isStored(await prices.rows(), next)) return { rows: next, count: next.length, currency, inUnits: [] }
    const { inUnits } = await prices.change({ actor, now: now() }, (current, budgets) => {
      const conflicts = importProblems(current, next)
      const others = budgets.filter((budget) => ![currency, unitCurrency].includes(budget.currency))
      const [other] = others
      if (other) {
        throw new OperatorError(
          [
            ...conflicts,
            `The file has prices in ${currency}, but these budgets are in ${other.currency}: ${scopesOf(others)}. Remove them, import the prices, then set the budgets again.`,
          ].join('\n'),
          advice`${see('budget remove')} removes a budget.`,
        )
      }
      refuse(conflicts)
      const details = {
        prices: String(next.length),
        currency,
        providers: [...new Set(next.map(({ provider }) => provider ?? 'any'))].join(', '),
      }
      return {
        save: next,
        inUnits: budgets.filter((budget) => budget.currency === unitCurrency).map(budgetName),
        entry: { target: currency, details },
      }
    })
    return { rows: next, count: next.length, currency, inUnits }
  },
  said: ({ count, currency, inUnits }) => ({
    text: `Imported ${counted(count, 'price')} in ${currency}.`,
    warnings:
      inUnits.length === 0
        ? []
        : [
            {
              text: `These budgets still count in units of the built-in prices: ${inUnits.join(', ')}. Set them again to count in ${currency}.`,
              advice: advice`Use ${see('budget set')}.`,
            },
          ],
  }),
  foretells: async ({ prices }, { rows }) => priceChanges(await prices.rows(), rows),
})

function scopesOf(budgets: readonly Budget[]): string {
  return budgets.map(budgetName).join(', ')
}

export const moneyActions = [budgetSet, budgetLift, budgetRemove, priceImport]
