import { setTimeout as pause } from 'node:timers/promises'
import { type SQL, sql } from 'drizzle-orm'
import type { Log } from '../../domain/ground/ports.ts'
import { dayMs, hourMs } from '../../domain/ground/time.ts'
import { erasedAt } from '../../domain/notify/queue.ts'
import { longestLifetimeMs } from '../../domain/notify/queue-body.ts'
import { firstIdOf } from './event-rows.ts'
import type { RetainAfter, SweepStep } from './store.ts'

/** A step rests ten times as long as it took, within these bounds. */
const pauseMs = { round: 5000, step: 20 } as const

/** Ends after the step that is in progress at the abort. */
export function createExpiryCleanup(sweep: () => Promise<SweepStep>, stopping: AbortSignal, log: Log) {
  let running: Promise<void> | undefined
  return {
    start(): void {
      running = run(sweep, stopping, log)
    },
    stop: () => running,
  }
}

async function run(sweep: () => Promise<SweepStep>, signal: AbortSignal, log: Log): Promise<void> {
  while (!signal.aborted) {
    let waitMs: number = pauseMs.round
    try {
      const startedAt = performance.now()
      const { isRound, isBusy } = await sweep()
      const restMs = Math.min(Math.max(pauseMs.step, 10 * (performance.now() - startedAt)), pauseMs.round)
      if (!isRound) waitMs = isBusy ? 0 : restMs
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

/** For all tables except codes, limits, verified numbers and statistics. */
export function expiredDeletions(now: number, retainAfter: RetainAfter, batch: number): SQL[] {
  const before = firstIdOf(retainAfter.eventLog)
  const beforeJobs = firstIdOf(Math.min(retainAfter.eventLog, now - 2 * longestLifetimeMs))
  const remove = (table: string, key: string, isExpired: SQL, order = key) =>
    deletion({ table, key, isExpired, order, batch })
  return [
    remove('outbox', 'id', sql`created_at <= ${now - outboxRetentionMs}`, 'created_at'),
    remove('requests', 'request_id', sql`request_id < ${before}`),
    remove('attempts', 'request_id, attempt', sql`request_id < ${before}`),
    remove('delivery_reports', 'key', sql`at < ${retainAfter.eventLog}`, 'at'),
    remove('notify_jobs', 'request_id, position', sql`request_id < ${beforeJobs}`),
    remove('notify_orders', 'request_id', sql`request_id < ${beforeJobs}`),
    ...erasures(now, batch),
    // IDs are in order of time.
    sql`DELETE FROM audit WHERE id IN
      (SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT ${sql.raw(String(batch))}) AS oldest
       WHERE at < ${retainAfter.audit})`,
    remove('integration_requests', 'id', sql`coalesce(decided_at, created_at) < ${retainAfter.requests}`),
    remove('guard_buckets', 'kind, key, node', sql`updated_at < ${now - bucketRetentionMs}`, 'updated_at'),
    remove('guard_prefixes', 'prefix, by', sql`expires_at <= ${now - prefixRetentionMs}`),
    remove('events', 'id', sql`id < ${firstIdOf(now - eventRetentionMs)}`),
    // A server without webhooks reads no events.
    remove('events', 'id', sql`state = 'new' AND due_at < ${now - unresolvedRetentionMs}`, 'due_at'),
    remove('alerts', 'key', sql`at < ${now - alertRetentionMs}`),
    remove('alert_deliveries', 'key, channel', sql`due_at < ${now - alertRetentionMs}`),
    remove('idempotency_keys', 'hash', sql`expires_at <= ${now}`, 'expires_at'),
    sql`DELETE FROM console_sessions WHERE expires_at <= ${now}`,
    sql`DELETE FROM console_links WHERE expires_at <= ${now}`,
  ]
}

interface Expired {
  readonly table: string
  readonly key: string
  readonly isExpired: SQL
  /** Columns of an index that finds expired rows. */
  readonly order?: string
  readonly batch: number
}

/**
 * Deletes at most a batch. The condition is repeated, since PostgreSQL checks only the outer one on a row that a request has
 * renewed meanwhile. No locking clause: Citus rejects it here.
 */
export function deletion({ table, key, isExpired, order, batch }: Expired): SQL {
  const [from, columns] = [sql.raw(table), sql.raw(key)]
  const first = sql.raw(`${order ? `ORDER BY ${order}` : ''} LIMIT ${batch}`)
  return sql`DELETE FROM ${from} WHERE ${isExpired} AND (${columns}) IN
    (SELECT ${columns} FROM ${from} WHERE ${isExpired} ${first})`
}

/** An end of a job is committed within this time. */
const committedMs = 10_000

/**
 * Of asynchronous notifications: the content that no other job needs, and the recipients. A recipient that is erased here was
 * seen by the statement before it.
 */
function erasures(now: number, batch: number): SQL[] {
  const ended = sql.raw("('accepted', 'failed', 'unknown', 'cancelled')")
  const isDue = (at: number) => sql`state IN ${ended} AND due_at <= ${at}`
  const due = (columns: string, at: number) =>
    sql`SELECT ${sql.raw(columns)} FROM notify_jobs WHERE ${isDue(at)} ORDER BY due_at LIMIT ${sql.raw(String(batch))}`
  return [
    sql`UPDATE notify_orders SET content = '' WHERE content <> '' AND request_id IN (${due('request_id', now)})
      AND NOT EXISTS (SELECT 1 FROM notify_jobs AS other WHERE other.request_id = notify_orders.request_id
        AND other.recipient IS NOT NULL AND NOT (other.state IN ${ended} AND other.due_at <= ${now}))`,
    sql`UPDATE notify_jobs SET recipient = NULL, due_at = ${sql.raw(String(erasedAt))}
      WHERE ${isDue(now - committedMs)} AND (request_id, position) IN (${due('request_id, position', now - committedMs)})`,
  ]
}
