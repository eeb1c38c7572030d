import type { Clock } from '../../domain/ports.ts'
import { saltedHash } from '../crypto/secrets.ts'
import { createKeyUses } from './apps.ts'
import type { Database } from './database.ts'
import { createEventLogStore } from './event-log.ts'
import { createIntegrationRequests } from './integration-requests.ts'
import { createOtpStore } from './otp-store.ts'
import { createOutbox } from './outbox.ts'
import { createSweep } from './sweep.ts'
import type { DatabaseWork } from './thread.ts'

/** Everything that requests write, on this database: done by the thread of a server, or by whoever has no other. */
export function databaseWork(database: Database, now: Clock): DatabaseWork {
  const { check: _, ...store } = createOtpStore(database, saltedHash)
  const { saveEntries, saveReports } = createEventLogStore(database)
  return {
    ...store,
    saveMessage: createOutbox(database, now).add,
    saveRequest: createIntegrationRequests(database).add,
    saveEntries,
    saveReports,
    saveKeyUses: createKeyUses(database),
    sweep: createSweep(database),
    checkDatabase: () => database.check(),
    stats: async () => database.writer.stats(),
  }
}
