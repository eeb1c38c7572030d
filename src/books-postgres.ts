import { randomInt, randomUUID } from 'node:crypto'
import { secretMarks } from './adapters/crypto/secrets.ts'
import type { Log } from './adapters/http/exchange.ts'
import { createAppBook, createKeyUses } from './adapters/postgres/apps.ts'
import { createBrandBook } from './adapters/postgres/brands.ts'
import { createConsoleStore } from './adapters/postgres/console.ts'
import { openDatabase, plainError, plainErrors } from './adapters/postgres/database.ts'
import { forget } from './adapters/postgres/forget.ts'
import { createRequestBook } from './adapters/postgres/integration-requests.ts'
import { createJournalBook, tallyReader } from './adapters/postgres/journal.ts'
import { createAuditReader, createOperatorBook } from './adapters/postgres/operator.ts'
import { createOtpStore } from './adapters/postgres/otps.ts'
import { createOutbox } from './adapters/postgres/outbox.ts'
import { createRestingProviders } from './adapters/postgres/resting.ts'
import { beginWithSecret, requireSecret } from './adapters/postgres/secret-marks.ts'
import { createSweep } from './adapters/postgres/sweep.ts'
import type { DatabaseTarget } from './adapters/postgres/target.ts'
import type { BooksConfig } from './books-config.ts'
import type { Clock } from './domain/ports.ts'
import { createStatistics } from './storage/statistics.ts'
import type { OpenStorage, Storage } from './storage/storage.ts'

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
  { secretKeys }: BooksConfig,
  target: DatabaseTarget,
  { now: clock, log, serves = false }: Opening,
): Promise<OpenStorage> {
  if (secretKeys === undefined) throw new Error('SECRET_KEY must be set for a database of PostgreSQL')
  const database = await openDatabase(target, clock, (problem) =>
    log.warn({ database: problem }, 'news of the connections to the database'),
  )
  try {
    await (serves ? beginWithSecret : requireSecret)(database, secretMarks(secretKeys))
  } catch (error) {
    await database.close()
    throw plainError(error)
  }
  const node = randomUUID()
  const { pool, now, serverVersion } = database
  const storage: Storage = {
    now,
    otps: createOtpStore(database),
    brands: plainErrors(createBrandBook(database)),
    keys: plainErrors(createAppBook(database)),
    operator: plainErrors(createOperatorBook(database)),
    requests: plainErrors(createRequestBook(database)),
    audit: plainErrors(createAuditReader(database)),
    sessions: plainErrors(createConsoleStore(database)),
    outbox: plainErrors(createOutbox(database)),
    journal: plainErrors(createJournalBook(database, randomInt(parts))),
    statistics: createStatistics(tallyReader(database)),
    ...plainErrors({
      keepKeyUses: createKeyUses(database),
      sweep: createSweep(database, node),
      forget: (...[recipient, subjects, by]: Parameters<Storage['forget']>) =>
        forget(database, recipient, subjects, by),
    }),
    check: database.check,
    resting: plainErrors(createRestingProviders(database)),
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
