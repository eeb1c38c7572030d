import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type Driver from 'better-sqlite3'
import { OperatorError } from '../../domain/ground/operator-error.ts'
import { fileAt } from './file-at.ts'
import { columnsOf } from './migrate.ts'

export interface DraftOwner {
  readonly pid: number
  readonly isRoot: boolean
  isRunning(pid: number): boolean
}

export interface Draft {
  readonly path: string
  /** Syncs the draft and renames it to the file; durable when it returns. */
  publish(): void
  discard(): void
}

/** Also removes drafts of dead processes. Throws OperatorError if the folder can't be written. */
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
    // Never opens an existing file or link.
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
    // Creating a missing mount point would write to the wrong disk.
    if (code === 'ENOENT')
      throw new OperatorError(`The folder ${folder} does not exist. Create or mount it first.`)
    throw new OperatorError(`${folder} cannot be written (${code}). Give this user write permission.`)
  }
}

function draftPid(name: string, of: string): number | undefined {
  const pid = name.startsWith(`${of}.`) ? /^\.(\d{1,10})\.draft$/.exec(name.slice(of.length))?.[1] : undefined
  return pid === undefined ? undefined : Number(pid)
}

function remove(path: string): void {
  for (const end of ['', ...companions]) rmSync(path + end, { force: true })
}

export const companions = ['-wal', '-shm', '-journal'] as const

export function syncToDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** The latest file that `otpost move` set aside. */
export function movedAside(file: string): string | undefined {
  const [folder, start] = [dirname(file), `${basename(file)}${movedEnding}`]
  if (!fileAt(folder)?.isDirectory()) return undefined
  const [last] = readdirSync(folder)
    .filter((name) => name.startsWith(start))
    .sort()
    .reverse()
  return last === undefined ? undefined : join(folder, last)
}

export const movedEnding = '.moved-'

/** Rejects the database and the files beside it, by any name. */
export function refuseOwnFile(file: string, databaseFile: string): void {
  const own = ['', ...companions, '.key', '.created'].map((end) => databaseFile + end)
  const [there, theirs] = [fileAt(file), own.map(fileAt)]
  const isOwn =
    own.some((path) => placeOf(path) === placeOf(file)) ||
    theirs.some((each) => each && there && each.dev === there.dev && each.ino === there.ino)
  if (isOwn) throw new OperatorError(`${file} belongs to the database itself. Give another path.`)
}

function placeOf(path: string): string {
  const whole = resolve(path)
  try {
    return join(realpathSync(dirname(whole)), basename(whole))
  } catch {
    return whole
  }
}

export function damageIn(driver: Driver.Database): readonly string[] {
  const pages = driver.prepare<[], string>('PRAGMA integrity_check').pluck().all()
  const keys = driver.prepare<[], { table: string }>('PRAGMA foreign_key_check').all()
  return [
    ...pages.flatMap((text) => text.split('\n')).filter((line) => line !== 'ok' && !line.startsWith('***')),
    ...keys.map(({ table }) => `a row of ${table} refers to a missing row`),
  ]
}

export function requireIntact(driver: Driver.Database, file: string, advice: string): void {
  driver.pragma('trusted_schema = OFF')
  const columns = columnsOf(driver)
  if (!['__drizzle_migrations.hash', 'brands.slug'].every((name) => columns.includes(name))) {
    throw new OperatorError(`${file} is an SQLite database, but not of otpost.`)
  }
  const [damage] = damageIn(driver)
  if (damage !== undefined) throw new OperatorError(`${file} is damaged: ${damage}. ${advice}`)
}
