import {
  closeSync,
  fchownSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import Driver from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import type { Actor } from '../../domain/ground/audit.ts'
import { OperatorError } from '../../domain/ground/operator-error.ts'
import { keptAfterEndMs } from '../../domain/notify/queue.ts'
import { auditRow } from '../store/audit.ts'
import type { AnyTable } from '../store/dialect.ts'
import { timeOfId } from '../store/request-ids.ts'
import { schema } from '../store/schema.ts'
import { DatabaseError } from './database.ts'
import { companions, type DraftOwner, draftBeside, refuseOwnFile, requireIntact } from './draft.ts'
import { fileAt } from './file-at.ts'
import { holdAlone, stamp } from './hold.ts'
import { mark } from './marker.ts'
import { columnsOf, migrate, missingColumns } from './migrate.ts'
import { tables } from './schema.ts'

const { audit } = tables

/** SQLite maps a file beside the database into memory. */
const fewestFreeBytes = 64 * 1024

export interface RestoreOptions {
  readonly force: boolean
  /** Prepares the restored database and discards it. A server may use the present one. */
  readonly isDryRun?: boolean
  readonly owner: DraftOwner
  readonly now: number
  readonly actor: Actor
  readonly onStep?: (step: RestoreStep) => void
}

type User = Pick<Stats, 'uid' | 'gid'>

export type RestoreStep = 'hold' | 'copy' | 'prepare' | 'set aside' | 'publish' | 'done'

export interface Restored {
  /** Null: there was no database. */
  readonly asideFile: string | null
  /** The user who could not be set as the owner of the database. */
  readonly ownerUid: number | null
  readonly droppedCodes: number
  readonly droppedSessions: number
  /** Alerts that were not delivered yet at the time of the backup. */
  readonly droppedAlerts: number
  /** Of asynchronous notifications: they waited, and may have been sent after the backup. */
  readonly unknownJobs: number
  /** False: budgets do not count what was spent after the backup. */
  readonly knowsSpent: boolean
  /** Null: no requests. */
  readonly lastRequestAt: number | null
  /** Revoked appIds, suspended brand slugs, and accounts that were removed or changed. */
  readonly validAgain: Readonly<Record<'appIds' | 'brands' | 'accounts', readonly string[]>>
}

/** One step, even after a crash. Throws OperatorError, also while a process has the database open. */
export function restore(databaseFile: string, file: string, options: RestoreOptions): Restored {
  const { owner, force, isDryRun = false, now, onStep = () => {} } = options
  const path = resolve(file)
  refuseOwnFile(path, databaseFile)
  if (!fileAt(path)?.isFile()) throw new OperatorError(`The file ${path} does not exist.`)
  onStep('hold')
  const present = isDryRun ? readPresent(databaseFile) : holdPresent(databaseFile, force)
  try {
    const draft = draftBeside(databaseFile, owner, { makesFolder: !isDryRun })
    try {
      onStep('copy')
      const place = fileAt(databaseFile) ?? statSync(dirname(databaseFile))
      copyBackup(draft.path, path, owner.isRoot ? place : undefined)
      onStep('prepare')
      const { validAgain, ...done } = prepare(draft.path, path, present, options)
      const aside = `${databaseFile}.before-restore-${stamp(now)}`
      if (isDryRun) {
        return { asideFile: fileAt(databaseFile) ? aside : null, ownerUid: null, ...done, validAgain }
      }
      onStep('set aside')
      const asideFile = setAside(databaseFile, aside)
      onStep('publish')
      draft.publish()
      mark(databaseFile)
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

/** Undefined: there is no database, or it cannot be read. */
function readPresent(file: string): Driver.Database | undefined {
  try {
    const driver = new Driver(file, { readonly: true, fileMustExist: true })
    driver.prepare('SELECT count(*) FROM sqlite_schema').get()
    return driver
  } catch {
    return undefined
  }
}

function holdPresent(file: string, force: boolean): Driver.Database | undefined {
  if (!fileAt(file)) return undefined
  try {
    return holdAlone(file)
  } catch (error) {
    const code = error instanceof Driver.SqliteError ? error.code : ''
    if (!/^SQLITE_(NOTADB|CORRUPT|IOERR)/.test(code)) {
      throw error instanceof OperatorError ? error : new DatabaseError(file, error)
    }
    // SQLite needs space beside a database even to read it.
    const { bavail, bsize } = statfsSync(dirname(file))
    if (bavail * bsize < fewestFreeBytes) {
      throw new OperatorError('The disk of the database is full. Free disk space first.')
    }
    if (force) return undefined
    throw new OperatorError(
      `${file} cannot be read (${code}), so otpost cannot check whether a server uses it. Stop the server, and add --force. The file will be renamed and kept.`,
    )
  }
}

/** Copies a backup with its write-ahead log. The copy belongs to `user`. */
function copyBackup(draftPath: string, path: string, user: User | undefined): void {
  for (const end of ['', '-wal', '-journal']) {
    try {
      if (fileAt(path + end)) copyFile(path + end, draftPath + end, user)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new OperatorError(
        code === 'ENOSPC'
          ? 'The disk of the database is full. Free disk space first.'
          : `${path + end} cannot be copied (${code}).`,
      )
    }
  }
}

/** Uses descriptors, since another user could replace a name in their folder by a link. */
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
  if (code === 'SQLITE_NOTADB') return 'it is not an SQLite database.'
  if (code === 'SQLITE_FULL') return 'the disk of the database is full.'
  if (code?.startsWith('SQLITE_CORRUPT')) return 'it is damaged. Use another backup.'
  return error instanceof Error ? error.message : String(error)
}

function give(descriptor: number, { uid, gid }: User): void {
  try {
    fchownSync(descriptor, uid, gid)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!['EPERM', 'EINVAL', 'ENOSYS', 'ENOTSUP'].includes(code)) throw error
  }
}

function prepare(
  draftPath: string,
  path: string,
  present: Driver.Database | undefined,
  options: RestoreOptions,
): Omit<Restored, 'asideFile' | 'ownerUid'> {
  let draft: Driver.Database | undefined
  try {
    draft = new Driver(draftPath, { timeout: 0, fileMustExist: true })
    draft.pragma('journal_mode = DELETE')
    requireIntact(draft, path, 'Use another backup.')
    migrate(draft)
    requireColumns(draft, path)
    const taken = takeOut(draft, present, options)
    draft.pragma('journal_mode = WAL')
    return taken
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`${path} cannot be restored: ${reasonOf(error)}`)
  } finally {
    draft?.close()
  }
}

function takeOut(
  draft: Driver.Database,
  present: Driver.Database | undefined,
  { now, actor }: RestoreOptions,
): Omit<Restored, 'asideFile' | 'ownerUid'> {
  return draft.transaction(() => {
    const droppedCodes = draft
      .prepare('DELETE FROM codes_and_limits WHERE code_hash IS NOT NULL')
      .run().changes
    const notRestored = Object.values<AnyTable>(schema).filter(({ facts }) => facts.isNotRestored)
    const dropped = new Map(
      notRestored.map(({ name }) => [name, draft.prepare(`DELETE FROM ${name}`).run().changes]),
    )
    const droppedOf = (...tables: readonly { readonly name: string }[]) =>
      tables.reduce((sum, { name }) => sum + (dropped.get(name) ?? 0), 0)
    const droppedSessions = droppedOf(schema.consoleSessions, schema.consoleLinks)
    // They may have been sent after the backup.
    const unknownJobs = draft
      .prepare(
        `UPDATE notify_jobs SET state = 'unknown', owner = NULL, reason = 'restored', due_at = ?, updated_at = ?
         WHERE state IN ('queued', 'sending')`,
      )
      .run(now + keptAfterEndMs, now).changes
    const knowsSpent = keepSpent(present, draft)
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
      droppedAlerts: droppedOf(schema.alertDeliveries),
      unknownJobs,
      knowsSpent,
      lastRequestAt: lastRequest ? timeOfId(lastRequest) : null,
      validAgain: {
        appIds: withdrawn(present, draft, 'app_keys', ['key_sha256', 'app_id'], 'revoked_at IS NOT NULL'),
        brands: withdrawn(present, draft, 'brands', ['slug', 'slug'], "status = 'suspended'"),
        accounts: changedAccounts(present, draft),
      },
    }
  })()
}

function requireColumns(draft: Driver.Database, path: string): void {
  const [missing] = missingColumns(draft)
  if (missing !== undefined) {
    throw new OperatorError(`${path} cannot be restored: it lacks ${missing}. Use another backup.`)
  }
}

/** Money that was spent after the backup stays spent. Returns whether it was known for all budgets. */
function keepSpent(present: Driver.Database | undefined, draft: Driver.Database): boolean {
  if (!present || !columnsOf(present).includes('codes_and_limits.count')) {
    return draft.prepare('SELECT 1 FROM budgets').get() === undefined
  }
  const counters = present.prepare(
    "SELECT subject, name, count, expires_at FROM codes_and_limits WHERE subject >= 'budget:' AND subject < 'budget;'",
  )
  const keep = draft.prepare(
    `INSERT INTO codes_and_limits (subject, name, count, expires_at)
     SELECT @subject, @name, @count, @expires_at FROM budgets
     WHERE (@subject = 'budget:' || scope OR scope = 'country:*' AND @subject LIKE 'budget:country:*:__')
       AND @name = period || ':' || "of" || ':' || counts_from
     ON CONFLICT DO UPDATE SET count = excluded.count, expires_at = excluded.expires_at
     WHERE (excluded.expires_at, excluded.count) > (codes_and_limits.expires_at, codes_and_limits.count)`,
  )
  for (const counter of counters.all()) keep.run(counter)
  return true
}

/** Names of rows that were revoked or suspended before the restore but not after it. */
function withdrawn(
  present: Driver.Database | undefined,
  draft: Driver.Database,
  table: 'app_keys' | 'brands',
  [key, name]: readonly [key: string, name: string],
  isWithdrawn: string,
): readonly string[] {
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

/** E-mail addresses of the accounts that can sign in otherwise than before the restore. */
function changedAccounts(present: Driver.Database | undefined, draft: Driver.Database): readonly string[] {
  if (!present || !columnsOf(present).includes('operators.id')) return []
  const accountsOf = (database: Driver.Database) =>
    database
      .prepare<[], [email: string, state: string]>(
        `SELECT email, json_array(id, role, password_hash, (SELECT json_group_array(credential_id) FROM
           (SELECT credential_id FROM passkeys WHERE operator_id = operators.id ORDER BY credential_id)))
         FROM operators ORDER BY email`,
      )
      .raw()
      .all()
  const before = new Map(accountsOf(present))
  return accountsOf(draft).flatMap(([email, state]) => (before.get(email) === state ? [] : email))
}

/** Moves the log too: SQLite would apply it to the new file. */
function setAside(databaseFile: string, aside: string): string | null {
  const isThere = fileAt(databaseFile) !== undefined
  if (isThere) linkSync(databaseFile, aside)
  for (const end of companions) {
    if (fileAt(databaseFile + end)) renameSync(databaseFile + end, aside + end)
  }
  return isThere ? aside : null
}
