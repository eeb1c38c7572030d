import { and, eq, isNull, sql } from 'drizzle-orm'
import { type IdempotencyKeys, keyLimitName } from '../../domain/limits/idempotency-store.ts'
import type { StoreDatabase } from './database.ts'
import { run } from './statements.ts'

export function createIdempotencyKeys({
  orm,
  tables: { idempotencyKeys, codesAndLimits },
  now,
  durable,
  transaction,
}: Pick<StoreDatabase, 'orm' | 'tables' | 'now' | 'durable' | 'transaction'>): IdempotencyKeys {
  const { hash, requestId, status } = idempotencyKeys
  const ofHash = orm
    .select()
    .from(idempotencyKeys)
    .where(eq(hash, sql.placeholder('hash')))
    .prepare('idempotency_key')
  return {
    find: async (hashes) => {
      for (const each of hashes) {
        const [row] = await ofHash.execute({ hash: each })
        if (!row || row.expiresAt <= now()) continue
        // The kept answer may be given before that of the request that it is of.
        await durable()
        return row
      }
      return undefined
    },
    release: (key) =>
      transaction(function* (inside) {
        const isUnchanged = and(eq(hash, key.hash), eq(requestId, key.requestId), isNull(status))
        const released = yield* run(inside.delete(idempotencyKeys).where(isUnchanged).returning({ hash }))
        const isItsLimit = and(eq(codesAndLimits.subject, key.hash), eq(codesAndLimits.name, keyLimitName))
        if (released.length > 0) yield* run(inside.delete(codesAndLimits).where(isItsLimit))
      }),
  }
}
