import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type Driver from 'better-sqlite3'
import { OperatorError } from '../../domain/operator/operator.ts'

/** The process that a draft belongs to. */
export interface DraftOwner {
  readonly pid: number
  /** Whether it may give files to other users, as root may. */
  readonly isRoot: boolean
  /** Whether there is a process of this id. */
  isRunning(pid: number): boolean
}

/** A file that takes the place of another when it is finished, and not before. */
export interface Draft {
  readonly path: string
  /** Makes what was written last, and takes the place of the file in one step; both outlast a power cut. */
  publish(): void
  /** Removes it; what was published stays. */
  discard(): void
}

/**
 * Makes an empty draft beside a file, for this user's eyes only, and removes those that killed processes left there.
 *
 * @throws OperatorError where the folder can't be written
 */
export function draftBeside(
  file: string,
  owner: DraftOwner,
  { makesFolder = false }: { readonly makesFolder?: boolean } = {},
): Draft {
  const folder = dirname(file)
  try {
    if (makesFolder) mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(folder)) {
      const pid = draftPid(name, basename(file))
      if (pid !== undefined && (pid === owner.pid || !owner.isRunning(pid))) remove(join(folder, name))
    }
    const path = `${file}.${owner.pid}.draft`
    // Not one that somebody else has put there, nor what a link of that name leads to.
    closeSync(openSync(path, 'wx', 0o600))
    return {
      path,
      publish() {
        syncToDisk(path)
        renameSync(path, file)
        syncToDisk(folder)
      },
      discard: () => remove(path),
    }
  } catch (error) {
    const { code = error } = error as NodeJS.ErrnoException
    // One that is made where another should be mounted would take the copy to the wrong disk.
    if (code === 'ENOENT')
      throw new OperatorError(`there is no folder ${folder}: make it, or mount it, first`)
    throw new OperatorError(`${folder} can not be written (${code}): let this user write there`)
  }
}

/** The process that made a draft of a file; undefined where this is the name of none. */
function draftPid(name: string, of: string): number | undefined {
  const pid = name.startsWith(`${of}.`) ? /^\.(\d{1,10})\.draft$/.exec(name.slice(of.length))?.[1] : undefined
  return pid === undefined ? undefined : Number(pid)
}

/** Removes a database with all that SQLite puts beside it. */
function remove(path: string): void {
  for (const end of ['', ...companions]) rmSync(path + end, { force: true })
}

/** What SQLite may keep beside a database. */
export const companions = ['-wal', '-shm', '-journal'] as const

/** Waits until a file, or the names in a folder, are on the disk. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** What `otpost move` has set aside of a file last; undefined where there is nothing. */
export function movedAside(file: string): string | undefined {
  const [folder, start] = [dirname(file), `${basename(file)}${movedEnding}`]
  if (!fileAt(folder)?.isDirectory()) return undefined
  const [last] = readdirSync(folder)
    .filter((name) => name.startsWith(start))
    .sort()
    .reverse()
  return last === undefined ? undefined : join(folder, last)
}

/** What the name of a file that was moved to a server goes on with, before the time. */
export const movedEnding = '.moved-'

/** Refuses a file that is the database, or one of those that belong to it, by whatever name. */
export function refuseOwnFile(file: string, databaseFile: string): void {
  const own = ['', ...companions, '.key'].map((end) => databaseFile + end)
  const [there, theirs] = [fileAt(file), own.map(fileAt)]
  const isOwn =
    own.some((path) => placeOf(path) === placeOf(file)) ||
    theirs.some((each) => each && there && each.dev === there.dev && each.ino === there.ino)
  if (isOwn) throw new OperatorError(`${file} belongs to the database that is in use: name another file`)
}

/** What a path leads to; undefined where that is nothing. */
export function fileAt(path: string) {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

/** Where a name lies, whatever links lead to its folder. */
function placeOf(path: string): string {
  const whole = resolve(path)
  try {
    return join(realpathSync(dirname(whole)), basename(whole))
  } catch {
    return whole
  }
}

/** All that is wrong inside of a database, or the first hundred things; empty where it is whole. */
export function damageIn(driver: Driver.Database): readonly string[] {
  const pages = driver.prepare<[], string>('PRAGMA integrity_check').pluck().all()
  const keys = driver.prepare<[], { table: string }>('PRAGMA foreign_key_check').all()
  return [
    // Lines that only say where a part of the report begins are left out.
    ...pages.flatMap((text) => text.split('\n')).filter((line) => line !== 'ok' && !line.startsWith('***')),
    ...keys.map(({ table }) => `a row of ${table} refers to one that is missing`),
  ]
}
