import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import Driver from 'better-sqlite3'
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3'
import { migrate } from './migrate.ts'
import { patiently, Writer } from './writer.ts'

/** An open database: Drizzle for statements, the writer for every change. */
export interface Database {
  readonly orm: BetterSQLite3Database
  readonly writer: Writer
  /** Whether there was no such file, or nothing in it, before. */
  readonly isNew: boolean
  /** Whether a statement can be run; throws what the driver threw when not. */
  check(): void
  /** Waits for the writes under way, folds the log back into the file and closes. */
  close(): Promise<void>
}

/** The oldest SQLite without the corruption of the write-ahead log that 3.51.3 mended. */
const oldestSqlite = [3, 51, 3] as const

/**
 * Opens the file, makes it and its folder if they are missing, and brings its schema up to date. Processes that do so at
 * the same time wait for each other.
 *
 * @param file a path, or `:memory:`
 * @throws DatabaseError when the file is not usable or newer than this program
 */
export function openDatabase(file: string): Database {
  let driver: Driver.Database | undefined
  try {
    if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    // SQLite waits for another process's lock by blocking the event loop; the writer waits off it.
    const opened = new Driver(file, { timeout: 0 })
    driver = opened
    let isNew = false
    patiently(() => {
      isNew = prepare(opened)
    })
    return handle(opened, isNew)
  } catch (error) {
    driver?.close()
    throw new DatabaseError(file, error)
  }
}

/** A database that can't be opened, in words for the operator. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError'

  constructor(file: string, cause: unknown) {
    super(`the database ${file} can not be used: ${reasonOf(cause)}`, { cause })
  }
}

function reasonOf(cause: unknown): string {
  const code = (cause as { code?: unknown } | null)?.code
  const another = 'or name another file in DATABASE_URL'
  switch (code) {
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `its folder can not be made or written. Let this user write there, ${another}`
    case 'EEXIST':
    case 'ENOTDIR':
      return `something that is not a folder stands where its folder should be. Move that away, ${another}`
    case 'SQLITE_CANTOPEN':
    case 'SQLITE_CANTOPEN_ISDIR':
      return `it is a folder, or this user may not read and write it. Correct that, ${another}`
    case 'SQLITE_READONLY':
    case 'SQLITE_READONLY_DIRECTORY':
      return `it can not be written. Let this user write it and its folder, ${another}`
    case 'SQLITE_NOTADB':
      return `it is not an SQLite database, and was left as it is. Move it away, ${another}`
    case 'SQLITE_FULL':
      return 'the disk is full. Make room and start again'
    case 'SQLITE_BUSY':
      return 'another process holds its lock. End that process and start again'
    default:
      return cause instanceof Error ? cause.message : String(cause)
  }
}

function prepare(driver: Driver.Database): boolean {
  requireSqlite(driver)
  driver.pragma('journal_mode = WAL')
  // An answer is given after its commit, and a commit is on the disk: the power may fail at any moment.
  driver.pragma('synchronous = FULL')
  driver.pragma('foreign_keys = ON')
  driver.pragma('trusted_schema = OFF')
  driver.pragma('journal_size_limit = 16777216')
  return migrate(driver)
}

function handle(driver: Driver.Database, isNew: boolean): Database {
  const writer = new Writer(driver)
  const probe = driver.prepare('SELECT count(*) FROM brands')
  return {
    orm: drizzle(driver),
    writer,
    isNew,
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
