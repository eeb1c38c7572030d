import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import Driver from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import type { Actor, AuditEntry } from '../../domain/ground/audit.ts'
import { OperatorError } from '../../domain/ground/operator-error.ts'
import { auditRow } from '../store/audit.ts'
import { DatabaseError } from './database.ts'
import { type DraftOwner, damageIn, draftBeside, refuseOwnFile } from './draft.ts'
import { fileAt } from './file-at.ts'
import { tables } from './schema.ts'

export interface BackupOptions {
  readonly replace: boolean
  readonly owner: DraftOwner
  readonly now: number
  readonly actor: Actor
}

/**
 * VACUUM INTO copies rows, not pages, so that the copy contains no deleted data.
 * @returns the size of the copy, in bytes
 * @throws OperatorError or DatabaseError
 */
export async function backUp(
  databaseFile: string,
  file: string,
  { replace, owner, now, actor }: BackupOptions,
): Promise<number> {
  const path = resolve(file)
  refuseOwnFile(path, databaseFile)
  refuseTaken(path, replace)
  const draft = draftBeside(path, owner)
  try {
    await withFsync(draft.path, () => copyInto(draft.path, databaseFile))
    const copy = new Driver(draft.path, { readonly: true })
    try {
      const damage = damageIn(copy)
      if (damage.length > 0) {
        throw new OperatorError(
          `The copy is damaged, so the database probably is too: ${damage[0]}. Run \`otpost doctor --full\`.`,
        )
      }
    } finally {
      copy.close()
    }
    const { size } = statSync(draft.path)
    refuseTaken(path, replace)
    draft.publish()
    note(databaseFile, { at: now, actor, action: 'data.backed-up', target: path, details: {} })
    return size
  } finally {
    draft.discard()
  }
}

/** Syncs in small portions: one sync at the end would delay a server's commits. */
async function withFsync(path: string, work: () => void): Promise<void> {
  const thread = new Worker(new URL('./syncer.ts', import.meta.url).href)
  const failed = Promise.withResolvers<void>()
  thread.onerror = () => failed.resolve()
  const told = (message: string | null) => {
    const done = Promise.withResolvers<void>()
    thread.onmessage = () => done.resolve()
    thread.postMessage(message)
    return Promise.race([done.promise, failed.promise])
  }
  try {
    await told(path)
    work()
    await told(null)
  } finally {
    thread.terminate()
  }
}

function copyInto(path: string, databaseFile: string): void {
  let driver: Driver.Database | undefined
  try {
    // After a crash the first connection recovers the log while others wait.
    driver = new Driver(databaseFile, { timeout: 5000, fileMustExist: true })
    driver.prepare('VACUUM INTO ?').run(path)
  } catch (error) {
    if (isFull(error))
      throw new OperatorError(`The disk of ${path} is full. Free disk space, or choose another disk.`)
    throw new DatabaseError(databaseFile, error)
  } finally {
    driver?.close()
  }
}

/** For the health page. A backup does not need it: the disk may be full, or the schema of another version. */
function note(databaseFile: string, entry: AuditEntry): void {
  let driver: Driver.Database | undefined
  try {
    driver = new Driver(databaseFile, { timeout: 1000, fileMustExist: true })
    drizzle(driver).insert(tables.audit).values(auditRow(entry)).run()
  } catch {
  } finally {
    driver?.close()
  }
}

function refuseTaken(path: string, replace: boolean): void {
  const there = fileAt(path)
  if (!there) return
  if (!there.isFile()) throw new OperatorError(`${path} is not a file. Give the path of a new file.`)
  if (!replace)
    throw new OperatorError(`${path} already exists. Give another path, or add --force to replace it.`)
}

function isFull(error: unknown): boolean {
  return error instanceof Driver.SqliteError && error.code === 'SQLITE_FULL'
}
