import { type SQL, sql } from 'drizzle-orm'
import { statSteps } from '../../domain/events/stats.ts'
import { firstIdOf } from '../store/event-log.ts'
import type { RetainAfter, SweepStep } from '../store/store.ts'
import type { Database } from './database.ts'

/** Ledgers looked at in one step: few enough that requests beside it don't wait noticeably. */
const batch = 500

/** Rows of any other table removed in one step. */
const otherBatch = 1000

/** How long the outbox keeps a message. */
const outboxMs = 86_400_000

/** How long the node that sweeps may fall silent before another does. */
const leaseMs = 15_000

const lease = {
  name: 'otpost_lease',
  text: 'SELECT otpost_lease($1::text, $2::text, $3::bigint, $4::bigint) AS is_own',
}

/**
 * Makes the sweep, which one node at a time does, a small step at a time. Rows that somebody has locked are passed over: it
 * waits for nobody, and comes again.
 *
 * @param node a name of this process alone
 * @returns takes one step
 */
export function createSweep(
  { orm, pool, given }: Pick<Database, 'orm' | 'pool' | 'given'>,
  node: string,
): (now: number, retainAfter: RetainAfter) => Promise<SweepStep> {
  let after = ''

  return async (now, retainAfter) => {
    const [answer] = await pool.query<{ is_own: boolean }>(lease, ['sweep', node, leaseMs, given(now)])
    if (!answer?.is_own) return { isRound: true, isBusy: false }
    const [ledgers, next] = await sweepLedgers(now)
    after = next
    const before = firstIdOf(retainAfter.eventLog)
    let isFull = false
    for (const deletion of deletions(now, retainAfter, before)) {
      if ((await changedBy(orm, deletion)) >= otherBatch) isFull = true
    }
    return { isRound: next === '' && !isFull, isBusy: ledgers > batch / 4 || isFull }
  }

  /** Goes through the ledgers by their key, round after round. */
  async function sweepLedgers(now: number): Promise<readonly [removed: number, next: string]> {
    const [last] = await pool.rows(
      'SELECT subject FROM ledgers WHERE subject > $1 ORDER BY subject LIMIT 1 OFFSET $2',
      [after, batch - 1],
    )
    const until = typeof last?.[0] === 'string' ? last[0] : undefined
    const range =
      until === undefined ? sql`subject > ${after}` : sql`subject > ${after} AND subject <= ${until}`
    const removed = await changedBy(
      orm,
      sql`DELETE FROM ledgers WHERE subject IN
        (SELECT subject FROM ledgers WHERE ${range} AND ends_at <= ${now} ORDER BY subject FOR UPDATE SKIP LOCKED)`,
    )
    return [removed, until ?? '']
  }

  function deletions(now: number, retainAfter: RetainAfter, before: string): readonly SQL[] {
    const some = sql.raw(`LIMIT ${otherBatch} FOR UPDATE SKIP LOCKED`)
    return [
      sql`DELETE FROM outbox WHERE id IN
        (SELECT id FROM outbox WHERE created_at <= ${now - outboxMs} ORDER BY created_at ${some})`,
      sql`DELETE FROM requests WHERE request_id IN
        (SELECT request_id FROM requests WHERE request_id < ${before} ORDER BY request_id ${some})`,
      sql`DELETE FROM attempts WHERE (request_id, attempt) IN
        (SELECT request_id, attempt FROM attempts WHERE request_id < ${before} ORDER BY request_id, attempt ${some})`,
      sql`DELETE FROM delivery_reports WHERE key IN
        (SELECT key FROM delivery_reports WHERE at < ${retainAfter.eventLog} ORDER BY at ${some})`,
      ...statSteps.map(
        ({
          stepMs,
          retentionMs,
        }) => sql`DELETE FROM stats WHERE (part, step_ms, at, kind, channel, brand, provider, detail) IN
          (SELECT part, step_ms, at, kind, channel, brand, provider, detail FROM stats
           WHERE step_ms = ${stepMs} AND at < ${now - retentionMs} ORDER BY at ${some})`,
      ),
      sql`DELETE FROM audit WHERE id IN (SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT ${sql.raw(String(otherBatch))}) AS oldest WHERE at < ${retainAfter.audit})`,
      sql`DELETE FROM integration_requests WHERE id IN
        (SELECT id FROM integration_requests WHERE coalesce(decided_at, created_at) < ${retainAfter.requests} ${some})`,
      sql`DELETE FROM console_sessions WHERE expires_at <= ${now}`,
      sql`DELETE FROM console_links WHERE expires_at <= ${now}`,
      sql`DELETE FROM resting_providers WHERE rests_until <= ${now - leaseMs}`,
    ]
  }
}

/** Runs a DELETE or UPDATE; resolves to how many rows it changed. */
export async function changedBy(orm: Database['orm'], statement: SQL): Promise<number> {
  const rows: unknown = await orm.execute(
    sql`WITH changed AS (${statement} RETURNING 1) SELECT count(*)::int FROM changed`,
  )
  return Array.isArray(rows) && Array.isArray(rows[0]) ? Number(rows[0][0]) : 0
}
