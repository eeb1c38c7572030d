import { and, asc, eq, isNull, max, sql } from 'drizzle-orm'
import type { AppKey } from '../../domain/operator/operator.ts'
import type { ApiKey } from '../../domain/ports.ts'
import { type KeyStore, type KeyUses, listedApps, listedKey } from '../store/keys.ts'
import { remembered } from './changes.ts'
import type { Database } from './database.ts'
import { appKeys } from './schema.ts'

/** Applications in SQLite. */
export function createAppStore({ orm, changes }: Pick<Database, 'orm' | 'changes'>): KeyStore {
  const live = orm
    .select({ keySha256: appKeys.keySha256 })
    .from(appKeys)
    .where(and(eq(appKeys.appId, sql.placeholder('appId')), isNull(appKeys.revokedAt)))
    .prepare()
  const liveKeys = remembered(changes, (appId: string) => live.all({ appId }).map((row) => row.keySha256))
  return {
    liveKeys: async (appId) => liveKeys(appId),
    list: async () => {
      const rows = orm.select().from(appKeys).orderBy(asc(appKeys.appId), asc(appKeys.createdAt)).all()
      return listedApps(rows)
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
        .map(listedKey),
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
