import type { ClusterFacts, ClusterNode, ClusterTable } from '../store/condition.ts'
import { type DistributedTable, distributedTables } from './distribution.ts'
import { lockMigrations, migrate } from './migrate.ts'
import { openPool, type Pool, type PostgresTarget, type Queryable } from './pool.ts'

/** Every node answers in one round trip; one that cannot be reached does not fail the query. */
const nodeStateQuery = `SELECT json_build_object(
  'version', concat(current_setting('citus.version', true),
    ' (', coalesce((SELECT extversion FROM pg_extension WHERE extname = 'citus'), 'no extension'), ')'),
  'mostPrepared', current_setting('max_prepared_transactions')::int,
  'recoveryIntervalMs', (SELECT setting::int FROM pg_settings WHERE name = 'citus.recover_2pc_interval'),
  'inDoubt', (SELECT count(*) FROM pg_prepared_xacts
    WHERE database = current_database() AND prepared < clock_timestamp() - interval '1 minute'))`

/** By default Citus waits longer for a node than a statement may take. */
const nodeConnectMs = 1500

/** Requires the extension. */
export function clusterFacts(pool: Pool): Promise<ClusterFacts> {
  return pool.transaction(async (connection) => {
    await connection.rows("SELECT set_config('citus.node_connection_timeout', $1, true)", [
      String(nodeConnectMs),
    ])
    return readCluster(connection)
  })
}

async function readCluster(connection: Queryable): Promise<ClusterFacts> {
  const [[isCoordinator, factor] = []] = await connection.rows(
    "SELECT groupid = 0, current_setting('citus.shard_replication_factor')::int FROM pg_dist_local_group",
    [],
  )
  const nodes = await connection.rows(
    `SELECT nodename, nodeport, groupid = 0, isactive AND hasmetadata AND metadatasynced, shouldhaveshards, success, result
      FROM pg_dist_node JOIN run_command_on_all_nodes($1) USING (nodeid) ORDER BY groupid`,
    [nodeStateQuery],
  )
  return {
    isCoordinator: isCoordinator === true,
    replicationFactor: Number(factor),
    nodes: nodes.map(nodeOf),
    tables: await Promise.all(distributedTables.map((table) => tableFacts(connection, table))),
  }
}

function nodeOf([host, port, isCoordinator, isActive, hasShards, success, result]: unknown[]): ClusterNode {
  return {
    host: String(host),
    port: Number(port),
    isCoordinator: isCoordinator === true,
    isActive: isActive === true,
    hasShards: hasShards === true,
    state: success === true ? JSON.parse(String(result)) : { problem: String(result) },
  }
}

async function tableFacts(connection: Queryable, wanted: DistributedTable): Promise<ClusterTable> {
  const [[exists, isOfCitus, isAsWanted, hasHiddenRows] = []] = await connection.rows(
    `SELECT c.oid IS NOT NULL, p.logicalrelid IS NOT NULL,
        p.partmethod = 'h' AND column_to_column_name(p.logicalrelid, p.partkey) = $2
          AND ($3::text IS NULL OR p.colocationid = other.colocationid),
        p.partmethod = 'h' AND pg_relation_size(p.logicalrelid) > 0
      FROM (SELECT to_regclass($1)::oid) AS c (oid)
      LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
      LEFT JOIN pg_dist_partition other ON other.logicalrelid = to_regclass($3)`,
    [wanted.table, wanted.column, wanted.colocateWith ?? null],
  )
  const isDone = isAsWanted === true ? 'distributed' : 'other'
  return {
    ...wanted,
    state: exists !== true ? 'missing' : isOfCitus === true ? isDone : 'local',
    hasHiddenRows: hasHiddenRows === true,
  }
}

/** Rows of large tables take long to move. */
const distributionTimeoutMs = 86_400_000

/**
 * Migrates, then distributes the tables that are not distributed yet, each in its own transaction.
 * @param check throws if the cluster cannot be used; nothing has changed then
 * @param report called after each table
 */
export async function distribute(
  target: PostgresTarget,
  check: (cluster: ClusterFacts | undefined) => void,
  report: (table: DistributedTable, isNew: boolean) => void,
): Promise<void> {
  const pool = openPool({ ...target, poolSize: 1 }, () => {})
  try {
    const [[hasExtension] = []] = await pool.rows("SELECT to_regclass('pg_dist_node') IS NOT NULL", [])
    check(hasExtension === true ? await clusterFacts(pool) : undefined)
    await migrate(pool)
    for (const table of distributedTables) report(table, await distributeTable(pool, table))
  } finally {
    await pool.close()
  }
}

function distributeTable(pool: Pool, wanted: DistributedTable): Promise<boolean> {
  const { table, column, colocateWith = 'none', isBatched } = wanted
  return pool.transaction(
    async (connection) => {
      await lockMigrations(connection)
      const { state } = await tableFacts(connection, wanted)
      if (state === 'local') {
        await connection.rows(
          `SELECT create_distributed_table($1, $2, colocate_with => $3, shard_count => CASE WHEN $4
            THEN (SELECT count(*)::int FROM pg_dist_node WHERE isactive AND shouldhaveshards) END)`,
          [table, column, colocateWith, isBatched],
        )
      }
      // Citus copies the rows and keeps the originals, where `otpost forget` would not find them.
      if ((await tableFacts(connection, wanted)).hasHiddenRows) {
        await connection.rows('SELECT truncate_local_data_after_distributing_table($1)', [table])
      }
      return state === 'local'
    },
    { statementTimeoutMs: distributionTimeoutMs },
  )
}
