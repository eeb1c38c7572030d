import { consoleSecrets } from './adapters/crypto/console-secrets.ts'
import { createSecrets, sha256 } from './adapters/crypto/secrets.ts'
import type { Log } from './adapters/http/exchange.ts'
import type { BooksConfig } from './books-config.ts'
import type { Actor } from './domain/audit.ts'
import type { Recipient } from './domain/contact.ts'
import type { DeliveryQuery } from './domain/journal.ts'
import { OperatorError } from './domain/operator.ts'
import type { Period } from './domain/statistics.ts'
import { createJournalBuffer } from './storage/journal-buffer.ts'
import { createApps } from './storage/keys.ts'
import type { KeptFrom, OpenStorage, Storage } from './storage/storage.ts'

// The half of the composition that server and commands share: what is kept. A command loads nothing else.

/** Parts that a test may put in the place of the real ones. */
export interface BookOverrides {
  /** The time that codes and windows go by too. */
  readonly now?: () => number
  readonly log?: Log
  /** Whether a thread of its own writes the database, as for a server that listens. */
  readonly databaseThread?: boolean
  /** Whether this is a server: commands go by its secret. */
  readonly serves?: boolean
}

export type Books = Awaited<ReturnType<typeof openBooks>>

export const silent: Log = { info: () => {}, warn: () => {}, error: () => {} }

const dayMs = 86_400_000

/**
 * Opens the database, brings its schema up to date, and wires what is kept in it, for the server and for commands alike.
 *
 * @throws an error in words for the operator where the database can't be used
 */
export async function openBooks(config: BooksConfig, overrides: BookOverrides = {}) {
  const { log = silent } = overrides
  const { storage, secretKeys, secretProblem, noteSecret } = await openStorage(config, overrides, log)
  const { now, otps, operator } = storage
  const secrets = createSecrets(...secretKeys)
  const journal = openJournal(storage, log)

  /** Refuses what would be done with another secret than the server's. */
  function requireSecret(): void {
    if (secretProblem !== undefined) throw new OperatorError(secretProblem)
  }

  /** By which hashes records of a person are found. */
  function subjectsOf({ channel, identity }: Recipient): readonly string[] {
    requireSecret()
    return secrets.subjects(channel, identity)
  }

  return {
    now,
    secrets,
    store: otps,
    brands: storage.brands,
    apps: createApps(storage.keys, sha256, config.appCredentials, {
      now,
      keep: (uses) =>
        void storage
          .keepKeyUses(uses)
          .catch((error: unknown) =>
            log.error({ err: error }, 'the last use of an API key could not be kept'),
          ),
    }),
    requests: storage.requests,
    audit: storage.audit,
    sessions: storage.sessions,
    consoleSecrets,
    operator,
    /** Lets an operator act; the audit log tells who it was. */
    acting: (actor: Actor) => ({ operator, secrets, now, actor }),
    requireSecret,
    noteSecret,
    subjectsOf,
    /** Erases a person from log and records. */
    forget: (recipient: Recipient, actor: Actor) =>
      storage.forget(recipient, subjectsOf(recipient), { now: now(), actor }),
    outbox: storage.outbox,
    journal,
    resting: storage.resting,
    checkDatabase: storage.check,
    /** How the store fares, for whoever watches over it. */
    stats: { ...storage.stats, journal: journal.stats },
    /** Takes one step of the sweep; what may go is kept for so many days. */
    sweep(keptDays: KeptFrom) {
      const at = now()
      const from = (days: number) => at - days * dayMs
      const { journal, audit, requests } = keptDays
      return storage.sweep(at, { journal: from(journal), audit: from(audit), requests: from(requests) })
    },
    close: async () => {
      await journal.drain()
      await storage.close()
    },
  }
}

/** Loads the adapter for the database of the settings, and no other. */
async function openStorage(config: BooksConfig, overrides: BookOverrides, log: Log): Promise<OpenStorage> {
  const { database } = config
  if (database.kind === 'postgres') {
    const { openPostgres } = await import('./books-postgres.ts')
    return openPostgres(config, database.target, { ...overrides, log })
  }
  const { openSqlite } = await import('./books-sqlite.ts')
  return openSqlite(config, database.file, { ...overrides, log })
}

/** The journal, which is read as it is by then: what this process has yet to write is written first. */
function openJournal({ journal, statistics: { statistics, lastHour }, now }: Storage, log: Log) {
  const { keepEntries, keepReceipts, story, deliveries, lastProviderOf } = journal
  let lastLostAt: number | null = null
  const { add, count, flush, drain, stats } = createJournalBuffer(keepEntries, (error, requests) => {
    lastLostAt = now()
    log.error(
      { err: error, requests },
      'the journal could not be written: what became of these is in this log alone',
    )
  })
  return {
    add,
    count,
    flush,
    drain,
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
