import { eq, lt, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import { drizzle, type PgRemoteDatabase } from 'drizzle-orm/pg-proxy'
import type { Clock } from '../../domain/ground/time.ts'
import { plainError } from '../store/plain-errors.ts'
import { NoDatabase } from '../store/store.ts'
import { Changes } from './changes.ts'
import { DatabaseClock, serverTime } from './clock.ts'
import { isDistributed } from './distribution.ts'
import { hasSchema, migrate, requireSchema } from './migrate.ts'
import { openPool, type Pool, type Queryable } from './pool.ts'
import { tables } from './schema.ts'
import { StepBatches } from './steps.ts'
import { type DatabaseTarget, usualBatchSize } from './target.ts'

const { attempts, codesAndLimits, leases, requests, revision } = tables

export type PostgresOrm = PgRemoteDatabase<Record<string, never>>

export interface Database {
  readonly pool: Pool
  readonly orm: PostgresOrm
  readonly changes: Changes
  readonly now: Clock
  /** Runs an atomic step; resolves after the commit. */
  readonly take: StepBatches['take']
  /** The same for steps on limits that many requests share, in transactions without other rows. */
  readonly takeUnits: StepBatches['take']
  queueLength(): number
  readonly serverVersion: string
  /** The caller's time if a test moves the clock. Undefined: use the server's clock. */
  given(now: number): number | undefined
  /** Rejects if the database does not answer, is read-only, has another schema, or a part that requests need can't be read. */
  check(): Promise<void>
  /** Runs the work at the start of `close`; a failure is ignored. */
  beforeClose(work: () => Promise<void>): void
  close(): Promise<void>
}

/**
 * Connects and migrates; concurrent starts wait for each other.
 * @param clock only for tests
 * @throws NoDatabase if the database must exist and has no table of otpost
 */
export async function openDatabase(
  target: DatabaseTarget,
  clock: Clock | undefined,
  log: (problem: string) => void,
  { mustExist = false }: { readonly mustExist?: boolean } = {},
): Promise<Database> {
  const pool = openPool(target, log)
  let serverVersion: unknown
  let { batchSize = usualBatchSize } = target
  try {
    if (mustExist && !(await hasSchema(pool))) throw new NoDatabase()
    await migrate(pool)
    // Citus locks rows of one machine in a statement.
    if (await isDistributed(pool)) batchSize = 1
    const [[version] = []] = await pool.rows("SELECT current_setting('server_version')", [])
    serverVersion = version
  } catch (error) {
    await pool.close()
    throw error
  }
  const serverClock = new DatabaseClock(() => performance.now(), Date.now())
  const given = (now: number) => (clock === undefined ? undefined : now)
  const settings = {
    batchSize,
    mostAtOnce: Math.ceil(target.poolSize / 2),
    queueTimeoutMs: target.connectTimeoutMs,
    startReading: () => serverClock.startReading(),
  }
  const steps = new StepBatches(pool, settings)
  const unitSteps = new StepBatches(pool, settings)
  const closing: (() => Promise<void>)[] = []
  // YugabyteDB would read all rows: its keys have no order. A lost server there makes no rows unavailable.
  const hasOrder = !/-YB-/.test(String(serverVersion))
  const requireUsable = usableProof(
    pool,
    hasOrder ? [codesAndLimits.subject, requests.requestId, attempts.requestId] : [],
  )
  const database: Database = {
    pool,
    orm: ormOn(pool),
    changes: new Changes(pool, serverClock),
    now: clock ?? serverClock.now,
    serverVersion: String(serverVersion),
    given,
    take: steps.take,
    takeUnits: unitSteps.take,
    queueLength: () => pool.stats().waiting + steps.queueLength + unitSteps.queueLength,
    check: () => Promise.all([requireSchema(pool), requireUsable()]).then(() => undefined),
    beforeClose: (work) => void closing.push(work),
    close: async () => {
      await Promise.allSettled(closing.splice(0).map((work) => work()))
      steps.close()
      unitSteps.close()
      await pool.close()
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

const proofMs = 1000
const proofTimeoutMs = 2000

/** `columns` begin the keys of tables that may have parts on other servers. */
function usableProof(pool: Pool, columns: readonly PgColumn[]): () => Promise<void> {
  let provenAt = Number.NEGATIVE_INFINITY
  let proving: Promise<void> | undefined
  const prove = async () => {
    try {
      await pool.transaction(
        async (connection) => {
          const orm = ormOn(connection)
          await Promise.all([
            // A full disk or an absent standby blocks writes but not reads.
            orm
              .insert(leases)
              .values({ name: 'health', holder: '', endsAt: serverTime })
              .onConflictDoUpdate({ target: leases.name, set: { endsAt: sql`excluded.ends_at` } }),
            // Each request reads it.
            orm.select({ number: revision.number }).from(revision).where(eq(revision.id, 1)),
            // Reads no row: the start of the index of each part.
            ...columns.map((column) => orm.select({ column }).from(column.table).where(lt(column, ''))),
          ])
        },
        { statementTimeoutMs: proofTimeoutMs },
      )
      provenAt = performance.now()
    } catch (error) {
      throw plainError(error)
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

export function ormOn(connection: Queryable): PostgresOrm {
  return drizzle(async (text, values) => ({ rows: await connection.rows(text, values) }))
}
