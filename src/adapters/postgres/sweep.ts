import { and, gt, lte, type SQL, sql } from 'drizzle-orm'
import { statSteps } from '../../domain/events/stats.ts'
import { expiredDeletions } from '../store/expiry-cleanup.ts'
import type { RetainAfter, SweepStep } from '../store/store.ts'
import { raiseRevision } from './changes.ts'
import { serverTime } from './clock.ts'
import { type Database, ormOn } from './database.ts'
import { codesAndLimits, leases, openCircuitRows } from './schema.ts'

/** Small, so that concurrent requests do not wait noticeably. */
const batch = 500

const otherBatch = 1000

/** If the node with the lease is silent for longer, another takes over. */
const leaseMs = 15_000

/** Runs on one node at a time; each call takes one step. `node`: unique name of this process */
export function createSweep(
  { orm, pool, given }: Pick<Database, 'orm' | 'pool' | 'given'>,
  node: string,
): (now: number, retainAfter: RetainAfter) => Promise<SweepStep> {
  let after = ''

  return async (now, retainAfter) => {
    if (!(await takeLease(orm, { name: 'sweep', holder: node, lengthMs: leaseMs, now: given(now) }))) {
      return { isRound: true, isBusy: false }
    }
    const [expired, next] = await sweepCodesAndLimits(now)
    after = next
    let isFull = false
    for (const deletion of deletions(now, retainAfter)) {
      if ((await changedBy(orm, deletion)) >= otherBatch) isFull = true
    }
    await closeCircuits(now)
    return { isRound: next === '' && !isFull, isBusy: expired > batch / 4 || isFull }
  }

  async function sweepCodesAndLimits(now: number): Promise<readonly [removed: number, next: string]> {
    const { subject, name, expiresAt } = codesAndLimits
    const [last] = await orm
      .select({ subject })
      .from(codesAndLimits)
      .where(gt(subject, after))
      .orderBy(subject)
      .limit(1)
      .offset(batch - 1)
    const expired = orm
      .select({ subject, name })
      .from(codesAndLimits)
      .where(and(gt(subject, after), last && lte(subject, last.subject), lte(expiresAt, now)))
      .orderBy(subject, name)
      .for('update', { skipLocked: true })
    const removed = await changedBy(
      orm,
      sql`DELETE FROM ${codesAndLimits} WHERE (subject, name) IN ${expired}`,
    )
    return [removed, last?.subject ?? '']
  }

  async function closeCircuits(now: number): Promise<void> {
    const isOver = lte(openCircuitRows.openUntil, now - leaseMs)
    const [over] = await orm.select().from(openCircuitRows).where(isOver).limit(1)
    if (!over) return
    await pool.transaction(async (connection) => {
      const inside = ormOn(connection)
      await inside.delete(openCircuitRows).where(isOver)
      await raiseRevision(inside)
    })
  }

  function deletions(now: number, retainAfter: RetainAfter): readonly SQL[] {
    const lock = sql`FOR UPDATE SKIP LOCKED`
    const ofStats = statSteps.map(
      ({
        stepMs,
        retentionMs,
      }) => sql`DELETE FROM stats WHERE (part, step_ms, at, kind, channel, brand, provider, detail) IN
        (SELECT part, step_ms, at, kind, channel, brand, provider, detail FROM stats
         WHERE step_ms = ${stepMs} AND at < ${now - retentionMs}
         ORDER BY at LIMIT ${sql.raw(String(otherBatch))} ${lock})`,
    )
    return [...expiredDeletions(now, retainAfter, otherBatch, lock), ...ofStats]
  }
}

/** Takes or extends a lease; false while another node has it. */
async function takeLease(
  orm: Database['orm'],
  lease: {
    readonly name: string
    readonly holder: string
    readonly lengthMs: number
    readonly now: number | undefined
  },
): Promise<boolean> {
  const now = lease.now === undefined ? serverTime : sql`${lease.now}::bigint`
  const taken = await orm
    .insert(leases)
    .values({ name: lease.name, holder: lease.holder, endsAt: sql`${now} + ${lease.lengthMs}` })
    .onConflictDoUpdate({
      target: leases.name,
      set: { holder: sql`excluded.holder`, endsAt: sql`excluded.ends_at` },
      // An end that is too far in the future was stored before the clock was set back.
      setWhere: sql`${leases.holder} = excluded.holder or ${leases.endsAt} <= ${now}
        or ${leases.endsAt} > ${now} + ${2 * lease.lengthMs}`,
    })
    .returning({ name: leases.name })
  return taken.length > 0
}

async function changedBy(orm: Database['orm'], statement: SQL): Promise<number> {
  const rows: unknown = await orm.execute(
    sql`WITH changed AS (${statement} RETURNING 1) SELECT count(*)::int FROM changed`,
  )
  return Array.isArray(rows) && Array.isArray(rows[0]) ? Number(rows[0][0]) : 0
}
