import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  assumed,
  costsOf,
  lineThrough,
  needOf,
  pagesTouched,
  planMarkdown,
  stepsOfOneApplication,
} from '../../bench/plan.ts'
import { type Costs, type Layout, simulate } from '../../bench/postgres/model.ts'
import type { Kind, Point, PostgresResults } from '../../bench/postgres/results.ts'
import { withPostgresRows } from '../../bench/postgres/table.ts'

// The simulations share two cores with other tests.
setDefaultTimeout(120_000)

const free: Costs = {
  nodeRequestMs: 0,
  nodeTransactionMs: 0,
  databaseRequestMs: 0,
  databaseTransactionMs: 0,
  lockedShare: 1,
  clientMs: 0,
  commitMs: 0,
}
const small: Layout = {
  nodes: 1,
  shards: 1,
  processors: { each: 4 },
  applications: 1,
  isSticky: false,
  batchSize: 1,
  load: { connections: 16 },
}
const rateOf = (costs: Partial<Costs>, layout: Partial<Layout> = {}) =>
  simulate({ ...free, ...costs }, { ...small, ...layout }, 5).perSecond

/** Within some per cent of it. */
function expectNear(found: number, expected: number, percent: number): void {
  expect(found).toBeGreaterThan(expected * (1 - percent / 100))
  expect(found).toBeLessThan(expected * (1 + percent / 100))
}

describe('the model', () => {
  test('a transaction locks the row of an application until its commit', () => {
    expectNear(rateOf({ commitMs: 10 }), 100, 2)
    expectNear(rateOf({ commitMs: 10 }, { nodes: 4 }), 100, 2)
    expectNear(rateOf({ commitMs: 5, databaseRequestMs: 5 }), 100, 2)
  })

  test('one request alone takes as long as its parts', () => {
    const costs = { nodeRequestMs: 4, nodeTransactionMs: 2, databaseRequestMs: 6, databaseTransactionMs: 3 }
    const alone = { load: { connections: 1 } }
    expectNear(rateOf({ ...costs, lockedShare: 0.5, commitMs: 5 }, alone), 50, 1)
    expectNear(rateOf({ ...costs, clientMs: 5, commitMs: 5 }, { ...alone, processors: { shared: 2 } }), 40, 1)
  })

  test('work before the row lock runs in parallel', () => {
    expectNear(rateOf({ commitMs: 5, databaseRequestMs: 5, lockedShare: 0 }), 200, 2)
  })

  test('steps that share a transaction share its commit', () => {
    const { perSecond, stepsPerTransaction } = simulate(
      { ...free, commitMs: 10 },
      { ...small, batchSize: 8 },
      5,
    )
    expectNear(stepsPerTransaction, 8, 2)
    expectNear(perSecond, 800, 2)
  })

  test('transactions of several applications share a wait for the disk', () => {
    const outcome = simulate({ ...free, commitMs: 10 }, { ...small, nodes: 4, applications: 64 }, 5)
    expect(outcome.perSecond).toBeGreaterThan(150)
    expect(outcome.flushesPerSecond).toBeLessThan(101)
  })

  test('transactions that each hold rows of many applications wait for each other', () => {
    const layout = { nodes: 4, applications: 64, batchSize: 16, load: { connections: 256 } }
    const costs = { commitMs: 10, nodeRequestMs: 0.01 }
    const apart = rateOf(costs, { ...layout, isSticky: true })
    expect(apart).toBeGreaterThan(1.5 * rateOf(costs, layout))
  })

  test('a node has one thread; nodes and databases add up', () => {
    expectNear(rateOf({ nodeRequestMs: 1 }), 1000, 2)
    expectNear(rateOf({ nodeRequestMs: 1 }, { nodes: 3 }), 3000, 2)
    const bound = { databaseRequestMs: 2, lockedShare: 0 }
    const many = { nodes: 8, load: { connections: 256 }, processors: { each: 1 } }
    expectNear(rateOf(bound, many), 500, 2)
    expectNear(rateOf(bound, { ...many, shards: 2 }), 1000, 3)
  })

  test('on one machine all processes share its processors', () => {
    const costs = { nodeRequestMs: 1, databaseRequestMs: 0.5, clientMs: 0.5, lockedShare: 0 }
    expectNear(rateOf(costs, { nodes: 4, processors: { shared: 2 } }), 1000, 3)
  })

  test('it answers at any rate below its capacity; above it, latency grows', () => {
    const easy = simulate({ ...free, nodeRequestMs: 1 }, { ...small, load: { perSecond: 500 } }, 5)
    expectNear(easy.perSecond, 500, 10)
    expect(easy.p99Ms).toBeLessThan(20)
    const hard = simulate({ ...free, nodeRequestMs: 1 }, { ...small, load: { perSecond: 1500 } }, 5)
    expect(hard.perSecond).toBeLessThan(1000)
    expect(hard.p50Ms).toBeGreaterThan(100)
  })

  test('the same seed gives the same result', () => {
    const run = (seed: number) =>
      simulate({ ...free, nodeRequestMs: 0.5, commitMs: 1 }, { ...small, load: { perSecond: 700 } }, 1, seed)
    expect(run(7)).toEqual(run(7))
    expect(run(7)).not.toEqual(run(8))
  })
})

const costsAre = {
  nodeRequestMs: 0.2,
  nodeTransactionMs: 0.3,
  databaseRequestMs: 0.1,
  databaseTransactionMs: 0.4,
}

/** The measured point if requests and transactions have exactly these costs. */
function pointOf(kind: Kind, processes: number, batchSize: number, stepTrips: number): Point {
  return {
    kind,
    processes,
    applications: 1,
    batchSize,
    connections: 64,
    perSecond: 3000,
    barePerSecond: 30_000,
    share: 0.1,
    p50Ms: 20,
    p99Ms: 50,
    roundTrips: 1.2,
    stepTrips,
    pollTrips: 0.1,
    transactions: 0.1,
    walBytes: 1000,
    otpostUs: 1000 * (costsAre.nodeRequestMs + costsAre.nodeTransactionMs * stepTrips),
    databaseUs: 1000 * (costsAre.databaseRequestMs + costsAre.databaseTransactionMs * stepTrips),
    clientUs: 30,
    unused: 0.02,
  }
}

const results: PostgresResults = {
  serverVersion: '18.4',
  cores: 2,
  syncMs: 0.4,
  isQuick: false,
  limit: { by: 'pgbench', oneClientPerSecond: 1000, eightClientsPerSecond: 1100 },
  points: (['send', 'wrong'] as const).flatMap((kind) => [
    pointOf(kind, 1, 32, 1 / 32),
    pointOf(kind, 4, 32, 1 / 16),
    pointOf(kind, 4, 1, 1),
  ]),
  work: (['send', 'wrong'] as const).map((kind) => ({
    kind,
    rowsLocked: 2,
    rowsWritten: 2,
    blocksHit: 10,
    blocksDirtied: 1,
    stepMs: 0.2,
    stepShare: 0.5,
  })),
  storage: { recipientBytes: 400, traceBytes: 300, deliveryBytes: 350 },
}

describe('the plan', () => {
  test('separates the cost of a request from the cost of a transaction, by the batch size', () => {
    for (const [name, value] of Object.entries(costsAre)) {
      expect(costsOf(results, 'send')[name as keyof Costs]).toBeCloseTo(value, 9)
    }
    expect(costsOf(results, 'send')).toMatchObject({ commitMs: 1, clientMs: 0.03, lockedShare: 0.5 })
  })

  test('no cost is negative, even with noise', () => {
    expect(
      lineThrough([
        [0, 5],
        [1, 3],
      ]),
    ).toEqual({ slope: 0, atNone: 4 })
    expect(
      lineThrough([
        [1, 0],
        [2, 9],
      ]),
    ).toEqual({ slope: 3, atNone: 0 })
  })

  test('the time of its row lock limits an application, as in the model', () => {
    const costs = { ...free, databaseRequestMs: 0.5, lockedShare: 0.5 }
    expect(stepsOfOneApplication(costs, 2, 1)).toBeCloseTo(1000 / 2.25, 6)
    const layout = { ...small, nodes: 4, batchSize: 8, load: { connections: 256 } }
    const found = simulate({ ...costs, commitMs: 2 }, layout, 5).perSecond
    expectNear(found, stepsOfOneApplication(costs, 2, 8), 5)
  })

  test('random changes touch at most all pages, and at most one page each', () => {
    expect(pagesTouched(1000, 1e6)).toBeCloseTo(1000, 6)
    expectNear(pagesTouched(1e9, 1000), 1000, 0.1)
    expect(pagesTouched(0, 10)).toBe(0)
  })

  test('ten times the load needs ten times the resources', () => {
    const [few, many] = [needOf(results, 1e4), needOf(results, 1e5)]
    expect(few.eventLogBytesPerDay).toBe(1e4 * 86_400 * 950)
    expect(few.recipientBytes).toBe(1e4 * 3600 * 400)
    expect(few.nodesForProvider).toBe(Math.ceil((1e4 * 0.2) / 120 / assumed.utilization))
    expectNear(many.eventLogBytesPerDay, 10 * few.eventLogBytesPerDay, 0.1)
    expectNear(many.walBytesPerSecond, 10 * few.walBytesPerSecond, 0.1)
    expectNear(many.databaseCores, 10 * few.databaseCores, 25)
    expect(many.primaries).toBeGreaterThan(few.primaries)
  })

  test('the planned layout serves the planned load', () => {
    const { simulated, primaries } = needOf(results, 1e4)
    expectNear(simulated.perSecond * primaries, 2e4, 5)
    expect(simulated.p99Ms).toBeLessThan(100)
  })

  test('prints a page of tables', () => {
    const page = planMarkdown(results)
    expect(page).toContain('| sends a second, each with one verify | 10⁴ | 10⁵ | 10⁶ |')
    expect(page).not.toMatch(/NaN|Infinity|undefined/)
  })
})

describe('the rows in a page', () => {
  const result = (measured: string) => ({
    title: 'PostgreSQL 18.4, measured',
    figures: [{ name: 'sends', measured }],
  })
  const table =
    '| | measured | aim | holds |\n| --- | --- | --- | --- |\n| **Start** | | | |\n| empty | 3 ms | | |\n'
  const page = `# Speed\n\n${table}\n## Others\n\n| **Another** | table |\n| --- | --- |\n| x | y |\n`

  test("are added to the end of the bench's table, and replaced the next time", () => {
    const first = withPostgresRows(page, result('one'))
    expect(first).toContain(
      '| empty | 3 ms | | |\n| **PostgreSQL 18.4, measured** | | | |\n| sends | one |  |  |\n\n## Others',
    )
    expect(first.replace(/\| \*\*PostgreSQL.*\n\| sends.*\n/, '')).toBe(page)
    expect(withPostgresRows(first, result('two'))).toBe(first.replace('one', 'two'))
  })

  test('replace no other rows', () => {
    const before = page.replace(
      '| **Start**',
      '| **PostgreSQL 17** | | | |\n| old | 1 | | |\n| older | 1 | | |\n| **Start**',
    )
    const after = withPostgresRows(before, result('new'))
    expect(after).not.toMatch(/\| older? \|/)
    expect(after.replace(/\| \*\*PostgreSQL.*\n\| sends.*\n/, '')).toBe(page)
  })
})
