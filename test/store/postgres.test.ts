import { afterAll, beforeAll } from 'bun:test'
import { createAppBook } from '../../src/adapters/postgres/apps.ts'
import { createBrandBook } from '../../src/adapters/postgres/brands.ts'
import { createConsoleStore } from '../../src/adapters/postgres/console.ts'
import { createRequestBook } from '../../src/adapters/postgres/integration-requests.ts'
import { createAuditReader, createOperatorBook } from '../../src/adapters/postgres/operator.ts'
import { createOtpStore } from '../../src/adapters/postgres/otps.ts'
import { createOutbox } from '../../src/adapters/postgres/outbox.ts'
import { createApps } from '../../src/storage/keys.ts'
import { testStores } from './contract.ts'
import { testDatabase } from './postgres-database.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.remove())

testStores('PostgreSQL', async ({ now, hashKey, credentials }) => {
  const opened = await database.open(now)
  return {
    otps: createOtpStore(opened),
    brands: createBrandBook(opened),
    operator: createOperatorBook(opened),
    apps: createApps(createAppBook(opened), hashKey, credentials),
    requests: createRequestBook(opened),
    audit: createAuditReader(opened),
    sessions: createConsoleStore(opened),
    outbox: createOutbox(opened),
    close: () => opened.close(),
  }
})
