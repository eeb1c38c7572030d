import { type SecretKeys, secretsFrom } from './adapters/crypto/secret-file.ts'
import { newSecretKey, saltedHash } from './adapters/crypto/secrets.ts'
import type { Log } from './adapters/http/exchange.ts'
import { createAppBook } from './adapters/sqlite/apps.ts'
import { createBrandBook } from './adapters/sqlite/brands.ts'
import { createConsoleStore } from './adapters/sqlite/console.ts'
import { type Database, openDatabase } from './adapters/sqlite/database.ts'
import { fileStats, sqliteVersion } from './adapters/sqlite/file-stats.ts'
import { forget } from './adapters/sqlite/forget.ts'
import { createRequestBook } from './adapters/sqlite/integration-requests.ts'
import { createJournalBook } from './adapters/sqlite/journal.ts'
import { createAuditReader, createOperatorBook } from './adapters/sqlite/operator.ts'
import { createOtpStore } from './adapters/sqlite/otps.ts'
import { createOutbox } from './adapters/sqlite/outbox.ts'
import { tallyReader } from './adapters/sqlite/tallies.ts'
import { startThread } from './adapters/sqlite/thread.ts'
import type { BooksConfig } from './books-config.ts'
import { databaseWork } from './database-work.ts'
import { createStatistics } from './storage/statistics.ts'
import type { Storage } from './storage/storage.ts'

// What is kept, in a file: for one server, which has no other to agree with.

interface Opening {
  readonly now?: () => number
  readonly log: Log
  readonly databaseThread?: boolean
}

/** Opens an SQLite file, and the secrets: those of the settings, or those that are kept beside it. */
export function openSqlite(
  config: BooksConfig,
  file: string,
  { now = Date.now, log, databaseThread = false }: Opening,
): { storage: Storage; secretKeys: SecretKeys } {
  const database = openDatabase(file)
  const secretKeys = config.secretKeys ?? secretsBeside(file, database, log)
  // Each connection to a database in memory has one of its own.
  const thread = databaseThread && file !== ':memory:' ? openThread(file, database, log) : undefined
  const work = thread?.work ?? databaseWork(database, now)
  const { check } = createOtpStore(database, saltedHash)
  const { story, deliveries, lastProviderOf } = createJournalBook(database)
  const { keepEntries, keepReceipts } = work
  const storage: Storage = {
    now,
    otps: { ...work, check },
    brands: createBrandBook(database),
    keys: createAppBook(database),
    operator: createOperatorBook(database),
    requests: { ...createRequestBook(database), add: work.keepRequest },
    audit: createAuditReader(database),
    sessions: createConsoleStore(database),
    outbox: { ...createOutbox(database, now), add: work.keepMessage },
    journal: { keepEntries, keepReceipts, story, deliveries, lastProviderOf },
    statistics: createStatistics(tallyReader(database)),
    keepKeyUses: work.keepKeyUses,
    sweep: work.sweep,
    forget: (recipient, subjects, by) => forget(database, recipient, subjects, by),
    check: work.checkDatabase,
    resting: undefined,
    stats: {
      version: () => `SQLite ${sqliteVersion(database)}`,
      // Calls that wait for the thread that writes, or writes that wait where there is none.
      queueLength: thread?.queueLength ?? (() => database.writer.stats().queue),
      writer: work.stats,
      files: () => fileStats(database),
      pool: () => undefined,
    },
    close: async () => {
      await thread?.close()
      await database.close()
    },
  }
  return { storage, secretKeys }
}

/** Two threads for a server's database: one writes it, and one folds its log back into the file. */
function openThread(file: string, database: Database, log: Log) {
  const checkpoints = database.startCheckpoints(log)
  const start = () => new Worker(new URL('./database-thread.ts', import.meta.url).href)
  const { work, queueLength, close } = startThread(
    { file, identity: database.identity },
    start,
    () => checkpoints.consider(),
    (problem) =>
      log.error({ problem }, 'the thread of the database has failed; the next request starts another'),
  )
  return {
    work,
    queueLength,
    close: async () => {
      await close()
      await checkpoints.close()
    },
  }
}

/** The secrets that are kept beside a database. */
function secretsBeside(path: string, database: Database, log: Log): SecretKeys {
  if (path === ':memory:') return [newSecretKey()]
  const file = `${path}.key`
  const { secrets, isNew } = secretsFrom(file)
  if (isNew && !database.isNew) {
    log.warn(
      { file },
      'the secret of this database was missing, and a new one was made: codes sent before do not verify',
    )
  }
  return secrets
}
