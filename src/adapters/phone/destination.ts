import { AsYouType } from 'libphonenumber-js/max'
import metadata from 'libphonenumber-js/max/metadata'
import type { Destination, NumberKind } from '../../domain/delivery/destination.ts'
import { remembered } from '../../domain/ground/remember.ts'

// libphonenumber's numbering plans, compiled once per calling code: its parser takes some 15 µs a number.

type PlanMetadata = (typeof metadata.nonGeographic)[string]

type Plan = NonNullable<ReturnType<typeof planOf>>
type Territory = ReturnType<typeof territoryOf>[number]

const unknown: Destination = { country: null, kind: 'unknown' }

/**
 * Design D40. The country and kind of E.164 digits as the parser says; `unknown` if they are not valid
 * or the parser changes them, such as digits with a trunk prefix (see `e164In`).
 */
export function destinationOf(digits: string): Destination {
  for (let length = 1; length <= 3; length++) {
    const plan = planOf(digits.slice(0, length))
    if (plan) {
      const number = digits.slice(length)
      const destination = destinationIn(plan.territories, number)
      return destination && isUnchanged(number, plan) ? destination : unknown
    }
  }
  return unknown
}

/** Whether the parser accepts the digits unchanged. False if only the parser can decide. */
export function isE164(digits: string): boolean {
  return destinationOf(digits) !== unknown
}

/**
 * Whether the parser would read the digits after the calling code as they are: it removes no prefix and no zeros. If they are no
 * E.164 number, it then finds none. False if only the parser can decide.
 */
export function isReadAsIs(digits: string): boolean {
  for (let length = 1; length <= 3; length++) {
    const plan = planOf(digits.slice(0, length))
    if (!plan) continue
    const number = digits.slice(length)
    return !number.startsWith('0') && !plan.prefix?.exec(number)?.[0]
  }
  return false
}

function destinationIn(territories: readonly Territory[], number: string): Destination | undefined {
  for (const { leading, numbers } of territories) {
    if (leading && !leading.test(number)) continue
    const found = numbers.find(({ pattern }) => pattern.test(number))
    if (found) return found.destination
  }
  return undefined
}

function isUnchanged(number: string, { accepted, prefix, replacement }: Plan): boolean {
  const found = prefix?.exec(number)
  if (!prefix || !found || found[0] === '') return true
  const shorter = number.replace(prefix, found.at(-1) && found.length > 1 ? replacement : '')
  return accepted.test(number) && !accepted.test(shorter)
}

/** Null: no plan has the calling code. There are at most 1,110 calling codes. */
const planOf = remembered(2000, (callingCode) => {
  const countries = metadata.country_calling_codes[callingCode]
  const main = countries?.[0] ? metadata.countries[countries[0]] : metadata.nonGeographic[callingCode]
  if (!main) return null
  const prefix: string | 0 = main[7] || main[5]
  return {
    /** In the parser's order. */
    territories: countries
      ? countries.flatMap((country) => territoryOf(metadata.countries[country], country))
      : territoryOf(main, null, kindsOfCodes.get(callingCode)),
    /** What the parser accepts as a number of the plan's main country. */
    accepted: new RegExp(`^(?:${main[2]})$`),
    /** What the parser removes, or replaces by `replacement`. */
    prefix: prefix ? new RegExp(`^(?:${prefix})`) : undefined,
    replacement: main[8] || '',
  }
})

const kindsOfCodes: ReadonlyMap<string, NumberKind> = new Map([
  // Inmarsat, Iridium and Globalstar, and the international networks, most of which are satellite or ship networks.
  ...(['870', '881', '882', '883'] as const).map((code) => [code, 'satellite'] as const),
  // Universal personal telecommunications; VoIP in the metadata.
  ['878', 'personal'],
])

/** In the parser's order, as positions in the metadata: a number can match several types. */
const kinds: readonly (readonly [kind: NumberKind, types: readonly number[]])[] = [
  ['ordinary', [0, 1]], // fixed line, mobile
  ['premium-rate', [3]],
  ['ordinary', [2]], // toll-free
  ['shared-cost', [9]],
  ['ordinary', [8]], // VoIP
  ['personal', [4]],
  ['pager', [7]],
  ['uan', [6]],
  ['ordinary', [5]], // voicemail
]

function territoryOf(plan: PlanMetadata | undefined, country: string | null, onlyKind?: NumberKind) {
  if (!plan) return []
  const leading: string | 0 = plan[10]
  const numbers = kinds.flatMap(([kind, types]) => {
    const patterns = types.flatMap((type) => patternOf(plan, type))
    if (patterns.length === 0) return []
    const pattern = new RegExp(`^(?=(?:${plan[2]})$)(?:${patterns.join('|')})$`)
    return [{ pattern, destination: { country, kind: onlyKind ?? kind } }]
  })
  // `leading`: what its numbers begin with, where the metadata says so.
  return [{ leading: leading ? new RegExp(`^(?:${leading})`) : undefined, numbers }]
}

function patternOf(plan: PlanMetadata, type: number): string[] {
  const [pattern, ownLengths]: readonly [pattern?: string, lengths?: readonly number[]] =
    plan[11]?.[type] || []
  if (!pattern) return []
  const lengths = (ownLengths ?? plan[3]).map((length: number) => `\\d{${length}}`)
  return [`(?=(?:${lengths.join('|')})$)(?:${pattern})`]
}

/**
 * The country of the numbers that begin with these digits; the main country of a numbering plan if the digits do not decide.
 * Null: of no country, or only the calling code of several.
 */
export function countryOfPrefix(digits: string): string | null {
  // The guard's prefixes are numbers without their last four digits.
  const { country } = destinationOf(`${digits}0000`)
  if (country !== null) return country
  return typedCountry(digits)
}

/** The countries whose calling code begins with these digits, so that the digits cover all their numbers; sorted. */
export function countriesWithin(digits: string): readonly string[] {
  const codes = Object.entries(metadata.country_calling_codes).filter(([code]) => code.startsWith(digits))
  return codes.flatMap(([, countries]) => countries).sort()
}

/** As the parser takes some 50 µs, and the overview has thousands of prefixes during an attack. */
const typedCountry = remembered(20_000, (digits): string | null => {
  const typed = new AsYouType()
  typed.input(`+${digits}`)
  const code = typed.getCallingCode()
  const countries: readonly string[] = (code && metadata.country_calling_codes[code]) || []
  const isSeveral = countries.length > 1 && digits === code
  return typed.getCountry() ?? (isSeveral ? null : (countries[0] ?? null))
})
