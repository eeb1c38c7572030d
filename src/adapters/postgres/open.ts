import { randomInt, randomUUID } from 'node:crypto'
import type { Clock, Log } from '../../domain/ports.ts'
import { isHashOf, keyFingerprints } from '../crypto/secrets.ts'
import { forgetRecipient } from '../store/forget.ts'
import { createStatistics } from '../store/statistics.ts'
import type { KeySettings, OpenStorage, Storage } from '../store/store.ts'
import { createStores } from '../store/stores.ts'
import { openDatabase, plainError, plainErrors } from './database.ts'
import { createEventLogStore, statReader } from './event-log.ts'
import { beginWithSecret, requireSecret } from './key-fingerprints.ts'
import { createOpenCircuits } from './open-circuits.ts'
import { createOtpStore } from './otp-store.ts'
import { storeDatabase } from './stores.ts'
import { createSweep } from './sweep.ts'
import type { DatabaseTarget } from './target.ts'

// What is kept, in PostgreSQL: for any number of servers, which agree on everything by it.

/** Parts that processes count in: enough that two of a few nodes hardly meet, which would only make them wait. */
const parts = 32_768

interface Opening {
  /** The clock of a test that moves it; undefined: the database server's, which is the same for all. */
  readonly now?: Clock
  readonly log: Log
  /** Whether this is a server, whose secret all who come later must know. */
  readonly serves?: boolean
}

/** Opens a database of PostgreSQL. */
export async function openPostgres(
  { secretKeys }: KeySettings,
  target: DatabaseTarget,
  { now: clock, log, serves = false }: Opening,
): Promise<OpenStorage> {
  if (secretKeys === undefined) throw new Error('SECRET_KEY must be set for a database of PostgreSQL')
  const database = await openDatabase(target, clock, (problem) =>
    log.warn({ database: problem }, 'news of the connections to the database'),
  )
  try {
    await (serves ? beginWithSecret : requireSecret)(database, keyFingerprints(secretKeys))
  } catch (error) {
    await database.close()
    throw plainError(error)
  }
  const node = randomUUID()
  const { pool, now, serverVersion } = database
  const stores = storeDatabase(database)
  const storage: Storage = {
    now,
    otps: createOtpStore(database, isHashOf),
    ...plainErrors(createStores(stores)),
    eventLog: plainErrors(createEventLogStore(database, randomInt(parts))),
    statistics: createStatistics(statReader(database)),
    ...plainErrors({
      sweep: createSweep(database, node),
      forget: async (...asked: Parameters<Storage['forget']>) => ({
        ...(await forgetRecipient(stores, ...asked)),
        traces: 'server' as const,
      }),
    }),
    check: database.check,
    openCircuits: plainErrors(createOpenCircuits(database)),
    stats: {
      version: () => `PostgreSQL ${serverVersion}`,
      queueLength: database.queueLength,
      writer: async () => undefined,
      files: async () => undefined,
      pool: () => pool.stats(),
    },
    close: () => database.close(),
  }
  // Whoever does not know the servers' secret was refused, and a server's own has been noted.
  return { storage, secretKeys, secretProblem: undefined, noteSecret: async () => {} }
}
