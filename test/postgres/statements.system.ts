import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getTableName, is } from 'drizzle-orm'
import { PgTable } from 'drizzle-orm/pg-core'
import { migrations } from '../../drizzle/postgres/migrations.ts'
import { tables as schema } from '../../src/adapters/postgres/schema.ts'
import { movedTables } from '../../src/adapters/store/transfer.ts'
import { temporaryFolder } from '../support/folder.ts'
import {
  freshDatabase,
  queryOnce,
  sharedSettings,
  startPostgres,
  withoutOwnPostgres,
} from '../support/postgres.ts'
import { otpost } from '../support/server.ts'
import { parsed, rules, type Statement, tablesOf } from './statement-rules.ts'

// Collects the statements of the adapter from the log of a server, and checks each against what Citus, YugabyteDB and
// CockroachDB refuse.

// It runs other tests, on the same two cores as more of them.
setDefaultTimeout(600_000)

if (withoutOwnPostgres) console.warn(withoutOwnPostgres)

const root = join(import.meta.dir, '../..')

/** They reach every line of the adapter with a statement; the test below names lines that they miss. */
const testsOfStatements = [
  'test/store/postgres.system.ts',
  'test/store/event-log.test.ts',
  'test/model/state.system.ts',
  'test/http/queue.test.ts',
  'test/http/idempotency.test.ts',
  'test/http/events.test.ts',
  'test/http/apps.test.ts',
  'test/http/outbox-page.test.ts',
  'test/http/rejections.test.ts',
  'test/http/destinations.test.ts',
  'test/http/review-numbers.test.ts',
  'test/http/relay-codes.test.ts',
  'test/http/manage.test.ts',
  'test/http/configuration.test.ts',
  'test/http/failover.test.ts',
  'test/http/guard.test.ts',
  'test/http/health.test.ts',
  'test/http/health-page.test.ts',
  'test/http/incidents.test.ts',
  'test/http/live.test.ts',
  'test/http/message-status.test.ts',
  'test/http/ladder.test.ts',
]

/** Declarations; run by `otpost move` and `otpost doctor`, whose lines are not counted; the last two are for Citus alone. */
const uncountedFiles = [
  'postgres/import.ts',
  'postgres/condition.ts',
  'store/transfer.ts',
  'store/dialect.ts',
  'store/schema.ts',
  'postgres/distribution.ts',
  'postgres/cluster.ts',
]

interface Exception {
  readonly rule: string
  readonly statement: RegExp
  readonly reason: string
}

const exceptions: readonly Exception[] = [
  {
    rule: 'row locks without the key of a distributed table',
    statement: /^otpost_lock_rows /,
    reason: 'of a batch of several steps; on Citus a transaction has one step, and otpost_lock_key',
  },
  {
    rule: 'advisory locks',
    statement: /^otpost_lock_hashes /,
    reason: 'of nodes with several secret keys; docs/engineering/distributed.md names the versions that can',
  },
  {
    rule: 'advisory locks',
    statement: /SELECT pg_advisory_xact_lock\(\$1\)$/,
    reason: 'of migrations; without it, `otpost migrate` runs before any node starts',
  },
  {
    rule: 'table locks',
    statement: /LOCK TABLE codes_and_limits,/,
    reason: 'of `otpost move`, which these two engines cannot run',
  },
  {
    rule: 'subqueries of many rows of a distributed table',
    statement: /IN \(SELECT "delivery_reports"."key" FROM "delivery_reports" WHERE /,
    reason: 'of the delivery log with a filter by outcome, in a window of the log',
  },
]

/** Statements that the tests send over connections of the adapter. */
const ofTests = /^(?:TRUNCATE|DO \$\$ DECLARE name text;) /

interface Logged {
  readonly name: string
  readonly text: string
}

describe('each rule', () => {
  for (const { name, bad, good, isBroken } of rules) {
    test(`${name}: finds its bad examples and no good one`, () => {
      expect(bad.filter((text) => !isBroken(parsed(text)))).toEqual([])
      expect(good.filter((text) => isBroken(parsed(text)))).toEqual([])
    })
  }
})

describe.skipIf(withoutOwnPostgres !== undefined)('the statements that the adapter sent to a server', () => {
  let ending: AsyncDisposableStack
  let logged: readonly (Logged & { readonly statement: Statement })[]
  let coverage = ''
  const ofMigrations = new Set(migrations.flatMap(({ statements }) => statements.map((text) => text.trim())))

  beforeAll(async () => {
    ending = new AsyncDisposableStack()
    const folder = temporaryFolder()
    ending.defer(folder.remove)
    const server = ending.use(
      await startPostgres({
        ...sharedSettings,
        logging_collector: 'on',
        log_destination: 'jsonlog',
        log_statement: 'all',
        log_parameter_max_length: '0',
        log_rotation_size: '0',
      }),
    )
    const waiting = [...testsOfStatements]
    const runNext = async (): Promise<void> => {
      const path = waiting.pop()
      if (path === undefined) return
      const coverageFolder = join(folder.path, String(waiting.length))
      const child = Bun.spawn(
        [
          ...[process.execPath, 'test', '--timeout=600000', `./${path}`],
          ...['--coverage', '--coverage-reporter=lcov', `--coverage-dir=${coverageFolder}`],
        ],
        {
          cwd: root,
          env: { ...process.env, TEST_STORE: 'postgres', TEST_POSTGRES_URL: server.url },
          stdio: ['ignore', 'ignore', 'ignore'],
        },
      )
      // They need not pass here: they run on their own, too.
      await child.exited
      coverage += readFileSync(join(coverageFolder, 'lcov.info'), 'utf8')
      await runNext()
    }
    await Promise.all(Array.from({ length: 6 }, runNext))

    const file = `file:${folder.path}/otpost.db`
    const secret = { SECRET_KEY: 'of the test and 32 bytes long or more' }
    const url = await server.database()
    await otpost(['migrate'], { ...secret, DATABASE_URL: file })
    await otpost(['brand', 'put', 'acme', '--name', 'Acme'], { ...secret, DATABASE_URL: file })
    const move = await otpost(['move', '--from', file, '--keep'], { ...secret, DATABASE_URL: url })
    expect(move).toMatchObject({ code: 0 })
    await otpost(['doctor', '--json'], { ...secret, DATABASE_URL: url, PORT: '0' })

    const found = new Map<string, Logged>()
    const logs = join(server.dataFolder, 'log')
    for (const name of readdirSync(logs).filter((each) => each.endsWith('.json'))) {
      for (const line of readFileSync(join(logs, name), 'utf8').split('\n')) {
        if (!line.includes('"application_name":"otpost"')) continue
        const { message } = JSON.parse(line) as { readonly message: string }
        const [, given = '', text = ''] = /^(?:statement|execute (\S+)): ([\s\S]*)$/.exec(message) ?? []
        if (text !== '' && !ofTests.test(text)) found.set(text, { name: given, text })
      }
    }
    logged = Array.from(found.values(), (each) => ({ ...each, statement: parsed(each.text) }))
  })
  afterAll(() => ending.disposeAsync())

  test('break no rule, except where this file says why', () => {
    const used = new Set<Exception>()
    const found: string[] = []
    for (const { name, text, statement } of logged) {
      if (ofMigrations.has(text.trim())) continue
      for (const { name: rule } of rules.filter(({ isBroken }) => isBroken(statement))) {
        const known = exceptions.find((each) => each.rule === rule && each.statement.test(`${name} ${text}`))
        if (known) used.add(known)
        else found.push(`${rule}: ${name} ${text}`)
      }
    }
    expect(found).toEqual([])
    expect(exceptions.filter((each) => !used.has(each))).toEqual([])
  })

  test('come from every line of the adapter that has a statement', () => {
    const hasStatement = /\bsql`|\b(?:orm|inside)\b|\.(?:from|where|returning|onConflict\w+|execute|rows)\(/
    const counts = new Map<string, Map<number, number>>()
    for (const record of coverage.split('end_of_record')) {
      const [, path = ''] = /SF:(?:.*\/)?src\/adapters\/((?:store|postgres)\/.*)/.exec(record) ?? []
      const lines = counts.getOrInsertComputed(path, () => new Map<number, number>())
      for (const [, line, count] of record.matchAll(/^DA:(\d+),(\d+)$/gm)) {
        lines.set(Number(line), (lines.get(Number(line)) ?? 0) + Number(count))
      }
    }
    const missed: string[] = []
    for (const path of new Bun.Glob('{store,postgres}/*.ts').scanSync(join(root, 'src/adapters'))) {
      if (path === 'postgres/schema.ts' || uncountedFiles.includes(path)) continue
      const lines = readFileSync(join(root, 'src/adapters', path), 'utf8').split('\n')
      const ofFile = counts.get(path)
      for (const [index, line] of lines.entries()) {
        const isMissed = ofFile === undefined || ofFile.get(index + 1) === 0
        if (isMissed && hasStatement.test(line)) missed.push(`${path}:${index + 1} ${line.trim()}`)
      }
    }
    expect(missed).toEqual([])
  })

  test('include every named one, and those of commands', () => {
    const names = new Set(logged.map(({ name }) => name))
    const declared = readdirSync(join(root, 'src/adapters/postgres')).flatMap((file) => [
      ...readFileSync(join(root, 'src/adapters/postgres', file), 'utf8').matchAll(/'(otpost_[a-z_]+)'/g),
    ])
    expect(declared.length).toBeGreaterThan(10)
    expect(declared.map(([, name = '']) => name).filter((name) => !names.has(name))).toEqual([])
    const texts = new Set(logged.map(({ text }) => text))
    expect(texts).toContain(`ANALYZE ${movedTables.map(({ name }) => name).join()}`)
  })

  test('read and fill every table', () => {
    const all = Object.values(schema).flatMap((each) => (is(each, PgTable) ? [getTableName(each)] : []))
    const own = logged.filter(({ text }) => !ofMigrations.has(text.trim()))
    const missing = (kind: string, among = all) => {
      const reached = new Set(own.flatMap(({ statement }) => tablesOf(statement, kind)))
      return among.filter((table) => !reached.has(table))
    }
    // Its rows are read by the statement that writes them.
    expect(missing('SelectStmt')).toEqual(['leases'])
    // A migration inserts its only row.
    expect(missing('InsertStmt')).toEqual(['revision'])
  })
})

describe.skipIf(withoutOwnPostgres !== undefined)('migrations', () => {
  const isDropping = (text: string) => /^DROP (?:FUNCTION|TRIGGER)/m.test(text)
  const last = migrations.findLastIndex(({ statements }) => statements.some(isDropping))

  test('break no rule after the one that drops functions and triggers', () => {
    const later = migrations.slice(last + 1).flatMap(({ statements }) => statements)
    expect(later.length).toBeGreaterThan(20)
    const broken = later.filter((text) => rules.some(({ isBroken }) => isBroken(parsed(text))))
    expect(broken).toEqual([])
  })

  test('leave no function, trigger or rule in the database', async () => {
    const { url, remove } = await freshDatabase()
    const ofSchema = "'public'::regnamespace"
    expect(
      await queryOnce(
        url,
        `SELECT proname AS name FROM pg_proc WHERE pronamespace = ${ofSchema}
         UNION ALL SELECT tgname FROM pg_trigger
         UNION ALL SELECT rulename FROM pg_rewrite JOIN pg_class ON pg_class.oid = ev_class WHERE relnamespace = ${ofSchema}`,
      ),
    ).toEqual([])
    await remove()
  })
})
