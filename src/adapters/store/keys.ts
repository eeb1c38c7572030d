import { timingSafeEqual } from 'node:crypto'
import { and, asc, eq, isNull, sql } from 'drizzle-orm'
import type { Apps } from '../../domain/ground/ports.ts'
import type { Clock } from '../../domain/ground/time.ts'
import { isAppId, maxApiKeyLength } from '../../domain/limits/credentials.ts'
import { coarseNetworkOf } from '../../domain/limits/limits.ts'
import type { AppKey, AppStore, IssuedApp, KeyOwner, KeyOwners } from '../../domain/operator/changes.ts'
import { cached, type Row, type StoreDatabase } from './database.ts'

export interface KeyStore extends AppStore {
  /** The text of each SHA-256 in base64url. */
  liveKeys(appId: string): readonly Buffer[] | Promise<readonly Buffer[]>
  /** The app of a key that is not revoked. */
  liveOwner(keySha256: string): string | undefined | Promise<string | undefined>
  /** A later call wins, since a clock may have been set back. */
  saveUse(keySha256: string, at: number, from: string | null): Promise<void>
  ownerOf(keySha256: string): Promise<KeyOwner | undefined>
}

export function createKeyStore({ orm, tables: { appKeys }, changes, write }: StoreDatabase): KeyStore {
  const live = orm
    .select({ keySha256: appKeys.keySha256 })
    .from(appKeys)
    .where(and(eq(appKeys.appId, sql.placeholder('appId')), isNull(appKeys.revokedAt)))
    .prepare('live_keys')
  const owners = orm
    .select({ appId: appKeys.appId })
    .from(appKeys)
    .where(and(eq(appKeys.keySha256, sql.placeholder('keySha256')), isNull(appKeys.revokedAt)))
    .prepare('live_owner')
  return {
    liveOwner: cached(changes, async (keySha256) => (await owners.execute({ keySha256 }))[0]?.appId),
    liveKeys: cached(changes, async (appId) =>
      (await live.execute({ appId })).map(({ keySha256 }) => Buffer.from(keySha256)),
    ),
    ownerOf: async (keySha256) => {
      const [key] = await orm.select().from(appKeys).where(eq(appKeys.keySha256, keySha256))
      return key && { appId: key.appId, key: listedKey(key) }
    },
    list: async () =>
      listedApps(await orm.select().from(appKeys).orderBy(asc(appKeys.appId), asc(appKeys.createdAt))),
    saveUse: (keySha256, lastUsedAt, lastUsedFrom) =>
      write(orm.update(appKeys).set({ lastUsedAt, lastUsedFrom }).where(eq(appKeys.keySha256, keySha256))),
  }
}

const useMs = 60_000

/** Minimum comparisons, so that the time does not depend on the number of keys. */
const comparedKeys = 2

/**
 * @param credentials appId → API key
 * @param uses saves the last use of a key, at most once a minute
 */
export function createApps(
  store: KeyStore,
  sha256: (apiKey: string) => string,
  credentials: ReadonlyMap<string, string>,
  uses: { readonly now: Clock; readonly save: KeyStore['saveUse'] } | undefined = undefined,
): AppStore & KeyOwners & Apps & { readonly configured: readonly string[] } {
  const configured = new Map([...credentials].map(([appId, apiKey]) => [appId, Buffer.from(sha256(apiKey))]))
  // No key has this hash. An unknown app is compared with it, so that it takes as long as a known one.
  const nobody = Buffer.alloc(sha256('').length, 'A')
  const savedAt = new Map<string, number>()

  function noteUse(keySha256: string, clientIp: string): void {
    if (!uses) return
    const at = uses.now()
    const before = savedAt.get(keySha256)
    if (before !== undefined && Math.abs(at - before) < useMs) return
    savedAt.set(keySha256, at)
    void uses.save(keySha256, at, coarseNetworkOf(clientIp))
  }

  function isOneOf(
    appId: string,
    hash: string,
    keys: readonly Buffer[],
    clientIp: string | undefined,
  ): boolean {
    const given = Buffer.from(hash)
    let issued = false
    for (let index = 0; index < Math.max(comparedKeys, keys.length); index++) {
      issued = timingSafeEqual(given, keys[index] ?? nobody) || issued
    }
    const set = timingSafeEqual(given, configured.get(appId) ?? nobody)
    if (issued && clientIp !== undefined) noteUse(hash, clientIp)
    return issued || set
  }

  return {
    configured: [...configured.keys()],
    accepts: (appId, apiKey, clientIp) => {
      // Before anything is hashed, looked up or cached (design D28).
      if (apiKey.length > maxApiKeyLength || !(isAppId(appId) || configured.has(appId))) return false
      const hash = sha256(apiKey)
      const keys = store.liveKeys(appId)
      return keys instanceof Promise
        ? keys.then((read) => isOneOf(appId, hash, read, clientIp))
        : isOneOf(appId, hash, keys, clientIp)
    },
    appOf: async (apiKey, clientIp) => {
      if (apiKey.length > maxApiKeyLength) return undefined
      const hash = sha256(apiKey)
      const appId = await store.liveOwner(hash)
      if (appId === undefined || configured.has(appId)) return undefined
      noteUse(hash, clientIp)
      return appId
    },
    list: () => store.list(),
    ownerOf: async (apiKey) => {
      if (apiKey.length > maxApiKeyLength) return undefined
      const hash = sha256(apiKey)
      const [appId] = [...configured].find(([, key]) => timingSafeEqual(Buffer.from(hash), key)) ?? []
      return appId === undefined ? store.ownerOf(hash) : { appId, key: null }
    },
  }
}

export function listedKey({ lastFour, createdAt, revokedAt, lastUsedAt, lastUsedFrom }: AppKey): AppKey {
  return { lastFour, createdAt, revokedAt, lastUsedAt, lastUsedFrom }
}

/** The keys must be sorted by appId and creation. */
export function listedApps(rows: readonly Row<'appKeys'>[]): readonly IssuedApp[] {
  return Array.from(
    Map.groupBy(rows, ({ appId }) => appId),
    ([appId, ofApp]): IssuedApp => {
      const keys = ofApp.map(listedKey)
      const revocations = keys.map(({ revokedAt }) => revokedAt).filter((at) => at !== null)
      return {
        appId,
        createdAt: Math.min(...keys.map(({ createdAt }) => createdAt)),
        revokedAt: revocations.length < keys.length ? null : Math.max(...revocations),
        keys,
      }
    },
  )
}
