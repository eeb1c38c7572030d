import type { DestinationRule } from '../delivery/destination.ts'
import type { Budget } from '../money/budgets.ts'
import type { Acknowledgement } from '../policy/policy-store.ts'
import { openDestinations, unlimitedCost } from './protection.ts'

// What a new server needs before its first codes. Each step follows from the database and the settings.

export const firstDaySteps = {
  brand: ['Create a brand', 'Codes name it. Each integrator has one.'],
  app: ['Create an app', 'Its API key sends codes for the brand.'],
  provider: [
    'Connect a provider of SMS',
    'Set `SMS_PLAIN` and the credentials of the provider, then restart the server.',
  ],
  test: ['Send a test message', 'To your own number, through the provider.'],
  destinations: ['Limit the countries', 'Allow those that you serve, and block all others.'],
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
  readonly budgets: readonly Budget[]
  /** Who can sign in. */
  readonly owners: number
  /** Undefined: the tools of PostgreSQL make backups. */
  readonly hasBackup: boolean | undefined
}

/** By step, whether it is done. */
export function firstDay(facts: FirstDayFacts): ReadonlyMap<FirstDayStep, boolean> {
  const { activeBrands, apps, providers, rules, smsCountries, budgets, owners, hasBackup } = facts
  return new Map<FirstDayStep, boolean>([
    ['brand', activeBrands > 0],
    ['app', apps > 0],
    ['provider', providers.length > 0],
    ['test', providers.some(({ hasAccepted }) => hasAccepted)],
    ['destinations', openDestinations(rules, smsCountries) === undefined],
    ['budget', unlimitedCost(budgets) === undefined],
    ['owner', owners > 1],
    ...(hasBackup === undefined ? [] : [['backup', hasBackup] as const]),
  ])
}

/** Operators dismiss the steps as they acknowledge an incident. */
export const firstDayAbout = 'first day'

/** Until a code was verified, or an operator dismissed it. */
export function isFirstDay(hasTraffic: boolean, acknowledgements: readonly Acknowledgement[]): boolean {
  return !hasTraffic && !acknowledgements.some(({ about }) => about === firstDayAbout)
}
