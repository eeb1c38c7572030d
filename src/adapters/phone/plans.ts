import metadata from 'libphonenumber-js/max/metadata'

// libphonenumber's numbering plans, compiled once per calling code: its parser takes some 15 µs a number.

type PlanMetadata = (typeof metadata.nonGeographic)[string]

interface Plan {
  readonly valid: RegExp
  /** What the parser accepts as a number of the plan's main country. */
  readonly accepted: RegExp
  /** What the parser removes, or replaces by `replacement`. */
  readonly prefix: RegExp | undefined
  readonly replacement: string
}

/** Whether the parser accepts the digits unchanged. False if only the parser can decide. */
export function isE164(digits: string): boolean {
  for (let length = 1; length <= 3; length++) {
    const plan = planOf(digits.slice(0, length))
    if (plan) return isUnchanged(digits.slice(length), plan)
  }
  return false
}

function isUnchanged(number: string, { valid, accepted, prefix, replacement }: Plan): boolean {
  if (!valid.test(number)) return false
  const found = prefix?.exec(number)
  if (!prefix || !found || found[0] === '') return true
  const shorter = number.replace(prefix, found.at(-1) && found.length > 1 ? replacement : '')
  return accepted.test(number) && !accepted.test(shorter)
}

const plans = new Map<string, Plan | undefined>()

function planOf(callingCode: string): Plan | undefined {
  if (!plans.has(callingCode)) plans.set(callingCode, compile(callingCode))
  return plans.get(callingCode)
}

function compile(callingCode: string): Plan | undefined {
  const countries = metadata.country_calling_codes[callingCode]?.map((code) => metadata.countries[code])
  const all = (countries ?? [metadata.nonGeographic[callingCode]]).filter((plan) => plan !== undefined)
  const [main] = all
  if (!main) return undefined
  const prefix: string | 0 = main[7] || main[5]
  return {
    valid: new RegExp(`^(?:${validIn(all)})`),
    accepted: new RegExp(`^(?:${main[2]})$`),
    prefix: prefix ? new RegExp(`^(?:${prefix})`) : undefined,
    replacement: main[8] || '',
  }
}

/** The first country whose leading digits match, or in which the number is valid, decides. */
function validIn([country, ...others]: readonly PlanMetadata[]): string {
  if (!country) return '(?!)'
  const leading: string | 0 = country[10]
  const valid = `(?=(?:${country[2]})$)(?:${typesOf(country).join('|')})`
  return leading
    ? `(?=${leading})${valid}|(?!${leading})(?:${validIn(others)})`
    : `${valid}|${validIn(others)}`
}

function typesOf(country: PlanMetadata): string[] {
  const types: readonly (0 | readonly [pattern: string, lengths?: readonly number[]])[] = country[11] || []
  return types.flatMap((type) => {
    const [pattern, ownLengths] = type || []
    if (!pattern) return []
    const lengths = (ownLengths ?? country[3]).map((length: number) => `\\d{${length}}`)
    return `(?=(?:${lengths.join('|')})$)(?:${pattern})$`
  })
}
