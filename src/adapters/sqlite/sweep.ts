import { and, gt, lte, sql } from 'drizzle-orm'
import { firstIdOf } from '../store/event-rows.ts'
import type { RetainAfter, SweepStep } from '../store/store.ts'
import type { Database } from './database.ts'
import { codesAndLimits } from './schema.ts'
import { sweepStats } from './stats.ts'

/** Rows visited per step; small, so that concurrent requests do not wait noticeably. */
const batch = 500

const outboxBatch = 100

/** Rows of a table removed per step. */
const eventLogBatch = 200

const outboxMs = 86_400_000

const operatorBatch = 100

/** Creates the expiry cleanup; the result takes one small step. Codes and limits are visited by key, round after round. */
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

  function sweepOperator(now: number, retainAfter: RetainAfter): number {
    const some = sql.raw(`LIMIT ${operatorBatch}`)
    const deletions = [
      // Ids follow the order of time.
      sql`DELETE FROM audit WHERE id IN (SELECT id FROM (SELECT id, at FROM audit ORDER BY id ${some}) WHERE at < ${retainAfter.audit})`,
      sql`DELETE FROM integration_requests WHERE id IN
        (SELECT id FROM integration_requests WHERE coalesce(decided_at, created_at) < ${retainAfter.requests} ${some})`,
      sql`DELETE FROM console_sessions WHERE expires_at <= ${now}`,
      sql`DELETE FROM console_links WHERE expires_at <= ${now}`,
    ]
    return deletions.reduce((sum, deletion) => sum + orm.run(deletion).changes, 0)
  }

  /** Returns the number of removed rows. */
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
