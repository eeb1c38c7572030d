import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { isHashOf, saltedHash } from '../../src/adapters/crypto/secrets.ts'
import { type Database, openDatabase, ormOn } from '../../src/adapters/postgres/database.ts'
import { isDistributed } from '../../src/adapters/postgres/distribution.ts'
import { createEventLogWriter } from '../../src/adapters/postgres/event-log.ts'
import { createOpenCircuits } from '../../src/adapters/postgres/open-circuits.ts'
import { createOtpStore } from '../../src/adapters/postgres/otp-store.ts'
import { type Queryable, StatementError } from '../../src/adapters/postgres/pool.ts'
import { storeDatabase } from '../../src/adapters/postgres/stores.ts'
import { createSweep } from '../../src/adapters/postgres/sweep.ts'
import { forgetRecipient } from '../../src/adapters/store/forget.ts'
import { createKeyFingerprints } from '../../src/adapters/store/key-fingerprints.ts'
import { createApps } from '../../src/adapters/store/keys.ts'
import { plainErrors } from '../../src/adapters/store/plain-errors.ts'
import { createStores } from '../../src/adapters/store/stores.ts'
import { readStoreConfig } from '../../src/config/store.ts'
import { openContext } from '../../src/context.ts'
import type { OutboxMessage } from '../../src/domain/ground/ports.ts'
import type { Claim, LimitDecision } from '../../src/domain/limits/limits.ts'
import type { NewCode } from '../../src/domain/otp/store.ts'
import { useOnPostgres } from '../../src/secret-key.ts'
import { keepAll, nobody, tester } from '../support/operator.ts'
import { databaseUrl, emptyDatabase, givenDatabase, queryOnce } from '../support/postgres.ts'
import { testStores } from './contract.ts'
import { testMoneyAtOnce, testMoneyStores } from './money-contract.ts'
import { postgresStores, targetOf, testDatabase } from './postgres-database.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.remove())

testStores('PostgreSQL', async ({ now, hashKey, credentials }) => {
  const opened = await database.open(now)
  const stores = postgresStores(opened)
  return {
    otps: createOtpStore(opened, isHashOf),
    ...stores,
    apps: createApps(stores.keys, hashKey, credentials),
    close: () => opened.close(),
  }
})

testMoneyStores('PostgreSQL', async (now) => {
  const opened = await database.open(now)
  const shared = storeDatabase(opened)
  return {
    ...createStores(shared),
    ...createEventLogWriter(opened, 1),
    otps: createOtpStore(opened, isHashOf),
    sweep: createSweep(opened, 'node'),
    forget: async (subjects) =>
      (await forgetRecipient(shared, nobody, subjects, { now: 0, actor: tester })).erased,
    close: () => opened.close(),
  }
})

describe('PostgreSQL', () => {
  beforeEach(async () => (await database.open()).close())
  testMoneyAtOnce(() => database.url)
})

describe('the secret key of a database', () => {
  let opened: Database
  beforeEach(async () => {
    opened = await database.open(() => 0)
  })
  afterEach(() => opened.close())
  type Fingerprints = readonly [string, ...string[]]
  const refusal = async (check: Promise<void>) => {
    const problem: unknown = await check.catch((error: unknown) => error)
    if (problem !== undefined) expect(String(problem)).toContain('SECRET_KEY does not list the secret key')
    return problem
  }
  const begins = async (...fingerprints: Fingerprints) =>
    !(await refusal(useOnPostgres(createKeyFingerprints(storeDatabase(opened)), fingerprints, true)))
  const commands = async (...fingerprints: Fingerprints) =>
    !(await refusal(useOnPostgres(createKeyFingerprints(storeDatabase(opened)), fingerprints, false)))
  /** Starts servers in sequence; returns the fingerprints of those that were accepted. */
  const lets = async (...each: readonly Fingerprints[]) => {
    const begun: string[] = []
    for (const fingerprints of each) if (await begins(...fingerprints)) begun.push(fingerprints.join())
    return begun
  }

  test('is that of the first server, and servers with other keys are rejected', async () => {
    expect(await lets(['a'], ['b'], ['b'], ['a'])).toEqual(['a', 'a'])
  })

  test('can be rotated server by server; servers without the new key are rejected, and finally the previous key too', async () => {
    await begins('old')
    expect(await lets(['new'], ['old', 'new'], ['old'], ['old', 'new'])).toEqual([
      'old,new',
      'old',
      'old,new',
    ])
    // Some servers have both keys, and others restart.
    const both = [
      ['new', 'old'],
      ['old', 'new'],
      ['new', 'old'],
    ] as const
    expect(await lets(...both)).toEqual(both.map((fingerprints) => fingerprints.join()))
    expect(await lets(['old'], ['new'], ['new', 'old'], ['old'], ['new'])).toEqual(['new', 'new,old', 'new'])
    expect(await lets(['old'], ['other', 'old'])).toEqual([])
  })

  test('can be changed back in the same way', async () => {
    await begins('old')
    expect(await lets(['new', 'old'], ['old', 'new'], ['old'], ['new'])).toEqual([
      'new,old',
      'old,new',
      'old',
    ])
  })

  test('can be replaced after its fingerprint was deleted', async () => {
    await begins('lost')
    await opened.pool.rows('DELETE FROM key_fingerprints', [])
    expect(await lets(['new'], ['lost'], ['new'])).toEqual(['new', 'new'])
  })

  test('is checked by commands, which never set it', async () => {
    expect([await commands('a'), await commands('b')]).toEqual([true, true])
    expect(await begins('b')).toBe(true)
    expect([await commands('a'), await commands('a', 'b'), await commands('b')]).toEqual([false, true, true])
    expect(await begins('b')).toBe(true)
  })

  test('is checked whenever a context is opened', async () => {
    const opens = async (secret: string, serves: boolean) => {
      const env = { DATABASE_URL: database.url, SECRET_KEY: secret.repeat(32) }
      const opening = openContext(readStoreConfig(env), { serves })
      return !(await refusal(opening.then((context) => context.close())))
    }
    expect([await opens('a', false), await opens('b', true), await opens('a', false)]).toEqual([
      true,
      true,
      false,
    ])
    expect([await opens('a', true), await opens('b', false), await opens('b', true)]).toEqual([
      false,
      true,
      true,
    ])
  })

  test('is set by exactly one of several servers that start at once', async () => {
    for (let round = 0; round < 20; round++) {
      const begun = await Promise.all(['a', 'b', 'c', 'd'].map((mark) => begins(mark)))
      expect(begun.filter(Boolean)).toHaveLength(1)
      expect(await opened.pool.rows('DELETE FROM key_fingerprints RETURNING fingerprint', [])).toHaveLength(1)
    }
  })

  test('rejects all servers with another key that start at once', async () => {
    await begins('right')
    for (let round = 0; round < 20; round++) {
      const begun = await Promise.all([1, 2, 3].map(() => begins(`wrong ${round}`)))
      expect(begun).toEqual([false, false, false])
    }
    expect(await begins('right')).toBe(true)
  })
})

function message(text: string): OutboxMessage {
  return {
    ...{ channel: 'SMS', to: '12025550143', route: 'plain', brandId: 'acme', brandName: 'Acme', text },
    ...{ subject: null, html: null, templateKey: null, variables: null, requestId: 'request' },
  }
}

test('a message is visible after all messages with a lower id', async () => {
  const opened = await database.open(() => 0)
  const { add, list } = postgresStores(opened).outbox
  const texts = async () => (await list({ limit: 10 })).map(({ text }) => text)
  const waits =
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'"
  let isAdded = false
  let later: Promise<void> | undefined
  await opened.pool.transaction(async (connection) => {
    await postgresStores({ ...opened, orm: ormOn(connection) }).outbox.add(message('lower'))
    later = add(message('higher')).then(() => {
      isAdded = true
    })
    while (!isAdded && (await opened.pool.rows(waits, [])).length === 0);
    expect(await texts()).toEqual([])
  })
  await later
  expect(await texts()).toEqual(['lower', 'higher'])
  await opened.close()
})

test('a node without responses from the database does not delay messages of other nodes', async () => {
  const opened = await database.open(() => 0)
  /** The statement is executed, but its response is lost. */
  const deaf = (connection: Queryable): Queryable => ({
    query: async (...asked) => {
      await connection.query(...asked)
      reached.resolve()
      return forever
    },
    rows: async (...asked) => {
      await connection.rows(...asked)
      reached.resolve()
      return forever
    },
  })
  const [reached, { promise: forever }] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()]
  const frozen = postgresStores({ ...opened, orm: ormOn(deaf(opened.pool)) })
  void frozen.outbox.add(message('of a node that is frozen'))
  await reached.promise
  const { add, list } = postgresStores(opened).outbox
  await add(message('of another'))
  expect((await list({ limit: 10 })).map(({ text }) => text)).toEqual([
    'of a node that is frozen',
    'of another',
  ])
  await opened.close()
})

test("an error of the database is reported without the statement's values", async () => {
  const opened = await database.open(() => 0)
  const { add } = plainErrors(postgresStores(opened).requests)
  const request = {
    ...{ id: 'id', createdAt: 0, companyName: 'a company', contactName: 'Jane', brandName: 'Acme' },
    ...{ contactEmail: 'jane@example.com', channels: [], website: null, useCase: null },
  }
  await add(request, 1000)
  const problem: unknown = await add(request, 1000).catch((error: unknown) => error)
  await opened.close()
  expect(problem).toBeInstanceOf(StatementError)
  expect(problem).toMatchObject({ code: '23505' })
  expect(Bun.inspect(problem)).not.toContain('jane@example.com')
})

test('a limit and a locked code have the right remaining time, for any clock of the caller', async () => {
  const opened = await database.open()
  const { admit, beginSend, guess } = createOtpStore(opened, isHashOf)
  const now = opened.now() - 3_600_000
  const minute: Claim = {
    ...{ limit: 'phone-minute', subject: ['someone'], name: 'minute', max: 1, windowMs: 60_000 },
    ...{ counted: true, failure: 'rate_limited', scope: 'per minute' },
  }
  const hash = saltedHash('id', 'right')
  const code: NewCode = {
    subject: ['another'],
    brandSlug: 'acme',
    id: 'id',
    hash,
    ttlMs: 60_000,
    provider: null,
  }
  await beginSend([minute], code, now)
  const attempt = { ...code, claims: [], failureBudget: undefined, keyedCodes: ['wrong'] }
  for (const _ of [1, 2, 3]) await guess(attempt, now)
  const refusals = [await admit([minute], now), await beginSend([minute], code, now)]
  const spans = refusals.map((refusal) => (refusal.allowed ? undefined : refusal.resetsInMs))
  const refused = await guess({ ...attempt, claims: [minute] }, now)
  spans.push(refused.allowed ? undefined : refused.resetsInMs)
  const locked = await guess(attempt, now)
  spans.push(locked.allowed && locked.verdict.kind === 'locked' ? locked.verdict.resetsInMs : undefined)
  for (const span of spans) expect(span).toBeWithin(0, 60_001)
  await opened.close()
})

test.each(['codes_and_limits', 'requests', 'attempts', 'leases', 'revision'])(
  'the database is not usable without the table %s',
  async (table) => {
    const opened = await database.open(() => 0)
    await queryOnce(database.url, `ALTER TABLE ${table} RENAME TO absent`)
    const problem = await opened.check().then(
      () => undefined,
      (error: unknown) => error,
    )
    await queryOnce(database.url, `ALTER TABLE absent RENAME TO ${table}`)
    expect(problem).toMatchObject({ code: '42P01' })
    await opened.check()
    await opened.close()
  },
)

test('the expiry cleanup does not rest while many rows are expired', async () => {
  const opened = await database.open(() => 1000)
  await queryOnce(
    database.url,
    `INSERT INTO codes_and_limits (subject, name, count, expires_at)
      SELECT translate(encode(sha256(number::text::bytea), 'base64'), '+/', '-_'), 'minute', 1, 1
      FROM generate_series(1, 20000) AS number`,
  )
  const sweep = createSweep(opened, 'node')
  const left = async () =>
    Number((await queryOnce(database.url, 'SELECT count(*) FROM codes_and_limits'))[0]?.count)
  const steps: { readonly deleted: number; readonly isBusy: boolean }[] = []
  for (let before = await left(); before > 0; ) {
    const { isBusy } = await sweep(1000, keepAll)
    const after = await left()
    steps.push({ deleted: before - after, isBusy })
    before = after
  }
  // On a slow machine the parts of a step are smaller. Then it may rest.
  expect(steps.filter(({ deleted, isBusy }) => isBusy !== deleted > 250)).toEqual([])
  expect(steps.some(({ isBusy }) => isBusy)).toBe(true)
  await opened.close()
}, 60_000)

test('a locked row blocks only requests of its own app', async () => {
  const opened = await database.open(() => 0)
  const { admit } = createOtpStore(opened, isHashOf)
  const claimOf = (appId: string): Claim => ({
    ...{ limit: 'app-minute', subject: [`app:${appId}`], name: 'minute', max: 100, windowMs: 60_000 },
    ...{ counted: true, failure: 'rate_limited', scope: 'per minute' },
  })
  await admit([claimOf('held')], 0)
  const [isHeld, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = opened.pool.transaction(async (connection) => {
    await connection.rows("SELECT FROM codes_and_limits WHERE subject = 'app:held' FOR UPDATE", [])
    isHeld.resolve()
    await release.promise
  })
  await isHeld.promise
  let answered = 0
  const waiting: Promise<void>[] = []
  // More transactions than run at the same time.
  for (let turn = 0; turn < 4; turn++) {
    waiting.push(admit([claimOf('held')], 0).then(() => void answered++))
    await opened.pool.rows('SELECT 1', [])
  }
  expect((await admit([claimOf('free')], 0)).allowed).toBe(true)
  expect(answered).toBe(0)
  release.resolve()
  await Promise.all([holding, ...waiting])
  await opened.close()
})

test.skipIf(givenDatabase !== undefined)(
  'two nodes with the secret keys in different orders count one limit',
  async () => {
    const node = await database.open(() => 0)
    const other = await openDatabase(
      targetOf(database.url),
      () => 0,
      () => {},
    )
    const admit = (database: Database, ...subject: [string, string]) => {
      const limit = { limit: 'cooldown', name: 'cooldown:acme', max: 1, windowMs: 60_000 } as const
      const claim = { ...limit, subject, counted: true, failure: 'cooldown_active', scope: '' } as const
      return createOtpStore(database, isHashOf).admit([claim], 0)
    }
    // A distributed database waits elsewhere.
    const waits = 'SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = $1'
    const isWaiting = async (event: string) => (await node.pool.rows(waits, [event])).length > 0
    const decisions: Promise<LimitDecision>[] = []
    await node.pool.transaction(async (connection) => {
      // The first node has read its rows when it waits for this one.
      const row =
        "INSERT INTO codes_and_limits (subject, name, count, expires_at) VALUES ('old', 'cooldown:acme', 1, 1)"
      await connection.rows(row, [])
      decisions.push(admit(node, 'old', 'new'))
      while (!(await isWaiting('transactionid')));
      let isAnswered = false
      const second = admit(other, 'new', 'old')
      decisions.push(
        second.finally(() => {
          isAnswered = true
        }),
      )
      while (!isAnswered && !(await isWaiting('advisory')));
      await connection.rows('DELETE FROM codes_and_limits', [])
    })
    expect((await Promise.all(decisions)).map(({ allowed }) => allowed)).toEqual([true, false])
    await other.close()
    await node.close()
  },
)

test.skipIf(givenDatabase !== undefined)(
  'a user who may not create the schema, or may only read it, gets instructions',
  async () => {
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
      expect(String(problem)).toContain('Run `otpost migrate` as the owner')
    } finally {
      await empty.remove()
      await queryOnce(database.url, `DROP ROLE ${role}`)
    }
  },
)

test.skipIf(givenDatabase !== undefined)('a database with another encoding is rejected', async () => {
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

test('an expiry cleanup changes the revision only if it deletes an open circuit', async () => {
  const opened = await database.open(() => 0)
  const sweep = createSweep(opened, 'this node')
  const { share } = createOpenCircuits(opened)
  const revision = async () => Number((await opened.pool.rows('SELECT number FROM revision', []))[0]?.[0])
  const before = await revision()
  for (let step = 0; step < 3; step++) await sweep(100_000, keepAll)
  expect(await revision()).toBe(before)
  await share('twilio', { failures: 5, openMs: 1000, openUntil: 1000 })
  expect(await revision()).toBe(before + 1)
  await sweep(100_000, keepAll)
  expect(await revision()).toBe(before + 2)
  await opened.close()
})

describe('a row that a request has locked when the expiry cleanup deletes it', () => {
  const old = 'hash of one'
  const insertions = {
    codes_and_limits: `INSERT INTO codes_and_limits (subject, name, count, expires_at)
      SELECT hash, 'minute', 1, 1 FROM unnest($1::text[]) AS hash`,
    idempotency_keys: `INSERT INTO idempotency_keys (hash, request_id, body_hash, owner, expires_at)
      SELECT hash, '', '', '', 1 FROM unnest($1::text[]) AS hash`,
  }
  const tables = Object.keys(insertions) as (keyof typeof insertions)[]

  async function openWith(table: keyof typeof insertions) {
    const opened = await database.open(() => 0)
    await opened.pool.rows(insertions[table], [['another hash', old, 'third hash']])
    const [key] = table === 'codes_and_limits' ? ['subject'] : ['hash']
    return {
      opened,
      sweep: createSweep(opened, 'node'),
      renewal: `UPDATE ${table} SET expires_at = 1000000 WHERE ${key} = '${old}'`,
      left: async () => (await opened.pool.rows(`SELECT ${key} FROM ${table}`, [])).flat(),
    }
  }

  /** Whether the cleanup was seen to wait for the request. */
  async function renewedMeanwhile(table: keyof typeof insertions): Promise<boolean> {
    const { opened, sweep, renewal, left } = await openWith(table)
    const waits =
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'"
    let isSwept = false
    let sweeping: Promise<unknown> | undefined
    let hasWaited = false
    await opened.pool.transaction(async (connection) => {
      await connection.rows(renewal, [])
      sweeping = sweep(100_000, keepAll).then(() => {
        isSwept = true
      })
      while (!isSwept && !hasWaited) hasWaited = (await opened.pool.rows(waits, [])).length > 0
    })
    await sweeping
    await sweep(100_000, keepAll)
    expect(await left()).toEqual([old])
    // On Citus a worker waits.
    hasWaited ||= await isDistributed(opened.pool)
    await opened.pool.rows(`TRUNCATE ${table}`, [])
    await opened.close()
    return hasWaited
  }

  test.each(tables)('stays in %s if the request renews it', async (table) => {
    // The wait is short, and a busy machine can miss it.
    let hasWaited = false
    for (let tries = 0; tries < 10 && !hasWaited; tries++) hasWaited = await renewedMeanwhile(table)
    expect(hasWaited).toBe(true)
  })

  test.each(tables)('stays in %s, and the cleanup does not wait for it', async (table) => {
    const { opened, sweep, renewal, left } = await openWith(table)
    await opened.pool.rows('INSERT INTO console_links (token_sha256, expires_at) VALUES ($1, 1)', ['link'])
    await expect(
      opened.pool.transaction(async (connection) => {
        await connection.rows(renewal, [])
        await sweep(100_000, keepAll)
        throw new Error('the request failed')
      }),
    ).rejects.toThrow('the request failed')
    expect(await opened.pool.rows('SELECT FROM console_links', [])).toEqual([])
    expect((await left()).sort()).toEqual(['another hash', old, 'third hash'])
    await sweep(100_000, keepAll)
    expect(await left()).toEqual([])
    await opened.close()
  })
})

test('an expiry cleanup deletes all codes and limits that have expired, in steps, and no others', async () => {
  const opened = await database.open(() => 0)
  const sweep = createSweep(opened, 'node')
  const insert = `INSERT INTO codes_and_limits (subject, name, count, expires_at)
    SELECT kind || md5(n::text), 'minute', 1, n FROM unnest('{"",-,Z,app:,budget:}'::text[]) AS kind, generate_series(1, 1500) AS n`
  await opened.pool.rows(insert, [])
  // A step may take a second, in which it deletes several batches.
  let steps = 1
  while (!(await sweep(1400, keepAll)).isRound) steps++
  const count = 'SELECT count(*)::int, min(expires_at)::int FROM codes_and_limits'
  expect(await opened.pool.rows(count, [])).toEqual([[500, 1401]])
  expect(steps).toBeLessThan(100)
  await opened.close()
})
