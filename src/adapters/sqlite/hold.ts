import Driver from 'better-sqlite3'
import { OperatorError } from '../../domain/operator/operator.ts'

/**
 * Opens a database so that nobody else can: who tries meanwhile waits, and finds out where the file was replaced or has
 * gone. All that its log holds is in the file from here on.
 *
 * @throws OperatorError when another process has it open, and whatever SQLite says otherwise
 */
export function holdAlone(file: string): Driver.Database {
  let driver: Driver.Database | undefined
  try {
    requireReadable(file)
    driver = new Driver(file, { timeout: 0, fileMustExist: true })
    // Folds the log back and removes it, which fails while another process has the database open. Without a log SQLite
    // notices that the file of an open database has gone elsewhere, before it writes.
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

/** Throws where the file is no database any more. Only reads: who may write takes the log of such a file away. */
function requireReadable(file: string): void {
  const driver = new Driver(file, { readonly: true, fileMustExist: true, timeout: 0 })
  try {
    driver.prepare('SELECT count(*) FROM sqlite_schema').get()
  } finally {
    driver.close()
  }
}

function inUse(file: string): string {
  return `another process has ${file} open: stop the server first, and what replicates it`
}

/** An instant as a part of a file's name, such as 20261121T171500123Z. */
export function stamp(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/[-:.]/g, '')
}
