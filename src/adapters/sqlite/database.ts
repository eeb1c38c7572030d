import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Driver from 'better-sqlite3'
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3'
import { Changes } from './changes.ts'
import { brakePages, type CheckpointLog, Checkpoints } from './checkpoints.ts'
import { fileAt, movedAside } from './draft.ts'
import { migrate, upgradeCheck } from './migrate.ts'
import { Writer, withBusyRetry } from './writer.ts'

/** An open database: Drizzle for statements, the writer for every change. */
export interface Database {
  readonly orm: BetterSQLite3Database
  /** For the few statements that are most of the work: made by Drizzle, run without it. */
  readonly driver: Driver.Database
  readonly writer: Writer
  readonly changes: Changes
  /** Whether there was no such file, or nothing in it, before. */
  readonly isNew: boolean
  /** What tells the file that is open from another of its name. */
  readonly identity: FileIdentity
  /** Whether the database can be read and written; rejects with what stands against it when not. */
  check(): Promise<void>
  /** Gives some emptied pages back to the disk, where they are a good part of the file; returns whether it did. */
  readonly shrink: () => boolean
  /** Leaves it to another connection to fold the log back into the file, but for a log that grows too long. */
  leaveCheckpoints(): void
  /** Has another thread fold the log back into the file from now on; for a server, since a command writes too little. */
  startCheckpoints(log: CheckpointLog): Checkpoints
  /** Waits for the writes under way, folds the log back into the file and closes. */
  close(): Promise<void>
}

/** Pages given back to the disk at a time. */
const vacuumPages = 100

/** Emptied pages that are kept for what comes next, however few others there are. */
const sparePages = 256

/** The oldest SQLite without the corruption of the write-ahead log that 3.51.3 mended. */
const oldestSqlite = [3, 51, 3] as const

/**
 * Opens the file, makes it and its folder if they are missing, and brings its schema up to date. Processes that do so at
 * the same time wait for each other.
 *
 * @param file a path, or `:memory:`
 * @param known opens only the file that is open already on another connection
 * @throws DatabaseError when the file is not usable or newer than this program
 */
export function openDatabase(file: string, known?: FileIdentity): Database {
  let driver: Driver.Database | undefined
  try {
    if (known) requireSameFile(file, known)
    else if (file !== ':memory:') {
      requireNotMoved(file)
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    }
    // SQLite waits for another process's lock by blocking the event loop; the writer waits off it.
    const opened = new Driver(file, { timeout: 0, fileMustExist: known !== undefined })
    driver = opened
    let isNew = false
    withBusyRetry(() => {
      isNew = prepare(opened)
    })
    return handle(opened, isNew, known ?? identityOf(file))
  } catch (error) {
    driver?.close()
    throw new DatabaseError(file, error)
  }
}

/** Refuses to make a file anew that was moved to a server: who still names it would go on with nothing, and not notice. */
function requireNotMoved(file: string): void {
  if (fileAt(file)) return
  const aside = movedAside(file)
  if (aside === undefined) return
  throw new Error(
    `otpost move has taken it to a server, and set it aside as ${aside}. Set DATABASE_URL to that server; or, to begin anew, move ${aside} to another folder`,
  )
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
      return `it is a folder, its file system is mounted read-only, or this user may not read and write it. Correct that, ${another}`
    case 'SQLITE_READONLY':
    case 'SQLITE_READONLY_DIRECTORY':
      return `it can not be written. Let this user write it and its folder, ${another}`
    case 'SQLITE_NOTADB':
      return `it is not an SQLite database, and was left as it is. Move it away, ${another}`
    case 'SQLITE_READONLY_DBMOVED':
      return 'it was replaced while it was being opened, as by otpost restore. Start again'
    case 'SQLITE_FULL':
      return 'the disk is full. Make room and start again'
    case 'SQLITE_BUSY':
      return 'another process holds its lock. End that process and start again'
    case 'ERR_DLOPEN_FAILED':
      return `SQLite can not be loaded (${messageOf(cause)}). A binary unpacks it into the temporary folder: set TMPDIR to a folder that this user may write to, on a file system that is not mounted noexec`
    default:
      return messageOf(cause)
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}

function prepare(driver: Driver.Database): boolean {
  requireSqlite(driver)
  // Before the first table, so that what the sweep has emptied can be given back to the disk.
  driver.pragma('auto_vacuum = INCREMENTAL')
  driver.pragma('journal_mode = WAL')
  // An answer is given after its commit, and a commit is on the disk: the power may fail at any moment.
  driver.pragma('synchronous = FULL')
  driver.pragma('foreign_keys = ON')
  driver.pragma('trusted_schema = OFF')
  // What is replaced or deleted is overwritten where that costs no further page: `forget` relies on it.
  driver.pragma('secure_delete = FAST')
  driver.pragma('journal_size_limit = 16777216')
  return migrate(driver)
}

/** How long a commit proves that the database can be written. */
const proofMs = 1000

/** What tells the file of a database and its log from others of their names. */
export type FileIdentity = readonly string[]

/** Empty for a database in memory, which nobody can take away. Throws where a file is missing. */
function identityOf(file: string): FileIdentity {
  if (file === ':memory:') return []
  // While a database is open, so is its log: SQLite removes it with the last connection.
  return [file, `${file}-wal`].map((path) => {
    const { dev, ino } = statSync(path)
    return `${dev} ${ino}`
  })
}

/**
 * Throws when the files that were opened are not those of their names any more: what is written would be lost with the
 * last process that has them open.
 */
function requireSameFile(file: string, identity: FileIdentity): void {
  if (identity.length === 0) return
  let found: FileIdentity
  try {
    found = identityOf(file)
  } catch (cause) {
    throw new Error(`${file} or its log is gone while it is in use: stop, put it back, and start again`, {
      cause,
    })
  }
  if (found.some((each, index) => each !== identity[index])) {
    throw new Error(
      `${file} or its log was replaced while it is in use: stop, put the old one back, and start again`,
    )
  }
}

function handle(driver: Driver.Database, isNew: boolean, identity: FileIdentity): Database {
  const orm = drizzle(driver)
  const changes = new Changes(driver)
  const guard = () => requireSameFile(driver.name, identity)
  const writer = new Writer(driver, guard)
  const userVersion = driver.pragma('user_version', { simple: true })
  const freePages = driver.prepare('PRAGMA freelist_count').pluck()
  const allPages = driver.prepare('PRAGMA page_count').pluck()
  const probe = driver.prepare('SELECT count(*) FROM brands')
  const requireSameSchema = upgradeCheck(driver)
  return {
    orm,
    driver,
    writer,
    changes,
    isNew,
    identity,
    check: async () => {
      guard()
      requireSameSchema()
      probe.get()
      // A server that is left alone because it was unwell would stay so if it did not try by itself.
      if (!writer.hasWritten(proofMs)) {
        await writer.write(() => void driver.pragma(`user_version = ${userVersion}`), proofMs)
      }
    },
    shrink: () => {
      const [free, all] = [Number(freePages.get()), Number(allPages.get())]
      if (free <= sparePages || free < all / 4) return false
      // Not by a prepared statement: of those the driver takes the first step only, which is one page.
      driver.exec(`PRAGMA incremental_vacuum(${vacuumPages})`)
      return true
    },
    leaveCheckpoints: () => void driver.pragma(`wal_autocheckpoint = ${brakePages}`),
    startCheckpoints: (log) => new Checkpoints(driver, log),
    close: async () => {
      await writer.idle()
      try {
        driver.pragma('wal_checkpoint(TRUNCATE)')
      } catch {
        // On a full disk, for one. What is not folded back stays in the log, and the next start reads it there.
      }
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
