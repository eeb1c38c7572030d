import { realpathSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import Driver from 'better-sqlite3'
import { OperatorError } from '../../domain/ground/operator-error.ts'
import type { Clock } from '../../domain/ground/time.ts'
import { columnsByTable, comparedKeys, type PlainRow, type TransferSource } from '../store/transfer.ts'
import { DatabaseError } from './database.ts'
import { movedAside, movedEnding, requireIntact, syncToDisk } from './draft.ts'
import { fileAt } from './file-at.ts'
import { holdAlone, stamp } from './hold.ts'
import { migrate } from './migrate.ts'
import { tables } from './schema.ts'

const columns = columnsByTable(Object.values(tables))

export interface HeldFile extends TransferSource {
  /** Renames the file durably, so that no server finds it; returns the new name. */
  setAside(): string
  putBack(): void
  close(): void
}

/** @throws OperatorError if it is missing or open in another process; DatabaseError if it can't be used */
export function holdFile(file: string, now: Clock): HeldFile {
  requireFileThere(file)
  // The file itself, not a link to it.
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
          `${path} cannot be renamed (${code}). Give this user write permission for its folder, or add --keep.`,
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

export function fingerprintsIn(file: string): readonly string[] {
  let driver: Driver.Database | undefined
  try {
    driver = new Driver(file, { fileMustExist: true })
    driver.pragma('query_only = ON')
    return driver.prepare<[], string>('SELECT fingerprint FROM key_fingerprints').pluck().all()
  } catch {
    // Unusable, which opening it reports.
    return []
  } finally {
    driver?.close()
  }
}

function* rowsOf(driver: Driver.Database, table: string): Generator<PlainRow> {
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

function prepare(driver: Driver.Database, file: string): void {
  requireIntact(driver, file, 'Restore a backup first, or move the backup with --from file:BACKUP.')
  migrate(driver)
}

function known<T>(file: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw error instanceof OperatorError ? error : new DatabaseError(file, error)
  }
}

function missing(file: string): string {
  const aside = movedAside(file)
  const hint =
    aside === undefined
      ? ''
      : ` A previous \`otpost move\` renamed it to ${aside}. If the target database is empty, that move failed at its end: rename the file back, and run \`otpost move\` again.`
  return `There is no database at ${file}.${hint}`
}

export function requireFileThere(file: string): void {
  if (!fileAt(file)?.isFile()) throw new OperatorError(missing(file))
}
