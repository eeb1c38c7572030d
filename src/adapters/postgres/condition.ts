import { migrations } from '../../../drizzle/postgres/migrations.ts'
import type { ServerDatabaseFacts } from '../../domain/doctor.ts'
import { timeOfId } from '../../storage/journal-entry.ts'
import { openPool, type Pool, type PostgresTarget } from './connection.ts'

/** Looks at a database and its server; changes nothing in it. */
export async function conditionOf(target: PostgresTarget): Promise<ServerDatabaseFacts> {
  const pool = openPool({ ...target, poolSize: 1 }, () => {})
  try {
    return { kind: 'answered', ...(await factsOf(pool)), poolSize: target.poolSize }
  } catch (error) {
    return { kind: 'silent', reason: error instanceof Error ? error.message : String(error) }
  } finally {
    await pool.close()
  }
}

async function factsOf(pool: Pool) {
  const askedAt = Date.now()
  const [row = []] = await pool.rows(
    `SELECT current_setting('server_version'), pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', current_setting('fsync') = 'on',
        current_setting('full_page_writes') = 'on', current_setting('synchronous_commit'),
        (SELECT count(*)::int FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),
        coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
        coalesce(host(inet_server_addr()) = host(inet_client_addr()), true),
        current_setting('max_connections')::int, (SELECT count(*)::int FROM pg_stat_activity),
        floor(extract(epoch FROM clock_timestamp()) * 1000)::float8,
        to_regclass('__drizzle_migrations') IS NOT NULL, to_regclass('stories') IS NOT NULL`,
    [],
  )
  const lastId =
    row[12] === true ? (await pool.rows('SELECT max(request_id) FROM stories', []))[0]?.[0] : null
  return {
    version: String(row[0]),
    isReadOnly: row[1] === true,
    fsync: row[2] === true,
    fullPageWrites: row[3] === true,
    synchronousCommit: String(row[4]),
    synchronousStandbys: Number(row[5]),
    hasTls: row[6] === true,
    isLocal: row[7] === true,
    mostConnections: Number(row[8]),
    connections: Number(row[9]),
    clock: { at: Number(row[10]), askedAt },
    schema: await schemaOf(pool, row[11] === true),
    lastRequestAt: typeof lastId === 'string' ? timeOfId(lastId) : null,
  }
}

async function schemaOf(pool: Pool, hasBooks: boolean): Promise<'none' | 'newer' | 'current' | 'older'> {
  if (!hasBooks) return 'none'
  const rows = await pool.rows('SELECT created_at FROM __drizzle_migrations', [])
  const applied = rows.map(([when]) => Number(when))
  const known = migrations.map(({ when }) => when)
  if (applied.some((when) => !known.includes(when))) return 'newer'
  return known.every((when) => applied.includes(when)) ? 'current' : 'older'
}
