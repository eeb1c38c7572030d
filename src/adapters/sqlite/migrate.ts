import type Driver from 'better-sqlite3'
import { type Migration, migrations } from '../../../drizzle/migrations.ts'
import { withWriteLock } from './writer.ts'

/**
 * Applies what is missing, all of it in one transaction under the write lock, so that processes that start together
 * migrate once and a process that is killed leaves the old schema whole. Keeps its books in drizzle-kit's own table.
 *
 * @throws when the file was written by a newer program
 */
export function migrate(driver: Driver.Database, known: readonly Migration[] = migrations): void {
  const books = `CREATE TABLE IF NOT EXISTS __drizzle_migrations
    (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT`
  withWriteLock(driver, () => {
    driver.exec(books)
    const rows = driver.prepare('SELECT created_at AS at FROM __drizzle_migrations').all() as { at: number }[]
    const applied = new Set(rows.map((row) => row.at))
    const newer = rows.filter((row) => !known.some((migration) => migration.when === row.at))
    if (newer.length > 0) {
      throw new Error(
        'the database was written by a newer otpost. Start that version, or restore a backup made before it was upgraded',
      )
    }
    const record = driver.prepare('INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)')
    for (const migration of known) {
      if (applied.has(migration.when)) continue
      for (const statement of migration.statements) driver.exec(statement)
      record.run(migration.tag, migration.when)
    }
  })
}
