import { existsSync } from 'node:fs'
import type { Log } from '../../domain/ports.ts'
import { type SecretKeys, secretsFrom } from '../crypto/secret-file.ts'
import { keyFingerprints, newSecretKey } from '../crypto/secrets.ts'
import { createStatistics } from '../store/statistics.ts'
import type { KeySettings, OpenStorage, Storage } from '../store/store.ts'
import { createStores } from '../store/stores.ts'
import { type Database, openDatabase } from './database.ts'
import { createEventLogStore } from './event-log.ts'
import { fileStats, sqliteVersion } from './file-stats.ts'
import { forget } from './forget.ts'
import { notedFingerprints, noteFingerprints } from './key-fingerprints.ts'
import { statReader } from './stats.ts'
import { storeDatabase } from './stores.ts'
import { startThread } from './thread.ts'
import { databaseWork } from './work.ts'

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
  config: KeySettings,
  file: string,
  { now = Date.now, log, databaseThread = false, serves = false }: Opening,
): OpenStorage {
  const database = openDatabase(file)
  const { secretKeys, isNew, problem: secretProblem } = secretsOf(config, file, database, serves)
  if (serves) warnOfSecret(database, secretKeys, isNew ? `${file}.key` : undefined, log)
  // Each connection to a database in memory has one of its own.
  const thread = databaseThread && file !== ':memory:' ? openThread(file, database, log) : undefined
  const work = thread?.work ?? databaseWork(database)
  const { trace, deliveries, lastProviderOf } = createEventLogStore(database)
  const { saveEntries, saveReports } = work
  const stores = storeDatabase(database, work, now)
  const storage: Storage = {
    now,
    otps: work,
    ...createStores(stores),
    eventLog: { saveEntries, saveReports, trace, deliveries, lastProviderOf },
    statistics: createStatistics(statReader(database)),
    sweep: work.sweep,
    forget: (recipient, subjects, by) => forget(database, stores, recipient, subjects, by),
    check: work.checkDatabase,
    openCircuits: undefined,
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
      const [own, noted] = [keyFingerprints(secretKeys), notedFingerprints(database)]
      const isNoted = noted.length === own.length && own.every((mark) => noted.includes(mark))
      if (!isNoted) await noteFingerprints(database, own)
    },
  }
}

/** Two threads for a server's database: one writes it, and one folds its log back into the file. */
function openThread(file: string, database: Database, log: Log) {
  const checkpoints = database.startCheckpoints(log)
  const start = () => new Worker(new URL('./thread-main.ts', import.meta.url).href)
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
function secretsOf(config: KeySettings, path: string, database: Database, serves: boolean): FoundSecrets {
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
  const own = keyFingerprints(secrets)
  return notedFingerprints(database).every((mark) => own.includes(mark))
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
  const [own, noted] = [keyFingerprints(secretKeys), notedFingerprints(database)]
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
