import { advice, see } from '../ground/advice.ts'
import { counted } from '../ground/format.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { ApiKey } from '../ground/ports.ts'
import { dayMs } from '../ground/time.ts'
import { isAppId } from '../limits/credentials.ts'
import { type AppOperation, type AppScope, isUnscoped, operationsOf, unscoped } from '../limits/scope.ts'
import type { EventLogReader } from '../log/event-log.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { nameKey } from '../texts/brand.ts'
import { action, type Group } from './action.ts'
import {
  type AppKey,
  type AppStore,
  type ChangePorts,
  change,
  differences,
  type OperatorPorts,
} from './changes.ts'
import {
  change as changed,
  changeList,
  type Entered,
  field,
  flag,
  type InputOf,
  optional,
  someOf,
  text,
  texts,
  unique,
  wholeNumber,
} from './fields.ts'

const maxKeys = 2

function activeKeys(keys: readonly AppKey[]): readonly AppKey[] {
  return keys.filter(({ revokedAt }) => revokedAt === null)
}

function listed(keys: readonly AppKey[]): string {
  return keys.map(({ lastFour }) => lastFour).join(' and ')
}

export function requireAppId(appId: string): void {
  if (!isAppId(appId))
    throw new InvalidInput('The appId must be 1 to 64 visible ASCII characters without spaces and colons.')
}

function addKey({ key: _, ...newKey }: ApiKey, keys: readonly AppKey[]): Omit<ApiKey, 'key'> {
  if (keys.some(({ lastFour }) => lastFour === newKey.lastFour)) {
    throw new OperatorError(
      'The new key ended with the same four characters as an earlier key, so no key was created. Try again.',
    )
  }
  return newKey
}

/** Undefined fields stay unchanged (design D38). */
export interface ScopeChange {
  /** Slugs as given. Empty: every brand. */
  readonly brands?: readonly string[] | undefined
  readonly operations?: readonly AppOperation[] | undefined
  /** 1 to 999,999. Null: GLOBAL_LIMIT_PER_MINUTE. */
  readonly perMinute?: number | null | undefined
  /** 1 to 999,999. Null: no limit. */
  readonly newCountrySmsPerDay?: number | null | undefined
}

/** @param brandSlugs the slugs of all brands */
function changedScope(
  before: AppScope,
  { brands, operations, perMinute, newCountrySmsPerDay }: ScopeChange,
  brandSlugs: readonly string[],
): AppScope {
  const slugs = brands && slugsIn(brands)
  const unknown = slugs?.filter((slug) => !brandSlugs.includes(slug)) ?? []
  if (unknown.length > 0) {
    const subject = unknown.length === 1 ? 'Brand' : 'Brands'
    const verb = unknown.length === 1 ? 'does' : 'do'
    throw new OperatorError(
      `${subject} ${unknown.join(', ')} ${verb} not exist.`,
      advice`${see('brand list')} lists the brands.`,
    )
  }
  if (operations?.length === 0) {
    throw new InvalidInput('An app needs at least one operation: otp or notify.')
  }
  return {
    appId: before.appId,
    brands: slugs ?? before.brands,
    allowsOtp: operations?.includes('otp') ?? before.allowsOtp,
    allowsNotify: operations?.includes('notify') ?? before.allowsNotify,
    perMinute: perMinute === undefined ? before.perMinute : perMinute,
    newCountrySmsPerDay: newCountrySmsPerDay === undefined ? before.newCountrySmsPerDay : newCountrySmsPerDay,
  }
}

const smsPerDay = 'SMS per day to a new country'

function scopeSentence(scope: AppScope): string {
  const { brands, allow, perMinute, newCountrySmsPerDay } = scopeWords(scope)
  const ofNotify = newCountrySmsPerDay === undefined ? '' : `; ${smsPerDay} ${newCountrySmsPerDay}`
  return `Scope of ${scope.appId}: brands ${brands}; operations ${allow}; calls per minute ${perMinute}${ofNotify}.`
}

/** As the audit log has it. */
function scopeWords(scope: AppScope): Readonly<Record<string, string>> {
  return {
    brands: scope.brands.join(', ') || 'any',
    allow: operationsOf(scope).join(', '),
    perMinute: String(scope.perMinute ?? 'default'),
    ...(scope.newCountrySmsPerDay !== null && { newCountrySmsPerDay: String(scope.newCountrySmsPerDay) }),
  }
}

/**
 * `app issue`. The returned key is not stored. An app whose keys are all revoked keeps its earlier scope, as far as
 * `requested` does not change it.
 */
export async function issueApp(
  ports: OperatorPorts,
  appId: string,
  requested: ScopeChange = {},
): Promise<{ readonly key: string; readonly scope: AppScope; readonly hadScope: boolean }> {
  requireAppId(appId)
  const apiKey = ports.secrets.newApiKey()
  const { scope, hadScope } = await change(ports, { appId }, ({ keys, brandSlugs, scope: before }) => {
    const scope = changedScope(before ?? unscoped(appId), requested, brandSlugs)
    const details = { key: apiKey.lastFour, ...(isUnscoped(scope) ? {} : scopeWords(scope)) }
    return {
      newKey: firstKey(appId, apiKey, keys),
      scope,
      hadScope: before !== undefined,
      entry: { action: 'app.issued', target: appId, details },
    }
  })
  return { key: apiKey.key, scope, hadScope }
}

/** @param configured the apps in APP_CREDENTIALS */
export async function setApp(
  ports: ChangePorts,
  appId: string,
  requested: ScopeChange,
  configured: readonly string[],
): Promise<AppScope> {
  requireAppId(appId)
  const { scope } = await change(ports, { appId }, ({ keys, brandSlugs, scope: before }) => {
    if (keys.length === 0 && !configured.includes(appId) && !before) {
      throw new OperatorError(
        `App ${appId} does not exist: it has no key here and is not in APP_CREDENTIALS.`,
        listOfApps,
      )
    }
    const was = before ?? unscoped(appId)
    const scope = changedScope(was, requested, brandSlugs)
    const details = differences(scopeWords(was), scopeWords(scope))
    const isSame = Object.keys(details).length === 0
    return { scope, entry: isSame ? null : { action: 'app.changed', target: appId, details } }
  })
  return scope
}

export function firstKey(appId: string, apiKey: ApiKey, keys: readonly AppKey[]): Omit<ApiKey, 'key'> {
  if (activeKeys(keys).length > 0) {
    throw new OperatorError(
      `App ${appId} already has a key.`,
      advice`Create a second key with ${see('app rotate', { appId })}, or revoke the first with ${see('app revoke', { appId })}.`,
    )
  }
  return addKey(apiKey, keys)
}

/** Resolves to a second key. The first stays active until it is revoked. */
export async function rotateApp(ports: OperatorPorts, appId: string): Promise<string> {
  const apiKey = ports.secrets.newApiKey()
  await change(ports, { appId }, ({ keys }) => {
    const active = activeKeys(keys)
    if (active.length === 0) {
      throw new OperatorError(
        `App ${appId} has no active key.`,
        advice`Create one with ${see('app issue', { appId })}.`,
      )
    }
    if (active.length >= maxKeys) {
      throw new OperatorError(
        `App ${appId} already has two keys, ending in ${listed(active)}.`,
        advice`Revoke the unused one with ${see('app revoke-key', { appId })}.`,
      )
    }
    const details = { key: apiKey.lastFour, beside: listed(active) }
    return { newKey: addKey(apiKey, keys), entry: { action: 'app.rotated', target: appId, details } }
  })
  return apiKey.key
}

const listOfApps = advice`${see('app list')} lists the apps.`

export const appGroup: Group = {
  name: 'app',
  does: 'create apps, and create and revoke their API keys',
  entries: 'apps and keys',
  target: 'app',
}

const appField = field(text, { label: 'App', help: 'the appId' })

const operations = someOf('operation', {
  otp: 'Codes: `/otp/send`, `/otp/resend` and `/otp/verify`',
  notify: 'Notifications: `/notify`',
} satisfies Record<AppOperation, string>)
const brandsWords = { label: 'Single brands', as: '--brand <slug>', help: 'a brand that the app may use' }
const operationsWords = {
  label: 'Operations',
  as: '--allow <operation>',
  help: 'an operation that the app may use: otp (send, resend and verify) or notify',
}
const perMinuteWords = {
  label: 'Calls per minute',
  as: '--per-minute <calls>',
  help: 'the limit of calls per minute, instead of GLOBAL_LIMIT_PER_MINUTE',
  hint: '1 to 999999. If empty, the setting `GLOBAL_LIMIT_PER_MINUTE` applies.',
  max: 6,
}
const newCountryWords = {
  label: 'SMS per day to a new country',
  as: '--new-country-sms-per-day <sms>',
  help: 'the limit of SMS notifications a day (UTC) to each country that is new to the app',
  hint: '1 to 999999 SMS of `/notify` to each country that is new to the app. If empty, there is no limit.',
  max: 6,
}

const fold = 'Scope: brands, operations, limits'

/** Of a new app: what is not given is unlimited. */
const newScopeFields = {
  brands: changeList(texts, {
    ...brandsWords,
    fold,
    hint: 'If you select none, the app may use every brand, also later ones.',
  }),
  operations: changeList(operations, { ...operationsWords, fold }),
  perMinute: optional(limitIn('calls per minute'), { ...perMinuteWords, fold }),
  newCountrySmsPerDay: optional(limitIn(smsPerDay), { ...newCountryWords, fold }),
}

const scopeFields = {
  anyBrand: flag({
    label: 'Every brand',
    as: '--any-brand',
    help: 'every brand',
    hint: 'Includes brands that you create later. For single brands, clear this box.',
    legend: 'Brands',
  }),
  brands: changeList(slugsIn, {
    ...brandsWords,
    help: `${brandsWords.help}; replaces the earlier brands`,
    legend: 'Brands',
  }),
  operations: changeList(operations, {
    ...operationsWords,
    help: `${operationsWords.help}; replaces the earlier operations`,
  }),
  perMinute: changed(limitOrDefault('calls per minute'), {
    ...perMinuteWords,
    help: `${perMinuteWords.help}; default for that setting`,
    max: 7,
  }),
  newCountrySmsPerDay: changed(limitOrDefault(smsPerDay), {
    ...newCountryWords,
    help: `${newCountryWords.help}; default for no limit`,
    max: 7,
  }),
}

/** In the order in which they are stored. */
function slugsIn(written: readonly string[]): readonly string[] {
  return unique(written.map(nameKey)).toSorted()
}

/** Null: the default. */
function limitOrDefault(name: string) {
  const read = limitIn(name)
  return (text: string) => (text === '' || text === 'default' ? null : read(text))
}

function limitIn(name: string) {
  return wholeNumber(name, 1, 999_999)
}

/** No selected brand must not mean every brand, which would give the app more than before. */
function scopeChange({ anyBrand, brands, ...others }: InputOf<typeof scopeFields>): ScopeChange {
  if (anyBrand ? brands && brands.length > 0 : brands?.length === 0) {
    throw new InvalidInput('Select either every brand or single brands.')
  }
  return { ...others, brands: anyBrand ? [] : brands }
}

/** As in the form of the scope, and in its fields. */
export function scopeEntries(scope: AppScope): Entered {
  const { brands, perMinute, newCountrySmsPerDay } = scope
  return {
    anyBrand: brands.length === 0,
    brands,
    operations: operationsOf(scope),
    perMinute: String(perMinute ?? ''),
    newCountrySmsPerDay: String(newCountrySmsPerDay ?? ''),
  }
}

/** As in JSON. */
export function scopeRow(scope: AppScope) {
  const { brands, perMinute, newCountrySmsPerDay } = scope
  const limits = newCountrySmsPerDay === null ? { perMinute } : { perMinute, newCountrySmsPerDay }
  return { brands, allow: operationsOf(scope), ...limits }
}

export const appIssue = action(appGroup, 'issue', {
  role: 'operator',
  isSensitive: true,
  does: 'create an app and print its API key once',
  note: 'Without options, an app may use every brand and both operations.',
  fields: {
    appId: field(text, {
      label: 'App ID',
      help: 'the appId in API requests',
      hint: '1 to 64 visible ASCII characters without a colon.',
      max: 64,
    }),
    ...newScopeFields,
  },
  audit: { 'app.issued': 'App created' },
  form: { path: 'apps/issue', isPartial: true },
  run: (ports: OperatorPorts, { appId, ...scope }) => issueApp(ports, appId, scope),
  said: ({ key, scope, hadScope }, { appId }) => ({
    text: scopeSentence(scope),
    secret: key,
    warnings: hadScope ? [{ text: `${appId} had a scope before. ${scopeSentence(scope)}` }] : [],
  }),
})

export const appSet = action(appGroup, 'set', {
  role: 'operator',
  isSensitive: true,
  does: 'change the brands, operations and limits of an app, also of one in APP_CREDENTIALS',
  fields: { appId: appField, ...scopeFields },
  audit: { 'app.changed': 'App changed' },
  form: { path: 'apps/scope', page: 'apps/app?app={appId}', isPartial: true },
  run: (ports: AppPorts, { appId, ...scope }) => {
    const change = scopeChange(scope)
    if (Object.values(change).every((value) => value === undefined)) {
      throw new InvalidInput('Nothing to change. Choose brands, operations or a limit.')
    }
    return setApp(ports, appId, change, ports.apps.configured)
  },
  said: (scope, { appId }) => ({ text: scopeSentence(scope), row: { appId, ...scopeRow(scope) } }),
})

export const appRotate = action(appGroup, 'rotate', {
  role: 'operator',
  isSensitive: true,
  does: 'create and print a second API key; the first works until you revoke it',
  fields: { appId: appField },
  audit: { 'app.rotated': 'Key rotated' },
  form: { path: 'apps/rotate', page: 'apps/app?app={appId}' },
  run: (ports: OperatorPorts, { appId }) => rotateApp(ports, appId),
  said: (key, { appId }) => ({ text: `${appId} has a second key.`, secret: key }),
})

export const appRevokeKey = action(appGroup, 'revoke-key', {
  role: 'operator',
  isSensitive: true,
  does: 'revoke one API key of an app',
  fields: {
    appId: appField,
    key: field(text, {
      label: 'Key',
      as: '<last4>',
      help: 'the last four characters of the key',
    }),
  },
  audit: { 'app.key-revoked': 'Key revoked' },
  form: { path: 'apps/revoke-key', page: 'apps/app?app={appId}' },
  run: (ports: ChangePorts, { appId, key: ending }) =>
    change(ports, { appId }, ({ keys }) => {
      const active = activeKeys(keys)
      const key = active.find(({ lastFour }) => ending !== '' && lastFour === ending.slice(-lastFour.length))
      if (!key) {
        throw active.length === 0
          ? new OperatorError(`App ${appId} has no active key.`, listOfApps)
          : new OperatorError(
              `App ${appId} has no active key that ends in ${ending.slice(-4)}. Its keys end in ${listed(active)}.`,
            )
      }
      return {
        revokedKeys: [key.lastFour],
        left: active.length - 1,
        entry: { action: 'app.key-revoked', target: appId, details: { key: key.lastFour } },
      }
    }),
  said: ({ left }, { appId, key }) =>
    `The key …${key.slice(-4)} of ${appId} is revoked. ${left === 0 ? 'The app has no active key.' : 'Its other key is active.'}`,
})

export interface AppPorts extends ChangePorts, Pick<PolicyPorts, 'policy'> {
  readonly apps: AppStore & { readonly configured: readonly string[] }
  readonly eventLog: Pick<EventLogReader, 'countFound'>
}

export const appRevoke = action(appGroup, 'revoke', {
  role: 'operator',
  isSensitive: true,
  does: 'revoke every API key of an app, except a key in APP_CREDENTIALS',
  fields: { appId: appField },
  audit: { 'app.revoked': 'App revoked' },
  form: { path: 'apps/revoke', page: 'apps/app?app={appId}' },
  run: async (ports: AppPorts, { appId }) => {
    const remaining = ports.apps.configured.includes(appId)
      ? `The key of ${appId} in APP_CREDENTIALS is still valid. Remove it from APP_CREDENTIALS, and restart the server.`
      : undefined
    const { active } = await change(ports, { appId }, ({ keys }) => {
      const active = activeKeys(keys)
      if (active.length === 0) {
        throw remaining === undefined
          ? new OperatorError(`App ${appId} has no active key.`, listOfApps)
          : new OperatorError(remaining)
      }
      return {
        active,
        revokedKeys: active.map(({ lastFour }) => lastFour),
        entry: { action: 'app.revoked', target: appId, details: { keys: listed(active) } },
      }
    })
    const { relays } = await ports.policy.rows()
    const kept = relays.filter((relay) => relay.appId === appId).map(({ name }) => name)
    const secrets =
      kept.length === 0 ? undefined : `The secrets of its relays are still valid: ${kept.join(', ')}.`
    return {
      active,
      warnings: [remaining, secrets].flatMap((text) => (text === undefined ? [] : [{ text }])),
    }
  },
  said: ({ warnings }, { appId }) => ({ text: `Every key of ${appId} is revoked.`, warnings }),
  asks: async (_, { appId }) => ({
    warning: `This revokes every API key of ${appId}. Its requests fail from now on, except those of its relays.`,
  }),
  foretells: async ({ eventLog, now }, { active }, { appId }) => {
    const { requests, isMore } = await eventLog.countFound('calls', { app: appId, since: now() - dayMs })
    return [
      `Would revoke ${counted(active.length, 'API key')} of ${appId}:`,
      ...active.map(
        ({ lastFour, lastUsedAt }) =>
          `  …${lastFour}, ${lastUsedAt === null ? 'never used' : `last used ${new Date(lastUsedAt).toISOString()}`}`,
      ),
      `Requests of ${appId} in the last 24 hours: ${requests}${isMore ? ' or more' : ''}.`,
    ]
  },
})

export const appActions = [appIssue, appSet, appRotate, appRevokeKey, appRevoke]
