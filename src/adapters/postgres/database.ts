import { sql } from 'drizzle-orm'
import { DrizzleQueryError } from 'drizzle-orm/errors'
import { drizzle, type PgRemoteDatabase } from 'drizzle-orm/pg-proxy'
import type { Clock } from '../../domain/ports.ts'
import { Changes } from './changes.ts'
import { DatabaseClock, serverTime } from './clock.ts'
import { migrate, requireSchema } from './migrate.ts'
import { openPool, type Pool, type Queryable } from './pool.ts'
import { leases } from './schema.ts'
import { createSteps } from './steps.ts'
import { type DatabaseTarget, usualBatchSize } from './target.ts'

/** Statements by Drizzle, on whatever runs them. */
export type Orm = PgRemoteDatabase<Record<string, never>>

/** An open database of PostgreSQL: a pool of connections, and what several servers on it agree by. */
export interface Database {
  readonly pool: Pool
  readonly orm: Orm
  readonly changes: Changes
  /** The server's time, or that of a test. */
  readonly now: Clock
  /** Runs an atomic step; resolves to its answer once that is committed. */
  readonly take: ReturnType<typeof createSteps>['take']
  /** Statements and steps that wait for their turn. */
  queueLength(): number
  /** Such as `18.4`. */
  readonly serverVersion: string
  /** The time that a caller gives, where a test moves the clock; undefined: the server's clock counts. */
  given(now: number): number | undefined
  /** Whether the database answers, can be written, and has the schema of this program; rejects when not. */
  check(): Promise<void>
  close(): Promise<void>
}

/**
 * Connects and brings the schema up to date; servers that start together do so one after another.
 *
 * @param clock of a test that moves it; undefined: that of the server
 * @throws an error in words for the operator where the database can't be used
 */
export async function openDatabase(
  target: DatabaseTarget,
  clock: Clock | undefined,
  log: (problem: string) => void,
): Promise<Database> {
  const pool = openPool(target, log)
  let serverVersion: unknown
  try {
    await migrate(pool)
    const [[version] = []] = await pool.rows("SELECT current_setting('server_version')", [])
    serverVersion = version
  } catch (error) {
    await pool.close()
    throw error
  }
  const serverClock = new DatabaseClock(() => performance.now(), Date.now())
  const given = (now: number) => (clock === undefined ? undefined : now)
  const steps = createSteps(pool, {
    batchSize: target.batchSize ?? usualBatchSize,
    patienceMs: target.connectTimeoutMs,
    hearing: () => serverClock.hearing(),
  })
  const requireWritable = writeProof(pool)
  const database: Database = {
    pool,
    orm: ormOn(pool),
    changes: new Changes(pool, serverClock),
    now: clock ?? serverClock.now,
    serverVersion: String(serverVersion),
    given,
    take: steps.take,
    queueLength: () => pool.stats().waiting + steps.queueLength(),
    check: () => Promise.all([requireSchema(pool), requireWritable()]).then(() => undefined),
    close: () => {
      steps.close()
      return pool.close()
    },
  }
  try {
    await database.changes.poll()
  } catch (error) {
    // Open connections would keep a command from ending.
    await database.close()
    throw error
  }
  return database
}

/** How long it counts that something was committed. */
const proofMs = 1000

/**
 * Commits something, unless that has been done just now: a full disk, or a synchronous standby that is away, does not keep
 * anybody from reading. However many ask at once, it is done once.
 */
function writeProof(pool: Pool): () => Promise<void> {
  let provenAt = Number.NEGATIVE_INFINITY
  let proving: Promise<void> | undefined
  const prove = async () => {
    try {
      await ormOn(pool)
        .insert(leases)
        .values({ name: 'health', holder: '', endsAt: serverTime })
        .onConflictDoUpdate({ target: leases.name, set: { endsAt: sql`excluded.ends_at` } })
      provenAt = performance.now()
    } finally {
      proving = undefined
    }
  }
  return async () => {
    if (performance.now() - provenAt < proofMs) return
    proving ??= prove()
    await proving
  }
}

/** Drizzle on a pool, or on the connection of a transaction. */
export function ormOn(connection: Queryable): Orm {
  return drizzle(async (text, values) => ({ rows: await connection.rows(text, values) }))
}

/**
 * The same ports, or groups of them, which reject with what the database said. Drizzle wraps that in an error of its own, whose message has
 * the statement and all its values; those are for no log.
 */
export function plainErrors<Ports extends object>(ports: Ports): Ports {
  const wrapped = Object.entries(ports).map(([name, port]) => {
    if (typeof port === 'object' && port !== null) return [name, plainErrors(port)] as const
    if (typeof port !== 'function') return [name, port] as const
    const call = (...given: readonly unknown[]): unknown => {
      const answer: unknown = port(...given)
      return answer instanceof Promise ? answer.catch(rejectPlainly) : answer
    }
    return [name, call] as const
  })
  return Object.fromEntries(wrapped) as Ports
}

function rejectPlainly(error: unknown): never {
  throw plainError(error)
}

/** What the database said, without what Drizzle says of it. */
export function plainError(error: unknown): unknown {
  return error instanceof DrizzleQueryError ? (error.cause ?? new Error('the database failed')) : error
}
