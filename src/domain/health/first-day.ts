import type { DestinationRule } from '../delivery/destination.ts'
import { formatMicros, unitCurrency } from '../money/amounts.ts'
import { anyCountry, type Budget } from '../money/budgets.ts'
import type { Acknowledgement } from '../policy/policy-store.ts'
import { limitsCost, openDestinations } from './protection.ts'

// What a new server needs before its first codes. Each step follows from the database and the settings.

export const firstDaySteps = {
  brand: ['Create a brand', 'Codes name it. Each integrator has one.'],
  app: ['Create an app', 'Its API key sends codes for the brand.'],
  provider: [
    'Connect a provider of SMS',
    'Set `SMS_PLAIN` and the variables of the provider, then restart the server.',
  ],
  test: ['Send a test message', 'To your own number, through the provider.'],
  destinations: ['Limit the countries', 'Allow those that you serve, and block all others.'],
  prices: ['Import prices', 'Of your provider, so that costs and budgets are money.'],
  budget: ['Set a budget', 'For each country, so that an attack costs little.'],
  owner: ['Invite a second owner', 'So that the console stays open if one of you cannot sign in.'],
  backup: ['Make a backup', 'Each day, in another place than the server.'],
} as const satisfies Readonly<Record<string, readonly [title: string, why: string]>>

export type FirstDayStep = keyof typeof firstDaySteps

interface FirstDayFacts {
  readonly activeBrands: number
  readonly apps: number
  /** Those that deliver something. */
  readonly providers: readonly { readonly hasAccepted: boolean }[]
  readonly rules: readonly DestinationRule[]
  readonly smsCountries: readonly string[]
  readonly hasPrices: boolean
  readonly budgets: readonly Budget[]
  /** Who can sign in. */
  readonly owners: number
  readonly invitedOwners: number
  /** Undefined: the tools of PostgreSQL make backups. */
  readonly hasBackup: boolean | undefined
}

/** `words`: instead of the usual ones, what was done or why it does not count. */
export type StepState = readonly [isDone: boolean, words?: string | false]

const outboxOnly = 'A message to the outbox reaches no phone, so it does not count. First connect a provider.'
const invited = 'An owner is invited. The step is done when they have set up their account.'

export function firstDay(facts: FirstDayFacts): ReadonlyMap<FirstDayStep, StepState> {
  const { providers, rules, smsCountries, owners, hasBackup } = facts
  const budgets = facts.budgets.filter(limitsCost)
  const inMoney = budgets.find(({ currency }) => currency !== unitCurrency)
  const hasSent = providers.some(({ hasAccepted }) => hasAccepted)
  return new Map<FirstDayStep, StepState>([
    ['brand', [facts.activeBrands > 0]],
    ['app', [facts.apps > 0]],
    ['provider', [providers.length > 0]],
    ['test', [hasSent, providers.length === 0 && outboxOnly]],
    ['destinations', [openDestinations(rules, smsCountries) === undefined]],
    ['prices', [facts.hasPrices]],
    ['budget', [inMoney !== undefined, budgetWords(inMoney ?? budgets[0])]],
    ['owner', [owners > 1, owners < 2 && facts.invitedOwners > 0 && invited]],
    ...(hasBackup === undefined ? [] : [['backup', [hasBackup]] as const]),
  ])
}

function budgetWords(budget: Budget | undefined): string | false {
  if (!budget) return false
  const { scope, amountMicros, currency, period } = budget
  const whose = scope === anyCountry ? 'each country' : 'the server'
  const words = `${formatMicros(amountMicros, currency)} per ${period} for ${whose}.`
  const isMoney = currency !== unitCurrency
  return isMoney ? words : `${words} Units are no money: import prices, then set it again.`
}

/** Operators dismiss the steps as they acknowledge an incident. */
export const firstDayAbout = 'first day'

/** Until a code was verified, or an operator dismissed it. */
export function isFirstDay(hasTraffic: boolean, acknowledgements: readonly Acknowledgement[]): boolean {
  return !hasTraffic && !acknowledgements.some(({ about }) => about === firstDayAbout)
}
