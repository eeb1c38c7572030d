import Driver from 'better-sqlite3'
import { OperatorError } from '../../domain/ground/operator-error.ts'

/** Also writes the log to the file. Throws OperatorError if another process has the database open. */
export function holdAlone(file: string): Driver.Database {
  let driver: Driver.Database | undefined
  try {
    requireReadable(file)
    driver = new Driver(file, { timeout: 0, fileMustExist: true })
    // Removes the log, after which SQLite detects a moved file. Fails while another process has it open.
    driver.pragma('journal_mode = DELETE')
    driver.pragma('locking_mode = EXCLUSIVE')
    driver.exec('BEGIN EXCLUSIVE; COMMIT')
    if (driver.pragma('journal_mode', { simple: true }) === 'delete') return driver
    throw new OperatorError(inUse(file))
  } catch (error) {
    driver?.close()
    const isBusy = error instanceof Driver.SqliteError && error.code.startsWith('SQLITE_BUSY')
    throw isBusy ? new OperatorError(inUse(file)) : error
  }
}

/** Read-only, since a writable connection removes the log of a file that is not a database. */
function requireReadable(file: string): void {
  const driver = new Driver(file, { readonly: true, fileMustExist: true, timeout: 0 })
  try {
    driver.prepare('SELECT count(*) FROM sqlite_schema').get()
  } finally {
    driver.close()
  }
}

function inUse(file: string): string {
  return `Another process has ${file} open. Stop the server and any replication, such as Litestream, first.`
}

/** An instant for a file name, such as 20261121T171500123Z. */
export function stamp(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/[-:.]/g, '')
}
