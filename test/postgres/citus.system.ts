import { describe, expect, test } from 'bun:test'
import { migrations } from '../../drizzle/postgres/migrations.ts'
import { distributedTables, isDistributed } from '../../src/adapters/postgres/distribution.ts'
import { migrate } from '../../src/adapters/postgres/migrate.ts'
import { openPool, type Pool } from '../../src/adapters/postgres/pool.ts'
import { targetOf } from '../store/postgres-database.ts'
import { emptyDatabase, givenDatabase, hasCitus, withoutPostgres } from '../support/postgres.ts'
import { otpost } from '../support/server.ts'

const isOnCitus = givenDatabase !== undefined && (await hasCitus(givenDatabase))

if (!isOnCitus) console.warn('Citus: skipped, since DATABASE_URL does not name a coordinator')

const env = { SECRET_KEY: 'the-secret-of-the-tests-of-32-bytes-or-more' }

interface Scene {
  readonly url: string
  readonly pool: Pool
  /** The first column of each row. */
  column(text: string): Promise<unknown[]>
  distribute(): ReturnType<typeof otpost>
  /** The doctor's findings about Citus. */
  findings(): Promise<readonly string[]>
}

async function inDatabase(work: (scene: Scene) => Promise<void>): Promise<void> {
  const { url, remove } = await emptyDatabase()
  const settings = { ...env, DATABASE_URL: url }
  const pool = openPool(targetOf(url), () => {})
  try {
    await work({
      url,
      pool,
      column: async (text) => (await pool.rows(text, [])).map(([first]) => first),
      distribute: () => otpost(['migrate', '--distribute', 'citus'], settings),
      findings: async () => {
        const { stdout } = await otpost(['doctor', '--json'], settings)
        const all: readonly { level: string; what: string; message: string }[] = JSON.parse(stdout)
        return all
          .filter(({ what }) => what === 'Citus' || what === 'distributed tables')
          .map(({ level, message }) => `${level}: ${message}`)
      },
    })
  } finally {
    await pool.close()
    await remove()
  }
}

const ourTables = 'SELECT tablename FROM pg_tables WHERE schemaname = current_schema()'

describe('otpost migrate --distribute', () => {
  test.skipIf(isOnCitus || withoutPostgres !== undefined)('changes nothing without Citus', () =>
    inDatabase(async ({ pool, column, distribute, findings }) => {
      const { code, stdout, stderr } = await distribute()
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toContain('does not have the extension Citus.')
      expect(stderr).toContain('`CREATE EXTENSION citus`. Nothing was changed.')
      expect(await column(ourTables)).toEqual([])
      expect(await isDistributed(pool)).toBe(false)
      expect(await findings()).toEqual([])
    }),
  )

  test('rejects an SQLite file and other engines', async () => {
    const file = await otpost(['migrate', '--distribute', 'citus'], {
      DATABASE_URL: 'file:/nowhere/otpost.db',
    })
    expect(file.code).toBe(1)
    expect(file.stderr).toContain('/nowhere/otpost.db is an SQLite file, which cannot be distributed.')
    const engine = await otpost(['migrate', '--distribute', 'yugabyte'], env)
    expect(engine.code).toBe(2)
    expect(engine.stderr).toContain('Allowed choices are citus.')
  })
})

const row = `INSERT INTO codes_and_limits (subject, name, count, expires_at)
  SELECT 's' || n, 'minute', n, 9000000000000 FROM generate_series(1, 200) AS n`

describe.skipIf(!isOnCitus)('Citus', () => {
  test('rejects the URL of a worker', () =>
    inDatabase(async ({ pool, url }) => {
      const workers = await pool.rows('SELECT node_name, node_port FROM citus_get_active_worker_nodes()', [])
      const [[host, port] = []] = workers
      const worker = new URL(url)
      worker.host = `${host}:${port}`
      const { code, stderr } = await otpost(['migrate'], { ...env, DATABASE_URL: worker.href })
      expect([code, stderr]).toEqual([
        1,
        'otpost: DATABASE_URL names a worker of Citus. Set it to the coordinator.\n',
      ])
    }))

  test('moves the rows that exist, and leaves no copy on the coordinator', () =>
    inDatabase(async ({ pool, column, distribute, findings }) => {
      await migrate(pool)
      await pool.rows(row, [])
      expect(await isDistributed(pool)).toBe(false)
      expect(await findings()).toEqual([
        'warn: The database has the extension Citus, but no table is distributed.',
      ])
      const first = await distribute()
      expect([first.code, first.stderr]).toEqual([0, ''])
      expect(first.stdout).toStartWith(
        'codes_and_limits: distributed by subject.\nrequests: distributed by request_id.\n',
      )
      expect(first.stdout).toContain('attempts: distributed by request_id, beside requests.\n')
      expect(await isDistributed(pool)).toBe(true)
      expect(await column('SELECT count(*) FROM codes_and_limits')).toEqual([200])
      expect(await column("SELECT pg_relation_size('codes_and_limits')")).toEqual([0])
      const again = await distribute()
      expect([again.code, again.stderr]).toEqual([0, ''])
      expect(again.stdout.match(/already distributed/g)).toHaveLength(distributedTables.length)
      expect(await findings()).toEqual([
        expect.stringMatching(/^ok: \d+ nodes, Citus \d/),
        expect.stringMatching(/^ok: 8 on \d nodes?\.$/),
      ])
    }))

  test('continues after a crash between the tables, and inside one', () =>
    inDatabase(async ({ pool, column, distribute, findings }) => {
      await migrate(pool)
      await pool.rows(row, [])
      await pool.rows(
        "SELECT create_distributed_table('codes_and_limits', 'subject', colocate_with => 'none')",
        [],
      )
      expect(await findings()).toEqual([
        expect.stringMatching(/^ok: /),
        'warn: Not distributed: requests, attempts, notify_orders, notify_jobs, idempotency_keys, delivery_reports, stats.',
        'warn: The coordinator still has rows from before the distribution, which no query finds: codes_and_limits.',
      ])
      const { code, stdout } = await distribute()
      expect(code).toBe(0)
      expect(stdout).toContain('codes_and_limits: already distributed by subject.\nrequests: distributed by')
      expect(await column('SELECT count(*) FROM codes_and_limits')).toEqual([200])
      expect(await column("SELECT pg_relation_size('codes_and_limits')")).toEqual([0])
    }))

  test('rejects tables that are distributed in another way, and changes nothing', () =>
    inDatabase(async ({ pool, column, distribute, findings }) => {
      await migrate(pool)
      await pool.rows("SELECT create_distributed_table('stats', 'at', colocate_with => 'none')", [])
      await pool.rows(
        "SELECT create_distributed_table('attempts', 'request_id', colocate_with => 'none')",
        [],
      )
      const { code, stdout, stderr } = await distribute()
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toContain('stats is not distributed by part.')
      expect(stderr).toContain(
        "attempts is not distributed by request_id beside requests.\n    → Stop all servers. On the coordinator: `SELECT undistribute_table('attempts')`",
      )
      expect(await column('SELECT count(*) FROM pg_dist_partition')).toEqual([2])
      expect(await findings()).toContain('fail: stats is not distributed by part.')
    }))

  test('migrates a distributed database, and distributes a table that is new', () =>
    inDatabase(async ({ pool, column, distribute, findings }) => {
      await distribute()
      await pool.rows(row, [])
      const when = Math.max(...migrations.map((migration) => migration.when)) + 1
      const statements = [
        'ALTER TABLE codes_and_limits ADD COLUMN extra integer NOT NULL DEFAULT 1',
        'UPDATE codes_and_limits SET extra = 2',
        'ALTER TABLE codes_and_limits ADD CONSTRAINT extra_check CHECK (extra = 2)',
        'CREATE INDEX attempts_by_app ON attempts (app)',
        'CREATE TABLE newer (id text PRIMARY KEY)',
        'CREATE TABLE stats_of_newer (LIKE stats INCLUDING ALL)',
        'DROP TABLE stats',
        'ALTER TABLE stats_of_newer RENAME TO stats',
      ]
      await migrate(pool, [...migrations, { tag: 'newer', when, statements }])
      expect(await column('SELECT sum(extra) FROM codes_and_limits')).toEqual([400])
      expect(await findings()).toContain('warn: Not distributed: stats.')
      await pool.rows("DELETE FROM __drizzle_migrations WHERE hash = 'newer'", [])
      expect((await distribute()).stdout).toContain(
        'delivery_reports: already distributed by key.\nstats: distributed by part.',
      )
    }))
})
