import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Client } from 'pg'
import { isHashOf } from '../../src/adapters/crypto/secrets.ts'
import { type Database, openDatabase } from '../../src/adapters/postgres/database.ts'
import { createOtpStore } from '../../src/adapters/postgres/otp-store.ts'
import type { StoredClaim } from '../../src/domain/limits/limits.ts'
import type { OtpStore } from '../../src/domain/otp/store.ts'
import { targetOf } from '../store/postgres-database.ts'
import { type PostgresServer, queryOnce, startPostgres, withoutOwnPostgres } from '../support/postgres.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

if (withoutOwnPostgres) console.warn(withoutOwnPostgres)

/** Half of the recipients are in a foreign table. Such a table accepts no ON CONFLICT, so each recipient is used once. */
describe.skipIf(withoutOwnPostgres !== undefined)('a database with a part on a second server', () => {
  let first: PostgresServer
  let second: PostgresServer
  let proxy: TcpProxy
  let url: string
  let secondUrl: string
  let database: Database
  let store: OtpStore
  const problems: string[] = []

  beforeAll(async () => {
    first = await startPostgres()
    second = await startPostgres()
    proxy = await startTcpProxy(second.port)
    url = await first.database()
    database = await openDatabase(targetOf(url), undefined, (problem) => problems.push(problem))
    store = createOtpStore(database, isHashOf)
    const [{ columns } = {}] = await queryOnce(
      url,
      `SELECT string_agg(quote_ident(attname) || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) AS columns
        FROM pg_attribute WHERE attrelid = 'codes_and_limits'::regclass AND attnum > 0`,
    )
    secondUrl = await second.database('second')
    await queryOnce(secondUrl, `CREATE TABLE rows (${columns}, PRIMARY KEY (subject, name))`)
    const { username, password } = new URL(secondUrl)
    await queryOnce(
      url,
      `CREATE EXTENSION postgres_fdw;
      CREATE SERVER second FOREIGN DATA WRAPPER postgres_fdw
        OPTIONS (host '127.0.0.1', port '${proxy.port}', dbname 'second');
      CREATE USER MAPPING FOR CURRENT_USER SERVER second OPTIONS (user '${username}', password '${password}');
      ALTER TABLE codes_and_limits RENAME TO near;
      CREATE TABLE codes_and_limits (LIKE near) PARTITION BY HASH (subject);
      ALTER TABLE codes_and_limits ATTACH PARTITION near FOR VALUES WITH (MODULUS 2, REMAINDER 1);
      CREATE FOREIGN TABLE far PARTITION OF codes_and_limits FOR VALUES WITH (MODULUS 2, REMAINDER 0)
        SERVER second OPTIONS (table_name 'rows')`,
    )
  })
  afterAll(async () => {
    await database?.close()
    await proxy?.[Symbol.asyncDispose]()
    await first?.[Symbol.asyncDispose]()
    await second?.[Symbol.asyncDispose]()
  })

  let count = 0
  /** New recipients, by the server of their rows. */
  async function recipients(each: number): Promise<{ near: string[]; far: string[] }> {
    const [near, far]: [string[], string[]] = [[], []]
    while (near.length < each || far.length < each) {
      const subject = `recipient ${count++}`
      const [{ is_near: isNear } = {}] = await queryOnce(
        url,
        "SELECT satisfies_hash_partition('codes_and_limits'::regclass, 2, 1, $1::text) AS is_near",
        [subject],
      )
      const list = isNear === true ? near : far
      if (list.length < each) list.push(subject)
    }
    return { near, far }
  }

  const claimOf = (subject: string): StoredClaim => ({
    ...{ subject: [subject], name: 'minute', max: 3, windowMs: 60_000, counted: true },
  })

  /** Claims at once, so that they share a transaction. Resolves to the outcome of each. */
  function claimed(subjects: readonly string[]): Promise<string[]> {
    return Promise.all(
      subjects.map((subject) =>
        store.admit([claimOf(subject)], 0).then(
          ({ allowed }) => (allowed ? 'allowed' : 'rejected'),
          (error) => `${error.name} ${error.code}`,
        ),
      ),
    )
  }

  const savedRows = async (subjects: readonly string[]) =>
    (await queryOnce(secondUrl, 'SELECT FROM rows WHERE subject = any($1)', [subjects])).length

  test('serves the other part while that server is lost, and all after its return', async () => {
    const before = await recipients(8)
    expect(new Set(await claimed([...before.near, ...before.far]))).toEqual(new Set(['allowed']))
    expect(await savedRows(before.far)).toBe(8)
    await database.check()
    const sizeBefore = database.pool.stats().size

    await second.stop('immediate')
    const during = await recipients(8)
    const mixed = during.near.flatMap((subject, index) => [subject, during.far[index] ?? ''])
    const outcomes = await claimed(mixed)
    expect(new Set(outcomes.filter((_, index) => index % 2 === 0))).toEqual(new Set(['allowed']))
    for (const outcome of outcomes.filter((_, index) => index % 2 === 1)) {
      expect(outcome).toMatch(/^StatementError 08/)
    }
    // Once the result of the last check has expired.
    const isUsable = () =>
      database.check().then(
        () => true,
        () => false,
      )
    while (await isUsable()) await Bun.sleep(20)

    await second.start()
    await database.check()
    expect(new Set(await claimed(during.far))).toEqual(new Set(['allowed']))
    // The first server was never lost.
    expect(problems).toEqual([])
    expect(database.pool.stats().size).toBeGreaterThanOrEqual(sizeBefore)
  })

  test('keeps its own connection when the second server ends one', async () => {
    const [waiting = ''] = (await recipients(1)).far
    const blocking = new Client({ connectionString: secondUrl })
    blocking.on('error', () => {})
    await blocking.connect()
    await blocking.query('BEGIN')
    await blocking.query("INSERT INTO rows (subject, name, expires_at) VALUES ($1, 'minute', 0)", [waiting])
    const outcome = claimed([waiting])
    const sizeBefore = database.pool.stats().size
    const terminate =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'second'"
    while ((await queryOnce(secondUrl, terminate)).length === 0) await Bun.sleep(5)
    expect((await outcome)[0]).toMatch(/^StatementError (?:57P01|08006)$/)
    await blocking.end()
    expect(database.pool.stats().size).toBe(sizeBefore)
    expect(await claimed([waiting])).toEqual(['allowed'])
  })

  test('does not repeat a transaction whose outcome is unknown', async () => {
    const { near, far } = await recipients(4)
    const broken = proxy.breakOff(['INSERT INTO public.rows', 'COMMIT TRANSACTION'], 0)
    const outcomes = claimed([...near, ...far])
    await broken
    while ((await savedRows(far)) < 4) await Bun.sleep(5)
    proxy.cut()
    expect(new Set(await outcomes)).toEqual(new Set(['DatabaseUnavailable 08006']))
    proxy.recover()
    expect(problems).toEqual([])
    expect(await claimed((await recipients(1)).far)).toEqual(['allowed'])
  })
})
