import type { AuditRecord } from '../ground/audit.ts'
import type { Listing } from '../ground/listing.ts'
import type { SmsRoute } from '../ground/providers.ts'

/**
 * `personal`: forwarded to a phone of any kind, such as +44 70. `uan`: universal access number of a company, such as +44 55.
 * `unknown`: the digits are a number of no known numbering plan.
 */
export type NumberKind =
  | 'ordinary'
  | 'premium-rate'
  | 'shared-cost'
  | 'pager'
  | 'satellite'
  | 'personal'
  | 'uan'
  | 'unknown'

/** Design D40: these are blocked also without a rule. */
const blockedKinds: ReadonlySet<NumberKind> = new Set(['premium-rate', 'shared-cost', 'pager', 'satellite'])

/** Whether a message to it may cost more than to other numbers of its prefix. */
export function isDear(kind: NumberKind): boolean {
  return kind !== 'ordinary' && kind !== 'unknown'
}

export interface Destination {
  /** ISO 3166-1 alpha-2. Null: a number of no country, such as +800 and satellite numbers, or of no known plan. */
  readonly country: string | null
  readonly kind: NumberKind
}

/** `digits` as `Recipient.to` has them. */
export type DestinationOf = (digits: string) => Destination

/** What numbering plans say, and how numbers are written. */
export interface Numbers {
  readonly destinationOf: DestinationOf
  /** As ISO 3166-1 alpha-2 codes. */
  readonly countries: readonly string[]
  /** Of an ISO 3166-1 alpha-2 code. */
  readonly isCountry: (code: string) => boolean
  /** Null: of no country, or of several. */
  readonly countryOfPrefix: (digits: string) => string | null
  /** The countries all of whose numbers begin with these digits. */
  readonly countriesWithin: (digits: string) => readonly string[]
  /** The E.164 digits of a number as people write it in a country. */
  readonly phoneIn: (digits: string, country: string) => string | undefined
  readonly formatPhone: (digits: string) => string
  readonly formatPrefix: (digits: string) => string
  /** The digits of a mobile number of the country. Empty: there is none. */
  readonly exampleOf: (country: string | null) => string
}

export const destinationActions = ['allow', 'monitor', 'block'] as const
export type DestinationAction = (typeof destinationActions)[number]

/** Design D40: where SMS may go, and how messages to that destination go. */
export interface DestinationRule {
  /** A country (`GB`), an E.164 prefix (`+4479`) or `*`, as `parseRule` returns it. */
  readonly rule: string
  /** Null: all brands. */
  readonly brandSlug: string | null
  readonly action: DestinationAction
  /** Names of providers. Empty: all. */
  readonly providers: readonly string[]
  readonly sender: string | null
  readonly route: SmsRoute | null
}

export interface DestinationDecision {
  readonly action: DestinationAction
  /** Null: no rule matches, or the kind of number is blocked. */
  readonly rule: DestinationRule | null
  /** `kind`: blocked because of its kind, and no prefix rule matches. `default`: no rule matches. */
  readonly reason: 'rule' | 'kind' | 'default'
}

type Decisions = Map<string | null, DestinationDecision>

const unmatched: DestinationDecision = { action: 'allow', rule: null, reason: 'default' }
const blockedKind: DestinationDecision = { action: 'block', rule: null, reason: 'kind' }

/** Of rules with the same `rule` and brand, the last one replaces the others. */
export class DestinationRules {
  readonly #decisions = new Map<string, Decisions>()
  readonly #prefixLengths: readonly number[]

  constructor(rules: readonly DestinationRule[]) {
    const lengths = new Set<number>()
    for (const rule of rules) {
      const decisions = this.#decisions.get(rule.rule) ?? new Map()
      decisions.set(rule.brandSlug, { action: rule.action, rule, reason: 'rule' })
      this.#decisions.set(rule.rule, decisions)
      if (isPrefix(rule.rule)) lengths.add(rule.rule.length)
    }
    this.#prefixLengths = [...lengths].sort((a, b) => b - a)
  }

  /** Design D40. The longest prefix, then the country, then `*`; of two equally specific rules the brand's. */
  decide(digits: string, { country, kind }: Destination, brandSlug: string | null): DestinationDecision {
    // A number of no known plan may be of a country whose plan has changed.
    if (this.#decisions.size === 0) return blockedKinds.has(kind) ? blockedKind : unmatched
    if (this.#prefixLengths.length > 0) {
      const number = `+${digits}`
      for (const length of this.#prefixLengths) {
        const found = number.length >= length && this.#find(number.slice(0, length), brandSlug)
        if (found) return found
      }
    }
    if (kind !== 'ordinary') return blockedKind
    return (country && this.#find(country, brandSlug)) || this.#find('*', brandSlug) || unmatched
  }

  /** Whether a rule for the country itself allows it, also if a prefix rule decides about a number of it. */
  allowsCountry(country: string, brandSlug: string | null): boolean {
    return this.#find(country, brandSlug)?.action === 'allow'
  }

  /** The decisions that may apply to a number of which only some digits are known: the others are `*`. */
  mayApply(masked: string, country: string | null, brandSlug: string | null): DestinationDecision[] {
    const isKnown = (digit: string, index: number) => masked[index] === '*' || masked[index] === digit
    const prefixes = [...this.#decisions.keys()].filter(
      (rule) => isPrefix(rule) && [...rule.slice(1)].every(isKnown),
    )
    const ofCountry = (country && this.#find(country, brandSlug)) || this.#find('*', brandSlug) || unmatched
    return [...prefixes.flatMap((rule) => this.#find(rule, brandSlug) ?? []), ofCountry]
  }

  #find(rule: string, brandSlug: string | null): DestinationDecision | undefined {
    const decisions = this.#decisions.get(rule)
    return decisions?.get(brandSlug) ?? decisions?.get(null)
  }
}

function isPrefix(rule: string): boolean {
  return rule.startsWith('+')
}

/** SMS_COUNTRIES (design D40). Before the stored rules in `DestinationRules`, so that these replace them. */
export function countryRules(countries: readonly string[]): DestinationRule[] {
  const all = { brandSlug: null, providers: [], sender: null, route: null }
  const allowed = countries.map((rule) => ({ ...all, rule, action: 'allow' as const }))
  return countries.length === 0 ? [] : [...allowed, { ...all, rule: '*', action: 'block' }]
}

/** As it is stored, if it is a rule. */
export function ruleText(text: string): string {
  return text.trim().toUpperCase()
}

/** The rule in its stored form, or what is wrong with it, as a sentence. */
export function parseRule(
  text: string,
  isCountry: (code: string) => boolean,
): { readonly rule: string } | { readonly problem: string } {
  const rule = ruleText(text)
  if (rule === '*' || /^\+[1-9][0-9]{0,14}$/.test(rule) || isCountry(rule)) return { rule }
  const forms = 'a country code such as GB, "+" with 1 to 15 digits such as +4479 (no leading 0), or *'
  return {
    problem: /^[A-Z]{2}$/.test(rule)
      ? `${rule} is not an ISO 3166-1 country code with telephone numbers. A rule is ${forms}.`
      : `A rule is ${forms}.`,
  }
}

/**
 * `--group`: a country with the territories whose mobile numbers are in its numbering plan but have their own country
 * code, such as Guernsey's +44 7911 1.
 */
export function countryGroup(country: string): readonly string[] {
  return country === 'GB' ? ['GB', 'GG', 'JE', 'IM'] : [country]
}

/** The country code of a territory's mobile numbers, if it is another country's. */
export function mobileCountryOf(territory: string): string | undefined {
  return sharedPlans.get(territory)
}

const sharedPlans: ReadonlyMap<string, string> = new Map([
  ['AX', 'FI'],
  ['BL', 'GP'],
  ['CC', 'AU'],
  ['CX', 'AU'],
  ['EH', 'MA'],
  ['MF', 'GP'],
  ['SJ', 'NO'],
  ['VA', 'IT'],
])

/** Why a number is blocked, without its digits, as a sentence that begins with the name of its field. */
export function destinationProblem(
  field: string,
  { country, kind }: Destination,
  { rule, reason }: DestinationDecision,
): string {
  if (reason === 'kind') {
    const remedy = kind === 'unknown' ? ' Begin the number with + and the country code.' : ''
    return `\`${field}\` is ${kindInWords(kind)}, which this server does not send SMS to.${remedy}`
  }
  if (rule && isPrefix(rule.rule)) {
    return `\`${field}\` is in a number range that this server does not send SMS to.`
  }
  if (!country) return `\`${field}\` is a number of no country, which this server does not send SMS to.`
  return `\`${field}\` is in a country that this server does not send SMS to: ${countryName(country)}.`
}

/** Of a request that `destinationProblem` rejected. */
export interface BlockedRequest {
  readonly brand: string | null
  /** Masked. Null: several. */
  readonly recipient: string | null
  readonly country: string | null
  readonly message: string
}

/** The rules that reject such a request now. Several: one of them does, but the log does not have the whole number. */
export function blockersOf<Rule extends DestinationRule>(
  { brand, recipient, country, message }: BlockedRequest,
  rules: readonly Rule[],
): readonly Rule[] {
  const [, field = ''] = /^`([^`]*)`/.exec(message) ?? []
  const masked = recipient ?? '*'.repeat(15)
  const blockers = new DestinationRules(rules)
    .mayApply(masked, country, brand)
    .filter(
      (decision) =>
        decision.action === 'block' &&
        destinationProblem(field, { country, kind: 'ordinary' }, decision) === message,
    )
  return rules.filter((each) => blockers.some(({ rule }) => rule === each))
}

/** With its article, such as `a premium-rate number`. */
export function kindInWords(kind: NumberKind): string {
  if (kind === 'unknown') return 'a number of no known numbering plan'
  if (kind === 'uan') return 'a universal access number (UAN)'
  return `${kind === 'ordinary' ? 'an' : 'a'} ${kind} number`
}

/** Such as `Latvia (LV)`. */
export function countryWords(country: string | null): string {
  return country === null ? 'no country' : `${countryName(country)} (${country})`
}

let displayNames: Intl.DisplayNames | undefined
const countryNames = new Map<string, string>()

/** In English. @param country ISO 3166-1 alpha-2 */
export function countryName(country: string): string {
  displayNames ??= new Intl.DisplayNames('en', { type: 'region' })
  return countryNames.getOrInsertComputed(country, () => displayNames?.of(country) ?? country)
}

/** By code, sorted by name. */
export function countryOptions(countries: readonly string[]): Readonly<Record<string, string>> {
  const named = countries.map((country) => [country, countryName(country)] as const)
  return Object.fromEntries(named.sort(([, one], [, other]) => one.localeCompare(other, 'en')))
}

export interface AuthoredRule extends ListedRule {
  /** Null: of SMS_COUNTRIES, or not among the latest changes of the audit log. */
  readonly set: Pick<AuditRecord, 'id' | 'at' | 'actor'> | null
}

export interface ListedRule extends DestinationRule {
  readonly source: 'stored' | 'SMS_COUNTRIES'
}

export const ruleListing = {
  rule: { title: 'Rule', value: ({ rule }) => rule },
  brand: { title: 'Brand', value: ({ brandSlug }) => brandSlug },
  action: { title: 'Action', value: ({ action }) => action },
  providers: { title: 'Providers', value: ({ providers }) => providers },
  sender: { title: 'Sender', value: ({ sender }) => sender },
  route: { title: 'Route', value: ({ route }) => route },
  source: { title: 'Source', value: ({ source }) => source },
} satisfies Listing<ListedRule>
