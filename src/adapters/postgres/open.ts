import { randomInt, randomUUID } from 'node:crypto'
import type { Log } from '../../domain/ground/ports.ts'
import type { Clock } from '../../domain/ground/time.ts'
import { isHashOf } from '../crypto/secrets.ts'
import { forgetRecipient } from '../store/forget.ts'
import { createKeyFingerprints } from '../store/key-fingerprints.ts'
import { plainErrors } from '../store/plain-errors.ts'
import type { OpenStore, Storage } from '../store/store.ts'
import { createStores } from '../store/stores.ts'
import { openDatabase } from './database.ts'
import { createEventLogWriter } from './event-log.ts'
import { LeasedClaims } from './leased-claims.ts'
import { createOpenCircuits } from './open-circuits.ts'
import { createOtpStore } from './otp-store.ts'
import { storeDatabase } from './stores.ts'
import { createSweep } from './sweep.ts'
import type { DatabaseTarget } from './target.ts'

/** Parts of the statistics; many, so that two nodes rarely update the same rows. */
const parts = 32_768

interface Opening {
  /** Only for tests. Undefined: the database server's clock. */
  readonly now?: Clock
  readonly log: Log
  readonly mustExist?: boolean
}

export async function openPostgres(
  target: DatabaseTarget,
  { now: clock, log, mustExist = false }: Opening,
): Promise<OpenStore> {
  const warn = (problem: string) =>
    log.warn({ database: problem }, 'the state of the database connections changed')
  const database = await openDatabase(target, clock, warn, { mustExist })
  const node = randomUUID()
  const { pool, now, serverVersion } = database
  const shared = storeDatabase(database)
  const stores = plainErrors(createStores(shared))
  const leased = new LeasedClaims(database)
  const storage: Storage = {
    now,
    store: createOtpStore(database, isHashOf, leased),
    ...stores,
    budgets: leased.withoutUnused(stores.budgets),
    eventLog: { ...stores.eventLog, ...plainErrors(createEventLogWriter(database, randomInt(parts))) },
    ...plainErrors({
      sweep: createSweep(database, node),
      forget: async (...given: Parameters<Storage['forget']>) => ({
        ...(await forgetRecipient(shared, ...given)),
        traces: 'server' as const,
      }),
    }),
    atomically: (work) => pool.atomically(work),
    checkDatabase: database.check,
    trouble: () => {
      const error = pool.trouble()
      return error && { error, isNow: false }
    },
    openCircuits: plainErrors(createOpenCircuits(database)),
    stats: {
      version: () => `PostgreSQL ${serverVersion}`,
      queueLength: database.queueLength,
      writer: () => undefined,
      files: async () => undefined,
      pool: () => pool.stats(),
      size: async () => Number((await pool.rows('SELECT pg_database_size(current_database())', []))[0]?.[0]),
      nodes: async () => {
        const rows = await pool.rows(
          `SELECT host(client_addr), count(*)::int, floor(extract(epoch FROM min(backend_start)) * 1000)::float8
            FROM pg_stat_activity WHERE application_name = 'otpost' AND datname = current_database()
            GROUP BY 1 ORDER BY 1`,
          [],
        )
        return rows.map(([address, connections, since]) => ({
          address: typeof address === 'string' ? address : null,
          connections: Number(connections),
          since: Number(since),
        }))
      },
      clockAheadMs: () => (clock ? undefined : now() - Date.now()),
    },
    close: () => database.close(),
  }
  return { storage, isNew: false, fingerprints: plainErrors(createKeyFingerprints(shared)) }
}
