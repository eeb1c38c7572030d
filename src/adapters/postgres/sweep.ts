import { and, gt, lte, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import { statSteps } from '../../domain/events/stats.ts'
import { expiredDeletions } from '../store/expiry-cleanup.ts'
import type { RetainAfter, SweepStep } from '../store/store.ts'
import { verifiedRetentionMs } from '../store/verified-numbers.ts'
import { raiseRevision } from './changes.ts'
import { serverTime } from './clock.ts'
import { type Database, ormOn } from './database.ts'
import { codesAndLimits, leases, openCircuitRows, verifiedNumbers } from './schema.ts'

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
  let next = { codes: '', numbers: '' }

  return async (now, retainAfter) => {
    if (!(await takeLease(orm, { name: 'sweep', holder: node, lengthMs: leaseMs, now: given(now) }))) {
      return { isRound: true, isBusy: false }
    }
    const codes = await visit(
      codesAndLimits,
      [codesAndLimits.subject, codesAndLimits.name],
      next.codes,
      lte(codesAndLimits.expiresAt, now),
    )
    const numbers = await visit(
      verifiedNumbers,
      [verifiedNumbers.subject],
      next.numbers,
      lte(verifiedNumbers.verifiedAt, now - verifiedRetentionMs),
    )
    next = { codes: codes.last ?? '', numbers: numbers.last ?? '' }
    let isFull = false
    for (const deletion of deletions(now, retainAfter)) {
      if ((await changedBy(orm, deletion)) >= otherBatch) isFull = true
    }
    await closeCircuits(now)
    // A round of the verified numbers, which may be millions, need not end soon.
    return { isRound: codes.last === undefined && !isFull, isBusy: codes.removed > batch / 4 || isFull }
  }

  /** Deletes expired rows of the next keys. `last`: the last of these keys; undefined at the end of the table. */
  async function visit(
    table: typeof codesAndLimits | typeof verifiedNumbers,
    key: readonly PgColumn[],
    from: string,
    isExpired: SQL,
  ): Promise<{ readonly removed: number; readonly last: string | undefined }> {
    const { subject } = table
    const [last] = await orm
      .select({ subject })
      .from(table)
      .where(gt(subject, from))
      .orderBy(subject)
      .limit(1)
      .offset(batch - 1)
    const expired = orm
      .select(Object.fromEntries(key.map((column) => [column.name, column])))
      .from(table)
      .where(and(gt(subject, from), last && lte(subject, last.subject), isExpired))
      .orderBy(...key)
      .for('update', { skipLocked: true })
    const names = sql.join(
      key.map(({ name }) => sql.identifier(name)),
      sql`, `,
    )
    const removed = await changedBy(orm, sql`DELETE FROM ${table} WHERE (${names}) IN ${expired}`)
    return { removed, last: last?.subject }
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
