import { afterAll, beforeAll } from 'bun:test'
import { createAppBook } from '../../src/adapters/postgres/apps.ts'
import { createBrandBook } from '../../src/adapters/postgres/brands.ts'
import { createConsoleStore } from '../../src/adapters/postgres/console.ts'
import { type Database, openDatabase } from '../../src/adapters/postgres/database.ts'
import { createRequestBook } from '../../src/adapters/postgres/integration-requests.ts'
import { createAuditReader, createOperatorBook } from '../../src/adapters/postgres/operator.ts'
import { createOtpStore } from '../../src/adapters/postgres/otps.ts'
import { createOutbox } from '../../src/adapters/postgres/outbox.ts'
import { readPostgresUrl } from '../../src/adapters/postgres/url.ts'
import { createApps } from '../../src/storage/keys.ts'
import { freshDatabase } from '../support/postgres.ts'
import { testStores } from './contract.ts'

let fresh: Awaited<ReturnType<typeof freshDatabase>>
beforeAll(async () => {
  fresh = await freshDatabase()
})
afterAll(() => fresh.remove())

/** The target of a test: as the settings make it. */
function target() {
  return {
    ...readPostgresUrl(fresh.url).server,
    poolSize: 10,
    connectTimeoutMs: 10_000,
    statementTimeoutMs: 20_000,
    idleInTransactionTimeoutMs: 20_000,
    isPooled: false,
  }
}

/** Everything but the schema. */
async function empty({ pool }: Database): Promise<void> {
  await pool.rows(
    `TRUNCATE ledgers, brands, app_keys, integration_requests, stories, deliveries, receipts, tallies, audit,
      console_sessions, console_links, outbox, leases, resting_providers RESTART IDENTITY`,
    [],
  )
}

testStores('PostgreSQL', async ({ now, hashKey, credentials }) => {
  const database = await openDatabase(target(), now, () => {})
  await empty(database)
  return {
    otps: createOtpStore(database),
    brands: createBrandBook(database),
    operator: createOperatorBook(database),
    apps: createApps(createAppBook(database), hashKey, credentials),
    requests: createRequestBook(database),
    audit: createAuditReader(database),
    sessions: createConsoleStore(database),
    outbox: createOutbox(database),
    close: () => database.close(),
  }
})
