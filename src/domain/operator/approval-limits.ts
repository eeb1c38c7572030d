import { nearest } from '../ground/near-name.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { lookalikeKey } from '../ground/words.ts'
import type { IntegrationRequestRecord } from '../integration/integration.ts'
import { type Brand, nameKey } from '../texts/brand.ts'
import type { Action } from './action.ts'
import { type AppPorts, appSet } from './apps.ts'
import type { OperatorPorts } from './changes.ts'
import { type DestinationPorts, destinationSet } from './destinations.ts'
import type { StoredPorts } from './dry-run.ts'
import type { Entered } from './fields.ts'
import { budgetSet, type MoneyPorts } from './money.ts'

/** What an operator decides when they approve an integration request. An empty limit is none. */
interface Approval {
  readonly appId: string
  readonly brandSlug: string
  readonly perMinute: string
  /** SMS of the brand go to no others. */
  readonly countries: string
  readonly budget: string
  readonly period: string
}

export type LimitPorts = OperatorPorts & AppPorts & MoneyPorts & DestinationPorts & StoredPorts

type Change = readonly [action: Action<LimitPorts>, entered: Entered]

/** What follows the approval. @throws InvalidInput */
export function changesAfterApproval(
  { appId, brandSlug, perMinute, countries, budget, period }: Approval,
  brands: readonly Brand[],
  isCountry: (code: string) => boolean,
): readonly Change[] {
  const codes = [...new Set(countries.toUpperCase().match(/[^\s,]+/g))]
  const unknown = codes.filter((code) => !isCountry(code))
  if (unknown.length > 0)
    throw new InvalidInput(`The countries must be codes such as GB: ${unknown.join(', ')} is none.`)
  const brand = nameKey(brandSlug)
  if (codes.length > 0 && brands.some(({ slug }) => slug === brand))
    throw new InvalidInput(`The brand ${brand} exists. Set its countries on the page Destinations.`)
  // First what is allowed, so that a failure in between blocks nothing.
  const rules = [...codes.map((rule) => ({ rule, action: 'allow' })), { rule: '*', action: 'block' }]
  const changes: Change[] = [
    ...(perMinute === '' ? [] : [[appSet, { appId, perMinute }] as const]),
    ...(budget === ''
      ? []
      : [[budgetSet, { scope: `app:${appId}`, period, amount: budget, stops: true }] as const]),
    ...(codes.length === 0 ? [] : rules.map((each) => [destinationSet, { ...each, brand }] as const)),
  ]
  for (const [action, entered] of changes) action.read(entered)
  return changes
}

/** Until one fails. Resolves to why. */
export async function setLimits(ports: LimitPorts, changes: readonly Change[]): Promise<string | undefined> {
  try {
    for (const [action, entered] of changes) await action.perform(ports, entered)
    return undefined
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return `Not all limits were set: ${error.message}`
  }
}

/** Of companies, in many countries. */
const legalForms = new Set(
  [
    'ab ag aps as asa bhd bv co company corp corporation doo gmbh inc incorporated jsc kft kg',
    'kk limited llc llp ltd mbh nv ooo oy oyj plc private pte pty pvt sa sarl sas sdn sl spa srl sro ug',
  ]
    .flatMap((names) => names.split(' '))
    .map(lookalikeKey),
)

/** How people read a name: without its legal form. */
function readName(name: string): string {
  const words = name
    .replaceAll('.', '')
    .split(/[\s\p{P}]+/u)
    .map(lookalikeKey)
  const own = words.filter((word) => !legalForms.has(word)).join('')
  return own === '' ? words.join('') : own
}

/** Brands whose name people can take for that of the requester, or that has it. */
export function resemblances(
  { brandName, companyName }: Pick<IntegrationRequestRecord, 'brandName' | 'companyName'>,
  brands: readonly Brand[],
): readonly string[] {
  return brands.flatMap(({ slug, displayName }) => {
    const what = `the brand ${slug} (${displayName})`
    if ([slug, displayName].map(nameKey).includes(nameKey(brandName)))
      return [`The name is that of ${what}. The app would send messages in its name.`]
    const others = [slug, displayName].map(readName)
    const isNear = (name: string) => {
      const key = readName(name)
      return others.includes(key) || (key.length >= 5 && nearest(key, others) !== undefined)
    }
    if (isNear(brandName)) return [`The name looks like that of ${what}.`]
    return isNear(companyName) ? [`The name of the company looks like that of ${what}.`] : []
  })
}
