import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createAppBook } from '../../src/adapters/postgres/apps.ts'
import { createBrandBook } from '../../src/adapters/postgres/brands.ts'
import { StatementError } from '../../src/adapters/postgres/connection.ts'
import { createConsoleStore } from '../../src/adapters/postgres/console.ts'
import { type Database, openDatabase, plainErrors } from '../../src/adapters/postgres/database.ts'
import { createRequestBook } from '../../src/adapters/postgres/integration-requests.ts'
import { createAuditReader, createOperatorBook } from '../../src/adapters/postgres/operator.ts'
import { createOtpStore } from '../../src/adapters/postgres/otps.ts'
import { createOutbox } from '../../src/adapters/postgres/outbox.ts'
import { createRestingProviders } from '../../src/adapters/postgres/resting.ts'
import { requireSecret } from '../../src/adapters/postgres/secret-marks.ts'
import { createSweep } from '../../src/adapters/postgres/sweep.ts'
import type { Claim } from '../../src/domain/limits.ts'
import { createApps } from '../../src/storage/keys.ts'
import { keepAll } from '../support/operator.ts'
import { databaseUrl, emptyDatabase, queryOnce } from '../support/postgres.ts'
import { testStores } from './contract.ts'
import { targetOf, testDatabase } from './postgres-database.ts'

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

describe('the secret of the servers on a database', () => {
  let opened: Database
  beforeEach(async () => {
    opened = await database.open(() => 0)
    await opened.pool.rows('TRUNCATE secret_marks', [])
  })
  afterEach(() => opened.close())
  const begins = (...marks: readonly [string, ...string[]]) =>
    requireSecret(opened, marks).then(
      () => true,
      () => false,
    )

  test('is that of the first, whatever others come with', async () => {
    expect(await begins('a')).toBe(true)
    expect([await begins('b'), await begins('b'), await begins('a')]).toEqual([false, false, true])
  })

  test('is replaced by whoever knows the one before', async () => {
    expect(await begins('a')).toBe(true)
    expect(await begins('b', 'a')).toBe(true)
    expect([await begins('b'), await begins('c')]).toEqual([true, false])
  })

  test('is one, where several begin at once', async () => {
    const begun = await Promise.all(['a', 'b', 'c', 'd'].map((mark) => begins(mark)))
    expect(begun.filter(Boolean).length).toBeWithin(0, 2)
    const marks = await opened.pool.rows('SELECT mark FROM secret_marks', [])
    expect(marks).toHaveLength(begun.filter(Boolean).length)
  })
})

test('what the database refuses is told without the values that it was given', async () => {
  const opened = await database.open(() => 0)
  const { add } = plainErrors(createRequestBook(opened))
  const request = {
    ...{ id: 'id', createdAt: 0, companyName: 'a company', contactName: 'Jane', brandName: 'Acme' },
    ...{ contactEmail: 'jane@example.com', channels: [], website: null, useCase: null },
  }
  await add(request)
  const problem: unknown = await add(request).catch((error: unknown) => error)
  await opened.close()
  expect(problem).toBeInstanceOf(StatementError)
  expect(problem).toMatchObject({ code: '23505' })
  expect(Bun.inspect(problem)).not.toContain('jane@example.com')
})

test('a row that is held stops the requests of its own application alone', async () => {
  const opened = await database.open(() => 0)
  const { admit } = createOtpStore(opened)
  const claimOf = (appId: string): Claim => ({
    ...{ limit: 'app-minute', subject: `app:${appId}`, name: 'minute', max: 100, windowMs: 60_000 },
    ...{ counted: true, failure: 'rate_limited', message: 'too many' },
  })
  await admit([claimOf('held')], 0)
  const [isHeld, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = opened.pool.transaction(async (connection) => {
    await connection.rows("SELECT FROM ledgers WHERE subject = 'app:held' FOR UPDATE", [])
    isHeld.resolve()
    await release.promise
  })
  await isHeld.promise
  let answered = 0
  const waiting: Promise<void>[] = []
  // More transactions than may be on their way at a time.
  for (let turn = 0; turn < 4; turn++) {
    waiting.push(admit([claimOf('held')], 0).then(() => void answered++))
    await opened.pool.rows('SELECT 1', [])
  }
  expect((await admit([claimOf('free')], 0)).admitted).toBe(true)
  expect(answered).toBe(0)
  release.resolve()
  await Promise.all([holding, ...waiting])
  await opened.close()
})

test('who may not make the schema, or only look at it, is told what to do', async () => {
  const empty = await emptyDatabase()
  const role = `weak_${crypto.randomUUID().replaceAll('-', '')}`
  await queryOnce(database.url, `CREATE ROLE ${role} LOGIN PASSWORD 'weak'`)
  const url = new URL(empty.url)
  url.username = role
  url.password = 'weak'
  try {
    const problem = await openDatabase(targetOf(url.href), undefined, () => {}).catch(
      (error: unknown) => error,
    )
    expect(String(problem)).toContain('run otpost migrate as the owner')
  } finally {
    await empty.remove()
    await queryOnce(database.url, `DROP ROLE ${role}`)
  }
})

test('a database of another encoding is refused', async () => {
  const name = `latin_${crypto.randomUUID().replaceAll('-', '')}`
  await queryOnce(
    database.url,
    `CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
  )
  try {
    const url = databaseUrl(database.url, name)
    const problem = await openDatabase(targetOf(url), undefined, () => {}).catch((error: unknown) => error)
    expect(String(problem)).toContain("ENCODING 'UTF8'")
  } finally {
    await queryOnce(database.url, `DROP DATABASE ${name}`)
  }
})

test('a sweep that finds nothing gives no node anything to read again, and one that removes a rest does', async () => {
  const opened = await database.open(() => 0)
  const sweep = createSweep(opened, 'this node')
  const { tell } = createRestingProviders(opened)
  const revision = async () => Number((await opened.pool.rows('SELECT number FROM revision', []))[0]?.[0])
  const before = await revision()
  for (let step = 0; step < 3; step++) await sweep(100_000, keepAll)
  expect(await revision()).toBe(before)
  await tell('twilio', { failures: 5, restMs: 1000, restsUntil: 1000 })
  expect(await revision()).toBe(before + 1)
  await sweep(100_000, keepAll)
  expect(await revision()).toBe(before + 2)
  await opened.close()
})
