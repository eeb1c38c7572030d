import type Driver from 'better-sqlite3'
import { type Migration, migrations } from '../../../drizzle/migrations.ts'
import { version } from '../../version.ts'

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
  const rows = driver
    .prepare<[], { tag: string; at: number }>(
      'SELECT hash AS tag, created_at AS at FROM __drizzle_migrations',
    )
    .all()
  const applied = new Set(rows.map((row) => row.at))
  const unknown = rows.find((row) => !known.some((migration) => migration.when === row.at))
  if (unknown) {
    throw new Error(
      `a newer otpost has upgraded it (${unknown.tag}), and this is ${version}. Start that version, or go back to a backup made before the upgrade: otpost restore FILE`,
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
