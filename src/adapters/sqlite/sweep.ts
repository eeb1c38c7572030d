import { and, gt, lte, type SQL, sql } from 'drizzle-orm'
import { expiredDeletions } from '../store/expiry-cleanup.ts'
import type { RetainAfter, SweepStep } from '../store/store.ts'
import type { Database } from './database.ts'
import { createRecipientIndex } from './recipient-index.ts'
import { codesAndLimits } from './schema.ts'
import { sweepStats } from './stats.ts'

/** Small, so that concurrent requests do not wait noticeably. */
const batch = 500

const otherBatch = 200

/** The returned function takes one step. Codes and limits are visited by key, round after round. */
export function createSweep(
  database: Database,
): (now: number, retainAfter: RetainAfter) => Promise<SweepStep> {
  const { orm, writer, shrink } = database
  const recipientIndex = createRecipientIndex(database)
  let after = ''

  return async (now, retainAfter) => {
    const from = after
    const { next, ...step } = await writer.write(() => {
      const { subject, expiresAt } = codesAndLimits
      const last = orm
        .select({ subject })
        .from(codesAndLimits)
        .where(gt(subject, from))
        .orderBy(subject)
        .limit(1)
        .offset(batch - 1)
        .get()
      const expired = orm
        .delete(codesAndLimits)
        .where(and(gt(subject, from), last && lte(subject, last.subject), lte(expiresAt, now)))
        .run().changes
      const deletions = [...expiredDeletions(now, retainAfter, otherBatch), expiredRuns(retainAfter)]
      const counts = deletions.map((each) => orm.run(each).changes)
      const isFull = Math.max(sweepStats({ orm }, now), ...counts) >= otherBatch
      const isShrinking = shrink()
      return {
        next: last?.subject ?? '',
        isRound: last === undefined && !isFull,
        isBusy: expired > batch / 4 || isFull || isShrinking,
      }
    })
    after = next
    const isIndexing = await recipientIndex.addRun(now)
    return { ...step, isRound: step.isRound && !isIndexing }
  }
}

/** All requests of a run are older than its `indexed_before`. */
function expiredRuns({ eventLog }: RetainAfter): SQL {
  return sql`DELETE FROM recipient_index WHERE (indexed_before, recipient_hash, request_id) IN
    (SELECT indexed_before, recipient_hash, request_id FROM recipient_index WHERE indexed_before <= ${eventLog}
     ORDER BY indexed_before, recipient_hash, request_id LIMIT ${otherBatch})`
}
