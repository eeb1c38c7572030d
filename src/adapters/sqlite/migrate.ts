import Driver from 'better-sqlite3'
import type { Migration } from '../../../drizzle/migration.ts'
import { migrations } from '../../../drizzle/sqlite/migrations.ts'
import { version } from '../../version.ts'

/**
 * Returns whether there was no schema before.
 * @throws SQLITE_BUSY while another process has the lock; an error if the schema is newer than this program
 */
export function migrate(driver: Driver.Database, known: readonly Migration[] = migrations): boolean {
  const context = `CREATE TABLE IF NOT EXISTS __drizzle_migrations
    (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT`
  driver.exec('BEGIN IMMEDIATE')
  try {
    driver.exec(context)
    const isNew = applyMissing(driver, known)
    driver.exec('COMMIT')
    return isNew
  } finally {
    if (driver.inTransaction) driver.exec('ROLLBACK')
  }
}

/** Whether otpost has created the tables. */
export function hasSchema(driver: Driver.Database): boolean {
  return driver.prepare("SELECT 1 FROM sqlite_schema WHERE name = '__drizzle_migrations'").get() !== undefined
}

/** As `table.column`, independent of the recorded migrations. */
export function missingColumns(driver: Driver.Database): readonly string[] {
  const model = new Driver(':memory:')
  try {
    migrate(model)
    const there = new Set(columnsOf(driver))
    return columnsOf(model).filter((column) => !there.has(column))
  } finally {
    model.close()
  }
}

export function columnsOf(driver: Driver.Database): readonly string[] {
  return driver
    .prepare<[], string>(
      "SELECT t.name || '.' || c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'",
    )
    .pluck()
    .all()
}

/** The returned check throws after a newer program has upgraded the open database. */
export function upgradeCheck(driver: Driver.Database): () => void {
  const newer = driver
    .prepare<[number], string>('SELECT hash FROM __drizzle_migrations WHERE created_at > ?')
    .pluck()
  const newest = Math.max(...migrations.map(({ when }) => when))
  return () => {
    const tag = newer.get(newest)
    if (tag !== undefined) throw new Error(`${upgradedBy(tag)} Stop this server, and start that version.`)
  }
}

function upgradedBy(tag: string): string {
  return `a newer version of otpost, or one that was never released, has upgraded it (${tag}); this is ${version}.`
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
      `${upgradedBy(unknown.tag)} Start that version, or restore a backup from before the upgrade with \`otpost restore FILE\`.`,
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
