import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Driver from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { changes } from '../../drizzle/generate.ts'
import { migrations } from '../../drizzle/sqlite/migrations.ts'
import { isHashOf } from '../../src/adapters/crypto/secrets.ts'
import { type Database, openDatabase } from '../../src/adapters/sqlite/database.ts'
import { fileAt } from '../../src/adapters/sqlite/file-at.ts'
import { forget } from '../../src/adapters/sqlite/forget.ts'
import { migrate } from '../../src/adapters/sqlite/migrate.ts'
import { createOtpStore } from '../../src/adapters/sqlite/otp-store.ts'
import { storeDatabase } from '../../src/adapters/sqlite/stores.ts'
import { createSweep } from '../../src/adapters/sqlite/sweep.ts'
import { Writer } from '../../src/adapters/sqlite/writer.ts'
import type { AnyTable } from '../../src/adapters/store/dialect.ts'
import { createApps } from '../../src/adapters/store/keys.ts'
import { schema } from '../../src/adapters/store/schema.ts'
import { NoDatabase } from '../../src/adapters/store/store.ts'
import { createStores } from '../../src/adapters/store/stores.ts'
import { movedTables } from '../../src/adapters/store/transfer.ts'
import { temporaryFolder } from '../support/app.ts'
import { claimOf } from '../support/calls.ts'
import { keepAll, nobody, sqliteStores, sqliteWrites, tester } from '../support/operator.ts'
import { inProcesses } from './at-once.ts'
import { testStores } from './contract.ts'
import { testMoneyAtOnce, testMoneyStores } from './money-contract.ts'

testStores('SQLite', async ({ now, hashKey, credentials }) => {
  const database = openDatabase(':memory:')
  const stores = sqliteStores(database, now)
  return {
    otps: createOtpStore(database, isHashOf),
    ...stores,
    apps: createApps(stores.keys, hashKey, credentials),
    close: () => database.close(),
  }
})

testMoneyStores('SQLite', async (now) => {
  const database = openDatabase(':memory:')
  const work = sqliteWrites(database)
  const shared = storeDatabase(database, now)
  return {
    ...createStores(shared),
    otps: work,
    ...work,
    forget: async (subjects) =>
      (await forget(database, shared, nobody, subjects, { now: 0, actor: tester })).erased,
    close: () => database.close(),
  }
})

describe('SQLite', () => {
  let folder: ReturnType<typeof temporaryFolder>
  let file: string
  let database: Database

  beforeEach(() => {
    folder = temporaryFolder()
    file = join(folder.path, 'folder', 'otpost.db')
    database = openDatabase(file)
  })
  afterEach(async () => {
    await database.close()
    folder.remove()
  })

  const all = <Row>(statement: string) => database.orm.all<Row>(sql.raw(statement))

  testMoneyAtOnce(() => `file:${file}`)

  describe('the schema', () => {
    const declared = Object.values<AnyTable>(schema).filter(({ stores }) => stores.includes('sqlite'))

    test('is that of the declared tables, which are STRICT', async () => {
      const fromDeclarations = new Driver(':memory:')
      const { statements } = await changes('sqlite', true)
      for (const statement of statements) fromDeclarations.exec(statement)
      const structure = `SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'
        AND name <> '__drizzle_migrations' ORDER BY name`
      expect(all<object>(structure)).toEqual(fromDeclarations.prepare<[], object>(structure).all())
      fromDeclarations.close()
      const rows = all<{ name: string; strict: number }>(
        `SELECT name, strict FROM pragma_table_list
         WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`,
      )
      const names = ['__drizzle_migrations', ...declared.map(({ name }) => name)].sort()
      expect(rows).toEqual(names.map((name) => ({ name, strict: 1 })))
    })

    test.each(['sqlite', 'postgres'] as const)(
      'of %s has no change that is in no migration',
      async (store) => {
        expect((await changes(store)).statements).toEqual([])
      },
    )

    test('`otpost move` copies every table except those of one server or one store', () => {
      const others = ['guard_buckets', 'key_fingerprints', 'recipient_index', 'revision']
      const moved = movedTables.map(({ name }) => name)
      expect([...moved, ...others].sort()).toEqual(declared.map(({ name }) => name).sort())
    })

    test('every lookup by time or name in the contract has an index', () => {
      const plan = (statement: string) =>
        all<{ detail: string }>(`EXPLAIN QUERY PLAN ${statement}`)
          .map(({ detail }) => detail)
          .join('; ')
      for (const statement of [
        'SELECT 1 FROM outbox WHERE created_at <= 1',
        "SELECT 1 FROM outbox WHERE identity = 'a' ORDER BY id DESC",
        "SELECT count FROM codes_and_limits WHERE subject = 'a'",
        "SELECT subject FROM codes_and_limits WHERE subject > 'a' ORDER BY subject",
        "SELECT 1 FROM brands WHERE name_key = 'a'",
        "SELECT 1 FROM app_keys WHERE app_id = 'a'",
        'SELECT 1 FROM stats WHERE step_ms = 1 AND at >= 1',
        "SELECT 1 FROM attempts WHERE request_id = 'a' ORDER BY request_id DESC, attempt DESC",
        "SELECT request_id FROM recipient_index WHERE indexed_before = 1 AND recipient_hash = 'a'",
        'SELECT max(indexed_before) FROM recipient_index WHERE indexed_before < 1',
        "SELECT request_id FROM attempts WHERE request_id < 'a' ORDER BY request_id",
        "SELECT request_id FROM requests WHERE request_id < 'a' ORDER BY request_id",
        "SELECT request_id FROM requests WHERE request_id >= 'a' AND request_id < 'b' ORDER BY request_id DESC LIMIT 1 OFFSET 2",
        "SELECT 1 FROM requests WHERE request_id >= 'a' AND request_id < 'b' AND provider = 'p' ORDER BY request_id DESC",
        "SELECT 1 FROM attempts WHERE request_id >= 'a' AND request_id <= 'b' AND (request_id < 'b' OR attempt < 2) ORDER BY request_id DESC, attempt DESC",
        "SELECT status FROM delivery_reports WHERE key = 'a'",
        'SELECT key FROM delivery_reports WHERE at < 1',
        "SELECT 1 FROM requests LEFT JOIN delivery_reports ON key = report_key WHERE request_id = 'a'",
      ]) {
        expect({ statement, plan: plan(statement) }).toEqual({
          statement,
          plan: expect.stringMatching(/^SEARCH [^;]*$/),
        })
      }
    })

    const hash = `'${'h'.repeat(43)}'`
    const row = (table: string, values: Readonly<Record<string, string>>) =>
      `INSERT INTO ${table} (${Object.keys(values)}) VALUES (${Object.values(values)})`
    const good = {
      codes_and_limits: { subject: "'a'", name: "'minute'", count: '1', expires_at: '1' },
      brands: {
        slug: "'a'",
        display_name: "'A'",
        name_key: "'a'",
        status: "'active'",
        notify_templates: "'[]'",
        dlt_enabled: '0',
        login_id_enabled: '1',
        registrations: "'{}'",
        lang: "'en'",
        dlt_allow_list: "'[]'",
      },
      app_keys: { app_id: "'a'", key_sha256: hash, last_four: "'abcd'", created_at: '1' },
      audit: { at: '1', by: "'command'", name: "'a'", action: "'a'", target: "'a'", details: "'{}'" },
      integration_requests: {
        id: "'a'",
        created_at: '1',
        status: "'pending'",
        company_name: "'a'",
        contact_name: "'a'",
        contact_email: "'a'",
        brand_name: "'a'",
        channels: "'[]'",
      },
      outbox: {
        created_at: '1',
        channel: "'SMS'",
        recipient: "'1'",
        identity: "'1'",
        text: "'a'",
        request_id: "'a'",
      },
    } as const
    const bad: readonly (readonly [keyof typeof good, Readonly<Record<string, string>>])[] = [
      ['codes_and_limits', { count: 'NULL' }],
      ['codes_and_limits', { code_hash: "'h'" }],
      ['codes_and_limits', { count: 'NULL', code_hash: "'h'", code_id: "'i'", attempts: '0' }],
      ['codes_and_limits', { expires_at: "'soon'" }],
      ['codes_and_limits', { subject: 'NULL' }],
      ['brands', { status: "'gone'" }],
      ['brands', { dlt_enabled: '2' }],
      ['brands', { login_id_enabled: '-1' }],
      ['brands', { notify_templates: "'{}'" }],
      ['brands', { notify_templates: "'not JSON'" }],
      ['app_keys', { key_sha256: "'a plain key'" }],
      ['audit', { by: "'someone'" }],
      ['audit', { details: "'[]'" }],
      ['integration_requests', { status: "'maybe'" }],
      ['integration_requests', { channels: '\'"SMS"\'' }],
      ['outbox', { channel: "'FAX'" }],
      ['outbox', { route: "'pigeon'" }],
    ]

    const cases = bad.map(([table, wrong]) => [table, Object.entries(wrong).join(), wrong] as const)

    test.each(cases)('a row of %s is rejected with %s', (table, _, wrong) => {
      expect(() => database.orm.run(sql.raw(row(table, { ...good[table], ...wrong })))).toThrow()
      expect(all(`SELECT * FROM ${table}`)).toEqual([])
      database.orm.run(sql.raw(row(table, good[table])))
      expect(all(`SELECT * FROM ${table}`)).toHaveLength(1)
    })
  })

  describe('opening', () => {
    test('uses WAL mode, and a commit waits for the disk', () => {
      expect(all('PRAGMA journal_mode')).toEqual([{ journal_mode: 'wal' }])
      expect(all('PRAGMA synchronous')).toEqual([{ synchronous: 2 }])
      expect(all('PRAGMA foreign_keys')).toEqual([{ foreign_keys: 1 }])
    })

    test('accepts an existing database of this program', async () => {
      await sqliteStores(database).operator.change({ appId: 'shop' }, { actor: tester, now: 1 }, () => ({
        newKey: { sha256: 'k'.repeat(43), lastFour: 'kkkk' },
        entry: { action: 'app.issued', target: 'shop', details: {} },
      }))
      await database.close()
      database = openDatabase(file)
      expect(await sqliteStores(database).keys.list()).toEqual([
        {
          appId: 'shop',
          createdAt: 1,
          revokedAt: null,
          keys: [{ lastFour: 'kkkk', createdAt: 1, revokedAt: null, lastUsedAt: null, lastUsedFrom: null }],
        },
      ])
      expect(all('SELECT * FROM __drizzle_migrations')).toHaveLength(migrations.length)
    })

    test('a unit of a limit and an attempt at a code are increments of what is stored', async () => {
      const store = createOtpStore(database, isHashOf)
      const subject = ['a'] as const
      const claim = { subject, name: 'b', max: 9, windowMs: 10, counted: true }
      const code = { subject, brandSlug: 'acme', id: 'id', hash: 'hash', ttlMs: 10, provider: null }
      await store.beginSend([claim], code, 1)
      const guess = {
        claims: [],
        failureBudget: undefined,
        subject,
        brandSlug: 'acme',
        keyedCodes: ['wrong'],
      }
      // In the transaction of the steps, after they have read the rows.
      const added = 'UPDATE codes_and_limits SET count = count + 5, attempts = attempts + 5'
      await Promise.all([
        store.admit([claim], 2),
        store.guess(guess, 2),
        database.writer.write(() => void database.driver.exec(added)),
      ])
      expect(all('SELECT name, count, attempts FROM codes_and_limits ORDER BY name')).toEqual([
        { name: 'b', count: 7, attempts: null },
        { name: 'code:acme', count: null, attempts: 6 },
      ])
    })

    test('close waits for writes in progress', async () => {
      const store = createOtpStore(database, isHashOf)
      const claim = { subject: ['a'] as const, name: 'b', max: 1, windowMs: 1, counted: true }
      const writing = store.admit([claim], 1)
      await database.close()
      expect((await writing).allowed).toBe(true)
      database = openDatabase(file)
      expect(all('SELECT subject, name, count, expires_at FROM codes_and_limits')).toEqual([
        { subject: 'a', name: 'b', count: 1, expires_at: 2 },
      ])
    })

    test('rejects a file of a newer program and leaves it unchanged', () => {
      const newer = join(folder.path, 'newer.db')
      const driver = new Driver(newer)
      const next = {
        tag: '9999_next',
        when: Date.UTC(2999, 0),
        statements: ['CREATE TABLE next (id INTEGER)'],
      }
      migrate(driver, [...migrations, next])
      const before = driver.prepare('SELECT * FROM sqlite_schema').all()
      driver.close()
      expect(() => openDatabase(newer)).toThrow(/newer/)
      const after = new Driver(newer)
      expect(after.prepare('SELECT * FROM sqlite_schema').all()).toEqual(before)
      after.close()
    })

    test('leaves the file unchanged when a migration fails', () => {
      const broken = new Driver(join(folder.path, 'broken.db'))
      const [first] = migrations
      if (!first) throw new Error('there are no migrations')
      const failing = { ...first, statements: [...first.statements, 'CREATE TABLE brands (again INTEGER)'] }
      expect(() => migrate(broken, [failing])).toThrow(/brands/)
      expect(broken.prepare('SELECT * FROM sqlite_schema').all()).toEqual([])
      broken.close()
    })

    test('rejects a file that is not a database', async () => {
      const text = join(folder.path, 'text.db')
      await Bun.write(text, 'not a database, and long enough to be looked at as one. '.repeat(20))
      expect(() => openDatabase(text)).toThrow()
    })

    test.each([
      ['deleted', (path: string) => rmSync(path)],
      ['without bytes', (path: string) => truncateSync(path)],
    ])('does not replace a database that is %s, until its marker is deleted', async (_, lose) => {
      const lost = join(folder.path, `${randomUUID()}.db`)
      await openDatabase(lost).close()
      await openDatabase(lost).close()
      lose(lost)
      expect(() => openDatabase(lost)).toThrow(`delete ${lost}.created.`)
      expect(fileAt(lost)?.size ?? 0).toBe(0)
      rmSync(`${lost}.created`)
      await openDatabase(lost).close()
      expect(existsSync(`${lost}.created`)).toBe(true)
    })

    test('creates nothing where a database must exist', async () => {
      const none = join(folder.path, 'none', 'otpost.db')
      const foreign = join(folder.path, 'foreign.db')
      const driver = new Driver(foreign)
      driver.exec('CREATE TABLE theirs (id INTEGER)')
      driver.close()
      const before = readFileSync(foreign)
      for (const each of [none, foreign]) {
        expect(() => openDatabase(each, { mustExist: true })).toThrow(NoDatabase)
      }
      expect([existsSync(dirname(none)), readFileSync(foreign)]).toEqual([false, before])
      await openDatabase(file, { mustExist: true }).close()
    })

    test('several processes that open new files at once migrate each file once, and all succeed', async () => {
      const files = Array.from({ length: 25 }, (_, index) => join(folder.path, 'shared', `${index}.db`))
      const outputs = await inProcesses(
        4,
        `import { openDatabase } from './src/adapters/sqlite/database.ts'`,
        `for (const file of ${JSON.stringify(files)}) {
          const database = openDatabase(file)
          await database.check()
          await database.close()
        }`,
      )
      expect(outputs).toEqual(['', '', '', ''])
      for (const each of files) {
        const driver = new Driver(each)
        expect(driver.prepare('SELECT hash FROM __drizzle_migrations').pluck().all()).toEqual(
          migrations.map(({ tag }) => tag),
        )
        driver.close()
      }
    }, 120_000)
  })

  describe('group commit', () => {
    let driver: Driver.Database
    let writer: Writer
    /** Events of the unit of work. */
    let flushed: string[]
    const insert = (value: number) => driver.prepare('INSERT INTO numbers VALUES (?)').run(value)
    const numbers = () => driver.prepare('SELECT n FROM numbers ORDER BY n').pluck().all()

    beforeEach(() => {
      driver = new Driver(join(folder.path, 'numbers.db'), { timeout: 15 })
      driver.pragma('journal_mode = WAL')
      driver.exec('CREATE TABLE numbers (n INTEGER NOT NULL CHECK (n >= 0)) STRICT')
      flushed = []
      writer = new Writer(driver, () => void flushed.push('guard'))
      writer.attach({ reset: () => void flushed.push('reset'), flush: () => void flushed.push('flush') })
    })
    afterEach(() => void driver.close())

    test('the steps of one turn share one transaction, in order', async () => {
      const seenOutside = new Set<unknown>()
      let steps = 0
      const values = await Promise.all(
        [1, 2, 3].map((value) =>
          writer.write(() => {
            expect(driver.inTransaction).toBe(true)
            steps++
            insert(value)
            const outside = new Driver(driver.name, { readonly: true })
            // Other connections see nothing of it before the commit.
            seenOutside.add(outside.prepare('SELECT count(*) FROM numbers').pluck().get())
            outside.close()
            return steps
          }),
        ),
      )
      expect(values).toEqual([1, 2, 3])
      expect([...seenOutside]).toEqual([0])
      expect(numbers()).toEqual([1, 2, 3])
    })

    test('the unit is written once, before the commit', async () => {
      await Promise.all([writer.write(() => void insert(1)), writer.write(() => void insert(2))])
      expect(flushed).toEqual(['guard', 'reset', 'flush'])
    })

    test('the unit discards rolled-back changes, and is written step by step if one fails', async () => {
      const failing = writer.write(() => insert(-1))
      const good = writer.write(() => void insert(2))
      expect(await failing.catch(() => 'failed')).toBe('failed')
      await good
      expect(flushed).toEqual(['guard', 'reset', 'reset', 'guard', 'reset', 'reset', 'flush'])
    })

    test('a step resolves after the commit', async () => {
      await writer.write(() => void insert(1))
      expect(driver.inTransaction).toBe(false)
      const outside = new Driver(driver.name, { readonly: true })
      expect(outside.prepare('SELECT n FROM numbers').pluck().all()).toEqual([1])
      outside.close()
    })

    test('a step that throws is rolled back and fails alone', async () => {
      const error = new Error('not this one')
      const results = await Promise.allSettled([
        writer.write(() => void insert(1)),
        writer.write(() => {
          insert(2)
          throw error
        }),
        writer.write(() => {
          insert(3)
          insert(-3)
        }),
        writer.write(() => void insert(4)),
      ])
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
      expect(results[1]).toMatchObject({ reason: error })
      expect(numbers()).toEqual([1, 4])
    })

    test('after a step that throws, the other steps wait for a lock that another connection took meanwhile', async () => {
      const other = new Driver(driver.name)
      let guards = 0
      writer = new Writer(driver, () => {
        guards++
        if (guards === 2) other.exec('BEGIN IMMEDIATE')
        if (guards === 3) other.exec('COMMIT')
      })
      const results = await Promise.allSettled([
        writer.write(() => void insert(1)),
        writer.write(() => void insert(-1)),
        writer.write(() => void insert(2)),
      ])
      other.close()
      expect(guards).toBe(3)
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(numbers()).toEqual([1, 2])
    })

    test('an asynchronous step is rejected and rolled back', async () => {
      const asynchronous = (async () => {
        insert(1)
      }) as unknown as () => undefined
      const results = await Promise.allSettled([
        writer.write(asynchronous),
        writer.write(() => void insert(2)),
      ])
      expect(results[0]).toMatchObject({ status: 'rejected', reason: expect.any(TypeError) })
      expect(results[1]).toMatchObject({ status: 'fulfilled' })
      expect(numbers()).toEqual([2])
    })

    test('a step that loses the transaction fails all of its steps, and later ones succeed', async () => {
      const results = await Promise.allSettled([
        writer.write(() => void insert(1)),
        writer.write(() => {
          driver.exec('ROLLBACK')
          throw new Error('the disk is full')
        }),
        writer.write(() => void insert(3)),
      ])
      expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
      expect(numbers()).toEqual([])
      await writer.write(() => void insert(4))
      expect(numbers()).toEqual([4])
    })

    test('a lock of another connection delays writes and does not block the event loop', async () => {
      const store = createOtpStore(database, isHashOf)
      const claim = claimOf({ max: 1 })
      const other = new Driver(file)
      other.exec('BEGIN IMMEDIATE')
      let settled = 0
      const writing = ['one', 'two'].map((name) => store.admit([{ ...claim, name }], 1).then(() => settled++))
      // The event loop runs while the writes wait, and reads are answered meanwhile.
      const before = performance.now()
      for (let turn = 0; turn < 100; turn++) {
        await new Promise((resolve) => setImmediate(resolve))
        expect(all(`SELECT ${turn} AS turn`)).toEqual([{ turn }])
      }
      expect(settled).toBe(0)
      expect(performance.now() - before).toBeLessThan(4000)
      other.exec('COMMIT')
      other.close()
      await Promise.all(writing)
      expect(all('SELECT name, count FROM codes_and_limits')).toEqual([
        { name: 'one', count: 1 },
        { name: 'two', count: 1 },
      ])
    })

    test('idle resolves when no writes are waiting', async () => {
      await writer.idle()
      let written = false
      const writing = writer
        .write(() => void insert(1))
        .then(() => {
          written = true
        })
      await writer.idle()
      expect(numbers()).toEqual([1])
      await writing
      expect(written).toBe(true)
    })
  })

  describe('the unit of a transaction', () => {
    const rows = () => all('SELECT name, count, attempts, expires_at FROM codes_and_limits ORDER BY name')

    test('a counter changed by another connection is incremented from its current value', async () => {
      const store = createOtpStore(database, isHashOf)
      await store.admit([claimOf()], 0)
      const other = new Driver(file)
      other.exec('UPDATE codes_and_limits SET count = 2')
      other.close()
      expect((await store.admit([claimOf()], 1)).allowed).toBe(true)
      expect((await store.admit([claimOf()], 1)).allowed).toBe(false)
      expect(rows()).toEqual([{ name: 'minute', count: 3, attempts: null, expires_at: 60_000 }])
    })

    test('each code and each limit is a row with its own expiry, and attempts are counted in their column', async () => {
      const store = createOtpStore(database, isHashOf)
      const { subject } = claimOf()
      const code = { subject, brandSlug: 'acme', id: 'i', hash: 'h', ttlMs: 300_000, provider: null }
      await store.beginSend([claimOf(), claimOf({ name: 'hour', windowMs: 3_600_000 })], code, 1)
      const ofLimits = [
        { name: 'hour', count: 1, attempts: null, expires_at: 3_600_001 },
        { name: 'minute', count: 1, attempts: null, expires_at: 60_001 },
      ]
      const ofCode = { name: 'code:acme', count: null, attempts: 0, expires_at: 300_001 }
      expect(rows()).toEqual([ofCode, ...ofLimits])
      const guess = { ...code, claims: [], failureBudget: undefined, keyedCodes: ['wrong'] }
      for (const _ of [1, 2]) await store.guess(guess, 2)
      expect(rows()).toEqual([{ ...ofCode, attempts: 2 }, ...ofLimits])
    })

    test('changes of a rolled-back transaction are discarded', async () => {
      const store = createOtpStore(database, isHashOf)
      await store.admit([claimOf()], 0)
      database.orm.run(
        sql.raw(`CREATE TEMP TRIGGER full BEFORE UPDATE ON main.codes_and_limits
        BEGIN SELECT RAISE(ROLLBACK, 'the disk is full'); END`),
      )
      expect(await store.admit([claimOf()], 1).catch((error: Error) => error.message)).toBe(
        'the disk is full',
      )
      database.orm.run(sql.raw('DROP TRIGGER full'))
      for (const _ of [2, 3]) expect((await store.admit([claimOf()], 2)).allowed).toBe(true)
      expect((await store.admit([claimOf()], 2)).allowed).toBe(false)
    })

    test('a transaction accepts any number of subjects', async () => {
      const store = createOtpStore(database, isHashOf)
      const subjects = Array.from({ length: 2500 }, (_, index) => `subject ${index}`)
      const admitted = async () => {
        const decisions = await Promise.all(
          subjects.map((subject) => store.admit([claimOf({ subject: [subject], max: 1 })], 0)),
        )
        return decisions.filter(({ allowed }) => allowed).length
      }
      expect(await admitted()).toBe(2500)
      expect(await admitted()).toBe(0)
      expect(all('SELECT count(*) AS n FROM codes_and_limits')).toEqual([{ n: 2500 }])
    })
  })

  describe('the expiry cleanup', () => {
    const now = 1_000_000_000
    const day = 86_400_000
    const count = (table: string) => all<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)[0]?.n

    function fill(rows: number, endsAt: number, label: string): void {
      const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})`
      database.orm.run(
        sql.raw(
          `${numbers} INSERT INTO codes_and_limits (subject, name, count, expires_at)
            SELECT i || ' ${label}', 'minute', 1, ${endsAt} FROM n`,
        ),
      )
      database.orm.run(
        sql.raw(`${numbers} INSERT INTO outbox (created_at, channel, recipient, identity, text, request_id)
          SELECT ${endsAt - day}, 'SMS', '1', '1', '${label}', 'r' FROM n`),
      )
    }

    test('deletes what has expired at this instant, and nothing else', async () => {
      fill(2, now, 'over')
      fill(3, now + 1, 'alive')
      expect(await createSweep(database)(now, keepAll)).toEqual({ isRound: true, isBusy: false })
      expect(all("SELECT 1 FROM codes_and_limits WHERE subject LIKE '% alive'")).toHaveLength(3)
      expect(['codes_and_limits', 'outbox'].map(count)).toEqual([3, 3])
      expect(all("SELECT 1 FROM outbox WHERE text = 'alive'")).toHaveLength(3)
    })

    test('runs in small steps, reports when it is done, and starts again', async () => {
      fill(2300, now, 'over')
      fill(5, now + 1, 'alive')
      const sweep = createSweep(database)
      let steps = 0
      for (let isRound = false; !isRound; steps++) {
        const before = count('codes_and_limits') ?? 0
        isRound = (await sweep(now, keepAll)).isRound
        expect(before - (count('codes_and_limits') ?? 0)).toBeWithin(0, 501)
      }
      expect(steps).toBeGreaterThan(4)
      expect(count('codes_and_limits')).toBe(5)
      fill(3, now, 'over')
      while (!(await sweep(now, keepAll)).isRound);
      expect(['codes_and_limits', 'outbox'].map(count)).toEqual([5, 5])
    })

    test('deletes audit entries, requests, console sessions, links and statistics after their retention time', async () => {
      const run = (statement: string) => database.orm.run(sql.raw(statement))
      const retainAfter = { ...keepAll, audit: now - 1, requests: now - 2 }
      for (const at of [now - 2, now - 1]) {
        run(
          `INSERT INTO audit (at, by, name, action, target, details) VALUES (${at}, 'command', 'a', 'a', 'a', '{}')`,
        )
      }
      for (const [id, createdAt, decidedAt] of [
        ['old', 1, now - 3],
        ['young', 1, now - 2],
        ['waiting', now - 2, 'NULL'],
        ['forgotten', now - 3, 'NULL'],
      ] as const) {
        run(`INSERT INTO integration_requests
          (id, created_at, status, company_name, contact_name, contact_email, brand_name, channels, decided_at)
          VALUES ('${id}', ${createdAt}, 'pending', 'a', 'a', 'a', 'a', '[]', ${decidedAt})`)
      }
      for (const endsAt of [now, now + 1]) {
        run(
          `INSERT INTO console_sessions (token_sha256, started_at, last_seen_at, expires_at, by, confirmed_at, client_ip, device)
            VALUES ('${endsAt}', 1, 1, ${endsAt}, 'link', 1, '', '')`,
        )
        run(`INSERT INTO console_links (token_sha256, expires_at) VALUES ('${endsAt}', ${endsAt})`)
      }
      const minute = 60_000
      for (const [stepMs, retentionMs] of [
        [minute, 4 * day],
        [60 * minute, 98 * day],
        [day, 400 * day],
      ] as const) {
        for (const at of [now - retentionMs - 1, now - retentionMs]) {
          run(`INSERT INTO stats VALUES (${stepMs}, ${at}, 'send', 'SMS', 'a', 'a', 'ok', '', 1)`)
        }
      }
      const sweep = createSweep(database)
      while (!(await sweep(now, retainAfter)).isRound);
      expect(['audit', 'console_sessions', 'console_links', 'stats'].map(count)).toEqual([1, 1, 1, 3])
      expect(all('SELECT id FROM integration_requests ORDER BY id')).toEqual([
        { id: 'waiting' },
        { id: 'young' },
      ])
    })

    test('returns free pages to the disk', async () => {
      fill(20_000, now, 'over')
      const pages = () => all<{ page_count: number }>('PRAGMA page_count')[0]?.page_count ?? 0
      const before = pages()
      const sweep = createSweep(database)
      for (let isBusy = true; isBusy; ) ({ isBusy } = await sweep(now, keepAll))
      expect(count('codes_and_limits')).toBe(0)
      expect(pages()).toBeLessThan(before / 2)
    })
  })
})
