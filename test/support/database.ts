import { test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Driver from 'better-sqlite3'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import { temporaryFolder } from './folder.ts'
import { type DatabaseOfATest, emptyDatabase, freshDatabase, queryOnce } from './postgres.ts'

/** The store that tests for both of them run on. */
export const store: 'sqlite' | 'postgres' = process.env.TEST_STORE === 'postgres' ? 'postgres' : 'sqlite'

/** To be put behind the name of what is left out on another store than SQLite. */
export const sqliteAlone = store === 'sqlite' ? '' : ' (left out: about SQLite alone)'

/** A test in a file for both stores that applies to SQLite alone: about its files, or about a single server. */
export function sqliteOnly(name: string, run: () => Promise<void> | undefined, timeoutMs?: number): void {
  test.skipIf(store !== 'sqlite')(`${name}${sqliteAlone}`, run, timeoutMs)
}

/** A database of a test's own on the store under test, without a brand in it. */
export interface TestDatabase {
  /** The settings that lead to it. */
  readonly env: Readonly<Record<string, string>>
  /** The path of an SQLite file, which need not be there yet. Throws on the other store, which has none. */
  readonly file: string
  /** Runs one statement beside the service, and resolves to its rows; none for what gives none. */
  query(text: string): Promise<Record<string, unknown>[]>
  /** All that is kept: the bytes of the files, or each row as text. */
  contents(): Promise<Buffer>
  /** Each value of each table; of PostgreSQL each row, as text. */
  values(): Promise<readonly unknown[]>
  /** Drops these tables under the service, or all of them. */
  loseTables(...names: readonly string[]): Promise<void>
  /** Whether the files are sound; those of PostgreSQL are no concern of the service. */
  isWhole(): Promise<boolean>
  remove(): Promise<void>
}

/** Servers on one database must have the same secret, so PostgreSQL has no file of its own for it. */
const secretKey = 'the-secret-of-the-tests-of-32-bytes-or-more'

/** Servers, tests and the database share two cores: slow answers are not under test. */
const patience = { DATABASE_CONNECT_TIMEOUT_MS: '30000', DATABASE_STATEMENT_TIMEOUT_MS: '30000' }

/** The database that a test asks for: an SQLite file in a folder of its own, or a copy of a template in PostgreSQL. */
export function openTestDatabase(): Promise<TestDatabase> {
  return store === 'postgres' ? freshDatabase().then(inPostgres) : Promise.resolve(inFile())
}

/** The same, with the schema and a secret key, since migrations take longer than the rest of a start. */
export async function migratedTestDatabase(): Promise<TestDatabase> {
  const database = await openTestDatabase()
  if (store === 'postgres') return database
  mkdirSync(dirname(database.file))
  writeFileSync(database.file, await sqliteTemplate())
  writeFileSync(`${database.file}.key`, secretKey, { mode: 0o600 })
  return database
}

let template: Buffer | undefined

async function sqliteTemplate(): Promise<Buffer> {
  if (template) return template
  const { path, remove } = temporaryFolder()
  const file = join(path, 'otpost.db')
  await openDatabase(file).close()
  template = readFileSync(file)
  remove()
  return template
}

/** The same, but new: without the schema, which the first process to open it creates. */
export function newTestDatabase(): Promise<TestDatabase> {
  return store === 'postgres' ? emptyDatabase().then(inPostgres) : Promise.resolve(inFile())
}

function inFile(): TestDatabase {
  const folder = temporaryFolder()
  const data = join(folder.path, 'data')
  const file = join(data, 'otpost.db')
  /** By the same driver as the service: two copies of SQLite in one process break each other's locks. */
  const inside = async <T>(work: (driver: Driver.Database) => T): Promise<T> => {
    // What the service writes just now is waited for.
    const driver = new Driver(file, { timeout: 30_000 })
    try {
      return work(driver)
    } finally {
      driver.close()
    }
  }
  const tablesIn = (driver: Driver.Database) =>
    driver
      .prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
      .pluck()
      .all()
  return {
    env: { DATABASE_URL: `file:${file}` },
    file,
    query: (text) =>
      inside((driver) => {
        const statement = driver.prepare<[], Record<string, unknown>>(text)
        if (statement.reader) return statement.all()
        statement.run()
        return []
      }),
    async contents() {
      const names = readdirSync(data).filter((name) => !name.endsWith('.key'))
      return Buffer.concat(names.map((name) => readFileSync(join(data, name))))
    },
    values: () =>
      inside((driver) =>
        tablesIn(driver).flatMap((name) =>
          driver.prepare<[], unknown[]>(`SELECT * FROM "${name}"`).raw().all().flat(),
        ),
      ),
    loseTables: (...names) =>
      inside((driver) => {
        for (const name of names.length > 0 ? names : tablesIn(driver)) driver.exec(`DROP TABLE "${name}"`)
      }),
    isWhole: () => inside((driver) => driver.pragma('integrity_check', { simple: true }) === 'ok'),
    remove: async () => folder.remove(),
  }
}

function inPostgres({ url, remove }: DatabaseOfATest): TestDatabase {
  const query = (text: string, settings = {}) => queryOnce(url, text, [], settings)
  const tables = async () => {
    const rows = await query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
    return rows.map(({ name }) => String(name))
  }
  const rowsOf = async (table: string) => {
    // So that what is legible in bytes is legible here.
    const rows = await query(`SELECT one::text AS text FROM "${table}" AS one`, { bytea_output: 'escape' })
    return rows.map(({ text }) => String(text))
  }
  const values = async () => (await Promise.all((await tables()).map(rowsOf))).flat()
  return {
    env: { DATABASE_URL: url, SECRET_KEY: secretKey, ...patience },
    get file(): string {
      throw new Error('a database of PostgreSQL is no file: this test is for sqliteOnly')
    },
    query: (text) => query(text),
    contents: async () => Buffer.from((await values()).join('\n')),
    values,
    async loseTables(...names) {
      const lost = names.length > 0 ? names : await tables()
      await query(`DROP TABLE ${lost.map((name) => `"${name}"`).join()} CASCADE`)
    },
    isWhole: async () => true,
    remove,
  }
}
