import { lte, type SQL, sql } from 'drizzle-orm'
import { verifiedRetentionMs } from '../store/event-rows.ts'
import { deletion, expiredDeletions } from '../store/expiry-cleanup.ts'
import { plainError } from '../store/plain-errors.ts'
import type { RetainAfter, SweepStep } from '../store/store.ts'
import { raiseRevision } from './changes.ts'
import { serverTime } from './clock.ts'
import { type Database, ormOn } from './database.ts'
import { StatementError } from './pool.ts'
import { isSharedRow } from './record-statements.ts'
import { tables } from './schema.ts'

const { leases, openCircuits } = tables

/** Small, so that concurrent requests do not wait noticeably. */
const batch = 1000

/** Below PostgreSQL's deadlock_timeout: a request never waits longer for the cleanup. */
const lockTimeoutMs = 100

const lockTimeout = '55P03'

/** Of codes and limits, in a call that finds many. */
const longestMs = 1000

/** The hashes of recipients in base64url, in the order of the database, by their first two characters. */
const digits = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
const parts = digits.length ** 2

/** The next parts of a table without an index by time. */
interface Place {
  readonly from: number
  readonly length: number
}

const start: Place = { from: 0, length: parts }

/** If the node with the lease is silent for longer, another takes over. */
const leaseMs = 15_000

/** Runs on one node at a time; each call takes one step. `node`: unique name of this process */
export function createSweep(
  { orm, pool, given }: Pick<Database, 'orm' | 'pool' | 'given'>,
  node: string,
): (now: number, retainAfter: RetainAfter) => Promise<SweepStep> {
  let codes = start
  let numbers = start

  return async (now, retainAfter) => {
    if (!(await takeLease(orm, { name: 'sweep', holder: node, lengthMs: leaseMs, now: given(now) }))) {
      return { isRound: true, isBusy: false }
    }
    // Apart from recipients' rows: requests lock these last.
    await remove(sql`DELETE FROM codes_and_limits WHERE ${isSharedRow} AND expires_at <= ${now}`)
    const isExpired = sql`NOT ${isSharedRow} AND expires_at <= ${now}`
    const startedAt = performance.now()
    let [found, before, removed] = [0, 0, 0]
    do {
      before = removed
      ;[codes, removed] = await visit('codes_and_limits', 'subject, name', codes, isExpired)
      found += removed
      // A full batch can have emptied the parts of the next visit.
    } while (Math.max(before, removed) > batch / 4 && performance.now() - startedAt < longestMs)
    const isUnverified = sql`verified_at <= ${now - verifiedRetentionMs}`
    ;[numbers] = await visit('verified_numbers', 'subject', numbers, isUnverified)
    let isFull = false
    for (const statement of expiredDeletions('postgres', now, retainAfter, batch)) {
      if ((await remove(statement)) >= batch) isFull = true
    }
    await closeCircuits(now)
    // A round of the verified numbers, which may be millions, need not end soon.
    return { isRound: codes.from === 0 && removed < batch && !isFull, isBusy: found > batch / 4 || isFull }
  }

  /** Deletes expired rows of the next parts. @returns the parts after them, and the number of rows */
  async function visit(
    table: string,
    key: string,
    { from, length }: Place,
    isExpired: SQL,
  ): Promise<[Place, number]> {
    const end = from + length
    const isIn = sql`subject >= ${boundOf(from)} ${end < parts ? sql`AND subject < ${boundOf(end)}` : sql``}`
    const startedAt = performance.now()
    const removed = await remove(deletion({ table, key, isExpired: sql`${isIn} AND ${isExpired}`, batch }))
    const tookMs = performance.now() - startedAt
    const half = Math.max(1, length / 2)
    if (removed >= batch) return [{ from, length: half }, removed]
    const next = end < parts ? end : 0
    return [{ from: next, length: tookMs > longestMs / 2 ? half : Math.min(2 * length, parts) }, removed]
  }

  /** @returns the number of rows; 0 if a request has locked one of them, since a later call deletes them */
  async function remove(statement: SQL): Promise<number> {
    try {
      return await pool.transaction(async (connection) => {
        const [, , rows] = await Promise.all([
          // Citus passes the time-out on to its workers. Other servers ignore a setting of this form.
          connection.rows("SET LOCAL citus.propagate_set_commands = 'local'", []),
          connection.rows(`SET LOCAL lock_timeout = ${lockTimeoutMs}`, []),
          ormOn(connection).execute(sql`${statement} RETURNING 1`),
        ])
        return rows.length
      })
    } catch (error) {
      const cause = plainError(error)
      if (cause instanceof StatementError && cause.code === lockTimeout) return 0
      throw error
    }
  }

  async function closeCircuits(now: number): Promise<void> {
    const isOver = lte(openCircuits.openUntil, now - leaseMs)
    const [over] = await orm.select().from(openCircuits).where(isOver).limit(1)
    if (!over) return
    await pool.transaction(async (connection) => {
      const inside = ormOn(connection)
      await inside.delete(openCircuits).where(isOver)
      await raiseRevision(inside)
    })
  }
}

function boundOf(part: number): string {
  return part === 0 ? '' : `${digits[part >> 6]}${digits[part & 63]}`
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
