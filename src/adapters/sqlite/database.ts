import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Driver from 'better-sqlite3'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { Log } from '../../domain/ground/ports.ts'
import { NoDatabase } from '../store/store.ts'
import { Changes } from './changes.ts'
import { movedAside } from './draft.ts'
import { isMissing, mark, markerOf, markerOfLost } from './marker.ts'
import { hasSchema, migrate, upgradeCheck } from './migrate.ts'
import { ormOn } from './prepared.ts'
import type { statementsOf } from './statements.ts'
import { WriteAheadLog } from './write-ahead-log.ts'
import { Writer, withBusyRetry } from './writer.ts'

export interface Database {
  readonly orm: BetterSQLite3Database
  readonly driver: Driver.Database
  /** As `statementsOf`; `orm` uses it too. */
  readonly statement: ReturnType<typeof statementsOf>
  readonly writer: Writer
  readonly changes: Changes
  readonly isNew: boolean
  check(): Promise<void>
  /** Returns free pages to the file system if there are many; false if there are few. */
  readonly shrink: () => boolean
  /** Syncs and checkpoints on other threads from now on, as in a server. */
  serve(log: Pick<Log, 'warn'>): void
  close(): Promise<void>
}

const vacuumPages = 100

const sparePages = 256

/** SQLite 3.51.3 fixed a corruption of the write-ahead log. */
const oldestSqlite = [3, 51, 3] as const

interface Opening {
  /** Creates nothing (design D51). */
  readonly mustExist?: boolean
}

/**
 * Creates and migrates the file if needed. Concurrent starts wait for each other. Throws DatabaseError, or NoDatabase if
 * the database must exist.
 */
export function openDatabase(file: string, { mustExist = false }: Opening = {}): Database {
  let driver: Driver.Database | undefined
  try {
    const isFile = file !== ':memory:'
    if (mustExist && isMissing(file)) throw new NoDatabase()
    if (isFile) {
      requireNotLost(file)
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    }
    // SQLite would block the event loop while it waits for a lock.
    const opened = new Driver(file, { timeout: 0, fileMustExist: mustExist })
    driver = opened
    let isNew = false
    withBusyRetry(() => {
      if (mustExist && !hasSchema(opened)) throw new NoDatabase()
      isNew = prepare(opened)
    })
    if (isFile && !mustExist) mark(file)
    return handle(opened, isNew, identityOf(file))
  } catch (error) {
    driver?.close()
    throw error instanceof NoDatabase ? error : new DatabaseError(file, error)
  }
}

/** A server must not continue with an empty database after `otpost move`, or after the file was lost. */
function requireNotLost(file: string): void {
  const aside = isMissing(file) ? movedAside(file) : undefined
  if (aside !== undefined) {
    throw new Error(
      `otpost move copied it to PostgreSQL and renamed it to ${aside}. Set DATABASE_URL to that PostgreSQL database. To start with an empty database instead, move ${aside} to another folder, and delete ${markerOf(file)}.`,
    )
  }
  const marker = markerOfLost(file)
  if (marker === undefined) return
  throw new Error(
    `it is missing, but ${marker} says that it existed. Mount its disk, or restore a backup with \`otpost restore FILE\`. To start with an empty database instead, delete ${marker}.`,
  )
}

export class DatabaseError extends Error {
  override readonly name = 'DatabaseError'

  constructor(file: string, cause: unknown) {
    super(`The database ${file} cannot be used: ${reasonOf(cause)}`, { cause })
  }
}

function reasonOf(cause: unknown): string {
  const code = (cause as { code?: unknown } | null)?.code
  const another = 'or set DATABASE_URL to another file.'
  switch (code) {
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `its folder cannot be created or written. Give this user write permission, ${another}`
    case 'EEXIST':
    case 'ENOTDIR':
      return `its folder cannot be created, because a file with that name exists. Move that file, ${another}`
    case 'SQLITE_CANTOPEN':
    case 'SQLITE_CANTOPEN_ISDIR':
      return `it is a folder, it is on a read-only file system, or this user has no permission to read and write it. Fix that, ${another}`
    case 'SQLITE_READONLY':
    case 'SQLITE_READONLY_DIRECTORY':
      return `it cannot be written. Give this user write permission for the file and its folder, ${another}`
    case 'SQLITE_NOTADB':
      return `it is not an SQLite database. otpost did not change it. Move the file, ${another}`
    case 'SQLITE_READONLY_DBMOVED':
      return 'it was replaced while it was being opened, for example by `otpost restore`. Start the server again.'
    case 'SQLITE_FULL':
      return 'the disk is full. Free disk space, and start again.'
    case 'SQLITE_BUSY':
      return 'another process has locked it. Stop that process, and start again.'
    case 'ERR_DLOPEN_FAILED':
      return `SQLite cannot be loaded (${messageOf(cause)}). The binary unpacks it into the temporary folder. Set TMPDIR to a folder that this user can write to, on a file system without noexec.`
    default:
      return messageOf(cause)
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}

function prepare(driver: Driver.Database): boolean {
  requireSqlite(driver)
  // Must precede the first table, for `shrink`.
  driver.pragma('auto_vacuum = INCREMENTAL')
  driver.pragma('journal_mode = WAL')
  // A commit must survive a power failure.
  driver.pragma('synchronous = FULL')
  driver.pragma('foreign_keys = ON')
  driver.pragma('trusted_schema = OFF')
  // Overwrites deleted data where no further page is needed; `forget` relies on it.
  driver.pragma('secure_delete = FAST')
  driver.pragma('journal_size_limit = 16777216')
  return migrate(driver)
}

const proofMs = 1000
const checkMs = 2000
const farewellMs = 15_000

type FileIdentity = readonly string[]

function identityOf(file: string): FileIdentity {
  if (file === ':memory:') return []
  return [file, `${file}-wal`].map((path) => {
    const { dev, ino } = statSync(path)
    return `${dev} ${ino}`
  })
}

/** Writes to replaced or deleted files would be lost. */
function requireSameFile(file: string, identity: FileIdentity): void {
  if (identity.length === 0) return
  let found: FileIdentity
  try {
    found = identityOf(file)
  } catch (cause) {
    throw moved(file, 'removed', 'the file', cause)
  }
  if (found.some((each, index) => each !== identity[index]))
    throw moved(file, 'replaced', 'the previous file')
}

/** `databaseFault` in the domain has the words of this code. */
function moved(file: string, how: string, back: string, cause?: unknown): Error {
  const message = `${file} or its -wal file was ${how} while the server runs. Stop the server, put ${back} back, and start again.`
  return Object.assign(new Error(message, { cause }), { code: 'DATABASE_MOVED' })
}

function handle(driver: Driver.Database, isNew: boolean, identity: FileIdentity): Database {
  const { orm, statement } = ormOn(driver)
  const changes = new Changes(driver)
  const guard = () => requireSameFile(driver.name, identity)
  const writer = new Writer(driver, guard)
  const add = driver.prepare('UPDATE revision SET number = number + ?')
  /** Writes a page with the content that it has. An update that changes nothing would write none. */
  const touch = () => [1, -1].forEach((by) => void add.run(by))
  const freePages = driver.prepare('PRAGMA freelist_count').pluck()
  const allPages = driver.prepare('PRAGMA page_count').pluck()
  const probe = driver.prepare('SELECT count(*) FROM brands')
  const requireSameSchema = upgradeCheck(driver)
  let wal: WriteAheadLog | undefined
  return {
    orm,
    driver,
    statement,
    writer,
    changes,
    isNew,
    check: async () => {
      guard()
      requireSameSchema()
      probe.get()
      // Load balancers stop sending requests to an unhealthy server, so the check itself must write.
      if (!writer.hasWritten(proofMs)) {
        await writer.write(touch, proofMs, checkMs)
      }
    },
    shrink: () => {
      const [free, all] = [Number(freePages.get()), Number(allPages.get())]
      if (free <= sparePages || free < all / 4) return false
      // A prepared statement would free one page only.
      driver.exec(`PRAGMA incremental_vacuum(${vacuumPages})`)
      return true
    },
    serve: (log) => {
      wal = new WriteAheadLog(driver, log)
      writer.syncWith(wal)
    },
    close: async () => {
      await withinTime(writer.idle().then(() => wal?.close()))
      writer.close()
      try {
        driver.pragma('wal_checkpoint(TRUNCATE)')
      } catch {
        // For example on a full disk. The next start reads the log.
      }
      driver.close()
    },
  }
}

/** @throws if the disk hangs */
async function withinTime(idle: Promise<void>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(
    () => reject(new Error('The disk of the database does not answer. Check it.')),
    farewellMs,
  )
  await Promise.race([idle, late])
  clearTimeout(timer)
}

function requireSqlite(driver: Driver.Database): void {
  const { version } = driver.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  const parts = version.split('.').map(Number)
  for (const [index, least] of oldestSqlite.entries()) {
    const part = parts[index] ?? 0
    if (part > least) return
    if (part < least)
      throw new Error(`SQLite ${version} is too old. otpost requires ${oldestSqlite.join('.')} or newer.`)
  }
}
