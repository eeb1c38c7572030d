import type { Log } from '../../domain/ground/ports.ts'
import { isHashOf } from '../crypto/secrets.ts'
import { createKeyFingerprints } from '../store/key-fingerprints.ts'
import { plainErrors } from '../store/plain-errors.ts'
import type { OpenStore, Storage } from '../store/store.ts'
import { createStores } from '../store/stores.ts'
import { openDatabase } from './database.ts'
import { createEventLogWriter } from './event-log.ts'
import { fileStats, sqliteVersion } from './file-stats.ts'
import { forget } from './forget.ts'
import { createOtpStore } from './otp-store.ts'
import { Reader } from './reader.ts'
import { storeDatabase } from './stores.ts'
import { createSweep } from './sweep.ts'

/** A server that wrote within this time has requests to answer. */
const busyMs = 100

interface Opening {
  readonly now?: () => number
  readonly log: Log
  readonly serves?: boolean
  readonly mustExist?: boolean
}

/** @param serves reads of many rows, syncs and checkpoints are on other threads */
export function openSqlite(
  file: string,
  { now = Date.now, log, serves = false, mustExist = false }: Opening,
): OpenStore {
  const database = openDatabase(file, { mustExist })
  // Each connection to `:memory:` has its own database.
  const reader =
    serves && file !== ':memory:' ? new Reader(file, () => database.writer.isBusy(busyMs)) : undefined
  if (reader) database.serve(log)
  const shared = storeDatabase(database, now, reader?.orm)
  const stores = plainErrors(createStores(shared))
  const storage: Storage = {
    now,
    store: createOtpStore(database, isHashOf),
    ...stores,
    eventLog: { ...stores.eventLog, ...createEventLogWriter(database) },
    sweep: createSweep(database),
    forget: (recipient, subjects, by) => forget(database, shared, recipient, subjects, by),
    atomically: (work) => database.writer.atomically(work),
    checkDatabase: () => database.check(),
    trouble: () => database.writer.trouble(),
    openCircuits: undefined,
    stats: {
      version: () => `SQLite ${sqliteVersion(database)}`,
      queueLength: () => database.writer.stats().queue,
      writer: () => database.writer.stats(),
      files: () => fileStats(database),
      pool: () => undefined,
      size: async () => {
        const files = await fileStats(database)
        return files ? files.main + files.wal : 0
      },
      nodes: async () => [],
      clockAheadMs: () => undefined,
    },
    close: async () => {
      await reader?.close()
      await database.close()
    },
  }
  return { storage, isNew: database.isNew, fingerprints: createKeyFingerprints(shared) }
}
