import type Driver from 'better-sqlite3'
import { type Migration, migrations } from '../../../drizzle/migrations.ts'

/**
 * Applies what is missing, all of it in one transaction under the write lock, so that processes that start together
 * migrate once and a process that is killed leaves the old schema whole. Keeps its books in drizzle-kit's own table.
 *
 * @returns whether there was no schema before
 * @throws SQLITE_BUSY while another process holds the lock, and an error when the file was written by a newer program
 */
export function migrate(driver: Driver.Database, known: readonly Migration[] = migrations): boolean {
  const books = `CREATE TABLE IF NOT EXISTS __drizzle_migrations
    (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT`
  driver.exec('BEGIN IMMEDIATE')
  try {
    driver.exec(books)
    const isNew = applyMissing(driver, known)
    driver.exec('COMMIT')
    return isNew
  } finally {
    if (driver.inTransaction) driver.exec('ROLLBACK')
  }
}

function applyMissing(driver: Driver.Database, known: readonly Migration[]): boolean {
  const rows = driver.prepare('SELECT created_at AS at FROM __drizzle_migrations').all() as { at: number }[]
  const applied = new Set(rows.map((row) => row.at))
  if (rows.some((row) => !known.some((migration) => migration.when === row.at))) {
    throw new Error(
      'it was written by a newer otpost. Start that version, or restore a backup made before the upgrade',
    )
  }
  const record = driver.prepare('INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)')
  for (const migration of known) {
    if (applied.has(migration.when)) continue
    for (const statement of migration.statements) driver.exec(statement)
    record.run(migration.tag, migration.when)
  }
  return applied.size === 0
}
