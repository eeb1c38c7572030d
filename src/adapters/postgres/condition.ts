import { migrations } from '../../../drizzle/postgres/migrations.ts'
import { isLoopback } from '../../config/settings.ts'
import { type ServerDatabaseFacts, schemaState } from '../store/condition.ts'
import { timeOfId } from '../store/request-ids.ts'
import { createStores, type Stores } from '../store/stores.ts'
import { Changes } from './changes.ts'
import { DatabaseClock } from './clock.ts'
import { clusterFacts } from './cluster.ts'
import { ormOn } from './database.ts'
import { openPool, type Pool, type PostgresTarget } from './pool.ts'
import { storeDatabase } from './stores.ts'

/** For `otpost doctor`; writes nothing. */
export async function conditionOf<Read>(
  target: PostgresTarget,
  read: (stores: Stores) => Promise<Read>,
): Promise<ServerDatabaseFacts<Read>> {
  const pool = openPool({ ...target, poolSize: 1 }, () => {})
  try {
    return {
      kind: 'answered',
      ...(await factsOf(pool, read)),
      // Of the connection from here: behind a pooler the server sees a different one.
      hasTls: target.tls.mode !== 'off',
      isLocal: isLoopback(new URL(target.url).hostname),
      poolSize: target.poolSize,
    }
  } catch (error) {
    return { kind: 'silent', reason: error instanceof Error ? error.message : String(error) }
  } finally {
    await pool.close()
  }
}

async function factsOf<Read>(pool: Pool, read: (stores: Stores) => Promise<Read>) {
  const localAt = Date.now()
  const [row = []] = await pool.rows(
    `SELECT current_setting('server_version'), pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', current_setting('fsync') = 'on',
        current_setting('full_page_writes') = 'on', current_setting('synchronous_commit'),
        current_setting('synchronous_standby_names'),
        current_setting('max_connections')::int, (SELECT count(*)::int FROM pg_stat_activity),
        floor(extract(epoch FROM clock_timestamp()) * 1000)::float8,
        to_regclass('__drizzle_migrations') IS NOT NULL, to_regclass('requests') IS NOT NULL,
        to_regclass('key_fingerprints') IS NOT NULL, to_regclass('pg_dist_node') IS NOT NULL`,
    [],
  )
  const cluster = row[12] === true ? await clusterFacts(pool) : undefined
  const isWhole = cluster?.nodes.every(({ state }) => 'version' in state) ?? true
  // Without pg_monitor only the number of standbys is visible.
  const [[connected, hidden] = []] = await pool.rows(
    `SELECT count(*) FILTER (WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum'))::int,
        count(*) FILTER (WHERE sync_state IS NULL)::int FROM pg_stat_replication`,
    [],
  )
  const lastId =
    isWhole && row[10] === true ? (await pool.rows('SELECT max(request_id) FROM requests', []))[0]?.[0] : null
  const fingerprints = row[11] === true ? await pool.rows('SELECT fingerprint FROM key_fingerprints', []) : []
  const schema = await schemaOf(pool, row[9] === true)
  return {
    version: String(row[0]),
    isReadOnly: row[1] === true,
    fsync: row[2] === true,
    fullPageWrites: row[3] === true,
    synchronousCommit: String(row[4]),
    standbys: {
      awaited: awaitedStandbys(String(row[5])),
      connected: Number(connected),
      isHidden: Number(hidden) > 0,
    },
    mostConnections: Number(row[6]),
    connections: Number(row[7]),
    clock: { at: Number(row[8]), localAt },
    schema,
    keyFingerprints: fingerprints.map(([fingerprint]) => String(fingerprint)),
    lastRequestAt: typeof lastId === 'string' ? timeOfId(lastId) : null,
    read: isWhole && schema === 'current' ? await read(storesOn(pool)) : undefined,
    cluster,
  }
}

function storesOn(pool: Pool): Stores {
  const changes = new Changes(pool, new DatabaseClock(() => performance.now(), Date.now()))
  return createStores(storeDatabase({ pool, orm: ormOn(pool), changes, now: Date.now }))
}

/** @param names a value of synchronous_standby_names, such as `a, b` or `ANY 2 (a, b, c)` */
function awaitedStandbys(names: string): number {
  if (names.trim() === '') return 0
  return Number(/^\s*(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(/i.exec(names)?.[1] ?? 1)
}

async function schemaOf(
  pool: Pool,
  hasMigrations: boolean,
): Promise<'none' | ReturnType<typeof schemaState>> {
  if (!hasMigrations) return 'none'
  const rows = await pool.rows('SELECT created_at FROM __drizzle_migrations', [])
  const applied = rows.map(([when]) => Number(when))
  return schemaState(applied, migrations)
}
