import { isHashOf } from '../crypto/secrets.ts'
import type { Database } from './database.ts'
import { createEventLogWriter } from './event-log.ts'
import { createOtpStore } from './otp-store.ts'
import { createWrite } from './stores.ts'
import { createSweep } from './sweep.ts'
import type { DatabaseWork } from './thread.ts'

export function databaseWork(database: Database): DatabaseWork {
  const { saveEntries, saveReports } = createEventLogWriter(database)
  return {
    ...createOtpStore(database, isHashOf),
    write: createWrite(database),
    saveEntries,
    saveReports,
    sweep: createSweep(database),
    checkDatabase: () => database.check(),
    stats: async () => database.writer.stats(),
  }
}
