import { setTimeout as pause } from 'node:timers/promises'
import { type SQL, sql } from 'drizzle-orm'
import { erasedAt } from '../../domain/messages/queue.ts'
import { longestLifetimeMs } from '../../domain/messages/queue-body.ts'
import type { Log } from '../../domain/ports.ts'
import { dayMs, hourMs } from '../../domain/time.ts'
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
const eventRetentionMs = 7 * dayMs
const unresolvedRetentionMs = hourMs
const alertRetentionMs = 90 * dayMs

/**
 * For all tables except codes, limits, verified numbers and statistics.
 * @param lock a locking clause for the selected rows
 */
export function expiredDeletions(now: number, retainAfter: RetainAfter, batch: number, lock = sql``): SQL[] {
  const before = firstIdOf(retainAfter.eventLog)
  const beforeJobs = firstIdOf(Math.min(retainAfter.eventLog, now - 2 * longestLifetimeMs))
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
    sql`DELETE FROM notify_jobs WHERE (request_id, position) IN
      (SELECT request_id, position FROM notify_jobs WHERE request_id < ${beforeJobs}
       ORDER BY request_id, position ${limit} ${lock})`,
    sql`DELETE FROM notify_orders WHERE request_id IN
      (SELECT request_id FROM notify_orders WHERE request_id < ${beforeJobs} ORDER BY request_id ${limit} ${lock})`,
    ...erasures(now, limit, lock),
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
    sql`DELETE FROM events WHERE id IN
      (SELECT id FROM events WHERE id < ${firstIdOf(now - eventRetentionMs)} ORDER BY id ${limit} ${lock})`,
    // A server without webhooks reads no events.
    sql`DELETE FROM events WHERE id IN
      (SELECT id FROM events WHERE state = 'new' AND due_at < ${now - unresolvedRetentionMs} ${limit} ${lock})`,
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

/** An end of a job is committed within this time. */
const committedMs = 10_000

/**
 * Of asynchronous notifications: the content that no other job needs, and the recipients. A recipient that is erased here was
 * seen by the statement before it.
 */
function erasures(now: number, limit: SQL, lock: SQL): SQL[] {
  const ended = sql.raw("('accepted', 'failed', 'unknown', 'cancelled')")
  const due = (columns: string, at: number) =>
    sql`SELECT ${sql.raw(columns)} FROM notify_jobs WHERE state IN ${ended} AND due_at <= ${at} ORDER BY due_at ${limit}`
  return [
    sql`UPDATE notify_orders SET content = '' WHERE content <> '' AND request_id IN (${due('request_id', now)})
      AND NOT EXISTS (SELECT 1 FROM notify_jobs AS other WHERE other.request_id = notify_orders.request_id
        AND other.recipient IS NOT NULL AND NOT (other.state IN ${ended} AND other.due_at <= ${now}))`,
    sql`UPDATE notify_jobs SET recipient = NULL, due_at = ${sql.raw(String(erasedAt))}
      WHERE (request_id, position) IN (${due('request_id, position', now - committedMs)} ${lock})`,
  ]
}
