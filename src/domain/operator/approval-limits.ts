import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { lookalikeKey, scriptFault } from '../ground/words.ts'
import type { Brand } from '../texts/brand.ts'
import { perMinuteIn } from './apps.ts'
import { type DestinationPorts, destinationSet } from './destinations.ts'
import type { StoredPorts } from './dry-run.ts'
import { budgetSet, type MoneyPorts } from './money.ts'

// What an operator decides when they approve an integration request, beside the app and the brand.

/** As the form has it. */
export interface ApprovalLimitsEntered {
  readonly perMinute: string
  readonly countries: string
  readonly budget: string
  readonly period: string
}

export const noApprovalLimits: ApprovalLimitsEntered = {
  perMinute: '',
  countries: '',
  budget: '',
  period: 'day',
}

export interface ApprovalLimits {
  /** Undefined: GLOBAL_LIMIT_PER_MINUTE. */
  readonly perMinute: number | undefined
  /** SMS of the brand go to no others. Empty: as the rules of all brands say. */
  readonly countries: readonly string[]
  /** Of the app. Undefined: none. */
  readonly budget: { readonly period: string; readonly amount: string } | undefined
}

/** @throws InvalidInput */
export function readApprovalLimits(
  { perMinute, countries, budget, period }: ApprovalLimitsEntered,
  isCountry: (code: string) => boolean,
): ApprovalLimits {
  const codes = [
    ...new Set(
      countries
        .toUpperCase()
        .split(/[\s,]+/)
        .filter(Boolean),
    ),
  ]
  const unknown = codes.filter((code) => !isCountry(code))
  if (unknown.length > 0)
    throw new InvalidInput(`The countries must be codes such as GB: ${unknown.join(', ')} is none.`)
  const amount = budget.trim()
  if (amount !== '') budgetSet.read({ scope: 'server', period, amount })
  return {
    perMinute: perMinute.trim() === '' ? undefined : perMinuteIn(perMinute.trim()),
    countries: codes,
    budget: amount === '' ? undefined : { period, amount },
  }
}

/** After the approval. Resolves to what could not be set. */
export async function setApprovalLimits(
  ports: DestinationPorts & MoneyPorts & StoredPorts,
  { appId, brandSlug, brandExisted }: { appId: string; brandSlug: string; brandExisted: boolean },
  { countries, budget }: ApprovalLimits,
): Promise<readonly string[]> {
  const problems: string[] = []
  const attempt = async (what: string, act: () => Promise<unknown>) => {
    try {
      await act()
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
      problems.push(`${what} was not set: ${error.message}`)
    }
  }
  if (countries.length > 0 && brandExisted) {
    problems.push(
      `The countries were not set, since the brand ${brandSlug} existed. Set them on the page Destinations.`,
    )
  } else if (countries.length > 0) {
    await attempt('The list of countries', async () => {
      // First what is allowed, so that a failure in between blocks nothing.
      const rules = [...countries.map((rule) => ({ rule, action: 'allow' })), { rule: '*', action: 'block' }]
      for (const rule of rules) await destinationSet.perform(ports, { ...rule, brand: brandSlug })
    })
  }
  if (budget)
    await attempt('The budget', () =>
      budgetSet.perform(ports, { ...budget, scope: `app:${appId}`, stops: true }),
    )
  return problems
}

/** Brands whose name people can take for the requested one, or that has it. */
export function resemblances(brandName: string, brands: readonly Brand[]): readonly string[] {
  const key = lookalikeKey(brandName)
  const same = (name: string) => name.trim().toLowerCase() === brandName.trim().toLowerCase()
  const fault = scriptFault(brandName)
  return [
    ...(fault === undefined ? [] : [`The brand name ${fault.replace('must not mix', 'mixes')}`]),
    ...brands.flatMap(({ slug, displayName }) => {
      const what = `the brand ${slug} (${displayName})`
      if (same(displayName) || same(slug))
        return [`The name is that of ${what}. The app would send messages in its name.`]
      const other = lookalikeKey(displayName)
      if (key === other) return [`The name looks like that of ${what}.`]
      return key.length >= 5 && isOneChange(key, other)
        ? [`The name differs in one letter from that of ${what}.`]
        : []
    }),
  ]
}

/** Whether one inserted, deleted or replaced character makes one text the other. */
function isOneChange(one: string, other: string): boolean {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one]
  if (long.length - short.length > 1) return false
  const at = [...long].findIndex((_, index) => long[index] !== short[index])
  return short.slice(long.length === short.length ? at + 1 : at) === long.slice(at + 1)
}
