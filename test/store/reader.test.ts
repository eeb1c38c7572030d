import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import Driver from 'better-sqlite3'
import { gte, sql } from 'drizzle-orm'
import { type Database, openDatabase } from '../../src/adapters/sqlite/database.ts'
import { Reader } from '../../src/adapters/sqlite/reader.ts'
import { tables } from '../../src/adapters/sqlite/schema.ts'
import { plainErrors } from '../../src/adapters/store/plain-errors.ts'
import { createTestApp, temporaryFolder } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { sqliteOnly } from '../support/database.ts'
import { freshPhone } from '../support/rows.ts'

const { revision } = tables
const readerThread = new URL('../../src/adapters/sqlite/reader-main.ts', import.meta.url).href

describe('the reader of a server', () => {
  const folder = temporaryFolder()
  const threads: Worker[] = []
  let database: Database
  let reader: Reader
  let file: string

  function readerFor(longestMs?: number, url = readerThread): Reader {
    return new Reader(
      file,
      () => true,
      longestMs,
      () => {
        const thread = new Worker(url)
        threads.push(thread)
        return thread
      },
    )
  }

  const numbers = (least = 0) => reader.orm.select().from(revision).where(gte(revision.number, least))
  const ended = (thread?: Worker) => new Promise((resolve) => thread?.addEventListener('close', resolve))

  beforeEach(() => {
    file = join(folder.path, `${crypto.randomUUID()}.db`)
    threads.length = 0
    database = openDatabase(file)
    reader = readerFor()
  })
  afterEach(async () => {
    await reader.close()
    await database.close()
  })

  test('reads what was committed before, on one thread', async () => {
    for (const number of [7, 8, 9]) {
      await database.writer.write(() => void database.orm.update(revision).set({ number }).run())
      expect(await Promise.all([numbers(), numbers(10)])).toEqual([[expect.objectContaining({ number })], []])
    }
    expect(threads).toHaveLength(1)
  })

  test('rejects a read with the error of the database, and continues', async () => {
    const wrong = reader.orm.select({ one: sql<number>`absent` }).from(revision)
    const { read } = plainErrors({ read: () => Promise.resolve(wrong) })
    const problem = read().catch((error: unknown) => error)
    expect(await numbers()).toHaveLength(1)
    expect(await problem).toMatchObject({
      name: 'SqliteError',
      code: 'SQLITE_ERROR',
      message: 'no such column: absent',
    })
  })

  test('writes nothing', async () => {
    const written = reader.orm.update(revision).set({ number: 1 }).returning({ number: revision.number })
    expect(await Promise.resolve(written).catch(({ cause }) => cause)).toMatchObject({
      code: 'SQLITE_READONLY',
    })
  })

  test('starts another thread after one has failed, and rejects the reads that it had', async () => {
    await numbers()
    const lost = Promise.allSettled([numbers(), numbers()])
    threads[0]?.terminate()
    const cause = { message: 'The database was not read. Its thread ended.' }
    expect(await lost).toMatchObject([{ reason: { cause } }, { reason: { cause } }])
    expect(await numbers()).toHaveLength(1)
    expect(threads).toHaveLength(2)
  })

  test('has no thread after some time without a read', async () => {
    reader = readerFor(500)
    await numbers()
    await ended(threads[0])
    expect(await numbers()).toHaveLength(1)
    expect(threads).toHaveLength(2)
  })

  test('rejects a read that takes too long, and says what to do', async () => {
    reader = readerFor(
      20,
      URL.createObjectURL(new Blob(['onmessage = () => {}'], { type: 'text/javascript' })),
    )
    const message =
      'The database was not read. It took longer than 0.02 seconds. Use more filters or a shorter time.'
    expect(await Promise.resolve(numbers()).catch(({ cause }) => cause)).toMatchObject({ message })
  })
})

/** Tables that have a row for each request, or for each change. */
const large = /^select .* from "(requests|attempts|delivery_reports|audit)"/s

sqliteOnly('what operators read of the log is not read on the event loop', async () => {
  const app = await createTestApp()
  await app.brand('acme')
  const prepare = spyOn(Driver.prototype, 'prepare')
  const sent = await app.post('/otp/send', { phone: freshPhone(), reference: 'order 1' })
  const operator = await signedIn(app)
  const { requestId } = sent.body
  const pages = [
    ...['day', 'hour', 'month'].map((period) => `/admin?period=${period}`),
    ...['deliveries', 'calls'].flatMap((list) => [
      `/admin/${list}`,
      `/admin/${list}?brand=acme&provider=outbox`,
      `/admin/${list}.csv`,
    ]),
    '/admin/deliveries?status=delivered',
    `/admin/deliveries/${requestId}`,
    '/admin/guard',
    '/admin/money',
    '/admin/audit',
  ]
  for (const page of pages) expect([page, (await operator.get(page)).status]).toEqual([page, 200])
  await operator.get('/admin/search')
  for (const q of ['order 1', '+4915112345678']) await operator.post('/admin/search', { q })
  await app.app.context.eventLog.mark(app.clock.now)
  const texts = prepare.mock.calls.map(([text]) => text)
  prepare.mockRestore()
  await app.close()
  expect(texts.filter((text) => large.test(text))).toEqual([])
  expect(texts).toContainEqual(expect.stringContaining('from "brands"'))
})
