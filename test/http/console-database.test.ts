import { afterEach, beforeEach, expect, test } from 'bun:test'
import Driver from 'better-sqlite3'
import { type Answer, createTestApp, type TestApp } from '../support/app.ts'
import { signedIn, Visitor } from '../support/console.ts'
import { openTestDatabase, sqliteOnly, store } from '../support/database.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

// An operator at the console while the database cannot be written: what the pages say, and how soon.

let app: TestApp
let visitor: Visitor

beforeEach(async () => {
  app = await createTestApp()
  visitor = await signedIn(app)
})

afterEach(() => app.close())

const pages = ['', '/deliveries', '/audit', '/apps', '/money', '/brands/acme', '/settings', '/search']

/** The greatest time that a page may take, as operators are promised. */
const longestMs = 1000

async function expectPages(cause: string): Promise<void> {
  for (const path of pages) {
    const startedAt = performance.now()
    const { html } = await visitor.get(`/admin${path}`)
    expect([path, html.includes(cause)]).toEqual([path, true])
    expect(performance.now() - startedAt, path).toBeLessThan(longestMs)
  }
}

const budget = { scope: 'server', period: 'day', amount: '20' }

/** A call waits for the database, and the session is old enough to be prolonged. */
async function underTraffic(): Promise<{ readonly call: Promise<Answer> }> {
  app.advance(120)
  const call = app.post('/otp/send', { phone: '12025550143' })
  while ((await app.app.context.databaseTrouble()) === undefined)
    await new Promise((resolve) => setImmediate(resolve))
  return { call }
}

async function expectUnsaved(cause: string): Promise<void> {
  await visitor.get('/admin/money')
  const startedAt = performance.now()
  const { status, html } = await visitor.post('/admin/money', budget)
  expect(performance.now() - startedAt).toBeLessThan(longestMs)
  expect([status, html.includes('The change was not saved'), html.includes(cause)]).toEqual([503, true, true])
  expect(html).toMatch(/name="amount"[^>]*value="20"|value="20"[^>]*name="amount"/)
}

sqliteOnly('another process has locked the database: pages have the cause within a second', async () => {
  const other = new Driver(app.database.file)
  other.exec('BEGIN IMMEDIATE')
  const { call } = await underTraffic()
  await expectPages('Another process has locked the database')
  await expectUnsaved('Another process has locked the database')
  other.exec('ROLLBACK')
  await call
  other.close()
  const { html } = await visitor.get('/admin/money')
  expect(html).not.toContain('Another process')
  expect((await visitor.post('/admin/money', budget)).status).toBe(303)
})

test.skipIf(store !== 'postgres')(
  'PostgreSQL cannot be reached: pages have the cause within a second',
  async () => {
    const database = await openTestDatabase()
    const url = new URL(database.env.DATABASE_URL ?? '')
    await using proxy = await startTcpProxy(Number(url.port))
    url.port = String(proxy.port)
    const own = await createTestApp({ ...database.env, DATABASE_URL: String(url) })
    const operator = await signedIn(own)
    const expectCause = async (cause: RegExp) => {
      for (const path of pages) {
        const startedAt = performance.now()
        const { status, html } = await operator.get(`/admin${path}`)
        const hasMenu = html.includes('aria-label="Console"')
        expect([path, status, cause.test(html), hasMenu]).toEqual([path, 503, true, true])
        expect(performance.now() - startedAt, path).toBeLessThan(longestMs)
      }
    }
    proxy.fallSilent()
    await expectCause(
      /(The database|PostgreSQL) does not answer( since .*)?\. Requests to send and verify fail/,
    )
    expect((await new Visitor(own).get('/admin')).html).not.toContain('aria-label="Console"')
    proxy.recover()
    proxy.refuse()
    proxy.cut()
    await expectCause(/PostgreSQL does not answer( since .*)?\./)
    proxy.recover()
    while ((await operator.get('/admin/money')).status !== 200) await Bun.sleep(10)
    await own.close()
    await database.remove()
  },
)
