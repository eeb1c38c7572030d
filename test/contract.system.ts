import { afterAll, beforeAll, describe, test } from 'bun:test'
import { readConfig } from '../src/config/config.ts'
import { openContext } from '../src/context.ts'
import { putBrand } from '../src/domain/operator/brands.ts'
import type { Brand } from '../src/domain/texts/brand.ts'
import { openTestDatabase, type TestDatabase } from './support/database.ts'
import { tester } from './support/operator.ts'
import { expectNotifyRow, expectRow, type Row } from './support/rows.ts'
import { startServer, type TestServer } from './support/server.ts'
import { notifyBrands, tables } from './tables/notify.ts'
import { sendBrands, sendRows } from './tables/otp-send.ts'
import { verifyBrands, verifyCredentials, verifyRows } from './tables/otp-verify.ts'

// Runs the tables of the contract against the real process.

let server: TestServer
let database: TestDatabase

beforeAll(async () => {
  database = await openTestDatabase()
  const env = { ...database.env, APP_CREDENTIALS: verifyCredentials }
  const context = await openContext(readConfig(env))
  const brands: Record<string, Partial<Brand>> = { acme: { displayName: 'Acme' } }
  for (const [slug, properties] of [sendBrands, verifyBrands, notifyBrands].flatMap(Object.entries<object>)) {
    brands[slug] = { displayName: slug, ...brands[slug], ...properties }
  }
  for (const [slug, brand] of Object.entries(brands)) await putBrand(context.acting(tester), slug, brand)
  await context.close()
  server = await startServer(env)
})
afterAll(async () => {
  await server?.stop('SIGKILL')
  await database?.remove()
})

const paths: readonly (readonly [path: string, name: string, rows: readonly Row[]])[] = [
  ['/otp/send', 'send', sendRows()],
  ['/otp/resend', 'resend', sendRows()],
  ['/otp/verify', 'verify', verifyRows],
  ...Object.entries(tables).map(([name, rows]) => ['/notify', name, rows] as const),
]

describe.each(paths)('POST %s, %s', (path, _, rows) => {
  for (const row of rows) {
    test(`${row.name}: ${row.status} ${row.error ?? ''}`, async () => {
      const answer = await server.post(path, row.body)
      if (path === '/notify') expectNotifyRow(row, answer)
      else expectRow(path, row, answer)
    })
  }
})
