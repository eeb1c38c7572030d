import { saltedHash } from './adapters/crypto/secrets.ts'
import { createKeyUses } from './adapters/sqlite/apps.ts'
import type { Database } from './adapters/sqlite/database.ts'
import { createIntegrationRequests } from './adapters/sqlite/integration-requests.ts'
import { createJournalBook } from './adapters/sqlite/journal.ts'
import { createOtpStore } from './adapters/sqlite/otps.ts'
import { createOutbox } from './adapters/sqlite/outbox.ts'
import { createSweep } from './adapters/sqlite/sweep.ts'
import type { DatabaseWork } from './adapters/sqlite/thread.ts'
import type { Clock } from './domain/ports.ts'

/** Everything that requests write, on this database: done by the thread of a server, or by whoever has no other. */
export function databaseWork(database: Database, now: Clock): DatabaseWork {
  const { check: _, ...store } = createOtpStore(database, saltedHash)
  const { keepEntries, keepReceipts } = createJournalBook(database)
  return {
    ...store,
    keepMessage: createOutbox(database, now).add,
    keepRequest: createIntegrationRequests(database).add,
    keepEntries,
    keepReceipts,
    keepKeyUses: createKeyUses(database),
    sweep: createSweep(database),
    checkDatabase: () => database.check(),
    stats: async () => database.writer.stats(),
  }
}
