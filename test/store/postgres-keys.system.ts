import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import pg from 'pg'
import { migrations } from '../../drizzle/postgres/migrations.ts'
import { saltedHash } from '../../src/adapters/crypto/secrets.ts'
import { createOtpStore } from '../../src/adapters/postgres/otp-store.ts'
import type { Queryable } from '../../src/adapters/postgres/pool.ts'
import { createSteps } from '../../src/adapters/postgres/steps.ts'
import type { Claim } from '../../src/domain/otp/limits.ts'
import { databaseUrl, sharedPostgres } from '../support/postgres.ts'

// On a distributed PostgreSQL, a statement that concerns one key is answered by one node. Here the tables that every request
// writes are partitioned by hash of their key, and the plans of all statements that a step runs tell which partitions they
// reach: one, or the statement has lost its key.

/** The tables that requests write, and what each is spread by. */
const keyOf = {
  ledgers: 'subject',
} as const
const partitions = 8

/** The migrations as whoever spreads the tables would apply them. */
function partitioned(statement: string): readonly string[] {
  // What is said of storage is said of each part.
  if (/ALTER TABLE ledgers SET/.test(statement)) return []
  const table = /CREATE TABLE "(\w+)"/.exec(statement)?.[1] ?? ''
  if (!Object.hasOwn(keyOf, table)) return [statement]
  const key = keyOf[table as keyof typeof keyOf]
  return [
    statement.trim().replace(/\);$/, `) PARTITION BY HASH ("${key}");`),
    ...Array.from(
      { length: partitions },
      (_, place) =>
        `CREATE TABLE ${table}_${place} PARTITION OF ${table} FOR VALUES WITH (MODULUS ${partitions}, REMAINDER ${place})`,
    ),
  ]
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Loops'?: number
  readonly Plans?: readonly PlanNode[]
}

/** A statement that the server ran, by itself or within a function, and the parts that it went to. */
interface Ran {
  readonly text: string
  readonly parts: readonly string[]
}

const isPart = new RegExp(`^(?:${Object.keys(keyOf).join('|')})_\\d+$`)

function partsOf(node: PlanNode): string[] {
  const { Plans = [], 'Relation Name': relation = '', 'Actual Loops': loops = 1 } = node
  // A part that was ruled out when the statement began was never begun.
  const own = isPart.test(relation) && loops > 0 ? [relation] : []
  return [...own, ...Plans.flatMap(partsOf)]
}

const start = Date.UTC(2026, 0, 1, 12)
const subjects = Array.from({ length: 20 }, (_, index) => `subject ${index}`)
const subject = subjects[0] ?? ''

describe('each statement of a step, where tables are spread by hash of their key', () => {
  let server: pg.Client
  let client: pg.Client
  let name: string
  let ran: Ran[] = []
  let connection: Queryable

  beforeAll(async () => {
    const { url } = await sharedPostgres()
    name = `keys_${crypto.randomUUID().replaceAll('-', '')}`
    server = new pg.Client(url)
    await server.connect()
    await server.query(`CREATE DATABASE ${name}`)
    client = new pg.Client(databaseUrl(url, name))
    await client.connect()
    for (const { statements } of migrations) {
      for (const statement of statements.flatMap(partitioned)) await client.query(statement)
    }
    for (const setting of [
      "LOAD 'auto_explain'",
      'SET auto_explain.log_min_duration = 0',
      'SET auto_explain.log_nested_statements = on',
      'SET auto_explain.log_analyze = on',
      'SET auto_explain.log_format = json',
      'SET client_min_messages = log',
    ]) {
      await client.query(setting)
    }
    client.on('notice', ({ message }) => {
      const json = message?.slice(message.indexOf('{')) ?? ''
      const { 'Query Text': text, Plan } = JSON.parse(json) as { 'Query Text': string; Plan: PlanNode }
      ran.push({ text: text.replace(/\s+/g, ' '), parts: [...new Set(partsOf(Plan))] })
    })
    connection = {
      query: async ({ text }, values = []) => (await client.query(text, [...values])).rows,
      rows: async (text, values) =>
        (await client.query<unknown[]>({ text, values: [...values], rowMode: 'array' })).rows,
    }
  }, 120_000)
  afterAll(async () => {
    await client?.end()
    await server?.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    await server?.end()
  })

  /** The statements that touch those tables; fails where one reaches more than one part of a table. */
  async function statementsOf(work: () => Promise<unknown>): Promise<readonly Ran[]> {
    ran = []
    await work()
    const ours = ran.filter(({ text }) => new RegExp(`\\b(?:${Object.keys(keyOf).join('|')})\\b`).test(text))
    expect(ours.filter(({ parts }) => parts.length > 1)).toEqual([])
    // A row that is inserted goes to one part by itself; several at once need not.
    const insertions = ours.filter(({ text }) => /^INSERT/i.test(text))
    expect(insertions.filter(({ text }) => !/ VALUES \(/i.test(text))).toEqual([])
    return ours
  }

  function claim(properties: Partial<Claim>): Claim {
    return {
      limit: 'app-minute',
      subject,
      name: 'minute',
      max: 100,
      windowMs: 60_000,
      counted: true,
      failure: 'rate_limited',
      message: 'too many',
      ...properties,
    }
  }

  function store() {
    const steps = createSteps(connection, { batchSize: 32, patienceMs: 60_000, hearing: () => () => {} })
    const { take } = steps
    const otps = createOtpStore({ take, pool: connection, given: () => start })
    return { otps, close: steps.close }
  }

  const record = {
    id: 'record',
    brandSlug: 'acme',
    subject,
    hash: saltedHash('record', 'right'),
    createdAt: start,
    expiresAt: start + 300_000,
  }
  const application = claim({ subject: 'app:shop' })
  const budget = claim({ name: 'failures:acme' })
  const guess = (keyedCode: string) => ({
    claims: [application],
    failureBudget: budget,
    scope: { brandSlug: 'acme', subject },
    keyedCodes: [keyedCode],
  })

  test('the plans tell of every part that a statement reaches', async () => {
    ran = []
    await connection.rows('SELECT count(*) FROM ledgers', [])
    expect(ran[0]?.parts).toHaveLength(partitions)
  })

  test('reaches one part: of codes and limits', async () => {
    const { otps, close } = store()
    const claims = [claim({ name: 'cooldown:acme', max: 1 }), claim({}), application]
    const [sent, missed, matched, refused, given, moved, checked] = [
      // More than five times: from then on the server may plan without knowing the key.
      await statementsOf(async () => {
        for (const each of subjects) {
          await otps.beginSend(
            claims.map((one) => (one === application ? one : { ...one, subject: each })),
            { ...record, subject: each },
            start,
          )
        }
      }),
      await statementsOf(() => otps.guess(guess('wrong'), start)),
      await statementsOf(() => otps.guess(guess('right'), start)),
      await statementsOf(() => otps.beginSend(claims, record, start)),
      await statementsOf(() =>
        otps.abandonSend(
          { ...record, subject: subjects[1] ?? '' },
          [{ subject: subjects[1] ?? '', name: 'minute', endsAt: start + 60_000, count: 1 }],
          start,
        ),
      ),
      await statementsOf(() =>
        otps.reschedule({ subject, name: 'minute', endsAt: start + 60_000, count: 1 }, start + 90_000, start),
      ),
      await statementsOf(() => otps.check(claim({}), start)),
    ]
    close()
    // Two rows to lock and two to write, at most.
    const writing = (all: readonly Ran[]) =>
      all.filter(({ text }) => /^(?:UPDATE|DELETE|INSERT)/.test(text)).length
    expect(sent.length).toBeGreaterThanOrEqual(subjects.length * 4)
    expect([writing(missed), writing(matched)]).toEqual([2, 2])
    expect(writing(refused)).toBe(0)
    expect([writing(given), writing(moved), checked.length]).toEqual([1, 1, 1])
  })

  test('reaches one part: of many steps that share a transaction', async () => {
    const { otps, close } = store()
    await statementsOf(() =>
      Promise.all(
        subjects.map((each) =>
          otps.guess({ ...guess('wrong'), scope: { brandSlug: 'acme', subject: each } }, start),
        ),
      ),
    )
    close()
    // The application's row is written once for all of them.
    const updates = ran.filter(({ text }) => text.startsWith('UPDATE ledgers'))
    expect(updates.length).toBeLessThanOrEqual(subjects.length + 1)
  })

  test('reaches one part: of a subject under a new name', async () => {
    const { otps, close } = store()
    const statements = await statementsOf(() =>
      otps.rekey('its new name', [subjects[2] ?? '', 'nobody'], start),
    )
    close()
    expect(statements.length).toBeGreaterThan(4)
  })
})
