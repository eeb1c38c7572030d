import { realpathSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import Driver from 'better-sqlite3'
import { OperatorError } from '../../domain/operator/operator.ts'
import type { Clock } from '../../domain/ports.ts'
import {
  columnsByTable,
  comparedKeys,
  type MovedTable,
  type PlainRow,
  type TransferSource,
} from '../store/transfer.ts'
import { DatabaseError } from './database.ts'
import { damageIn, fileAt, movedAside, movedEnding, syncToDisk } from './draft.ts'
import { holdAlone, stamp } from './hold.ts'
import { migrate } from './migrate.ts'
import * as schema from './schema.ts'

const columns = columnsByTable(Object.values(schema))

/** A database file that is held, so that nobody else reads or writes it, until it is closed. */
export interface HeldFile extends TransferSource {
  /**
   * Gives the file another name, beside its own, so that no server finds it; lasts through a power cut.
   *
   * @returns the new name
   */
  setAside(): string
  /** Gives it its own name back, where it was set aside. */
  putBack(): void
  /** Whoever waited for it may go on. */
  close(): void
}

/**
 * Opens a file to read all that is kept in it.
 *
 * @throws OperatorError where there is none, or a process has it open; DatabaseError where it can't be used
 */
export function holdFile(file: string, now: Clock): HeldFile {
  requireFileThere(file)
  // By its own name, whatever links lead to it.
  const path = realpathSync(file)
  let aside: string | undefined
  const driver = known(file, () => holdAlone(path))
  const number = (query: string, ...values: readonly string[]): number =>
    known(file, () =>
      Number(
        driver
          .prepare(query)
          .pluck()
          .get(...values) ?? 0,
      ),
    )
  return {
    now,
    prepare: () => known(file, () => prepare(driver, file)),
    count: (table) => number(`SELECT count(*) FROM ${table}`),
    rows: (table) => rowsOf(driver, table),
    keys: (table) =>
      known(file, () =>
        driver.prepare<[], string>(`SELECT ${comparedKeys[table]} FROM ${table}`).pluck().all(),
      ),
    lastNumber: (table) => number('SELECT seq FROM sqlite_sequence WHERE name = ?', table),
    setAside() {
      if (aside !== undefined) return aside
      const name = `${path}${movedEnding}${stamp(now())}`
      try {
        renameSync(path, name)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        throw new OperatorError(
          `${path} can not be set aside (${code}): let this user write its folder, or give --keep`,
        )
      }
      aside = name
      syncToDisk(dirname(path))
      return name
    },
    putBack() {
      if (aside === undefined) return
      renameSync(aside, path)
      aside = undefined
      syncToDisk(dirname(path))
    },
    close: () => driver.close(),
  }
}

/** By which secrets the server of a file worked, as a hash of each; empty where that is not known. */
export function fingerprintsIn(file: string): readonly string[] {
  let driver: Driver.Database | undefined
  try {
    driver = new Driver(file, { fileMustExist: true })
    driver.pragma('query_only = ON')
    return driver.prepare<[], string>('SELECT mark FROM secret_marks').pluck().all()
  } catch {
    // Of an older version, or one that can't be used, which is told by whoever uses it.
    return []
  } finally {
    driver?.close()
  }
}

/** Rows as their schema reads them, one after another. */
function* rowsOf(driver: Driver.Database, table: MovedTable): Generator<PlainRow> {
  const own = columns(table)
  const names = own.map(({ name }) => `"${name}"`).join()
  const rows = driver.prepare<[], unknown[]>(`SELECT ${names} FROM ${table}`).raw()
  for (const values of rows.iterate()) {
    const row: Record<string, unknown> = {}
    for (const [index, column] of own.entries()) {
      const value = values[index] ?? null
      row[column.name] = value === null ? null : column.mapFromDriverValue(value)
    }
    yield row
  }
}

/** Throws what is not a whole database of this program; brings one of an older version up to date. */
function prepare(driver: Driver.Database, file: string): void {
  driver.pragma('trusted_schema = OFF')
  const tables = driver
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .pluck()
    .all()
  if (!['__drizzle_migrations', 'brands'].every((name) => tables.includes(name))) {
    throw new OperatorError(`${file} is an SQLite database, but not one of otpost`)
  }
  const [damage] = damageIn(driver)
  if (damage !== undefined) {
    throw new OperatorError(
      `${file} is damaged: ${damage}. Restore a backup first, or move that: --from file:BACKUP`,
    )
  }
  migrate(driver)
}

/** The errors of SQLite in words for the operator. */
function known<T>(file: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw error instanceof OperatorError ? error : new DatabaseError(file, error)
  }
}

/** What to say where there is no file; one that a move has set aside is the likely reason. */
function missing(file: string): string {
  const aside = movedAside(file)
  const hint =
    aside === undefined
      ? ''
      : `. There is ${aside}, which otpost move has set aside. Where the database that it went to has nothing in it, that move was broken off at its end: give the file its name back, and move again`
  return `there is no database at ${file}${hint}`
}

/** @throws OperatorError where there is no such file */
export function requireFileThere(file: string): void {
  if (!fileAt(file)?.isFile()) throw new OperatorError(missing(file))
}
