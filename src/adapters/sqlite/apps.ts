import { timingSafeEqual } from 'node:crypto'
import { and, asc, eq, isNull, max, sql } from 'drizzle-orm'
import type { AppBook, AppKey, IssuedApp } from '../../domain/operator.ts'
import type { ApiKey, Apps, Clock } from '../../domain/ports.ts'
import { remembered } from './changes.ts'
import type { Database } from './database.ts'
import { appKeys } from './schema.ts'

/** When keys were last used: the hash of each, and epoch milliseconds. */
export type KeyUses = readonly (readonly [keySha256: string, at: number])[]

/** How exactly it is kept when a key was last used. */
const useMs = 60_000

/** Keys that an app is compared with, so that one with fewer takes as long. */
const comparedKeys = 2

/**
 * Applications in SQLite, and beside them those of the setting APP_CREDENTIALS.
 *
 * @param sha256 how a key is hashed before it is stored or compared
 * @param credentials appId → API key
 * @param uses is told, at most once a minute for each, which keys of the database are used
 */
export function createAppBook(
  { orm, changes }: Pick<Database, 'orm' | 'changes'>,
  sha256: (apiKey: string) => string,
  credentials: ReadonlyMap<string, string>,
  uses: { readonly now: Clock; readonly keep: (uses: KeyUses) => void } | undefined = undefined,
): AppBook & Apps & { readonly configured: readonly string[] } {
  const configured = new Map([...credentials].map(([appId, apiKey]) => [appId, Buffer.from(sha256(apiKey))]))
  // No key hashes to it; an unknown app is compared with it, so that it takes as long as a known one.
  const nobody = Buffer.from('A'.repeat(sha256('').length))
  const live = orm
    .select({ keySha256: appKeys.keySha256 })
    .from(appKeys)
    .where(and(eq(appKeys.appId, sql.placeholder('appId')), isNull(appKeys.revokedAt)))
    .prepare()
  const keysOf = remembered(changes, (appId: string) =>
    live.all({ appId }).map(({ keySha256 }) => Buffer.from(keySha256)),
  )
  /** When a use of each key was told. */
  const told = new Map<string, number>()

  function noteUse(keySha256: string): void {
    if (!uses) return
    const at = uses.now()
    const before = told.get(keySha256)
    // Also where the clock was set back.
    if (before !== undefined && Math.abs(at - before) < useMs) return
    told.set(keySha256, at)
    uses.keep([[keySha256, at]])
  }

  return {
    configured: [...configured.keys()],
    accepts: async (appId, apiKey) => {
      const hash = sha256(apiKey)
      const given = Buffer.from(hash)
      const keys = keysOf(appId)
      let issued = false
      for (let index = 0; index < Math.max(comparedKeys, keys.length); index++) {
        issued = timingSafeEqual(given, keys[index] ?? nobody) || issued
      }
      const set = timingSafeEqual(given, configured.get(appId) ?? nobody)
      if (issued) noteUse(hash)
      return issued || set
    },
    list: async () => {
      const rows = orm.select().from(appKeys).orderBy(asc(appKeys.appId), asc(appKeys.createdAt)).all()
      return Array.from(
        Map.groupBy(rows, ({ appId }) => appId),
        ([appId, keys]) => toApp(appId, keys),
      )
    },
  }
}

/** Keys of applications as a step of the writer reads and stores them. */
export function appTable(orm: Database['orm']) {
  return {
    read: (appId: string): AppKey[] =>
      orm
        .select()
        .from(appKeys)
        .where(eq(appKeys.appId, appId))
        .orderBy(asc(appKeys.createdAt))
        .all()
        .map(toKey),
    add(appId: string, { sha256: keySha256, lastFour }: Omit<ApiKey, 'key'>, now: number): void {
      // A key that is made within the same millisecond as another comes after it all the same.
      const [latest] = orm
        .select({ at: max(appKeys.createdAt) })
        .from(appKeys)
        .where(eq(appKeys.appId, appId))
        .all()
      const createdAt = Math.max(now, (latest?.at ?? 0) + 1)
      orm.insert(appKeys).values({ appId, keySha256, lastFour, createdAt }).run()
    },
    revoke(appId: string, lastFour: string, now: number): void {
      orm
        .update(appKeys)
        .set({ revokedAt: now })
        .where(and(eq(appKeys.appId, appId), eq(appKeys.lastFour, lastFour), isNull(appKeys.revokedAt)))
        .run()
    },
  }
}

/** Keeps when keys were used, in one step. The last word counts, as the clock may have been set back. */
export function createKeyUses({ orm, writer }: Pick<Database, 'orm' | 'writer'>) {
  return (uses: KeyUses): Promise<void> =>
    writer.write(() => {
      for (const [keySha256, at] of uses) {
        orm.update(appKeys).set({ lastUsedAt: at }).where(eq(appKeys.keySha256, keySha256)).run()
      }
    })
}

type Row = typeof appKeys.$inferSelect

function toKey({ lastFour, createdAt, revokedAt, lastUsedAt }: Row): AppKey {
  return { lastFour, createdAt, revokedAt, lastUsedAt }
}

function toApp(appId: string, rows: readonly Row[]): IssuedApp {
  const keys = rows.map(toKey)
  const revocations = keys.map(({ revokedAt }) => revokedAt).filter((at) => at !== null)
  return {
    appId,
    createdAt: Math.min(...keys.map(({ createdAt }) => createdAt)),
    revokedAt: revocations.length < keys.length ? null : Math.max(...revocations),
    keys,
  }
}
