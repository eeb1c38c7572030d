import { type Database, openDatabase } from '../../src/adapters/postgres/database.ts'
import { storeDatabase } from '../../src/adapters/postgres/stores.ts'
import { readPostgresUrl } from '../../src/adapters/postgres/url.ts'
import { createStores } from '../../src/adapters/store/stores.ts'
import type { Clock } from '../../src/domain/ground/time.ts'
import { emptyTables, freshDatabase } from '../support/postgres.ts'

/**
 * A test's connection settings: long time-outs, because the server shares the machine with all other tests.
 */
export function targetOf(url: string) {
  return {
    ...readPostgresUrl(url).server,
    poolSize: 10,
    connectTimeoutMs: 10_000,
    statementTimeoutMs: 20_000,
    idleInTransactionTimeoutMs: 20_000,
    isPooled: false,
  }
}

/** A database for one test file, which is emptied for each test. */
export async function testDatabase() {
  const { url, remove } = await freshDatabase()
  return {
    url,
    remove,
    /** Opens it with only the schema in it. */
    async open(now?: Clock): Promise<Database> {
      const database = await openDatabase(targetOf(url), now, () => {})
      await database.pool.rows(emptyTables, [])
      return database
    },
  }
}

/** The stores of a database without a service. */
export function postgresStores(database: Database) {
  return createStores(storeDatabase(database))
}
