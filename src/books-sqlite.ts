import { existsSync } from 'node:fs'
import { type SecretKeys, secretsFrom } from './adapters/crypto/secret-file.ts'
import { newSecretKey, saltedHash, secretMarks } from './adapters/crypto/secrets.ts'
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
import { notedMarks, noteMarks } from './adapters/sqlite/secret-marks.ts'
import { tallyReader } from './adapters/sqlite/tallies.ts'
import { startThread } from './adapters/sqlite/thread.ts'
import type { BooksConfig } from './books-config.ts'
import { databaseWork } from './database-work.ts'
import { createStatistics } from './storage/statistics.ts'
import type { OpenStorage, Storage } from './storage/storage.ts'

// What is kept, in a file: for one server, which has no other to agree with.

interface Opening {
  readonly now?: () => number
  readonly log: Log
  readonly databaseThread?: boolean
  /** Whether this is a server, whose secret goes: a command must know it, and makes none where one was. */
  readonly serves?: boolean
}

/** Opens an SQLite file, and the secrets: those of the settings, or those that are kept beside it. */
export function openSqlite(
  config: BooksConfig,
  file: string,
  { now = Date.now, log, databaseThread = false, serves = false }: Opening,
): OpenStorage {
  const database = openDatabase(file)
  const { secretKeys, isNew, problem: secretProblem } = secretsOf(config, file, database, serves)
  if (serves) warnOfSecret(database, secretKeys, isNew ? `${file}.key` : undefined, log)
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
  return {
    storage,
    secretKeys,
    secretProblem,
    noteSecret: async () => {
      const [own, noted] = [secretMarks(secretKeys), notedMarks(database)]
      const isNoted = noted.length === own.length && own.every((mark) => noted.includes(mark))
      if (!isNoted) await noteMarks(database, own)
    },
  }
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

interface FoundSecrets {
  readonly secretKeys: SecretKeys
  /** Whether they were made just now. */
  readonly isNew?: true
  /** Why nobody's records are found by them. */
  readonly problem?: string
}

/** The secrets of the settings, or those that are kept beside the database. */
function secretsOf(config: BooksConfig, path: string, database: Database, serves: boolean): FoundSecrets {
  if (path === ':memory:') return { secretKeys: config.secretKeys ?? [newSecretKey()] }
  const keyFile = `${path}.key`
  if (!config.secretKeys && !serves && !database.isNew && !existsSync(keyFile)) {
    // Of those that are made here nothing is kept.
    return {
      secretKeys: [newSecretKey()],
      problem: `${keyFile} is missing, so that nobody can tell whose records are whose: put it back, or set SECRET_KEY as the server has it`,
    }
  }
  const { secrets, isNew } = config.secretKeys
    ? { secrets: config.secretKeys, isNew: false }
    : secretsFrom(keyFile)
  if (isNew) return { secretKeys: secrets, isNew }
  if (serves) return { secretKeys: secrets }
  const own = secretMarks(secrets)
  return notedMarks(database).every((mark) => own.includes(mark))
    ? { secretKeys: secrets }
    : {
        secretKeys: secrets,
        problem: `${config.secretKeys ? 'SECRET_KEY' : keyFile} is not the secret that the server has worked with, or not all of it, so that nobody can tell whose records are whose: set SECRET_KEY as the server has it`,
      }
}

/** Says where records from before are not found by the secrets of a server. */
function warnOfSecret(
  database: Database,
  secretKeys: SecretKeys,
  newFile: string | undefined,
  log: Log,
): void {
  const [own, noted] = [secretMarks(secretKeys), notedMarks(database)]
  if (newFile !== undefined && !database.isNew) {
    log.warn(
      { file: newFile },
      'the secret of this database was missing, and a new one was made: codes sent before do not verify',
    )
  } else if (noted.length > 0 && !noted.some((mark) => own.includes(mark))) {
    log.warn(
      {},
      'the secret is none of those that this database was used with: codes sent before do not verify. Where the old one is known, restart with SECRET_KEY=NEW,OLD',
    )
  }
}
