import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import Driver from 'better-sqlite3'
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3'
import { migrate } from './migrate.ts'
import { Writer } from './writer.ts'

/** An open database: Drizzle for statements, the writer for every change. */
export interface Database {
  readonly orm: BetterSQLite3Database
  readonly writer: Writer
  /** Whether a statement can be run; throws what the driver threw when not. */
  check(): void
  /** Waits for the writes under way, folds the log back into the file and closes. */
  close(): Promise<void>
}

/** The oldest SQLite without the corruption of the write-ahead log that 3.51.3 mended. */
const oldestSqlite = [3, 51, 3] as const

/** How long a statement may wait for another process's lock while the event loop waits with it. */
const busyTimeoutMs = 15

/**
 * Opens the file, makes it and its folder if they are missing, and brings its schema up to date.
 *
 * @param file a path, or `:memory:`
 * @throws an error for the operator when the file is not usable or newer than this program
 */
export function openDatabase(file: string): Database {
  if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const driver = new Driver(file, { timeout: busyTimeoutMs })
  try {
    requireSqlite(driver)
    driver.pragma('journal_mode = WAL')
    // An answer is given after its commit, and a commit is on the disk: power may fail at any moment (P31).
    driver.pragma('synchronous = FULL')
    driver.pragma('foreign_keys = ON')
    driver.pragma('trusted_schema = OFF')
    driver.pragma('journal_size_limit = 16777216')
    migrate(driver)
  } catch (error) {
    driver.close()
    throw error
  }
  const writer = new Writer(driver)
  const probe = driver.prepare('SELECT count(*) FROM brands')
  return {
    orm: drizzle(driver),
    writer,
    check: () => void probe.get(),
    close: async () => {
      await writer.idle()
      driver.pragma('wal_checkpoint(TRUNCATE)')
      driver.close()
    },
  }
}

function requireSqlite(driver: Driver.Database): void {
  const { version } = driver.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  const parts = version.split('.').map(Number)
  for (const [index, least] of oldestSqlite.entries()) {
    const part = parts[index] ?? 0
    if (part > least) return
    if (part < least)
      throw new Error(`SQLite ${version} is too old: ${oldestSqlite.join('.')} or newer is needed`)
  }
}
