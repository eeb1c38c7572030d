import type { Log } from '../../domain/ground/ports.ts'
import { createKeyFingerprints } from '../store/key-fingerprints.ts'
import type { OpenStore, Storage } from '../store/store.ts'
import { createStores } from '../store/stores.ts'
import { type Database, openDatabase } from './database.ts'
import { fileStats, sqliteVersion } from './file-stats.ts'
import { forget } from './forget.ts'
import { storeDatabase } from './stores.ts'
import { startThread } from './thread.ts'
import { databaseWork } from './work.ts'

interface Opening {
  readonly now?: () => number
  readonly log: Log
  readonly databaseThread?: boolean
  readonly mustExist?: boolean
}

export function openSqlite(
  file: string,
  { now = Date.now, log, databaseThread = false, mustExist = false }: Opening,
): OpenStore {
  const database = openDatabase(file, { mustExist })
  // Each connection to `:memory:` has its own database.
  const thread = databaseThread && file !== ':memory:' ? openThread(file, database, log) : undefined
  const work = thread?.work ?? databaseWork(database)
  const { saveEntries, saveReports } = work
  const shared = storeDatabase(database, work, now)
  const stores = createStores(shared)
  const storage: Storage = {
    now,
    store: work,
    ...stores,
    eventLog: { ...stores.eventLog, saveEntries, saveReports },
    sweep: work.sweep,
    forget: (recipient, subjects, by) => forget(database, shared, recipient, subjects, by),
    checkDatabase: work.checkDatabase,
    openCircuits: undefined,
    stats: {
      version: () => `SQLite ${sqliteVersion(database)}`,
      // Calls that wait for the thread, or else for the writer.
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
  return { storage, isNew: database.isNew, fingerprints: createKeyFingerprints(shared) }
}

function openThread(file: string, database: Database, log: Log) {
  const checkpoints = database.startCheckpoints(log)
  const start = () => new Worker(new URL('./thread-main.ts', import.meta.url).href)
  const { work, queueLength, close } = startThread(
    { file, identity: database.identity },
    start,
    () => checkpoints.consider(),
    (problem) => log.error({ problem }, 'the database thread failed; the next request starts another'),
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
