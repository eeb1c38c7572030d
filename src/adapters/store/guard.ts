import { and, desc, eq, gt, gte, ne } from 'drizzle-orm'
import type { GuardReader } from '../../domain/guard/status.ts'
import type { GuardStore } from '../../domain/guard/store.ts'
import type { StoreDatabase } from './database.ts'
import { verifiedRetentionMs } from './event-rows.ts'
import { givenRows, replacing } from './statements.ts'
import { createStatistics } from './statistics.ts'

/** The newest rows that an exchange of the guard reads. */
const [mostBuckets, mostPrefixes] = [50_000, 10_000]
/** Each takes up to 0.1 ms: its country is looked up. */
const mostFlagged = 200

/** The guard's blocks do not raise the revision, since each process reads them every few seconds. */
export function createGuardStore(database: StoreDatabase): GuardStore & Pick<GuardReader, 'flaggedSince'> {
  const { orm, tables, now, write, jsonElements, verifiedAt } = database
  const { guardBuckets, guardPrefixes } = tables
  const bucketKey = [guardBuckets.kind, guardBuckets.key, guardBuckets.node]
  const prefixKey = [guardPrefixes.prefix, guardPrefixes.by]
  const { verifiedHistory } = createStatistics(database)
  return {
    saveBuckets: async (rows) => {
      if (rows.length === 0) return
      const given = givenRows(jsonElements, guardBuckets, rows, bucketKey)
      await write(
        orm.insert(guardBuckets).select(given).onConflictDoUpdate(replacing(guardBuckets, bucketKey)),
      )
    },
    bucketsSince: async (since, exceptNode) =>
      orm
        .select()
        .from(guardBuckets)
        .where(
          and(
            gte(guardBuckets.updatedAt, since),
            ne(guardBuckets.node, exceptNode),
            ne(guardBuckets.kind, 'flagged'),
          ),
        )
        .orderBy(desc(guardBuckets.updatedAt))
        .limit(mostBuckets),
    flaggedSince: async (since) =>
      orm
        .select()
        .from(guardBuckets)
        .where(and(eq(guardBuckets.kind, 'flagged'), gte(guardBuckets.updatedAt, since)))
        .orderBy(desc(guardBuckets.sent))
        .limit(mostFlagged),
    saveBlocks: async (blocks) => {
      if (blocks.length === 0) return
      const given = givenRows(jsonElements, guardPrefixes, blocks, prefixKey)
      await write(
        orm.insert(guardPrefixes).select(given).onConflictDoUpdate(replacing(guardPrefixes, prefixKey)),
      )
    },
    prefixes: async () =>
      orm
        .select()
        .from(guardPrefixes)
        .where(gt(guardPrefixes.expiresAt, now()))
        // First the operator's, which must not be left out.
        .orderBy(desc(guardPrefixes.by), desc(guardPrefixes.createdAt))
        .limit(mostPrefixes),
    isVerified: async (subjects) => {
      for (const subject of subjects) {
        const at = await verifiedAt(subject)
        if (at !== undefined && at > now() - verifiedRetentionMs) return true
      }
      return false
    },
    verifiedHistory: () => verifiedHistory(now()),
  }
}
