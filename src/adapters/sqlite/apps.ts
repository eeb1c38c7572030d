import { timingSafeEqual } from 'node:crypto'
import { and, asc, eq, isNotNull, isNull, sql } from 'drizzle-orm'
import type { AppBook } from '../../domain/operator.ts'
import type { Apps } from '../../domain/ports.ts'
import { remembered } from './changes.ts'
import type { Database } from './database.ts'
import { apps } from './schema.ts'

/**
 * Applications in SQLite, and beside them those of the setting APP_CREDENTIALS.
 *
 * @param sha256 how a key is hashed before it is stored or compared
 * @param credentials appId → API key
 */
export function createAppBook(
  { orm, writer, changes }: Database,
  sha256: (apiKey: string) => string,
  credentials: ReadonlyMap<string, string>,
): AppBook & Apps {
  const configured = new Map([...credentials].map(([appId, apiKey]) => [appId, Buffer.from(sha256(apiKey))]))
  // No key hashes to it; an unknown app is compared with it, so that it takes as long as a known one.
  const nobody = Buffer.from('A'.repeat(sha256('').length))
  const live = orm
    .select({ keySha256: apps.keySha256 })
    .from(apps)
    .where(and(eq(apps.appId, sql.placeholder('appId')), isNull(apps.revokedAt)))
    .prepare()
  const keyOf = remembered(changes, (appId: string) => {
    const row = live.get({ appId })
    return row && Buffer.from(row.keySha256)
  })

  return {
    accepts: async (appId, apiKey) => {
      const given = Buffer.from(sha256(apiKey))
      const issued = timingSafeEqual(given, keyOf(appId) ?? nobody)
      const set = timingSafeEqual(given, configured.get(appId) ?? nobody)
      return issued || set
    },
    list: async () =>
      orm
        .select({ appId: apps.appId, createdAt: apps.createdAt, revokedAt: apps.revokedAt })
        .from(apps)
        .orderBy(asc(apps.appId))
        .all(),
    issue: (appId, keySha256, now) =>
      writer.write(() => {
        changes.tell()
        const row = { keySha256, createdAt: now, revokedAt: null }
        const changed = orm
          .insert(apps)
          .values({ appId, ...row })
          .onConflictDoUpdate({ target: apps.appId, set: row, setWhere: isNotNull(apps.revokedAt) })
          .run()
        return changed.changes === 1
      }),
    revoke: (appId, now) =>
      writer.write(() => {
        changes.tell()
        const changed = orm
          .update(apps)
          .set({ revokedAt: now })
          .where(and(eq(apps.appId, appId), isNull(apps.revokedAt)))
          .run()
        return changed.changes === 1
      }),
  }
}
