import { expect, test } from 'bun:test'
import type { ClusterFacts, ClusterNode, ClusterTable } from '../../src/adapters/store/condition.ts'
import { citusFindings, clusterFindings, wrongTables } from '../../src/doctor/citus.ts'

/** With settings at their bounds. */
const state = { version: '13.2.2 (13.2-1)', mostPrepared: 100, recoveryIntervalMs: 2000, inDoubt: 0 }

const worker: ClusterNode = {
  host: 'w1',
  port: 5432,
  isCoordinator: false,
  isActive: true,
  hasShards: true,
  state,
}

const coordinator: ClusterNode = { ...worker, host: 'c', isCoordinator: true, hasShards: false }

const requests: ClusterTable = {
  table: 'requests',
  column: 'request_id',
  colocateWith: undefined,
  state: 'distributed',
  hasHiddenRows: false,
}

const attempts: ClusterTable = { ...requests, table: 'attempts', colocateWith: 'requests' }

const cluster: ClusterFacts = {
  isCoordinator: true,
  replicationFactor: 1,
  nodes: [coordinator, worker],
  tables: [requests, attempts],
}

const withState = (change: Partial<typeof state>): Partial<ClusterFacts> => ({
  nodes: [coordinator, { ...worker, state: { ...state, ...change } }],
})

test('a cluster that is ready has no findings but two good ones', () => {
  expect(clusterFindings(cluster)).toEqual([])
  expect(wrongTables(cluster.tables)).toEqual([])
  expect(citusFindings(cluster)).toEqual([
    { level: 'ok', what: 'Citus', text: '2 nodes, Citus 13.2.2 (13.2-1).' },
    { level: 'ok', what: 'distributed tables', text: '2 on 1 node.' },
  ])
})

const clusters: readonly [Partial<ClusterFacts>, 'warn' | 'fail', string, string][] = [
  [{ isCoordinator: false }, 'fail', 'names a worker', 'Set DATABASE_URL'],
  [{ nodes: [worker] }, 'fail', 'host of the coordinator is not set', 'citus_set_coordinator_host('],
  [{ nodes: [coordinator] }, 'fail', 'No active worker', 'citus_add_node('],
  [{ nodes: [coordinator, { ...worker, hasShards: false }] }, 'fail', 'No active worker', 'shouldhaveshards'],
  [
    { nodes: [coordinator, worker, { ...worker, host: 'w2', isActive: false }] },
    'fail',
    'w2:5432 is not active',
    "citus_activate_node('w2', 5432)",
  ],
  [
    { nodes: [coordinator, { ...worker, state: { problem: 'failed to connect to w1:5432' } }] },
    'fail',
    'w1:5432 does not answer: failed to connect to w1:5432.',
    'Start that server',
  ],
  [
    withState({ version: '13.0.5 (13.0-1)' }),
    'fail',
    'w1:5432 has 13.0.5 (13.0-1)',
    'EXTENSION citus UPDATE',
  ],
  [
    {
      nodes: [coordinator, worker].map((node) => ({
        ...node,
        state: { ...state, version: '10.2.9 (10.2-5)' },
      })),
    },
    'fail',
    'Citus 10.2.9 (10.2-5) is too old. otpost requires 11',
    'Upgrade Citus',
  ],
  [{ replicationFactor: 2 }, 'fail', 'shard_replication_factor is 2', 'citus.shard_replication_factor = 1'],
  [withState({ mostPrepared: 0 }), 'fail', 'is 0 on w1:5432', 'SET max_prepared_transactions ='],
  [withState({ mostPrepared: 99 }), 'warn', 'is 99 on w1:5432', 'SET max_prepared_transactions ='],
  [withState({ recoveryIntervalMs: -1 }), 'fail', 'is off on w1:5432', "citus.recover_2pc_interval = '2s'"],
  [
    withState({ recoveryIntervalMs: 60_000 }),
    'warn',
    'is 60 s on w1:5432',
    "citus.recover_2pc_interval = '2s'",
  ],
]

test.each(clusters.map((row) => [`${row[1]}: ${row[2]}`, row] as const))(
  '%s',
  (_, [change, level, message, remedy]) => {
    const found = clusterFindings({ ...cluster, ...change })
    const expected = [
      {
        level,
        what: 'Citus',
        text: expect.stringContaining(message),
        remedy: expect.stringContaining(remedy),
        see: [],
      },
    ]
    expect(found).toEqual(expected)
    // The doctor reports what stops the command.
    expect(citusFindings({ ...cluster, ...change })).toEqual(expect.arrayContaining(expected))
  },
)

test('prepared transactions that lock rows do not stop the command, but the doctor reports them', () => {
  const facts = { ...cluster, ...withState({ inDoubt: 2 }) }
  expect(clusterFindings(facts)).toEqual([])
  expect(citusFindings(facts)[0]).toMatchObject({
    level: 'fail',
    text: '2 prepared transactions are older than a minute on w1:5432. Requests that need their rows fail.',
  })
})

const tableStates: readonly [readonly ClusterTable[], 'warn' | 'fail', string][] = [
  [
    [
      { ...requests, state: 'local' },
      { ...attempts, state: 'local' },
    ],
    'warn',
    'The database has the extension Citus, but no table is distributed.',
  ],
  [
    [{ ...requests, state: 'missing' }],
    'warn',
    'The database has the extension Citus, but no table is distributed.',
  ],
  [[requests, { ...attempts, state: 'local' }], 'warn', 'Not distributed: attempts.'],
  [[requests, { ...attempts, state: 'missing' }], 'warn', 'Not distributed: attempts.'],
  [[{ ...requests, state: 'other' }, attempts], 'fail', 'requests is not distributed by request_id.'],
  [
    [requests, { ...attempts, state: 'other' }],
    'fail',
    'attempts is not distributed by request_id beside requests.',
  ],
  [
    [{ ...requests, hasHiddenRows: true }, attempts],
    'warn',
    'The coordinator still has rows from before the distribution, which no query finds: requests.',
  ],
]

test.each(tableStates.map((row) => [`${row[1]}: ${row[2]}`, row] as const))(
  '%s',
  (_, [tables, level, message]) => {
    const found = citusFindings({ ...cluster, tables }).filter(({ what }) => what === 'distributed tables')
    expect(found).toEqual([
      {
        level,
        what: 'distributed tables',
        text: message,
        remedy: expect.stringContaining('--distribute citus`'),
        see: [],
      },
    ])
    expect(wrongTables(tables)).toHaveLength(level === 'fail' ? 1 : 0)
  },
)

test('a cluster without distributed tables is not examined: all rows are on the coordinator', () => {
  const facts = { ...cluster, nodes: [], tables: [{ ...requests, state: 'local' as const }] }
  expect(citusFindings(facts).map(({ what }) => what)).toEqual(['distributed tables'])
})
