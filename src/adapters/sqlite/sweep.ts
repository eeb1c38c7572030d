import { and, gt, lte, sql } from 'drizzle-orm'
import { firstIdOf } from '../store/event-rows.ts'
import type { RetainAfter, SweepStep } from '../store/store.ts'
import type { Database } from './database.ts'
import { codesAndLimits } from './schema.ts'
import { sweepStats } from './stats.ts'

/** Codes and limits visited in one step: few enough that requests beside it don't wait noticeably. */
const batch = 500

/** Messages of the outbox removed in one step. */
const outboxBatch = 100

/** Rows of a table of the event log removed in one step. */
const eventLogBatch = 200

/** How long the outbox keeps a message. */
const outboxMs = 86_400_000

/** Rows of what an operator leaves removed in one step: there are few. */
const operatorBatch = 100

/**
 * Makes the sweep, which removes what is over (codes and limits, old messages of the outbox, old statistics, sessions of the console,
 * and what the event log, the audit log and the integration requests have from before `keptFrom`) and gives emptied pages
 * back to the disk, a small step at a time. It visits codes and limits by their key, round after round: so no index by
 * time has to be kept, and the rows of one page go together.
 *
 * @returns takes one step
 */
export function createSweep({
  orm,
  writer,
  shrink,
}: Database): (now: number, retainAfter: RetainAfter) => Promise<SweepStep> {
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
      const messages = orm.run(
        sql`DELETE FROM outbox WHERE id IN
          (SELECT id FROM outbox WHERE created_at <= ${now - outboxMs} LIMIT ${outboxBatch})`,
      ).changes
      const eventLog =
        sweepEventLog(retainAfter.eventLog) + sweepStats({ orm }, now) + sweepOperator(now, retainAfter)
      const isShrinking = shrink()
      return {
        next: last?.subject ?? '',
        isRound: last === undefined && messages < outboxBatch && eventLog < eventLogBatch,
        isBusy: expired > batch / 4 || messages === outboxBatch || eventLog >= eventLogBatch || isShrinking,
      }
    })
    after = next
    return step
  }

  /** Removes some of what operators leave: old entries of the audit log, decided requests, sessions and links. */
  function sweepOperator(now: number, retainAfter: RetainAfter): number {
    const some = sql.raw(`LIMIT ${operatorBatch}`)
    const deletions = [
      // Its entries are numbered in the order of their time.
      sql`DELETE FROM audit WHERE id IN (SELECT id FROM (SELECT id, at FROM audit ORDER BY id ${some}) WHERE at < ${retainAfter.audit})`,
      sql`DELETE FROM integration_requests WHERE id IN
        (SELECT id FROM integration_requests WHERE coalesce(decided_at, created_at) < ${retainAfter.requests} ${some})`,
      sql`DELETE FROM console_sessions WHERE expires_at <= ${now}`,
      sql`DELETE FROM console_links WHERE expires_at <= ${now}`,
    ]
    return deletions.reduce((sum, deletion) => sum + orm.run(deletion).changes, 0)
  }

  /** Removes some of what the event log has from before an instant; returns how many rows that was. */
  function sweepEventLog(from: number): number {
    const before = firstIdOf(from)
    const some = sql.raw(`LIMIT ${eventLogBatch}`)
    const deletions = [
      sql`DELETE FROM requests WHERE request_id IN
        (SELECT request_id FROM requests WHERE request_id < ${before} ORDER BY request_id ${some})`,
      sql`DELETE FROM attempts WHERE (request_id, attempt) IN
        (SELECT request_id, attempt FROM attempts WHERE request_id < ${before} ORDER BY request_id, attempt ${some})`,
      sql`DELETE FROM delivery_reports WHERE key IN (SELECT key FROM delivery_reports WHERE at < ${from} ${some})`,
    ]
    return deletions.reduce((sum, deletion) => sum + orm.run(deletion).changes, 0)
  }
}
