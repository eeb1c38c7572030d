import {
  type AuthoredRule,
  countryGroup,
  countryName,
  countryRules,
  type DestinationAction,
  type DestinationDecision,
  type DestinationRule,
  DestinationRules,
  type ListedRule,
  mobileCountryOf,
  type Numbers,
  parseRule,
  ruleText,
} from '../delivery/destination.ts'
import type { SmsMode } from '../delivery/way.ts'
import { advice, see } from '../ground/advice.ts'
import type { AuditReader, AuditRecord } from '../ground/audit.ts'
import { count, counted } from '../ground/format.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { mapRoutes, type OtherWay, type PhoneRoutes, type SmsRoute } from '../ground/providers.ts'
import type { CountrySms } from '../guard/counts.ts'
import type { GuardMode } from '../guard/guard.ts'
import { modeInForce } from '../guard/mode.ts'
import type { GuardPrefix } from '../guard/store.ts'
import type { PolicyChange, PolicyPorts } from '../policy/policy-store.ts'
import { type Brands, nameKey } from '../texts/brand.ts'
import { action, type Group, type Warning } from './action.ts'
import { existingBrand } from './brands.ts'
import { differences, refuse } from './changes.ts'
import { field, flag, list, oneOf, optional, trimmed, unique } from './fields.ts'
import { type GuardChangePorts, guardEntryOf, guardWords } from './guard.ts'

const smsRouteNames = ['plain', 'template'] as const satisfies readonly SmsRoute[]

/** What the settings of the server say about the routes of SMS. */
export interface RouteSettings {
  readonly smsMode: SmsMode
  /** Names of providers in SMS_PLAIN. */
  readonly plain: readonly string[]
  /** Names of providers in SMS_TEMPLATE. Empty if OTP_SMS_MODE is plain. */
  readonly template: readonly string[]
  /** Names of providers, by way. */
  readonly others: Partial<Readonly<Record<OtherWay, readonly string[]>>>
}

export function routeSettings(
  smsMode: SmsMode,
  phoneRoutes: PhoneRoutes<{ readonly name: string }>,
): RouteSettings {
  const { plain, template, ...others } = mapRoutes(phoneRoutes, (all) => all.map(({ name }) => name))
  return { smsMode, plain, template, others }
}

export interface RulePorts extends PolicyPorts {
  readonly brands: Pick<Brands, 'bySlug'>
  readonly isCountry: (code: string) => boolean
}

export interface DestinationPorts extends RulePorts, Pick<GuardChangePorts, 'countryOfPrefix'> {
  readonly smsOfWeek: () => Promise<readonly CountrySms[]>
  readonly routing: () => Promise<{
    readonly routes: RouteSettings
    readonly smsCountries: readonly string[]
  }>
}

export const destinationGroup: Group = {
  name: 'destination',
  does: 'decide which countries and number ranges SMS may go to, and how',
  entries: 'destination rules',
  target: 'destination rules',
}

const ruleField = field(ruleText, {
  label: 'Rule',
  help: 'a country (GB), a prefix (+4479), or * for all others',
  hint: 'A country such as `GB`, a prefix such as `+4479`, or `*` for all other numbers.',
  placeholder: '+4479',
})

/** Design D40. Replaces the whole rule. */
export const destinationSet = action(destinationGroup, 'set', {
  role: 'operator',
  isSensitive: ({ action }) => action !== 'block',
  does: 'create or replace the rule of a country or number range',
  note: 'The command replaces the whole rule: options that you leave out are removed from it.',
  fields: {
    rule: ruleField,
    action: field(
      oneOf('action', {
        allow: 'allow: send',
        monitor: 'monitor: send, and record what block would reject',
        block: 'block: reject',
      } satisfies Record<DestinationAction, string>),
      {
        label: 'Action',
        help: 'what otpost does with SMS to these numbers; monitor only records what block would reject',
        hint: '',
      },
    ),
    brand: optional(nameKey, {
      label: 'Brand',
      as: '--brand <slug>',
      help: 'only for SMS of this brand',
      hint: '',
      none: 'All brands',
    }),
    providers: list(unique, {
      label: 'Only these providers',
      as: '--providers <names>',
      help: 'only these providers of SMS_PLAIN and SMS_TEMPLATE, tried in this order',
    }),
    sender: optional(trimmed, {
      label: 'Sender',
      as: '--sender <sender>',
      help: 'the sender: a number with +, a short code or a sender id',
      hint: 'A number with `+`, a short code or a name of up to 11 characters. Empty: the provider’s default.',
      isProse: true,
    }),
    route: optional(
      oneOf('route', {
        plain: 'plain: the direct route',
        template: 'template: the registered-template (DLT) route',
      } satisfies Record<SmsRoute, string>),
      {
        label: 'Route',
        as: '--route <route>',
        help: 'the route of codes and templates',
        hint: '',
        none: 'default',
      },
    ),
    isGroup: flag({
      label: 'With its territories',
      as: '--group',
      help: 'also for the territories in its numbering plan',
      hint: 'For GB: also Guernsey, Jersey and the Isle of Man.',
    }),
  },
  audit: { 'destination.set': 'Destination rule set' },
  form: { path: 'destinations' },
  run: async (ports: DestinationPorts, { rule, brand, isGroup, ...asked }) => {
    const { routes, smsCountries } = await ports.routing()
    const target = await targetOf(ports, { rule, brand, isGroup })
    const { action, providers, sender, route = null } = asked
    const about = {
      brandSlug: target.brandSlug,
      action,
      providers,
      sender: sender || null,
      route,
    }
    refuse(ruleProblems(about, routes))
    const rules = target.keys.map((rule): DestinationRule => ({ rule, ...about }))
    return ports.policy.change(by(ports), ({ rules: stored }) => {
      const replaced = rulesOf(target, stored)
      return {
        rules,
        replaced,
        others: [...countryRules(smsCountries), ...stored],
        saveRules: rules,
        entry: entryOf('destination.set', target, replaced, rules),
        warnings: ruleWarnings(rules, routes, [...countryRules(smsCountries), ...stored, ...rules]),
      }
    })
  },
  said: ({ rules, warnings }) => ({
    text: rules.map((each) => `${ruleName(each)}: ${ruleWords(each)}.`).join('\n'),
    warnings,
  }),
  foretells: async ({ smsOfWeek, countryOfPrefix }, { rules, replaced, others }) => {
    const week = await smsOfWeek()
    return [
      ...rules.map((each) => `${ruleName(each)}: ${ruleWords(each)}.`),
      ...replaced.map((each) => `It would replace ${ruleName(each)}: ${ruleWords(each)}.`),
      ...rules.map((each) => effectWords(each, week, others, countryOfPrefix)),
    ]
  },
})

/**
 * What a rule would have meant for the SMS of the last 7 days.
 * @param others the rules that apply besides it: `*` is for countries without one
 */
export function effectWords(
  { rule, action, brandSlug }: Pick<DestinationRule, 'rule' | 'action' | 'brandSlug'>,
  week: readonly CountrySms[],
  others: readonly Pick<DestinationRule, 'rule'>[],
  countryOfPrefix: Numbers['countryOfPrefix'],
): string {
  const isPrefix = rule.startsWith('+')
  const country = isPrefix ? countryOfPrefix(rule.slice(1)) : rule
  if (country === null) return 'The digits do not decide which country the numbers are in.'
  const has = (code: string) => others.some((other) => other.rule === code)
  const found = week.filter((each) => (rule === '*' ? !has(each.country) : each.country === country))
  const sum = (what: 'sent' | 'verified' | 'notifications') =>
    found.reduce((total, each) => total + each[what], 0)
  const [sent, notifications] = [sum('sent'), sum('notifications')]
  const part = [
    isPrefix && `numbers of ${countryName(country)}, of which the prefix has a part`,
    brandSlug !== null && `brands, of which ${brandSlug} has a part`,
  ].filter(Boolean)
  const of = part.length === 0 ? '' : ` The figures are of all ${part.join(', and of all ')}.`
  if (sent + notifications === 0) return `No SMS went there in the last 7 days.${of}`
  const verbs = { block: 'would have rejected', monitor: 'would have recorded', allow: 'allows' }
  const verified = sum('verified')
  const codes = `${counted(sent, 'code')} by SMS, ${verified === 0 ? 'none' : count(verified)} of them verified`
  const also = notifications === 0 ? '' : `, and ${counted(notifications, 'notification')}`
  return `Of the last 7 days it ${verbs[action]} ${codes}${also}.${of}`
}

export const destinationRemove = action(destinationGroup, 'remove', {
  role: 'operator',
  isSensitive: true,
  does: 'remove the rule of a country or number range',
  fields: {
    rule: ruleField,
    brand: optional(nameKey, { label: 'Brand', as: '--brand <slug>', help: 'the rule of this brand' }),
    isGroup: flag({
      label: 'With its territories',
      as: '--group',
      help: 'also for the territories in its numbering plan',
    }),
  },
  audit: { 'destination.removed': 'Destination rule removed' },
  form: { path: 'destinations/remove' },
  run: async (ports: RulePorts, asked) => {
    const target = await targetOf(ports, asked)
    const { removeRules } = await ports.policy.change(by(ports), ({ rules: stored }) => {
      const removeRules = rulesOf(target, stored)
      if (removeRules.length === 0) throw missingRule(target)
      return { removeRules, entry: entryOf('destination.removed', target, removeRules, []) }
    })
    return removeRules
  },
  said: (removed) => removed.map((each) => `Removed the rule ${ruleName(each)}.`).join('\n'),
})

interface RuleTarget {
  /** As `DestinationRule.rule`. */
  readonly keys: readonly string[]
  readonly brandSlug: string | null
}

async function targetOf(
  { brands, isCountry }: Pick<RulePorts, 'brands' | 'isCountry'>,
  {
    rule,
    brand,
    isGroup,
  }: { readonly rule: string; readonly brand?: string | undefined; readonly isGroup: boolean },
): Promise<RuleTarget> {
  const parsed = parseRule(rule, isCountry)
  if ('problem' in parsed) throw new InvalidInput(parsed.problem)
  const keys = isGroup ? countryGroup(parsed.rule) : [parsed.rule]
  if (isGroup && keys.length === 1) {
    throw new InvalidInput('Only GB has a group: GB, GG, JE and IM.')
  }
  return { keys, brandSlug: brand === undefined ? null : await existingBrand(brands, brand) }
}

function by({ actor, now }: PolicyPorts) {
  return { actor, now: now() }
}

function rulesOf({ keys, brandSlug }: RuleTarget, all: readonly DestinationRule[]): DestinationRule[] {
  return all.filter((each) => keys.includes(each.rule) && each.brandSlug === brandSlug)
}

/** Null: nothing changes. */
function entryOf(
  action: string,
  { keys, brandSlug }: RuleTarget,
  before: readonly DestinationRule[],
  after: readonly DestinationRule[],
): PolicyChange['entry'] {
  const changes = differences(wordsByRule(before), wordsByRule(after))
  if (Object.keys(changes).length === 0) return null
  const details = { ...(brandSlug === null ? {} : { brand: brandSlug }), ...changes }
  return { action, target: keys.join(', '), details }
}

function wordsByRule(rules: readonly DestinationRule[]): Record<string, string> {
  return Object.fromEntries(rules.map((rule) => [rule.rule, ruleWords(rule)]))
}

/** Such as `GB for brand acme`. */
export function ruleName({ rule, brandSlug }: Pick<DestinationRule, 'rule' | 'brandSlug'>): string {
  return brandSlug === null ? rule : `${rule} for brand ${brandSlug}`
}

/** Such as `allow, providers twilio,vonage, sender ACME`. */
export function ruleWords({ action, providers, sender, route }: DestinationRule): string {
  return [
    action,
    providers.length > 0 && `providers ${providers.join(',')}`,
    sender !== null && `sender ${sender}`,
    route !== null && `route ${route}`,
  ]
    .filter(Boolean)
    .join(', ')
}

type RuleOptions = Pick<DestinationRule, 'providers' | 'sender' | 'route'>

/** Each once. */
export function providerNames({ plain, template, others }: RouteSettings): readonly string[] {
  return [...new Set([...plain, ...template, ...Object.values(others).flat()])]
}

/** Which ways a rule shuts off, because it names providers of others. Null: none. */
export function leftOutWays(
  { rule, action, providers }: Pick<DestinationRule, 'rule' | 'action' | 'providers'>,
  { others }: RouteSettings,
): string | null {
  const left = Object.entries(others).filter(([, names]) => leavesNone(providers, names))
  if (action === 'block' || left.length === 0) return null
  const ways = left.map(([way]) => way).join(' or ')
  const names = left.flatMap(([, all]) => all).join(' and ')
  return `The rule names only ${providers.join(', ')}, so no code to ${rule === '*' ? 'other countries' : rule} uses ${ways}. Add ${names} to its providers to change that.`
}

/** What makes SMS of a rule fail on this server, as sentences. */
export function ruleProblems({ providers, sender, route }: RuleOptions, routes: RouteSettings): string[] {
  const problems: string[] = []
  const configured = providerNames(routes)
  const missing = providers.filter((name) => !configured.includes(name))
  for (const name of missing) {
    problems.push(
      `${name} is not a provider of this server. Add it to ${settingsOf(routes)}, or use ${configured.join(', ')}.`,
    )
  }
  if (route === 'template' && routes.smsMode === 'plain') {
    problems.push(
      'The server has no registered-template route, because OTP_SMS_MODE is plain. Set OTP_SMS_MODE to template or hybrid, and SMS_TEMPLATE to its providers.',
    )
  } else if (route !== null && missing.length === 0 && leavesNone(providers, routes[route])) {
    problems.push(
      `None of ${providers.join(', ')} is in ${settingNames[route]}. Add one to ${settingNames[route]}, or choose another route.`,
    )
  }
  if (sender !== null && !isSender(sender)) {
    problems.push(
      'The sender must be a number with + and country code, a short code of 3 to 8 digits, a Twilio messaging service (MG…), or a name. A name has 1 to 11 letters, digits, spaces and hyphens, and at least one letter.',
    )
  }
  return problems
}

const settingNames: Readonly<Record<SmsRoute, string>> = { plain: 'SMS_PLAIN', template: 'SMS_TEMPLATE' }

function settingsOf({ smsMode }: RouteSettings): string {
  return smsMode === 'plain' ? 'SMS_PLAIN' : 'SMS_PLAIN or SMS_TEMPLATE'
}

function leavesNone(providers: readonly string[], ofRoute: readonly string[]): boolean {
  return providers.length > 0 && !providers.some((name) => ofRoute.includes(name))
}

/** Twilio accepts all of them. SNS takes names without spaces, Vonage and MSG91 also without hyphens. */
function isSender(text: string): boolean {
  return (
    /^(\+[1-9][0-9]{5,14}|[0-9]{3,8}|MG[0-9a-fA-F]{32})$/.test(text) ||
    /^(?=.*[A-Za-z])[A-Za-z0-9](?:[A-Za-z0-9 -]{0,9}[A-Za-z0-9])?$/.test(text)
  )
}

/** @param all every rule, in which the new ones come last */
function ruleWarnings(
  rules: readonly DestinationRule[],
  routes: RouteSettings,
  all: readonly DestinationRule[],
): Warning[] {
  const [first] = rules
  if (!first) return []
  const { action, providers, route } = first
  const warnings: Warning[] = []
  for (const { rule } of rules) {
    const country = mobileCountryOf(rule)
    if (country !== undefined) {
      warnings.push({
        text: `Mobile numbers of ${rule} have the country ${country}, so this rule does not apply to them. Set a rule for ${country} or for a prefix.`,
      })
    }
  }
  const open = Object.entries(routes.others).filter(([, names]) => !leavesNone(providers, names))
  const reached = open.length === 0 ? '' : ` Codes can use ${open.map(([way]) => way).join(' or ')}.`
  for (const each of smsRouteNames) {
    const isUsed = each === 'plain' || routes.smsMode !== 'plain'
    if (action !== 'block' && route === null && isUsed && leavesNone(providers, routes[each])) {
      warnings.push({
        text: `None of ${providers.join(', ')} is in ${settingNames[each]}, so SMS of that route to ${first.rule} fail.${reached}`,
      })
    }
  }
  const leftOut = leftOutWays(first, routes)
  if (leftOut !== null) warnings.push({ text: leftOut })
  const isOpen = all.findLast(({ rule, brandSlug }) => rule === '*' && brandSlug === null)?.action
  if (action === 'allow' && first.rule !== '*' && (isOpen ?? 'allow') === 'allow') {
    warnings.push({
      text: 'Countries without a rule are allowed too.',
      advice: advice`To block them, run ${see('destination set', { rule: '*', action: 'block' })}.`,
    })
  }
  return warnings
}

function missingRule({ keys, brandSlug }: RuleTarget): OperatorError {
  const forBrand = brandSlug === null ? 'for all brands' : `for brand ${brandSlug}`
  return new OperatorError(
    `There is no rule ${keys.join(', ')} ${forBrand}. Rules of SMS_COUNTRIES change in that setting.`,
    advice`${see('destination list')} lists the rules.`,
  )
}

/** The rules in force: those of SMS_COUNTRIES that no stored rule replaces, then the stored ones. */
export function listedRules(
  smsCountries: readonly string[],
  stored: readonly DestinationRule[],
): readonly ListedRule[] {
  const isReplaced = ({ rule }: DestinationRule) =>
    stored.some((each) => each.rule === rule && each.brandSlug === null)
  return [
    ...countryRules(smsCountries)
      .filter((rule) => !isReplaced(rule))
      .map((rule) => ({ ...rule, source: 'SMS_COUNTRIES' as const })),
    ...stored.map((rule) => ({ ...rule, source: 'stored' as const })),
  ]
}

export const latestChanges = 1000

/** `listedRules`, with who set them. */
export async function authoredRules(
  { policy, audit }: { readonly policy: Pick<PolicyPorts['policy'], 'rows'>; readonly audit: AuditReader },
  smsCountries: readonly string[],
): Promise<readonly AuthoredRule[]> {
  const [{ rules }, records] = await Promise.all([
    policy.rows(),
    audit.list({ actions: ['destination.set'], limit: latestChanges }),
  ])
  return listedRules(smsCountries, rules).map((listed) => {
    const { rule, brandSlug, source } = listed
    const isOf = ({ details }: AuditRecord) => rule in details && (details.brand ?? null) === brandSlug
    return { ...listed, set: source === 'stored' ? (records.find(isOf) ?? null) : null }
  })
}

interface CheckPorts extends Pick<PolicyPorts, 'policy' | 'now'>, Pick<Numbers, 'destinationOf'> {
  readonly guard: { prefixes(): Promise<readonly GuardPrefix[]> }
}

export type CheckedDestination = Awaited<ReturnType<typeof checkDestination>>

/** `destination check`: what the rules decide, and what the guard's entry for the number does. @param digits `Recipient.to` */
export async function checkDestination(
  { policy, guard, now, destinationOf }: CheckPorts,
  settings: Awaited<ReturnType<DestinationPorts['routing']>> & { readonly guard: GuardMode },
  digits: string,
  brandSlug: string | null,
) {
  const [{ rules, guardMode }, prefixes] = await Promise.all([policy.rows(), guard.prefixes()])
  const destination = destinationOf(digits)
  const listed = new DestinationRules(listedRules(settings.smsCountries, rules))
  const entry = guardEntryOf(digits, prefixes, now())
  const decision = listed.decide(digits, destination, brandSlug)
  return {
    ...{ digits, ...destination, decision },
    leftOut: decision.rule && leftOutWays(decision.rule, settings.routes),
    guard: entry ? guardWords(entry, modeInForce(guardMode, settings.guard, now()).mode) : null,
  }
}

/** Whether SMS are sent there, and why, as a sentence. */
export function decisionWords({ action, rule, reason }: DestinationDecision): string {
  const outcomes: Readonly<Record<DestinationAction, string>> = {
    allow: 'SMS are sent',
    monitor: 'SMS are sent, and recorded as ones that a block would reject',
    block: 'SMS are rejected',
  }
  const because = rule
    ? `by the rule ${rule.rule}${rule.brandSlug === null ? '' : ` of brand ${rule.brandSlug}`}`
    : reason === 'kind'
      ? 'because of the kind of number'
      : 'because no rule applies'
  return `${outcomes[action]}, ${because}.`
}

export const ruleActions = [destinationSet, destinationRemove]
