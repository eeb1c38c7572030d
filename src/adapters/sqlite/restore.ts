import {
  closeSync,
  fchownSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import Driver from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import type { Actor } from '../../domain/operator/audit.ts'
import { OperatorError } from '../../domain/operator/operator.ts'
import { auditRow } from '../store/audit.ts'
import { timeOfId } from '../store/event-rows.ts'
import { DatabaseError } from './database.ts'
import { companions, type DraftOwner, damageIn, draftBeside, fileAt, refuseOwnFile } from './draft.ts'
import { holdAlone, stamp } from './hold.ts'
import { columnsOf, migrate, missingColumns } from './migrate.ts'
import { audit } from './schema.ts'

/** What SQLite may take beside a database, which it maps into memory. */
const fewestFreeBytes = 64 * 1024

export interface RestoreOptions {
  /** Whether a present database is replaced that can't be read, so that nobody can tell whether a server has it open. */
  readonly force: boolean
  readonly owner: DraftOwner
  /** Epoch milliseconds. */
  readonly now: number
  readonly actor: Actor
  /** Is told of each step before it is taken. */
  readonly onStep?: (step: RestoreStep) => void
}

interface User {
  readonly uid: number
  readonly gid: number
}

/** What is done to the files of the database, in this order. */
export type RestoreStep = 'hold' | 'copy' | 'prepare' | 'set aside' | 'publish' | 'done'

/** What a restore has done, and what has come back by it. */
export interface Restored {
  /** Where the database is kept that was there before; null: there was none. */
  readonly asideFile: string | null
  /** Who had the database before, or has its folder, where the new one could not be given to them; else null. */
  readonly ownerUid: number | null
  readonly droppedCodes: number
  /** Sessions of the console, and links to it. */
  readonly droppedSessions: number
  /** When the last request came that it knows of, epoch milliseconds; null: it knows of none. */
  readonly lastRequestAt: number | null
  /** What had been withdrawn in the database before, and is valid again: apps' keys by appId, and brands by slug. */
  readonly validAgain: { readonly appIds: readonly string[]; readonly brands: readonly string[] }
}

/**
 * Puts a copy of a backup in the place of the database, in one step: whenever this ends, by whatever cause, the old one
 * or the new one is there. The copy is brought up to date, and has no live code any more: one that was used since the
 * backup would be good for a second time.
 *
 * @throws OperatorError when the file is no backup that can be used, or a process has the database open
 */
export function restore(databaseFile: string, file: string, options: RestoreOptions): Restored {
  const { owner, force, now, onStep = () => {} } = options
  const path = resolve(file)
  refuseOwnFile(path, databaseFile)
  if (!fileAt(path)?.isFile()) throw new OperatorError(`there is no file ${path}`)
  onStep('hold')
  const present = holdPresent(databaseFile, force)
  try {
    const draft = draftBeside(databaseFile, owner, { makesFolder: true })
    try {
      onStep('copy')
      const place = fileAt(databaseFile) ?? statSync(dirname(databaseFile))
      copyBackup(draft.path, path, owner.isRoot ? place : undefined)
      onStep('prepare')
      const { validAgain, ...done } = prepare(draft.path, path, present, options)
      onStep('set aside')
      const asideFile = setAside(databaseFile, `${databaseFile}.before-restore-${stamp(now)}`)
      onStep('publish')
      draft.publish()
      onStep('done')
      const isTheirs = !owner.isRoot || statSync(databaseFile).uid === place.uid
      return { asideFile, ownerUid: isTheirs ? null : place.uid, ...done, validAgain }
    } finally {
      draft.discard()
    }
  } finally {
    present?.close()
  }
}

/** Holds the present database, so that nobody else can open it. Undefined where there is none, or none that can be read. */
function holdPresent(file: string, force: boolean): Driver.Database | undefined {
  if (!fileAt(file)) return undefined
  try {
    return holdAlone(file)
  } catch (error) {
    const code = error instanceof Driver.SqliteError ? error.code : ''
    if (!/^SQLITE_(NOTADB|CORRUPT|IOERR)/.test(code)) {
      throw error instanceof OperatorError ? error : new DatabaseError(file, error)
    }
    // SQLite wants room beside a database even to look at it.
    const { bavail, bsize } = statfsSync(dirname(file))
    if (bavail * bsize < fewestFreeBytes) {
      throw new OperatorError('the disk of the database is full: make room first')
    }
    if (force) return undefined
    throw new OperatorError(
      `${file} can not be read (${code}), so that nobody can tell whether a server has it open. Stop the server and give --force: the file is kept aside`,
    )
  }
}

/**
 * Copies a backup, with a log where it has one, and leaves it as it is: it may be where nothing can be written.
 *
 * @param user to whom the copy is given; undefined: it stays with this one
 */
function copyBackup(draftPath: string, path: string, user: User | undefined): void {
  for (const end of ['', '-wal', '-journal']) {
    try {
      if (fileAt(path + end)) copyFile(path + end, draftPath + end, user)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new OperatorError(
        code === 'ENOSPC'
          ? 'the disk of the database is full: make room first'
          : `${path + end} can not be copied (${code})`,
      )
    }
  }
}

/**
 * Copies a file into a new one of mode 0600, whatever its own is. By descriptors: in a folder of the service's user a name
 * may lead elsewhere in the next moment, and what it leads to would be given away.
 */
function copyFile(from: string, to: string, user: User | undefined): void {
  rmSync(to, { force: true })
  const source = openSync(from, 'r')
  try {
    const target = openSync(to, 'wx', 0o600)
    try {
      if (user) give(target, user)
      const buffer = Buffer.allocUnsafe(4 * 2 ** 20)
      for (let bytes = readSync(source, buffer); bytes > 0; bytes = readSync(source, buffer)) {
        for (let done = 0; done < bytes; ) done += writeSync(target, buffer, done, bytes - done)
      }
    } finally {
      closeSync(target)
    }
  } finally {
    closeSync(source)
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Driver.SqliteError ? error.code : undefined
  if (code === 'SQLITE_NOTADB') return 'it is not an SQLite database'
  if (code === 'SQLITE_FULL') return 'the disk of the database is full'
  if (code?.startsWith('SQLITE_CORRUPT')) return 'it is damaged; take another backup'
  return error instanceof Error ? error.message : String(error)
}

/** Gives a file to a user, unless that is not allowed, as in some containers and on some network drives: then it stays. */
function give(descriptor: number, { uid, gid }: User): void {
  try {
    fchownSync(descriptor, uid, gid)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!['EPERM', 'EINVAL', 'ENOSYS', 'ENOTSUP'].includes(code)) throw error
  }
}

/** Checks the copy, brings it up to date, and takes out of it what must not come back. */
function prepare(
  draftPath: string,
  path: string,
  present: Driver.Database | undefined,
  options: RestoreOptions,
): Omit<Restored, 'asideFile' | 'ownerUid'> {
  let draft: Driver.Database | undefined
  try {
    draft = new Driver(draftPath, { timeout: 0, fileMustExist: true })
    requireOurs(draft, path)
    migrate(draft)
    requireColumns(draft, path)
    const taken = takeOut(draft, present, options)
    // As every other process will want it.
    draft.pragma('journal_mode = WAL')
    return taken
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`${path} can not be restored: ${reasonOf(error)}`)
  } finally {
    draft?.close()
  }
}

/** Refuses what is not a whole database of this program. */
function requireOurs(draft: Driver.Database, path: string): void {
  // What its log holds is in the file from here on.
  draft.pragma('journal_mode = DELETE')
  draft.pragma('trusted_schema = OFF')
  const tables = columnsOf(draft)
  if (!['__drizzle_migrations.hash', 'brands.slug'].every((name) => tables.includes(name))) {
    throw new OperatorError(`${path} is an SQLite database, but not one of otpost`)
  }
  const [damage] = damageIn(draft)
  if (damage !== undefined) throw new OperatorError(`${path} is damaged: ${damage}. Take another backup`)
}

/** Takes out of a restored database what must not come back, and says so in its audit log; one transaction. */
function takeOut(
  draft: Driver.Database,
  present: Driver.Database | undefined,
  { now, actor }: RestoreOptions,
): Omit<Restored, 'asideFile' | 'ownerUid'> {
  return draft.transaction(() => {
    const droppedCodes = draft
      .prepare('DELETE FROM codes_and_limits WHERE code_hash IS NOT NULL')
      .run().changes
    const droppedSessions = ['console_sessions', 'console_links'].reduce(
      (sum, table) => sum + draft.prepare(`DELETE FROM ${table}`).run().changes,
      0,
    )
    const lastRequest = draft.prepare<[], string | null>('SELECT max(request_id) FROM requests').pluck().get()
    const entry = auditRow({
      at: now,
      actor,
      action: 'data.restored',
      target: 'database',
      details: { droppedCodes: String(droppedCodes), droppedSessions: String(droppedSessions) },
    })
    drizzle(draft).insert(audit).values(entry).run()
    return {
      droppedCodes,
      droppedSessions,
      lastRequestAt: lastRequest ? timeOfId(lastRequest) : null,
      validAgain: {
        appIds: withdrawn(present, draft, 'app_keys', ['key_sha256', 'app_id'], 'revoked_at IS NOT NULL'),
        brands: withdrawn(present, draft, 'brands', ['slug', 'slug'], "status = 'suspended'"),
      },
    }
  })()
}

/** Refuses what lacks a table or column of an up-to-date database, whatever its list of migrations says. */
function requireColumns(draft: Driver.Database, path: string): void {
  const [missing] = missingColumns(draft)
  if (missing !== undefined) {
    throw new OperatorError(`${path} can not be restored: it lacks ${missing}. Take another backup`)
  }
}

/** What of a table was withdrawn in the present database, and is not in the restored one, by its name. */
function withdrawn(
  present: Driver.Database | undefined,
  draft: Driver.Database,
  table: 'app_keys' | 'brands',
  [key, name]: readonly [key: string, name: string],
  isWithdrawn: string,
): readonly string[] {
  // A present database of an older version, or none.
  if (!present || !columnsOf(present).includes(`${table}.${key}`)) return []
  const restored = new Map(
    draft
      .prepare<[], [string, string]>(`SELECT ${key}, ${name} FROM ${table} WHERE NOT (${isWithdrawn})`)
      .raw()
      .all(),
  )
  const before = present.prepare<[], string>(`SELECT ${key} FROM ${table} WHERE ${isWithdrawn}`).pluck().all()
  return [...new Set(before.flatMap((each) => restored.get(each) ?? []))].sort()
}

/**
 * Gives the database a second name, by which it is kept once another takes the first. A log that is still there goes
 * with it: SQLite would play it into whatever has the name.
 */
function setAside(databaseFile: string, aside: string): string | null {
  const isThere = fileAt(databaseFile) !== undefined
  if (isThere) linkSync(databaseFile, aside)
  for (const end of companions) {
    if (fileAt(databaseFile + end)) renameSync(databaseFile + end, aside + end)
  }
  return isThere ? aside : null
}
