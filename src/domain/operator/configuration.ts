import type { CheckedPrices } from '../money/price-import.ts'
import type { PriceRow } from '../money/prices.ts'
import type { PolicyRows } from '../policy/policy-store.ts'
import type { BrandWithTexts } from '../texts/brand.ts'
import { registeredTarget } from '../texts/brand-texts.ts'
import type { Action } from './action.ts'
import { type ActionPorts, actionOf } from './actions.ts'
import { scopeEntries } from './apps.ts'
import { brandEntries } from './brands.ts'
import type { Entered, Fields } from './fields.ts'
import { bodyOf } from './json-schema.ts'
import { inWords } from './texts.ts'

// What one file has of the configuration (design D57): lists of the fields of declared actions.

/** What is stored. */
export interface Configuration {
  readonly brands: readonly BrandWithTexts[]
  readonly rows: PolicyRows
  readonly prices: readonly PriceRow[]
}

export interface Section {
  /** In the file. */
  readonly name: string
  readonly set: Action<ActionPorts>
  /** With the key of an entry and these fields. Undefined: entries cannot be removed. */
  readonly removal?: { readonly action: Action<ActionPorts>; readonly fields: Entered } | undefined
  /** The fields that name an entry. */
  readonly key: readonly string[]
  /** Without secrets. */
  readonly stored: (configuration: Configuration) => readonly Entered[]
  /** Of an entry that is stored. Undefined: `set`. */
  readonly change?: Action<ActionPorts>
  /** A field that `change` cannot change. */
  readonly fixed?: string
  /** Fields of new entries, which are not compared. */
  readonly onlyNew?: readonly string[]
  /** With what a left-out key field means. */
  readonly complete?: (entry: Entered, configuration: Configuration) => Entered
}

function section(
  name: string,
  set: string,
  key: readonly string[],
  stored: Section['stored'],
  removal?: string,
  fields: Entered = {},
): Section {
  const removed = removal === undefined ? undefined : { action: named(removal), fields }
  return { name, set: named(set), key, stored, removal: removed }
}

function named(name: string): Action<ActionPorts> {
  const action = actionOf(name)
  if (!action) throw new Error(`no action ${name}`)
  return action
}

/** Null is left out. */
function entryOf(fields: Readonly<Record<string, Entered[string] | null>>): Entered {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value ?? undefined]))
}

/** In the order in which they are applied. Prices come before budgets, whose currency they decide. */
export const sections: readonly Section[] = [
  section('brands', 'brand put', ['slug'], ({ brands }) =>
    brands.map((brand) => ({ slug: brand.slug, status: brand.status, ...brandEntries(brand) })),
  ),
  {
    ...section(
      'texts',
      'text set',
      ['slug', 'key', 'lang', 'email'],
      ({ brands }) =>
        brands.flatMap(({ slug, texts }) =>
          texts.all.map(({ templateKey: key, channel, lang, subject, text, html }) => {
            // Built-in templates have their own.
            const variables = texts.variables.get(key)?.map(inWords)
            return entryOf({ slug, key, lang, email: channel === 'EMAIL', text, subject, html, variables })
          }),
        ),
      'text remove',
    ),
    complete: (entry, { brands }) => ({
      ...entry,
      lang: entry.lang ?? brands.find(({ slug }) => slug === entry.slug)?.lang,
    }),
  },
  section(
    'templates',
    'brand template',
    ['slug', 'key', 'lang'],
    ({ brands }) =>
      brands.flatMap(({ slug, registrations }) =>
        Object.entries(registrations).map(([registrationKey, { id, ids, senderId, maxLength }]) => {
          const { templateKey: key, lang } = registeredTarget(registrationKey)
          const own = Object.entries(ids).map(([provider, ofProvider]) => `${provider}=${ofProvider}`)
          const all = id === null ? own : [id, ...own]
          return entryOf({
            slug,
            key,
            ids: all,
            lang,
            senderId,
            maxLength: maxLength === null ? null : String(maxLength),
          })
        }),
      ),
    'brand template',
    { remove: true },
  ),
  {
    ...section('apps', 'app set', ['appId'], ({ rows: { scopes } }) =>
      scopes.map((scope) => {
        const { anyBrand: _, perMinute, newCountrySmsPerDay, ...entries } = scopeEntries(scope)
        const limits = { perMinute: perMinute || null, newCountrySmsPerDay: newCountrySmsPerDay || null }
        return entryOf({ appId: scope.appId, ...entries, ...limits })
      }),
    ),
    // Stored in this order.
    complete: (entry) =>
      Array.isArray(entry.brands) ? { ...entry, brands: entry.brands.toSorted() } : entry,
  },
  {
    ...section(
      'webhooks',
      'app webhook',
      ['appId'],
      ({ rows: { webhooks } }) =>
        webhooks.map(({ appId, url, eventTypes }) => ({ appId, url, events: eventTypes })),
      'app webhook',
      { off: true },
    ),
    onlyNew: ['keepSecret'],
    complete: (entry) => ({ ...entry, keepSecret: true }),
  },
  section(
    'destinations',
    'destination set',
    ['rule', 'brand'],
    ({ rows: { rules } }) => rules.map(({ brandSlug: brand, ...rule }) => entryOf({ ...rule, brand })),
    'destination remove',
  ),
  section(
    'budgets',
    'budget set',
    ['scope', 'of'],
    ({ rows: { budgets } }) =>
      budgets.map(({ scope, of, period, amountMicros, alertAt, stops }) => ({
        ...{ scope, of, period, amount: String(amountMicros / 1e6) },
        ...{ alertAt: alertAt.map(String), stops },
      })),
    'budget remove',
  ),
  {
    ...section(
      'relays',
      'relay add',
      ['name'],
      ({ rows: { relays } }) =>
        relays.map(({ name, kind, brandSlug: brand, appId: app, minutes }) =>
          entryOf({ name, kind, brand, app, minutes: String(minutes) }),
        ),
      'relay remove',
    ),
    ...{ onlyNew: ['secret'], change: named('relay set'), fixed: 'kind' },
    complete: (entry) => ({ ...entry, minutes: entry.minutes ?? '5' }),
  },
]

/** Of the configuration file, as JSON Schema, for editors. */
export function configurationSchema() {
  const file = { type: 'string', description: 'a file beside this one' }
  const parts = sections.map(({ name, set: { fields, does } }) => {
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
  readonly prices: string | undefined
}

export interface Difference {
  readonly action: Action<ActionPorts>
  readonly entered: Entered
  /** Such as `+ budgets server`. */
  readonly words: string
  /** In the file. Undefined: it is not in the file. */
  readonly line: number | undefined
  /** Why it cannot be applied. */
  readonly fault?: string | undefined
}

/** In words. @param prices those of the file @throws InvalidInput */
export function allDifferences(
  { sections }: Desired,
  configuration: Configuration,
  prices: CheckedPrices | undefined,
): readonly string[] {
  return [
    ...((prices && pricesDifference(prices, configuration.prices)) ?? []),
    ...[...sections].flatMap(([section, entries]) =>
      differencesOf(section, entries, configuration, false).map(({ words }) => words),
    ),
  ]
}

/** Undefined: these prices are stored. */
export function pricesDifference(
  { rows, problems }: CheckedPrices,
  stored: readonly PriceRow[],
): readonly string[] | undefined {
  if (problems.length === 0 && pricesText(rows) === pricesText(stored)) return undefined
  return [`~ prices: ${rows.length} instead of ${stored.length}`]
}

/** In the order in which they are applied. @param prune also what is stored and not in the list @throws InvalidInput */
export function differencesOf(
  section: Section,
  entries: readonly DesiredEntry[],
  configuration: Configuration,
  prune: boolean,
): readonly Difference[] {
  const { set: action, removal } = section
  const stored = new Map(section.stored(configuration).map((entry) => [keyOf(section, entry), entry]))
  const differences: Difference[] = []
  for (const { line, entered: written } of entries) {
    const entered = section.complete?.(written, configuration) ?? written
    const key = keyOf(section, entered)
    const before = stored.get(key)
    stored.delete(key)
    const changes = before && changesOf(section, before, entered)
    const name = nameOf(section, entered)
    if (!changes) differences.push({ action, entered, line, words: `+ ${name}` })
    else if (changes.length > 0) {
      const isFixed = changes.some((each) => each.startsWith(`${section.fixed}:`))
      const fault = isFixed
        ? `the ${section.fixed} of ${name} cannot change. Remove the stored one first, or choose another name.`
        : undefined
      const words = `~ ${name}: ${changes.join(', ')}`
      differences.push({ action: section.change ?? action, entered, line, words, fault })
    }
  }
  if (!prune || !removal) return differences
  const removed = [...stored.values()].map((entry) => {
    const entered = {
      ...Object.fromEntries(section.key.map((name) => [name, entry[name]])),
      ...removal.fields,
    }
    return { action: removal.action, entered, line: undefined, words: `- ${nameOf(section, entry)}` }
  })
  return [...differences, ...removed]
}

/** The meaning of its key fields. @throws InvalidInput */
export function keyOf({ key, set: { fields } }: Section, entry: Entered): string {
  return JSON.stringify(key.map((name) => meaning(fields, name, entry) ?? null))
}

/** Fields that an entry leaves out stay as they are, or become the default if the action replaces what is stored. */
function changesOf({ set: { fields }, onlyNew = [] }: Section, before: Entered, entry: Entered): string[] {
  return Object.keys(fields).flatMap((name) => {
    const [was, is] = [meaning(fields, name, before), meaning(fields, name, entry)]
    if (onlyNew.includes(name) || (is === undefined && entry[name] === undefined)) return []
    if (JSON.stringify(was) === JSON.stringify(is)) return []
    return [`${name}: ${shown(before[name])} → ${shown(entry[name])}`]
  })
}

/** Such as `texts acme LOGIN_OTP de`. */
function nameOf({ name, key }: Section, entered: Entered): string {
  return [name, ...key.flatMap((field) => (typeof entered[field] === 'string' ? entered[field] : []))].join(
    ' ',
  )
}

function meaning(fields: Fields, name: string, entry: Entered): unknown {
  return fields[name]?.read(entry[name])
}

const longestShown = 60

function shown(written: Entered[string]): string {
  if (written === undefined) return 'none'
  const text = Array.isArray(written) ? written.join(', ') : String(written)
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text
}
