import { and, gt, lte, type SQL } from 'drizzle-orm'
import { verifiedRetentionMs } from '../store/event-rows.ts'
import { expiredDeletions } from '../store/expiry-cleanup.ts'
import type { RetainAfter, SweepStep } from '../store/store.ts'
import type { Database } from './database.ts'
import { createRecipientIndex } from './recipient-index.ts'
import { tables } from './schema.ts'

const { codesAndLimits, verifiedNumbers } = tables

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
      const deletions = expiredDeletions('sqlite', now, retainAfter, otherBatch)
      const counts = deletions.map((each) => orm.run(each).changes)
      const isFull = Math.max(...counts) >= otherBatch
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
