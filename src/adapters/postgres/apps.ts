import { and, asc, eq, isNull, max } from 'drizzle-orm'
import type { AppKey } from '../../domain/operator/operator.ts'
import type { ApiKey } from '../../domain/ports.ts'
import { type KeyStore, type KeyUses, listedApps, listedKey } from '../store/keys.ts'
import { remembered } from './changes.ts'
import type { Database, Orm } from './database.ts'
import { appKeys } from './schema.ts'

/** Applications in PostgreSQL; keys are remembered until something changes, on any node. */
export function createAppStore({ orm, changes }: Pick<Database, 'orm' | 'changes'>): KeyStore {
  return {
    liveKeys: remembered(changes, async (appId) => {
      const rows = await orm
        .select({ keySha256: appKeys.keySha256 })
        .from(appKeys)
        .where(and(eq(appKeys.appId, appId), isNull(appKeys.revokedAt)))
      return rows.map(({ keySha256 }) => keySha256)
    }),
    list: async () =>
      listedApps(await orm.select().from(appKeys).orderBy(asc(appKeys.appId), asc(appKeys.createdAt))),
  }
}

/** Keys of applications as a change of the operator reads and stores them. */
export function appTable(orm: Orm) {
  return {
    async read(appId: string): Promise<AppKey[]> {
      const rows = await orm
        .select()
        .from(appKeys)
        .where(eq(appKeys.appId, appId))
        .orderBy(asc(appKeys.createdAt))
      return rows.map(listedKey)
    },
    async add(
      appId: string,
      { sha256: keySha256, lastFour }: Omit<ApiKey, 'key'>,
      now: number,
    ): Promise<void> {
      // A key that is made within the same millisecond as another comes after it all the same.
      const [latest] = await orm
        .select({ at: max(appKeys.createdAt) })
        .from(appKeys)
        .where(eq(appKeys.appId, appId))
      const createdAt = Math.max(now, (latest?.at ?? 0) + 1)
      await orm.insert(appKeys).values({ appId, keySha256, lastFour, createdAt })
    },
    async revoke(appId: string, lastFour: string, now: number): Promise<void> {
      await orm
        .update(appKeys)
        .set({ revokedAt: now })
        .where(and(eq(appKeys.appId, appId), eq(appKeys.lastFour, lastFour), isNull(appKeys.revokedAt)))
    },
  }
}

/** Keeps when keys were used. */
export function createKeyUses({ orm }: Pick<Database, 'orm'>) {
  return async (uses: KeyUses): Promise<void> => {
    for (const [keySha256, at] of uses) {
      await orm.update(appKeys).set({ lastUsedAt: at }).where(eq(appKeys.keySha256, keySha256))
    }
  }
}
