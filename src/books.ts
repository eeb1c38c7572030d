import { type SecretKeys, secretsFrom } from './adapters/crypto/secret-file.ts'
import { createSecrets, newSecretKey, saltedHash, sha256 } from './adapters/crypto/secrets.ts'
import type { Log } from './adapters/http/exchange.ts'
import { createAppBook } from './adapters/sqlite/apps.ts'
import { createBrandBook } from './adapters/sqlite/brands.ts'
import { type Database, openDatabase } from './adapters/sqlite/database.ts'
import { createJournalBook } from './adapters/sqlite/journal.ts'
import { createJournalBuffer } from './adapters/sqlite/journal-buffer.ts'
import { createOtpStore } from './adapters/sqlite/otps.ts'
import { createOutbox } from './adapters/sqlite/outbox.ts'
import { type DatabaseWork, startThread } from './adapters/sqlite/thread.ts'
import type { BooksConfig } from './books-config.ts'
import { databaseWork } from './database-work.ts'
import type { DeliveryQuery } from './domain/journal.ts'

// The half of the composition that server and commands share: what is kept. A command loads nothing else.

/** Parts that a test may put in the place of the real ones. */
export interface BookOverrides {
  readonly now?: () => number
  readonly log?: Log
  /** Whether a thread of its own writes the database, as for a server that listens. */
  readonly databaseThread?: boolean
}

export type Books = ReturnType<typeof openBooks>

export const silent: Log = { info: () => {}, warn: () => {}, error: () => {} }

const dayMs = 86_400_000

/** Opens the store and what is kept in it, for the server and for commands alike. */
export function openBooks(config: BooksConfig, overrides: BookOverrides = {}) {
  const { now = Date.now, log = silent, databaseThread = false } = overrides
  const database = openDatabase(config.databaseFile)
  const secretKeys = config.secretKeys ?? secretsBeside(config.databaseFile, database, log)
  // Each connection to a database in memory has one of its own.
  const thread =
    databaseThread && config.databaseFile !== ':memory:' ? openThread(config, database, log) : undefined
  const work = thread?.work ?? databaseWork(database, now)
  const { check } = createOtpStore(database, saltedHash)
  const journal = openJournal(database, work, log)
  return {
    now,
    secrets: createSecrets(...secretKeys),
    store: { ...work, check },
    brands: createBrandBook(database),
    apps: createAppBook(database, sha256, config.appCredentials),
    requests: { add: work.keepRequest },
    outbox: { ...createOutbox(database, now), add: work.keepMessage },
    journal,
    checkDatabase: work.checkDatabase,
    /** Takes one step of the sweep; the journal is kept for so many days. */
    sweep: (journalDays: number) => work.sweep(now(), now() - journalDays * dayMs),
    close: async () => {
      await journal.flush()
      await thread?.close()
      await database.close()
    },
  }
}

/** The journal, which is read as it is by then: what this process has yet to write is written first. */
function openJournal(database: Database, { keepEntries, keepReceipts }: DatabaseWork, log: Log) {
  const { add, flush } = createJournalBuffer(keepEntries, (error, requests) =>
    log.error(
      { err: error, requests },
      'the journal could not be written: what became of these is in this log alone',
    ),
  )
  const { story, deliveries, lastProviderOf } = createJournalBook(database)
  return {
    add,
    flush,
    keepReceipts,
    story: (requestId: string) => flush().then(() => story(requestId)),
    deliveries: (query: DeliveryQuery) => flush().then(() => deliveries(query)),
    lastProviderOf: (recipientSubjects: readonly string[], brandSlug: string) =>
      flush().then(() => lastProviderOf(recipientSubjects, brandSlug)),
  }
}

/** Two threads for a server's database: one writes it, and one folds its log back into the file. */
function openThread({ databaseFile }: BooksConfig, database: Database, log: Log) {
  const checkpoints = database.startCheckpoints(log)
  const start = () => new Worker(new URL('./database-thread.ts', import.meta.url).href)
  const { work, close } = startThread(
    { file: databaseFile, identity: database.identity },
    start,
    () => checkpoints.consider(),
    (problem) =>
      log.error({ problem }, 'the thread of the database has failed; the next request starts another'),
  )
  return {
    work,
    close: async () => {
      await close()
      await checkpoints.close()
    },
  }
}

/** The secrets that are kept beside a database. */
function secretsBeside(databaseFile: string, database: Database, log: Log): SecretKeys {
  if (databaseFile === ':memory:') return [newSecretKey()]
  const file = `${databaseFile}.key`
  const { secrets, isNew } = secretsFrom(file)
  if (isNew && !database.isNew) {
    log.warn(
      { file },
      'the secret of this database was missing, and a new one was made: codes sent before do not verify',
    )
  }
  return secrets
}
