import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { isHashOf, saltedHash } from '../../src/adapters/crypto/secrets.ts'
import { type Database, openDatabase } from '../../src/adapters/postgres/database.ts'
import { createOtpStore } from '../../src/adapters/postgres/otp-store.ts'
import type { Transaction } from '../../src/adapters/postgres/pool.ts'
import type { StoredClaim } from '../../src/domain/limits/limits.ts'
import type { OtpStore } from '../../src/domain/otp/store.ts'
import { targetOf } from '../store/postgres-database.ts'
import { type DatabaseOfATest, freshDatabase, withoutPostgres } from '../support/postgres.ts'

if (withoutPostgres) console.warn(withoutPostgres)

interface Node {
  readonly database: Database
  readonly store: OtpStore
}

const limit = { subject: ['app:shop'], name: 'minute', windowMs: 600_000, counted: true } as const
const budget = {
  subject: ['budget:server'],
  name: 'day:0',
  windowMs: 0,
  period: 'day',
  counted: true,
} as const

describe.skipIf(withoutPostgres !== undefined)('leases of four nodes', () => {
  let fresh: DatabaseOfATest
  let nodes: Node[]

  async function node(batchSize: number): Promise<Node> {
    const database = await openDatabase({ ...targetOf(fresh.url), batchSize }, undefined, () => {})
    return { database, store: createOtpStore(database, isHashOf) }
  }

  beforeEach(async () => {
    fresh = await freshDatabase()
    // 20 clients fill several batches of 4, but none of 32.
    nodes = await Promise.all([1, 4, 4, 32].map(node))
  })
  afterEach(async () => {
    await Promise.all(nodes.map(({ database }) => database.close()))
    await fresh.remove()
  })

  async function countOf({
    subject: [subject],
    name,
  }: Pick<StoredClaim, 'subject' | 'name'>): Promise<number> {
    const side = await openDatabase(targetOf(fresh.url), undefined, () => {})
    const statement = 'SELECT count FROM codes_and_limits WHERE subject = $1 AND name = $2'
    const [[count] = [0]] = await side.pool.rows(statement, [subject, name])
    await side.close()
    return Number(count)
  }

  let recipients = 0
  const ofRecipient = (max = 1): StoredClaim => ({
    ...{ subject: [`recipient ${recipients++}`], name: 'minute', max, windowMs: 60_000, counted: true },
  })

  /** Clients of each node, until all nodes have refused the claim. Resolves to the granted units. */
  async function load(
    claim: StoredClaim,
    { until = (): boolean => false, clients = 20 } = {},
  ): Promise<number> {
    let units = 0
    const refused = new Set<Node>()
    await Promise.all(
      nodes.flatMap((each) =>
        Array.from({ length: clients }, async () => {
          while (!until() && refused.size < nodes.length) {
            // Some are rejected by the recipient's limit, and consume nothing.
            const max = Math.random() < 0.1 ? 0 : 1
            const decision = await each.store.admit([ofRecipient(max), claim], 0)
            if (decision.allowed) units += claim.units ?? 1
            else if (decision.refusedBy === 1) refused.add(each)
            else expect(max).toBe(0)
          }
        }),
      ),
    )
    // A rejected recipient's unit may go back after all nodes have refused.
    for (const { store } of nodes) {
      while (!until() && (await store.admit([ofRecipient(), claim], 0)).allowed) units += claim.units ?? 1
    }
    return units
  }

  test.each([10, 2000])('a limit of %d admits exactly that many over all nodes', async (max) => {
    expect(await load({ ...limit, max })).toBe(max)
    expect(await countOf(limit)).toBe(max)
  })

  test('a budget is spent to its last message', async () => {
    const claim = { ...budget, max: 50_000_000, units: 35_000 }
    const most = Math.floor(claim.max / claim.units) * claim.units
    expect(await load(claim)).toBe(most)
    expect(await countOf(budget)).toBe(most)
  })

  test('unused units go back within about a second, and when a node stops', async () => {
    const claim = { ...limit, max: 100_000 }
    const endAt = performance.now() + 1500
    const units = await load(claim, { until: () => performance.now() > endAt })
    const [first, ...others] = nodes
    await first?.database.close()
    const givenBackAt = performance.now()
    while ((await countOf(limit)) !== units && performance.now() - givenBackAt < 10_000) await Bun.sleep(20)
    expect(await countOf(limit)).toBe(units)
    nodes = others
  })

  test('a request without a recipient writes its event, and is counted once', async () => {
    const [one] = nodes
    if (!one) throw new Error('no node')
    const claim = { ...limit, max: 10_000 }
    const about = { reportKey: null, position: null, status: null, reason: null }
    for (let index = 0; index < 50; index++) {
      const event = {
        id: `event ${index}`,
        at: 0,
        type: 'otp.locked',
        requestId: `request ${index}`,
        ...about,
      } as const
      expect((await one.store.admit([claim], 0, [{ kind: 'event', event }])).allowed).toBe(true)
    }
    expect(await one.database.pool.rows('SELECT count(*) FROM events', [])).toEqual([[50]])
    await one.database.close()
    expect(await countOf(limit)).toBe(50)
    nodes = nodes.slice(1)
  })

  test('units of failed and abandoned sends go back on any node', async () => {
    const [one, two] = nodes
    if (!one || !two) throw new Error('no nodes')
    const claim = { ...budget, max: 1_000_000_000, units: 35_000 }
    const subject = ['recipient of the code'] as const
    for (let index = 0; index < 40; index++) {
      const code = {
        subject,
        brandSlug: 'acme',
        id: `id ${index}`,
        hash: 'hash',
        ttlMs: 60_000,
        provider: null,
      }
      const decision = await one.store.beginSend([claim], code, 0)
      const [count] = decision.allowed ? decision.counts : []
      if (!count) throw new Error('the budget is exhausted')
      const grant = { ...budget, units: claim.units, ...count }
      if (index % 2 === 0) await two.store.abandonSend(code, [grant], null, 0)
      else await (index % 3 === 0 ? one : two).store.giveBack([grant], 0)
    }
    await one.database.close()
    await two.database.close()
    expect(await countOf(budget)).toBe(0)
    nodes = nodes.slice(2)
  })

  test('a send and a verify each touch the row of one key, in one partition', async () => {
    const [one] = nodes
    if (!one) throw new Error('no node')
    const { database, store } = one
    const claim = { ...limit, max: 10_000 }
    for (let index = 0; index < 50; index++) await store.admit([claim], 0)

    const statements: { text: string; values: readonly unknown[] }[] = []
    const { transaction } = database.pool
    const spy = spyOn(database.pool, 'transaction').mockImplementation((work, limits) =>
      transaction((connection) => {
        const noting: Transaction = {
          query: (statement, values = []) => {
            statements.push({ text: statement.text, values })
            return connection.query(statement, values)
          },
          rows: connection.rows,
          send: (statement, values) => {
            statements.push({ text: statement.text, values })
            connection.send(statement, values)
          },
        }
        return work(noting)
      }, limits),
    )
    const subject = ['recipient of the code'] as const
    const hash = saltedHash('id', 'right')
    const code = { subject, brandSlug: 'acme', id: 'id', hash, ttlMs: 60_000, provider: null }
    const own = { subject, name: 'minute', max: 3, windowMs: 60_000, counted: true }
    expect((await store.beginSend([own, claim], code, 0)).allowed).toBe(true)
    const attempt = { claims: [claim], failureBudget: undefined, subject, brandSlug: 'acme' }
    const decision = await store.guess({ ...attempt, keyedCodes: ['right'] }, 0)
    expect(decision).toMatchObject({ verdict: { kind: 'verified' } })
    spy.mockRestore()

    // Of the recipient; others read the time, and renew the lease.
    const ofRequests = statements.filter(({ values }) => values.includes(subject[0]))
    const withoutKey = statements.filter(({ values }) => values.length === 0)
    expect(new Set(withoutKey.map(({ text }) => text)).size).toBe(1)
    expect(withoutKey[0]?.text).not.toContain('codes_and_limits')
    const ofApp = statements.filter(({ values }) => values.includes(claim.subject[0]))
    expect(ofRequests.length + withoutKey.length + ofApp.length).toBe(statements.length)
    expect(ofRequests.filter((each) => ofApp.includes(each))).toEqual([])
    expect(ofRequests.map(({ text }) => text.split(' ')[0])).toEqual([
      ...['select', 'select', 'insert'],
      ...['select', 'select', 'delete'],
    ])
    await database.pool.rows('ALTER TABLE codes_and_limits RENAME TO whole', [])
    const table = 'CREATE TABLE codes_and_limits (LIKE whole INCLUDING ALL) PARTITION BY HASH (subject)'
    await database.pool.rows(table, [])
    for (let part = 0; part < 8; part++) {
      const values = `FOR VALUES WITH (MODULUS 8, REMAINDER ${part})`
      await database.pool.rows(`CREATE TABLE part_${part} PARTITION OF codes_and_limits ${values}`, [])
    }
    for (const { text, values } of ofRequests) {
      const plan = (await database.pool.rows(`EXPLAIN ${text}`, values)).flat().join('\n')
      // Only insertions have no scan.
      expect(new Set(plan.match(/part_\d/g)).size).toBe(text.startsWith('insert') ? 0 : 1)
    }
  })
})
