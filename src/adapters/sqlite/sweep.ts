import { and, gt, lte, type SQL } from 'drizzle-orm'
import { verifiedRetentionMs } from '../store/event-rows.ts'
import { expiredDeletions } from '../store/expiry-cleanup.ts'
import type { RetainAfter, SweepStep } from '../store/store.ts'
import type { Database } from './database.ts'
import { createRecipientIndex } from './recipient-index.ts'
import { tables } from './schema.ts'

const { codesAndLimits, verifiedNumbers } = tables

// Requests wait for each transaction, so each takes a millisecond.

const batch = 500

const otherBatch = 200

/** A transaction starts no further deletion after this time. */
const enoughMs = 0.5

/** Between deletions from tables that are not visited by key, except at the end of a round. */
const othersMs = 1000

/** The returned function takes one step. Codes, limits and verified numbers are visited by key, round after round. */
export function createSweep(
  database: Database,
): (now: number, retainAfter: RetainAfter) => Promise<SweepStep> {
  const { orm, writer, shrink } = database
  const recipientIndex = createRecipientIndex(database)
  let from = { codes: '', numbers: '' }
  let othersAt = Number.NEGATIVE_INFINITY

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

  /** Resolves to whether rows are left that have expired. */
  async function deleteOthers(now: number, retainAfter: RetainAfter): Promise<boolean> {
    const deletions = expiredDeletions('sqlite', now, retainAfter, otherBatch)
    let isFull = false
    for (let index = 0; index < deletions.length; ) {
      const done = await writer.write(() => {
        const counts: number[] = []
        const endsAt = performance.now() + enoughMs
        for (const each of deletions.slice(index)) {
          counts.push(orm.run(each).changes)
          if (performance.now() >= endsAt) break
        }
        return counts
      })
      index += done.length
      isFull ||= Math.max(...done) >= otherBatch
    }
    return isFull
  }

  return async (now, retainAfter) => {
    const codes = await writer.write(() =>
      visit(codesAndLimits, from.codes, lte(codesAndLimits.expiresAt, now)),
    )
    const isEnd = codes.last === undefined
    from = { ...from, codes: codes.last ?? '' }
    const isIndexing = await recipientIndex.addRun(now)
    let isBusy = codes.removed > batch / 4
    if (isEnd || Math.abs(now - othersAt) >= othersMs) {
      const isOld = lte(verifiedNumbers.verifiedAt, now - verifiedRetentionMs)
      const numbers = await writer.write(() => visit(verifiedNumbers, from.numbers, isOld))
      // A round of the verified numbers, which may be millions, need not end soon.
      from = { ...from, numbers: numbers.last ?? '' }
      const isFull = await deleteOthers(now, retainAfter)
      if (!isFull) othersAt = now
      isBusy ||= isFull || (await writer.write(shrink))
      return { isRound: isEnd && !isFull && !isIndexing, isBusy }
    }
    return { isRound: false, isBusy }
  }
}
