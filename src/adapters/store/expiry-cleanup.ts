import { setTimeout as pause } from 'node:timers/promises'
import { type SQL, sql } from 'drizzle-orm'
import type { Log } from '../../domain/ground/ports.ts'
import { hourMs } from '../../domain/ground/time.ts'
import { statSteps } from '../../domain/log/stats.ts'
import { erasedAt } from '../../domain/notify/queue.ts'
import { longestLifetimeMs } from '../../domain/notify/queue-body.ts'
import { type AnyTable, keyOf, type Store, sqlName } from './dialect.ts'
import { schema } from './schema.ts'
import type { RetainAfter, SweepStep } from './store.ts'

/** The pause after a step, as a multiple of its duration, within these bounds. */
const pauseFactor = { usual: 10, busy: 4 } as const
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
      const tookMs = performance.now() - startedAt
      const longMs = Math.max(pauseMs.step, pauseFactor.usual * tookMs)
      if (!isRound) waitMs = Math.min(isBusy ? pauseFactor.busy * tookMs : longMs, pauseMs.round)
    } catch (error) {
      log.error({ err: error }, 'the expiry cleanup failed; it will be retried')
    }
    await pause(waitMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
}

const unresolvedRetentionMs = hourMs

/** For all tables except codes, limits and verified numbers. */
export function expiredDeletions(
  store: Store,
  now: number,
  { eventLog, audit, requests }: RetainAfter,
  batch: number,
): SQL[] {
  const ages = { now, eventLog, jobs: Math.min(eventLog, now - 2 * longestLifetimeMs), requests }
  const declared = Object.values<AnyTable>(schema).filter(({ stores }) => stores.includes(store))
  return [
    ...declared.flatMap((table) => {
      const { name, columns, facts } = table
      if (!facts.expired) return []
      const row = Object.fromEntries(Object.keys(columns).map((each) => [each, sql.raw(sqlName(each))]))
      const key = keyOf(table, store).map(sqlName).join(', ')
      const order = facts.expiredBy === undefined ? key : sqlName(facts.expiredBy)
      return [deletion({ table: name, key, isExpired: facts.expired(row, ages), order, batch })]
    }),
    ...statSteps.map(({ stepMs, retentionMs }) =>
      deletion({
        table: 'stats',
        key: keyOf(schema.stats, store).map(sqlName).join(', '),
        isExpired: sql`step_ms = ${stepMs} AND at < ${now - retentionMs}`,
        order: 'at',
        batch,
      }),
    ),
    ...erasures(now, batch),
    // IDs are in order of time.
    sql`DELETE FROM audit WHERE id IN
      (SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT ${sql.raw(String(batch))}) AS oldest
       WHERE at < ${audit})`,
    // A server without webhooks reads no events.
    deletion({
      table: 'events',
      key: 'id',
      isExpired: sql`state = 'new' AND due_at < ${now - unresolvedRetentionMs}`,
      order: 'due_at',
      batch,
    }),
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
 * Of codes that waited for a further way, and of asynchronous notifications: the content that no other job needs, and the recipients. A recipient that is erased here was
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
    // Whenever they are due: none waits longer than a code lives.
    sql`UPDATE ladders SET ended = 'the code has expired', sealed = '', due_at = NULL, report_key = NULL WHERE request_id IN
      (SELECT request_id FROM ladders WHERE due_at <= ${now + longestLifetimeMs} AND expires_at <= ${now}
       ORDER BY due_at LIMIT ${sql.raw(String(batch))})`,
  ]
}
