import { consoleSecrets } from './adapters/crypto/console-secrets.ts'
import { type SecretKeys, secretsFrom } from './adapters/crypto/secret-file.ts'
import { createSecrets, newSecretKey, saltedHash, sha256 } from './adapters/crypto/secrets.ts'
import type { Log } from './adapters/http/exchange.ts'
import { createAppBook } from './adapters/sqlite/apps.ts'
import { createBrandBook } from './adapters/sqlite/brands.ts'
import { createConsoleStore } from './adapters/sqlite/console.ts'
import { type Database, openDatabase } from './adapters/sqlite/database.ts'
import { fileStats, sqliteVersion } from './adapters/sqlite/file-stats.ts'
import { forget } from './adapters/sqlite/forget.ts'
import { createRequestBook } from './adapters/sqlite/integration-requests.ts'
import { createJournalBook } from './adapters/sqlite/journal.ts'
import { createJournalBuffer } from './adapters/sqlite/journal-buffer.ts'
import { createAuditReader, createOperatorBook } from './adapters/sqlite/operator.ts'
import { createOtpStore } from './adapters/sqlite/otps.ts'
import { createOutbox } from './adapters/sqlite/outbox.ts'
import type { KeptFrom } from './adapters/sqlite/sweep.ts'
import { createStatistics } from './adapters/sqlite/tallies.ts'
import { type DatabaseWork, startThread } from './adapters/sqlite/thread.ts'
import type { BooksConfig } from './books-config.ts'
import { databaseWork } from './database-work.ts'
import type { Actor } from './domain/audit.ts'
import type { Recipient } from './domain/contact.ts'
import type { DeliveryQuery } from './domain/journal.ts'
import type { Period } from './domain/statistics.ts'

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
  const journal = openJournal(database, work, log, now)
  const secrets = createSecrets(...secretKeys)
  const operator = createOperatorBook(database)
  return {
    now,
    secrets,
    store: { ...work, check },
    brands: createBrandBook(database),
    apps: createAppBook(database, sha256, config.appCredentials, {
      now,
      keep: (uses) =>
        void work
          .keepKeyUses(uses)
          .catch((error: unknown) =>
            log.error({ err: error }, 'the last use of an API key could not be kept'),
          ),
    }),
    requests: { ...createRequestBook(database), add: work.keepRequest },
    audit: createAuditReader(database),
    sessions: createConsoleStore(database),
    consoleSecrets,
    operator,
    /** Lets an operator act; the audit log tells who it was. */
    acting: (actor: Actor) => ({ operator, secrets, now, actor }),
    /** Erases a person from log and records. */
    forget: (recipient: Recipient, actor: Actor) =>
      forget(database, recipient, secrets.subjects(recipient.channel, recipient.identity), {
        now: now(),
        actor,
      }),
    outbox: { ...createOutbox(database, now), add: work.keepMessage },
    journal,
    checkDatabase: work.checkDatabase,
    /** How the store fares, for whoever watches over it. */
    stats: {
      sqliteVersion: () => sqliteVersion(database),
      /** Calls that wait for the thread that writes, or writes that wait where there is none. */
      queueLength: thread?.queueLength ?? (() => database.writer.stats().queue),
      writer: work.stats,
      journal: journal.stats,
      files: () => fileStats(database),
    },
    /** Takes one step of the sweep; what may go is kept for so many days. */
    sweep(keptDays: KeptFrom) {
      const at = now()
      const from = (days: number) => at - days * dayMs
      const { journal, audit, requests } = keptDays
      return work.sweep(at, { journal: from(journal), audit: from(audit), requests: from(requests) })
    },
    close: async () => {
      await journal.flush()
      await thread?.close()
      await database.close()
    },
  }
}

/** The journal, which is read as it is by then: what this process has yet to write is written first. */
function openJournal(
  database: Database,
  { keepEntries, keepReceipts }: DatabaseWork,
  log: Log,
  now: () => number,
) {
  let lastLostAt: number | null = null
  const { add, count, flush, stats } = createJournalBuffer(keepEntries, (error, requests) => {
    lastLostAt = now()
    log.error(
      { err: error, requests },
      'the journal could not be written: what became of these is in this log alone',
    )
  })
  const { story, deliveries, lastProviderOf } = createJournalBook(database)
  const { statistics, lastHour } = createStatistics(database)
  return {
    add,
    count,
    flush,
    stats: () => ({ ...stats(), lastLostAt }),
    /** What the service did in a period. */
    statistics: (period: Period, now: number) => flush().then(() => statistics(period, now)),
    /** What each way to send was asked within the last hour. */
    lastHour: (now: number) => flush().then(() => lastHour(now)),
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
  const { work, queueLength, close } = startThread(
    { file: databaseFile, identity: database.identity },
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
