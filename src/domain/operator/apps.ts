import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { ApiKey } from '../ground/ports.ts'
import { isAppId } from '../limits/credentials.ts'
import { type AppOperation, type AppScope, isUnscoped, operationsOf, unscoped } from '../limits/scope.ts'
import { nameKey } from '../texts/brand.ts'
import { type AppKey, type ChangePorts, change, differences, type OperatorPorts } from './changes.ts'

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
}

/** @param brandSlugs the slugs of all brands */
function changedScope(
  before: AppScope,
  { brands, operations, perMinute }: ScopeChange,
  brandSlugs: readonly string[],
): AppScope {
  const slugs = brands && [...new Set(brands.map(nameKey))].sort()
  const unknown = slugs?.filter((slug) => !brandSlugs.includes(slug)) ?? []
  if (unknown.length > 0) {
    const subject = unknown.length === 1 ? 'Brand' : 'Brands'
    const verb = unknown.length === 1 ? 'does' : 'do'
    throw new OperatorError(
      `${subject} ${unknown.join(', ')} ${verb} not exist. \`otpost brand list\` lists the brands.`,
    )
  }
  if (operations?.length === 0) {
    throw new InvalidInput('An app needs at least one operation: otp or notify.')
  }
  if (perMinute != null && !(Number.isInteger(perMinute) && perMinute >= 1 && perMinute <= 999_999)) {
    throw new InvalidInput('The calls per minute must be a whole number from 1 to 999999.')
  }
  return {
    appId: before.appId,
    brands: slugs ?? before.brands,
    allowsOtp: operations?.includes('otp') ?? before.allowsOtp,
    allowsNotify: operations?.includes('notify') ?? before.allowsNotify,
    perMinute: perMinute === undefined ? before.perMinute : perMinute,
  }
}

export function scopeSentence(scope: AppScope): string {
  const { brands, allow, perMinute } = scopeWords(scope)
  return `Scope of ${scope.appId}: brands ${brands}; operations ${allow}; calls per minute ${perMinute}.`
}

/** As the audit log has it. */
function scopeWords(scope: AppScope) {
  return {
    brands: scope.brands.join(', ') || 'any',
    allow: operationsOf(scope).join(', '),
    perMinute: scope.perMinute === null ? 'default' : String(scope.perMinute),
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

/**
 * `app set`.
 * @param configured the apps in APP_CREDENTIALS
 */
export async function setApp(
  ports: ChangePorts,
  appId: string,
  requested: ScopeChange,
  configured: readonly string[],
): Promise<AppScope> {
  const { scope } = await change(ports, { appId }, ({ keys, brandSlugs, scope: before }) => {
    if (keys.length === 0 && !configured.includes(appId) && !before) {
      throw new OperatorError(
        `App ${appId} does not exist: it has no key here and is not in APP_CREDENTIALS. \`otpost app list\` lists the apps.`,
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
      `App ${appId} already has a key. Create a second key with \`otpost app rotate ${appId}\`, or revoke the first with \`otpost app revoke ${appId}\`.`,
    )
  }
  return addKey(apiKey, keys)
}

/** `app rotate`: returns a second key. The first stays active until it is revoked. */
export async function rotateApp(ports: OperatorPorts, appId: string): Promise<string> {
  const apiKey = ports.secrets.newApiKey()
  await change(ports, { appId }, ({ keys }) => {
    const active = activeKeys(keys)
    if (active.length === 0) {
      throw new OperatorError(
        `App ${appId} has no active key. Create one with \`otpost app issue ${appId}\`.`,
      )
    }
    if (active.length >= maxKeys) {
      throw new OperatorError(
        `App ${appId} already has two keys, ending in ${listed(active)}. Revoke the unused one with \`otpost app revoke-key ${appId} LAST4\`.`,
      )
    }
    const details = { key: apiKey.lastFour, beside: listed(active) }
    return { newKey: addKey(apiKey, keys), entry: { action: 'app.rotated', target: appId, details } }
  })
  return apiKey.key
}

/** `app revoke-key`: returns the number of active keys left. */
export async function revokeKey(ports: ChangePorts, appId: string, ending: string): Promise<number> {
  const { left } = await change(ports, { appId }, ({ keys }) => {
    const active = activeKeys(keys)
    const key = active.find(({ lastFour }) => ending !== '' && lastFour === ending.slice(-lastFour.length))
    if (!key) {
      throw new OperatorError(
        active.length === 0
          ? `App ${appId} has no active key. \`otpost app list\` lists the apps.`
          : `App ${appId} has no active key that ends in ${ending.slice(-4)}. Its keys end in ${listed(active)}.`,
      )
    }
    return {
      revokedKeys: [key.lastFour],
      left: active.length - 1,
      entry: { action: 'app.key-revoked', target: appId, details: { key: key.lastFour } },
    }
  })
  return left
}

/** @returns a warning if APP_CREDENTIALS also has a key of the app */
export async function revokeApp(
  ports: ChangePorts,
  appId: string,
  configured: readonly string[] = [],
): Promise<string | undefined> {
  const warning = configured.includes(appId)
    ? `The key of ${appId} in APP_CREDENTIALS is still valid. Remove it from APP_CREDENTIALS, and restart the server.`
    : undefined
  await change(ports, { appId }, ({ keys }) => {
    const active = activeKeys(keys)
    if (active.length === 0) {
      throw new OperatorError(
        warning ?? `App ${appId} has no active key. \`otpost app list\` lists the apps.`,
      )
    }
    return {
      revokedKeys: active.map(({ lastFour }) => lastFour),
      entry: { action: 'app.revoked', target: appId, details: { keys: listed(active) } },
    }
  })
  return warning
}
