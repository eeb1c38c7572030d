import { setTimeout as pause } from 'node:timers/promises'
import { type SQL, sql } from 'drizzle-orm'
import type { Log } from '../../domain/ports.ts'
import { dayMs } from '../../domain/time.ts'
import { firstIdOf } from './event-rows.ts'
import type { RetainAfter, SweepStep } from './store.ts'

const pauseMs = { round: 5000, step: 20 } as const

export async function runExpiryCleanup(
  sweep: () => Promise<SweepStep>,
  signal: AbortSignal,
  log: Log,
): Promise<void> {
  while (!signal.aborted) {
    let waitMs: number = pauseMs.round
    try {
      const { isRound, isBusy } = await sweep()
      if (!isRound) waitMs = isBusy ? 0 : pauseMs.step
    } catch (error) {
      log.error({ err: error }, 'the expiry cleanup failed; it will be retried')
    }
    await pause(waitMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
}

const outboxRetentionMs = dayMs
const bucketRetentionMs = 2 * dayMs
const prefixRetentionMs = 7 * dayMs
const alertRetentionMs = 90 * dayMs

/**
 * For all tables except codes, limits, verified numbers and statistics.
 * @param lock a locking clause for the selected rows
 */
export function expiredDeletions(now: number, retainAfter: RetainAfter, batch: number, lock = sql``): SQL[] {
  const before = firstIdOf(retainAfter.eventLog)
  const limit = sql.raw(`LIMIT ${batch}`)
  return [
    sql`DELETE FROM outbox WHERE id IN
      (SELECT id FROM outbox WHERE created_at <= ${now - outboxRetentionMs} ORDER BY created_at ${limit} ${lock})`,
    sql`DELETE FROM requests WHERE request_id IN
      (SELECT request_id FROM requests WHERE request_id < ${before} ORDER BY request_id ${limit} ${lock})`,
    sql`DELETE FROM attempts WHERE (request_id, attempt) IN
      (SELECT request_id, attempt FROM attempts WHERE request_id < ${before}
       ORDER BY request_id, attempt ${limit} ${lock})`,
    sql`DELETE FROM delivery_reports WHERE key IN
      (SELECT key FROM delivery_reports WHERE at < ${retainAfter.eventLog} ORDER BY at ${limit} ${lock})`,
    // IDs are in order of time.
    sql`DELETE FROM audit WHERE id IN
      (SELECT id FROM (SELECT id, at FROM audit ORDER BY id ${limit}) AS oldest WHERE at < ${retainAfter.audit})`,
    sql`DELETE FROM integration_requests WHERE id IN
      (SELECT id FROM integration_requests
       WHERE coalesce(decided_at, created_at) < ${retainAfter.requests} ${limit} ${lock})`,
    sql`DELETE FROM guard_buckets WHERE (kind, key, node) IN
      (SELECT kind, key, node FROM guard_buckets WHERE updated_at < ${now - bucketRetentionMs}
       ORDER BY updated_at ${limit} ${lock})`,
    sql`DELETE FROM guard_prefixes WHERE (prefix, by) IN
      (SELECT prefix, by FROM guard_prefixes WHERE expires_at <= ${now - prefixRetentionMs} ${limit} ${lock})`,
    sql`DELETE FROM alerts WHERE key IN
      (SELECT key FROM alerts WHERE at < ${now - alertRetentionMs} ${limit} ${lock})`,
    sql`DELETE FROM alert_deliveries WHERE (key, channel) IN
      (SELECT key, channel FROM alert_deliveries WHERE due_at < ${now - alertRetentionMs} ${limit} ${lock})`,
    sql`DELETE FROM idempotency_keys WHERE hash IN
      (SELECT hash FROM idempotency_keys WHERE expires_at <= ${now} ORDER BY expires_at ${limit} ${lock})`,
    sql`DELETE FROM console_sessions WHERE expires_at <= ${now}`,
    sql`DELETE FROM console_links WHERE expires_at <= ${now}`,
  ]
}
