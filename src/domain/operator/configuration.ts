import { eventTypes } from '../ground/webhook-events.ts'
import { unscoped } from '../limits/scope.ts'
import { unitCurrency } from '../money/amounts.ts'
import type { PriceRow } from '../money/prices.ts'
import type { PolicyRows } from '../policy/policy-store.ts'
import { type BrandWithTexts, nameKey } from '../texts/brand.ts'
import { registeredTarget } from '../texts/brand-texts.ts'
import { templateOf } from '../texts/templates.ts'
import type { Action } from './action.ts'
import { type ActionPorts, actionOf } from './actions.ts'
import { scopeEntries } from './apps.ts'
import { brandEntries, freshBrand } from './brands.ts'
import type { Entered, Fields, Written } from './fields.ts'
import { bodyOf } from './json-schema.ts'
import { budgetRemove, priceImport } from './money.ts'
import { noApp } from './relays.ts'
import { inWords } from './texts.ts'

// What one file has of the configuration (design D57): lists of the fields of declared actions.

/** What is stored. */
export interface Configuration {
  readonly brands: readonly BrandWithTexts[]
  readonly rows: PolicyRows
  readonly prices: readonly PriceRow[]
  /** Whether the relay has this secret. Absent: secrets are not compared. */
  readonly isSecretOf?: (relay: string, secret: string) => boolean
}

export interface Section {
  /** In the file. */
  readonly name: string
  readonly set: Action<ActionPorts>
  /** Of an entry in the file. */
  readonly fields: Fields
  /** The fields that name an entry. */
  readonly key: readonly string[]
  /** Without secrets. Each field has a value. */
  readonly stored: (configuration: Configuration) => readonly Entered[]
  /** What fields that an entry leaves out become with `--prune`. The others stay. */
  readonly defaults: Entered
  /** With the key of an entry and these fields. Absent: entries cannot be removed. */
  readonly removal?: { readonly action: Action<ActionPorts>; readonly fields?: Entered }
  /** Of an entry that is stored. Absent: `set`. */
  readonly change?: Action<ActionPorts>
  /** Fields that every change has. */
  readonly always?: Entered
  /** What the other entries may need before an entry can be as the file has it. */
  readonly first?: (entry: Entered, before: Entered | undefined) => Entered | undefined
  /** What is not stored is as the defaults. */
  readonly storesNoDefaults?: true
  /** Fields of a stored entry that cannot change. */
  readonly fixed?: readonly string[]
  /** With what fields mean for others. @param langOf of a brand */
  readonly complete?: (entry: Entered, langOf: (slug: string) => string) => Entered
}

/** @param without fields of the command that an entry does not have */
function section(
  name: string,
  set: string,
  { without = [], ...parts }: Omit<Section, 'name' | 'set' | 'fields'> & { readonly without?: string[] },
): Section {
  const action = named(set)
  const own = Object.entries(action.fields).filter(
    ([field, { hasNoOption }]) => !hasNoOption && !without.includes(field),
  )
  return { name, set: action, fields: Object.fromEntries(own), ...parts }
}

function named(name: string): Action<ActionPorts> {
  const action = actionOf(name)
  if (!action) throw new Error(`no action ${name}`)
  return action
}

const { displayName: _, ...brandDefaults } = brandEntries(freshBrand(''))

/** Of an app without a scope. */
const everything = scopeEntries(unscoped(''))

/** In the order in which they are applied. Prices come before budgets, whose currency they decide. */
export const sections: readonly Section[] = [
  section('brands', 'brand put', {
    key: ['slug'],
    stored: ({ brands }) =>
      brands.map((brand) => ({ slug: brand.slug, status: brand.status, ...brandEntries(brand) })),
    defaults: brandDefaults,
    // Texts of a brand need the brand, which needs the texts of its own templates.
    first: ({ notifyTemplates, ...entry }) =>
      wordsIn(notifyTemplates).every((key) => templateOf(key)) ? undefined : entry,
  }),
  section('texts', 'text set', {
    without: ['draft'],
    key: ['slug', 'key', 'lang', 'email'],
    stored: ({ brands }) =>
      brands.flatMap(({ slug, texts }) =>
        texts.all.map(({ templateKey: key, channel, lang, subject, text, html }) => ({
          ...{ slug, key, lang, email: channel === 'EMAIL', text },
          ...{ subject: subject ?? '', html: html ?? '' },
          // Built-in templates have their own.
          ...(!templateOf(key) && { variables: (texts.variables.get(key) ?? []).map(inWords) }),
        })),
      ),
    defaults: { subject: '', html: '' },
    removal: { action: named('text remove') },
    // Until the texts in other languages are changed too, they have the earlier variables.
    first: (entry, before) => {
      if (!before || !entry.variables) return undefined
      const all = [...wordsIn(before.variables), ...wordsIn(entry.variables)]
      return { ...entry, variables: [...new Map(all.map((each) => [each.split(':')[0], each])).values()] }
    },
    complete: (entry, langOf) => ({ ...entry, lang: entry.lang ?? langOf(nameKey(String(entry.slug))) }),
  }),
  section('templates', 'brand template', {
    without: ['remove'],
    key: ['slug', 'key', 'lang'],
    stored: ({ brands }) =>
      brands.flatMap(({ slug, registrations }) =>
        Object.entries(registrations).map(([registrationKey, { id, ids, senderId, maxLength }]) => {
          const { templateKey: key, lang } = registeredTarget(registrationKey)
          const own = Object.entries(ids).map(([provider, ofProvider]) => `${provider}=${ofProvider}`)
          const of = { slug, key, lang, ids: id === null ? own : [id, ...own] }
          return { ...of, senderId: senderId ?? '', maxLength: String(maxLength ?? '') }
        }),
      ),
    defaults: { ids: [], senderId: '', maxLength: '' },
    removal: { action: named('brand template'), fields: { remove: true } },
    always: { replaces: true },
  }),
  section('apps', 'app set', {
    key: ['appId'],
    stored: ({ rows: { scopes } }) =>
      scopes.map((scope) => ({
        ...{ appId: scope.appId, ...scopeEntries(scope) },
        anyBrand: scope.brands.length === 0 || undefined,
      })),
    defaults: everything,
    storesNoDefaults: true,
    // The app and its keys stay.
    removal: { action: named('app set'), fields: everything },
    complete: (entry) => ({
      ...(entry.brands !== undefined && { anyBrand: false }),
      ...(entry.anyBrand === true && { brands: [] }),
      ...entry,
    }),
  }),
  section('webhooks', 'app webhook', {
    without: ['off', 'keepSecret'],
    key: ['appId'],
    stored: ({ rows: { webhooks } }) =>
      webhooks.map(({ appId, url, eventTypes: some }) => ({
        ...{ appId, url, events: some.length > 0 ? some : eventTypes },
      })),
    defaults: { events: eventTypes },
    removal: { action: named('app webhook'), fields: { off: true } },
    always: { keepSecret: true },
  }),
  section('destinations', 'destination set', {
    without: ['isGroup'],
    key: ['rule', 'brand'],
    stored: ({ rows: { rules } }) =>
      rules.map(({ brandSlug, sender, route, ...rule }) => ({
        ...{ ...rule, brand: brandSlug ?? '', sender: sender ?? '', route: route ?? '' },
      })),
    defaults: { providers: [], sender: '', route: '' },
    removal: { action: named('destination remove') },
  }),
  section('budgets', 'budget set', {
    key: ['scope', 'of'],
    stored: ({ rows: { budgets } }) =>
      budgets.map(({ scope, of, period, amountMicros, alertAt, stops }) => ({
        ...{ scope, of, period, amount: String(amountMicros / 1e6) },
        ...{ alertAt: alertAt.map(String), stops },
      })),
    defaults: { alertAt: ['80', '100'], stops: true },
    removal: { action: budgetRemove },
  }),
  section('relays', 'relay add', {
    key: ['name'],
    stored: ({ rows: { relays } }) =>
      relays.map(({ name, kind, brandSlug: brand, appId, minutes }) => ({
        ...{ name, kind, brand, minutes: String(minutes), app: appId ?? noApp },
      })),
    defaults: { minutes: '5', app: noApp },
    removal: { action: named('relay remove') },
    change: named('relay set'),
    fixed: ['kind', 'secret'],
  }),
]

function wordsIn(written: Written): readonly string[] {
  return Array.isArray(written) ? written : []
}

/** Of the configuration file, as JSON Schema, for editors. */
export function configurationSchema() {
  const file = { type: 'string', description: 'a file beside this one' }
  const parts = sections.map(({ name, fields, set: { does } }) => {
    const { properties, required, ...entry } = bodyOf(fields)
    const files = Object.entries(fields).filter(([, { isFile }]) => isFile)
    const ofFiles = Object.fromEntries(files.map(([field]) => [`${field}File`, file]))
    const items = {
      ...entry,
      properties: { ...properties, ...ofFiles },
      required: required.filter((field) => !fields[field]?.isFile),
    }
    return [name, { type: 'array', description: does, items }]
  })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      ...Object.fromEntries(parts),
      prices: { type: 'string', description: 'the text of a price file' },
      pricesFile: file,
    },
    additionalProperties: false,
  }
}

/** As `price import` reads it. Empty: there are none. */
export function pricesText(prices: readonly PriceRow[]): string {
  if (prices.length === 0) return ''
  const lines = prices.map(({ prefix, currency, priceMicros, provider }) =>
    [prefix, currency, String(priceMicros / 1e6), provider ?? ''].join(','),
  )
  return `${['prefix,currency,price,provider', ...lines.sort()].join('\n')}\n`
}

/** An entry of the file, and where it is. */
export interface DesiredEntry {
  readonly line: number
  readonly entered: Entered
}

/** What the file has. */
export interface Desired {
  readonly sections: ReadonlyMap<Section, readonly DesiredEntry[]>
  /** Undefined: not in the file. */
  readonly prices: { readonly text: string; readonly rows: readonly PriceRow[] } | undefined
}

export interface Difference {
  readonly action: Action<ActionPorts>
  readonly entered: Entered
  /** Done before, if it can be. */
  readonly first?: Entered | undefined
  /** Such as `+ budgets server`. Empty: it is a part of another difference. */
  readonly words: string
  /** In the file. Undefined: it is not in the file. */
  readonly line?: number
  /** Why it cannot be applied. */
  readonly fault?: string | undefined
}

/**
 * In the order in which they are applied, as far as they do not need each other.
 * @param prune also what is stored and not in a list of the file; fields that an entry leaves out become their defaults
 */
export function differencesOf(
  desired: Desired,
  configuration: Configuration,
  prune: boolean,
): readonly Difference[] {
  const currency = desired.prices?.rows[0]?.currency
  const { brands, rows } = configuration
  // They would reject the prices.
  const isNewCurrency = currency !== undefined && currency !== configuration.prices[0]?.currency
  const foreign = rows.budgets.filter((each) => isNewCurrency && each.currency !== currency)
  const before: Difference[] = []
  const differences = [...desired.sections].flatMap(([section, entries]) => {
    const stored = new Map(section.stored(configuration).map((entry) => [keyOf(section, entry), entry]))
    const lines = new Map<string, number>()
    const ofEntries = entries.map(({ line, entered }): Difference | undefined => {
      const written = section.complete?.(entered, langOf) ?? entered
      const key = keyOf(section, written)
      const same = lines.get(key)
      if (same !== undefined) {
        const fault = sameEntry(section, same)
        return { action: section.set, entered, words: nameOf(section, written), line, fault }
      }
      lines.set(key, line)
      const is = stored.get(key)
      const other = foreign.find(({ scope, of }) => is?.scope === scope && is.of === of)
      if (is && other && other.currency !== unitCurrency)
        before.push({ action: budgetRemove, entered: is, words: '' })
      const base = is ?? (section.storesNoDefaults && section.defaults)
      const entry = { ...base, ...(prune && base && section.defaults), ...written }
      const changes = base ? changesOf(section, base, entry) : []
      if (other) changes.push(`currency: ${other.currency} → ${currency}`)
      const { secret } = section.set.read(written)
      if (typeof secret === 'string' && configuration.isSecretOf?.(String(is?.name), secret) === false)
        changes.push('secret: another')
      if (base && changes.length === 0) return undefined
      const name = nameOf(section, written)
      const fixed = is && section.fixed?.find((field) => changes.some((each) => each.startsWith(`${field}:`)))
      // Variables are of the template: those of another entry may be newer than the stored ones.
      const whole = { ...entry, ...section.always, variables: written.variables }
      return {
        ...{ action: (is && section.change) ?? section.set, line, entered: whole },
        first: section.first?.(whole, is),
        words: is ? `~ ${name}: ${changes.join(', ')}` : `+ ${name}`,
        fault:
          fixed &&
          `the ${fixed} of ${name} cannot change. Remove the stored one first, or choose another name.`,
      }
    })
    const removed = [...stored].flatMap(([key, entry]) => {
      const { removal } = section
      if (!prune || !removal || lines.has(key)) return []
      const named = section.key.map((name) => [name, entry[name]])
      const entered = { ...Object.fromEntries(named), ...removal.fields }
      return { action: removal.action, entered, words: `- ${nameOf(section, entry)}` }
    })
    if (section.name !== 'budgets' || foreign.length === 0) return [...ofEntries, ...removed]
    before.push(...removed)
    return ofEntries
  })
  return [...before, ...priceDifference(desired, configuration), ...differences].filter(
    (each) => each !== undefined,
  )

  function langOf(slug: string): string {
    const [, entries = []] = [...desired.sections].find(([{ name }]) => name === 'brands') ?? []
    const entry = entries.find(({ entered }) => nameKey(String(entered.slug)) === slug)?.entered
    const stored = entry && prune ? undefined : brands.find((each) => each.slug === slug)
    return String(entry?.lang || (stored ?? freshBrand(slug)).lang)
  }
}

function priceDifference({ prices }: Desired, { prices: stored }: Configuration): readonly Difference[] {
  const { text = '', rows = [] } = prices ?? {}
  // An import replaces those of the providers that it names.
  const providers = new Set(rows.map(({ provider }) => provider))
  const kept = stored.filter(({ provider }) => !providers.has(provider))
  if (pricesText([...kept, ...rows]) === pricesText(stored)) return []
  const words = `~ prices: ${rows.length} instead of ${stored.length - kept.length}`
  return [{ action: priceImport, entered: { prices: text }, words }]
}

/** A fault of an entry. @param line of the other one */
export function sameEntry({ name }: Section, line: number): string {
  return `${name}: the same entry as in line ${line}.`
}

/** The meaning of its key fields. @throws InvalidInput */
export function keyOf({ key, fields }: Section, entry: Entered): string {
  return JSON.stringify(key.map((name) => meaning(fields, name, entry)))
}

function changesOf({ fields, key }: Section, before: Entered, entry: Entered): string[] {
  return Object.keys(fields).flatMap((name) => {
    const isSame = meaning(fields, name, before) === meaning(fields, name, entry)
    if (isSame || name === 'secret' || key.includes(name)) return []
    return [`${name}: ${shown(before[name])} → ${shown(entry[name])}`]
  })
}

/** Such as `texts acme LOGIN_OTP de`. */
function nameOf({ name, key, fields }: Section, entered: Entered): string {
  const words = key.flatMap((field) => {
    const meant = entered[field] && fields[field]?.read(entered[field])
    return typeof meant === 'string' ? meant : []
  })
  return [name, ...words].join(' ')
}

/** The same for all that means nothing. */
export function meaning(fields: Fields, name: string, entry: Entered): string {
  const meant = fields[name]?.read(entry[name]) ?? ''
  return meant === false || (Array.isArray(meant) && meant.length === 0) ? '""' : JSON.stringify(meant)
}

const longestShown = 60

function shown(written: Entered[string]): string {
  const text = Array.isArray(written) ? written.join(', ') : String(written ?? '')
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text || 'none'
}
