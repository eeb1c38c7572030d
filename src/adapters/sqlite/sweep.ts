import { and, eq, getTableColumns, gt, lt, lte, type SQL, sql } from 'drizzle-orm'
import { statSteps } from '../../domain/log/stats.ts'
import { verifiedRetentionMs } from '../store/event-rows.ts'
import { expiredDeletions } from '../store/expiry-cleanup.ts'
import type { RetainAfter, SweepStep } from '../store/store.ts'
import type { Database } from './database.ts'
import { createRecipientIndex } from './recipient-index.ts'
import { codesAndLimits, stats, verifiedNumbers } from './schema.ts'

/** Small, so that concurrent requests do not wait noticeably. */
const batch = 500

const otherBatch = 200

/** The returned function takes one step. Codes, limits and verified numbers are visited by key, round after round. */
export function createSweep(
  database: Database,
): (now: number, retainAfter: RetainAfter) => Promise<SweepStep> {
  const { orm, writer, shrink } = database
  const recipientIndex = createRecipientIndex(database)
  let next = { codes: '', numbers: '' }

  /** Deletes expired rows of the next keys. `last`: the last of these keys; undefined at the end of the table. */
  function visit(
    table: typeof codesAndLimits | typeof verifiedNumbers,
    from: string,
    isExpired: SQL,
  ): { readonly removed: number; readonly last: string | undefined } {
    const { subject } = table
    const last = orm
      .select({ subject })
      .from(table)
      .where(gt(subject, from))
      .orderBy(subject)
      .limit(1)
      .offset(batch - 1)
      .get()
    const isIn = and(gt(subject, from), last && lte(subject, last.subject), isExpired)
    return { removed: orm.delete(table).where(isIn).run().changes, last: last?.subject }
  }

  return async (now, retainAfter) => {
    const from = next
    const done = await writer.write(() => {
      const codes = visit(codesAndLimits, from.codes, lte(codesAndLimits.expiresAt, now))
      const numbers = visit(
        verifiedNumbers,
        from.numbers,
        lte(verifiedNumbers.verifiedAt, now - verifiedRetentionMs),
      )
      const deletions = [...expiredDeletions(now, retainAfter, otherBatch), expiredRuns(retainAfter)]
      const counts = deletions.map((each) => orm.run(each).changes)
      const isFull = Math.max(sweepStats({ orm }, now), ...counts) >= otherBatch
      const isShrinking = shrink()
      return {
        next: { codes: codes.last ?? '', numbers: numbers.last ?? '' },
        // A round of the verified numbers, which may be millions, need not end soon.
        isRound: codes.last === undefined && !isFull,
        isBusy: codes.removed > batch / 4 || isFull || isShrinking,
      }
    })
    next = done.next
    const isIndexing = await recipientIndex.addRun(now)
    return { isRound: done.isRound && !isIndexing, isBusy: done.isBusy }
  }
}

/** All requests of a run are older than its `indexed_before`. */
function expiredRuns({ eventLog }: RetainAfter): SQL {
  return sql`DELETE FROM recipient_index WHERE (indexed_before, recipient_hash, request_id) IN
    (SELECT indexed_before, recipient_hash, request_id FROM recipient_index WHERE indexed_before <= ${eventLog}
     ORDER BY indexed_before, recipient_hash, request_id LIMIT ${otherBatch})`
}

function sweepStats({ orm }: Pick<Database, 'orm'>, now: number): number {
  let removed = 0
  for (const { stepMs, retentionMs } of statSteps) {
    const { count: _, ...key } = getTableColumns(stats)
    const some = orm
      .select(key)
      .from(stats)
      .where(and(eq(stats.stepMs, stepMs), lt(stats.at, now - retentionMs)))
      .orderBy(stats.at)
      .limit(batch)
    removed += orm
      .delete(stats)
      .where(sql`(${sql.join(Object.values(key), sql`, `)}) IN ${some}`)
      .run().changes
  }
  return removed
}
