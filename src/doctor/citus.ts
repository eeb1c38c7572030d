import type { ClusterFacts, ClusterNode, ClusterNodeState } from '../adapters/store/condition.ts'
import { type Finding, fail, found, ok, warn } from '../domain/health/problem.ts'
import { inSeconds } from './units.ts'

// Whether a Citus cluster can have the tables of otpost, and has them.

/** Older versions do not keep metadata on the workers. */
const oldestCitus = 11

const mostRecoveryMs = 2000

/** Half of the default of Citus. A statement for all shards of a table prepares several on each worker. */
const leastPrepared = 100

const distributeCommand = '`otpost migrate --distribute citus`'

const remedyByCommand = `Stop all servers, and run ${distributeCommand}.`

export function citusFindings(cluster: ClusterFacts): readonly Finding[] {
  if (!cluster.tables.some(({ state }) => state === 'distributed' || state === 'other')) {
    const message = 'The database has the extension Citus, but no table is distributed.'
    return [warn('distributed tables', message, remedyByCommand)]
  }
  const problems = [...clusterFindings(cluster), ...inDoubtFindings(cluster.nodes)]
  const answered = cluster.nodes.flatMap(({ state }) => ('version' in state ? [state] : []))
  const nodes = cluster.nodes.length === 1 ? '1 node' : `${cluster.nodes.length} nodes`
  return [
    ...(problems.length > 0 ? problems : [ok('Citus', `${nodes}, Citus ${answered[0]?.version}.`)]),
    ...tableFindings(cluster),
  ]
}

/** Without `fail`, tables can be distributed. */
export function clusterFindings(cluster: ClusterFacts): readonly Finding[] {
  const { isCoordinator, replicationFactor, nodes } = cluster
  if (!isCoordinator) {
    return [fail('Citus', 'DATABASE_URL names a worker.', 'Set DATABASE_URL to the coordinator.')]
  }
  const answered = nodes.flatMap((node) => ('version' in node.state ? [{ ...node, state: node.state }] : []))
  const versions = [...new Set(answered.map(({ state }) => state.version))]
  return found(
    !nodes.some((node) => node.isCoordinator) &&
      fail(
        'Citus',
        'The host of the coordinator is not set, so that workers cannot connect to it.',
        "On the coordinator: `SELECT citus_set_coordinator_host('HOST', PORT)`.",
      ),
    !nodes.some(({ isActive, hasShards }) => isActive && hasShards) &&
      fail(
        'Citus',
        'No active worker accepts rows.',
        "On the coordinator, for each worker: `SELECT citus_add_node('HOST', PORT)`. For a worker that is drained: `SELECT citus_set_node_property('HOST', PORT, 'shouldhaveshards', true)`.",
      ),
    ...nodes.flatMap(nodeFindings),
    versions.length > 1 &&
      fail(
        'Citus',
        `The nodes have different versions: ${answered.map((node) => `${nameOf(node)} has ${node.state.version}`).join(', ')}.`,
        'Install the same version on all nodes. In this database of each node, the coordinator first: `ALTER EXTENSION citus UPDATE`.',
      ),
    versions.some((version) => Number.parseInt(version, 10) < oldestCitus) &&
      fail(
        'Citus',
        `Citus ${versions.join(', ')} is too old. otpost requires ${oldestCitus} or newer.`,
        'Upgrade Citus.',
      ),
    replicationFactor !== 1 &&
      fail(
        'Citus',
        `citus.shard_replication_factor is ${replicationFactor}. Copies of a row can then differ.`,
        'On the coordinator: `ALTER SYSTEM SET citus.shard_replication_factor = 1`, then `SELECT pg_reload_conf()`. Protect nodes with PostgreSQL standbys.',
      ),
  )
}

function nodeFindings(node: ClusterNode): readonly Finding[] {
  const { state } = node
  const name = nameOf(node)
  return found(
    !node.isActive &&
      fail(
        'Citus',
        `${name} is not active, or its metadata is not current.`,
        `On the coordinator: \`SELECT citus_activate_node('${node.host}', ${node.port})\`.`,
      ),
    'problem' in state &&
      fail(
        'Citus',
        `${name} does not answer: ${state.problem}. Requests with rows on it fail.`,
        'Start that server. Check the network, its pg_hba.conf and citus.node_conninfo.',
      ),
    ...('problem' in state ? [] : settingFindings(name, state)),
  )
}

function settingFindings(name: string, { mostPrepared, recoveryIntervalMs }: ClusterNodeState) {
  const setInterval =
    "On that node: `ALTER SYSTEM SET citus.recover_2pc_interval = '2s'`, then `SELECT pg_reload_conf()`."
  const setPrepared = 'On that node: `ALTER SYSTEM SET max_prepared_transactions = 200`, then restart it.'
  return found(
    mostPrepared === 0 &&
      fail(
        'Citus',
        `max_prepared_transactions is 0 on ${name}, so that transactions over several nodes fail.`,
        setPrepared,
      ),
    mostPrepared > 0 &&
      mostPrepared < leastPrepared &&
      warn(
        'Citus',
        `max_prepared_transactions is ${mostPrepared} on ${name}. While all are in use, transactions over several nodes fail.`,
        setPrepared,
      ),
    recoveryIntervalMs < 0 &&
      fail(
        'Citus',
        `citus.recover_2pc_interval is off on ${name}. After a crash, locked rows stay locked.`,
        setInterval,
      ),
    recoveryIntervalMs > mostRecoveryMs &&
      warn(
        'Citus',
        `citus.recover_2pc_interval is ${inSeconds(recoveryIntervalMs)} on ${name}. After a crash, rows can stay locked for that time, and requests that need them fail.`,
        setInterval,
      ),
  )
}

function inDoubtFindings(nodes: readonly ClusterNode[]): readonly Finding[] {
  return nodes.flatMap((node) => {
    const count = 'version' in node.state ? node.state.inDoubt : 0
    if (count === 0) return []
    const transactions = count === 1 ? '1 prepared transaction is' : `${count} prepared transactions are`
    return fail(
      'Citus',
      `${transactions} older than a minute on ${nameOf(node)}. Requests that need their rows fail.`,
      'On the coordinator: `SELECT recover_prepared_transactions()`. `SELECT * FROM pg_prepared_xacts` on that node shows what remains.',
    )
  })
}

function tableFindings({ tables, nodes }: ClusterFacts): readonly Finding[] {
  const local = tables.filter(({ state }) => state === 'local' || state === 'missing')
  const hidden = tables.filter(({ hasHiddenRows }) => hasHiddenRows)
  const list = (some: typeof tables) => some.map(({ table }) => table).join(', ')
  const problems = found(
    ...wrongTables(tables),
    local.length > 0 && warn('distributed tables', `Not distributed: ${list(local)}.`, remedyByCommand),
    hidden.length > 0 &&
      warn(
        'distributed tables',
        `The coordinator still has rows from before the distribution, which no query finds: ${list(hidden)}.`,
        `Run ${distributeCommand}, which deletes them.`,
      ),
  )
  if (problems.length > 0) return problems
  const withShards = nodes.filter(({ hasShards }) => hasShards).length
  return [
    ok('distributed tables', `${tables.length} on ${withShards === 1 ? '1 node' : `${withShards} nodes`}.`),
  ]
}

/** Tables that the command does not change. */
export function wrongTables(tables: ClusterFacts['tables']): readonly Finding[] {
  return tables
    .filter(({ state }) => state === 'other')
    .map(({ table, column, colocateWith }) =>
      fail(
        'distributed tables',
        `${table} is not distributed by ${column}${colocateWith ? ` beside ${colocateWith}` : ''}.`,
        `Stop all servers. On the coordinator: \`SELECT undistribute_table('${table}')\`. Then run ${distributeCommand}.`,
      ),
    )
}

function nameOf({ host, port }: ClusterNode): string {
  return `${host}:${port}`
}
