import { docsAt } from '../ground/docs.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { Sealing, Secrets } from '../ground/ports.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { type Relay, type RelayKindName, relayKinds, relayUrl } from '../policy/relay.ts'
import { type Brands, nameKey } from '../texts/brand.ts'
import { action, type Group } from './action.ts'
import { existingBrand } from './brands.ts'
import { differences } from './changes.ts'
import { field, oneOf, optional, text, wholeNumber } from './fields.ts'
import { type MoneyPorts, requireApp } from './money.ts'

export interface RelayChangePorts extends PolicyPorts {
  readonly brands: Pick<Brands, 'bySlug'>
  readonly apps: MoneyPorts['apps']
  readonly secrets: Pick<Secrets, 'newId' | 'newWebhookSecret'>
  readonly sealing: Pick<Sealing, 'seal'>
  /** PUBLIC_URL, else the URL on which the server listens. */
  readonly ownUrl: () => string | Promise<string>
}

export const relayGroup: Group = {
  name: 'relay',
  does: 'connect identity systems, whose own codes otpost then delivers',
  entries: 'relays',
  target: 'relay',
}

const longestMinutes = 60

const appWords = {
  label: 'App',
  as: '--app <appid>',
  help: 'the app whose limits, budget and scope apply; none for no app',
} as const

export const noApp = 'none'

function appIn(text: string): string | null {
  return text === noApp ? null : text
}

const minutesWords = {
  label: 'Minutes',
  as: '--minutes <n>',
  help: `the lifetime of its codes, for the text; 1 to ${longestMinutes}`,
} as const

/** The caller creates the key that signs its requests. */
const signing: readonly RelayKindName[] = ['zitadel', 'authgear']

/** Design D53. */
export const relayAdd = action(relayGroup, 'add', {
  role: 'operator',
  isSensitive: true,
  does: 'add a relay, and print its URL and its secret',
  note: `otpost prints the secret only once. ${docsAt('relays')} has a page for each kind, with what to enter there.`,
  fields: {
    name: field(nameIn, {
      label: 'Name',
      help: 'the name in its URL: lower-case letters, digits and hyphens',
      max: 63,
    }),
    kind: field(oneOf('kind', relayKinds), {
      label: 'Kind',
      as: '--kind <kind>',
      help: 'the identity system',
      hint: `\`${docsAt('relays')}\` has a page for each, with what to enter there.`,
    }),
    brand: field(nameKey, {
      label: 'Brand',
      as: '--brand <slug>',
      help: 'the brand whose text and providers send the codes',
    }),
    app: optional(appIn, { ...appWords, none: 'none' }),
    secret: optional(secretIn, {
      label: 'Secret of the identity system',
      as: '--secret-file <file>',
      help: 'the key that the identity system made (zitadel, authgear)',
      hint: 'Only if the identity system creates the key, as ZITADEL and Authgear do. If empty, otpost makes a secret.',
      isFile: 'secret',
      max: 512,
    }),
    minutes: field(wholeNumber('minutes', 1, longestMinutes), { ...minutesWords, byDefault: '5' }),
  },
  audit: { 'relay.added': 'Relay added' },
  form: { path: 'relays' },
  run: async (ports: RelayChangePorts, { name, kind, brand, app = null, secret, minutes }) => {
    const { actor, secrets } = ports
    const brandSlug = await existingBrand(ports.brands, brand)
    if (app !== null) await requireApp(ports.apps, app)
    if (secret === undefined && signing.includes(kind))
      throw new InvalidInput(
        `${relayKinds[kind]} creates the key itself. Give it in a file: with --secret-file, or as secretFile in a configuration file.`,
      )
    if (secret !== undefined && kind === 'supabase' && !/^v1,whsec_[A-Za-z0-9+/]{16,}=*$/.test(secret))
      throw new InvalidInput('The secret of a Supabase hook begins with v1,whsec_.')
    const ofKind = secret ?? (kind === 'supabase' ? `v1,${secrets.newWebhookSecret()}` : hexadecimal(secrets))
    const now = ports.now()
    const relay: Relay = {
      ...{ name, kind, brandSlug, appId: app, minutes },
      sealedSecret: ports.sealing.seal(ofKind, name),
      user: kind === 'twilio' ? `AC${hexadecimal(secrets)}` : name,
      reportsVerified: false,
      createdAt: now,
    }
    await ports.policy.change({ actor, now }, ({ relays }) => {
      if (relays.some((each) => each.name === name))
        throw new OperatorError(`There is already a relay ${name}. Remove it first, or choose another name.`)
      if (relays.length >= mostRelays) throw new OperatorError(`There are already ${mostRelays} relays.`)
      const details = { kind, brand: brandSlug, app: app ?? 'none' }
      return { saveRelays: [relay], entry: { action: 'relay.added', target: name, details } }
    })
    return {
      relay,
      url: relayUrl(relay, await ports.ownUrl()),
      made: secret === undefined ? ofKind : undefined,
    }
  },
  said: ({ relay: { kind, user }, url, made }) => {
    const login = kind === 'supabase' || signing.includes(kind) ? '' : `\nuser: ${user}`
    return {
      text: `The relay is at ${url}.`,
      secret: `url: ${url}${login}${made === undefined ? '' : `\nsecret: ${made}`}`,
    }
  },
})

/** Its URL and its secret stay. */
export const relaySet = action(relayGroup, 'set', {
  role: 'operator',
  isSensitive: true,
  does: 'change the brand, the app or the minutes of a relay; the rest stays, also its URL and secret',
  fields: {
    name: field(text, { label: 'Name', help: 'the name of the relay' }),
    brand: optional(nameKey, {
      label: 'Brand',
      as: '--brand <slug>',
      help: 'the brand whose text and providers send the codes',
      none: 'as now',
    }),
    app: optional(appIn, { ...appWords, none: 'as now' }),
    minutes: optional(wholeNumber('minutes', 1, longestMinutes), minutesWords),
  },
  audit: { 'relay.set': 'Relay changed' },
  form: { path: 'relays/set' },
  run: async (ports: RelayChangePorts, { name, brand, app, minutes }) => {
    const brandSlug = brand === undefined ? undefined : await existingBrand(ports.brands, brand)
    if (app) await requireApp(ports.apps, app)
    await ports.policy.change({ actor: ports.actor, now: ports.now() }, ({ relays }) => {
      const relay = relays.find((each) => each.name === name)
      if (!relay) throw new OperatorError(`There is no relay ${name}.`)
      const is = {
        ...relay,
        brandSlug: brandSlug ?? relay.brandSlug,
        appId: app === undefined ? relay.appId : app,
        minutes: minutes ?? relay.minutes,
      }
      const details = differences(relay, is)
      const isSame = Object.keys(details).length === 0
      return { saveRelays: [is], entry: isSame ? null : { action: 'relay.set', target: name, details } }
    })
  },
  said: (_, { name }) => `The relay ${name} is changed.`,
})

export const relayRemove = action(relayGroup, 'remove', {
  role: 'operator',
  isSensitive: false,
  does: 'remove a relay',
  fields: { name: field(text, { label: 'Name', help: 'the name of the relay' }) },
  audit: { 'relay.removed': 'Relay removed' },
  form: { path: 'relays/remove' },
  run: async (ports: PolicyPorts, { name }) => {
    await ports.policy.change({ actor: ports.actor, now: ports.now() }, ({ relays }) => {
      const relay = relays.find((each) => each.name === name)
      if (!relay) throw new OperatorError(`There is no relay ${name}.`)
      const details = { kind: relay.kind, brand: relay.brandSlug }
      return { removeRelays: [relay], entry: { action: 'relay.removed', target: name, details } }
    })
  },
  said: (_, { name }) => `The relay ${name} is removed.`,
})

export const relayActions = [relayAdd, relaySet, relayRemove] as const

/** The first report of a verified code. */
export async function storeReportsVerified({ policy, now, actor }: PolicyPorts, name: string): Promise<void> {
  await policy.change({ actor, now: now() }, ({ relays }) => ({
    saveRelays: relays
      .filter((each) => each.name === name)
      .map((each) => ({ ...each, reportsVerified: true })),
    entry: null,
  }))
}

const mostRelays = 100

/** 122 random bits. */
function hexadecimal(secrets: Pick<Secrets, 'newId'>): string {
  return secrets.newId().replaceAll('-', '')
}

function nameIn(text: string): string {
  if (/^[a-z0-9][a-z0-9-]{0,62}$/.test(text)) return text
  throw new InvalidInput('The name must be 1 to 63 lower-case letters, digits and hyphens.')
}

function secretIn(text: string): string {
  const secret = text.trim()
  if (/^[!-~]{16,512}$/.test(secret)) return secret
  throw new InvalidInput('The secret must be 16 to 512 visible ASCII characters without spaces.')
}
