import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import Driver from 'better-sqlite3'
import { OperatorError } from '../../domain/operator/operator.ts'
import { DatabaseError } from './database.ts'
import { type DraftOwner, damageIn, draftBeside, fileAt, refuseOwnFile } from './draft.ts'

export interface BackupOptions {
  /** Whether a file that is there already is replaced. */
  readonly replace: boolean
  readonly owner: DraftOwner
}

/**
 * Copies the database as it is at one instant into a file of its own, while others go on reading and writing it: they
 * wait for nothing, but the log of a busy server can't begin anew meanwhile. The copy is written from the rows
 * (VACUUM INTO), not page by page: so it holds nothing of what was deleted, is as small as it can be, and one that
 * can't be read to its end is not made. It takes its name when it has been checked and is on the disk.
 *
 * @returns the size of the copy, in bytes
 * @throws OperatorError when the file can't be that, or the copy is not whole; DatabaseError when the database can't be read
 */
export async function backUp(
  databaseFile: string,
  file: string,
  { replace, owner }: BackupOptions,
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
          `the copy is not whole, so the database is likely damaged: ${damage[0]}. Run otpost doctor --full`,
        )
      }
    } finally {
      copy.close()
    }
    const { size } = statSync(draft.path)
    refuseTaken(path, replace)
    draft.publish()
    return size
  } finally {
    draft.discard()
  }
}

/**
 * Does what fills a file while another thread has the disk take in what is there of it: hundreds of megabytes at once,
 * at the end, would hold up every commit of a server on that disk until all of them are written.
 */
async function withFsync(path: string, work: () => void): Promise<void> {
  const thread = new Worker(new URL('./syncer.ts', import.meta.url).href)
  // Without the thread the copy is as good, and commits wait longer.
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

/** Writes what a database holds at one instant into an empty file. */
function copyInto(path: string, databaseFile: string): void {
  let driver: Driver.Database | undefined
  try {
    // After a crash the first who opens the log recovers it, and others wait.
    driver = new Driver(databaseFile, { timeout: 5000, fileMustExist: true })
    driver.prepare('VACUUM INTO ?').run(path)
  } catch (error) {
    if (isFull(error)) throw new OperatorError(`the disk of ${path} is full: make room, or choose another`)
    throw new DatabaseError(databaseFile, error)
  } finally {
    driver?.close()
  }
}

function refuseTaken(path: string, replace: boolean): void {
  const there = fileAt(path)
  if (!there) return
  if (!there.isFile()) throw new OperatorError(`${path} is not a file: name one that is to be made`)
  if (!replace) throw new OperatorError(`${path} is there already: name another file, or give --force`)
}

function isFull(error: unknown): boolean {
  return error instanceof Driver.SqliteError && error.code === 'SQLITE_FULL'
}
