import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import {
  DatabaseUnavailable,
  openPool,
  type Pool,
  type PostgresTarget,
  StatementError,
} from '../../src/adapters/postgres/pool.ts'
import { ReconnectBackoff } from '../../src/adapters/postgres/reconnect-backoff.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startPgBouncer, withoutPgBouncer } from '../support/pgbouncer.ts'
import { type PostgresServer, startPostgres, withoutOwnPostgres } from '../support/postgres.ts'
import { certificates, offerTls } from '../support/postgres-tls.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

// Its own PostgreSQL server, because tests kill it. if (withoutOwnPostgres) console.warn(withoutOwnPostgres)

/** Longer than any test: a query with this limit must end for another reason. */
const foreverMs = 600_000

/** A statement that runs until it is cancelled. */
const endless = { name: 'endless', text: 'SELECT pg_sleep(600)' }

describe('the reconnect backoff', () => {
  test('lets all callers connect while connections succeed', () => {
    const backoff = new ReconnectBackoff(() => 0.5)
    backoff.enter()
    backoff.enter()
    expect(backoff.isShut(0)).toBe(false)
    expect(backoff.succeeded()).toBe(false)
    expect(backoff.isShut(0)).toBe(false)
  })

  test('after a failure lets one caller try after a pause, and all callers after a success', () => {
    const backoff = new ReconnectBackoff(() => 1)
    backoff.enter()
    backoff.failed(1000)
    expect(backoff.isShut(1099)).toBe(true)
    expect(backoff.isShut(1100)).toBe(false)
    backoff.enter()
    expect(backoff.isShut(5000)).toBe(true)
    expect(backoff.succeeded()).toBe(true)
    expect(backoff.isShut(5000)).toBe(false)
  })

  test.each([
    [0, [50, 100, 200, 400, 800, 1000, 1000]],
    [1, [100, 200, 400, 800, 1600, 2000, 2000]],
  ])('pauses longer after each failure, up to a maximum, with random value %p', (chance, pauses) => {
    const backoff = new ReconnectBackoff(() => chance)
    let now = 0
    for (const pauseMs of pauses) {
      backoff.enter()
      backoff.failed(now)
      expect(backoff.isShut(now + pauseMs - 1)).toBe(true)
      now += pauseMs
      expect(backoff.isShut(now)).toBe(false)
    }
  })

  test('counts simultaneous failures as one', () => {
    const backoff = new ReconnectBackoff(() => 1)
    for (let attempt = 0; attempt < 5; attempt++) backoff.enter()
    for (let attempt = 0; attempt < 5; attempt++) backoff.failed(attempt)
    expect(backoff.isShut(100)).toBe(false)
  })
})

describe.skipIf(withoutOwnPostgres !== undefined)('connections to PostgreSQL', () => {
  let server: PostgresServer
  const opened: Pool[] = []
  const proxies: TcpProxy[] = []
  const problems: string[] = []

  beforeAll(async () => {
    // For fast deadlock detection.
    server = await startPostgres({ deadlock_timeout: '50ms', fsync: 'off' })
  })
  afterEach(async () => {
    for (const proxy of proxies.splice(0)) await proxy[Symbol.asyncDispose]()
    await Promise.all(opened.splice(0).map((pool) => pool.close()))
    problems.length = 0
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  function poolOn(url: string, settings: Partial<PostgresTarget> = {}): Pool {
    const target: PostgresTarget = {
      url,
      tls: { mode: 'off' },
      poolSize: 5,
      connectTimeoutMs: 20_000,
      statementTimeoutMs: 30_000,
      idleInTransactionTimeoutMs: 30_000,
      isPooled: false,
      ...settings,
    }
    const pool = openPool(target, (problem) => problems.push(problem))
    opened.push(pool)
    return pool
  }

  const withPort = (url: string, port: number): string => {
    const other = new URL(url)
    other.port = String(port)
    return other.href
  }

  /** A pool behind a network that can fail. */
  async function proxied(settings: Partial<PostgresTarget> = {}) {
    const proxy = await startTcpProxy(server.port)
    proxies.push(proxy)
    return { proxy, pool: poolOn(withPort(server.url, proxy.port), settings) }
  }

  const one = { name: 'one', text: 'SELECT 1::int8 AS one' }
  const echo = { name: 'echo', text: 'SELECT $1::int8 AS n' }
  const sleep = (ms: number) => ({ name: `sleep_${ms}`, text: `SELECT pg_sleep(${ms / 1000})` })

  async function works(pool: Pool): Promise<boolean> {
    return pool.query(one).then(
      () => true,
      () => false,
    )
  }

  async function errorOf(promise: Promise<unknown>): Promise<Error & { code?: string }> {
    try {
      await promise
    } catch (error) {
      return error as Error
    }
    throw new Error('it should have failed')
  }

  /** Waits until this many matching statements run on the server, seen from another connection. */
  async function running(pattern: string, count: number): Promise<number[]> {
    for (;;) {
      const rows = await server.query(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'otpost' AND state = 'active' AND query LIKE $1",
        [pattern],
      )
      if (rows.length >= count) return rows.map(({ pid }) => Number(pid))
    }
  }

  const backends = async () => {
    const [row] = await server.query(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'otpost'",
    )
    return row?.n
  }

  const terminate = (pids: readonly number[]) =>
    server.query('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid', [pids])

  /** The test's own table with one row: id 1, n 0. */
  async function counterTable(): Promise<string> {
    const name = `counter_${crypto.randomUUID().replaceAll('-', '')}`
    await server.query(`CREATE TABLE ${name} (id int PRIMARY KEY, n int8 NOT NULL)`)
    await server.query(`INSERT INTO ${name} VALUES (1, 0), (2, 0)`)
    return name
  }
  const counted = async (table: string, id = 1) => {
    const [row] = await server.query(`SELECT n::int AS n FROM ${table} WHERE id = ${id}`)
    return row?.n
  }

  describe('statements', () => {
    test('return int8 as numbers, jsonb parsed, and rows by name or as arrays', async () => {
      const pool = poolOn(server.url)
      const text = `SELECT $1::int8 AS n, $2::jsonb AS j, $3::text AS t, ARRAY[1, NULL]::int8[] AS a, count(*) AS c`
      const values = [1_763_000_000_000, '{"k":[1,"x"]}', null]
      const row = { n: 1_763_000_000_000, j: { k: [1, 'x'] }, t: null, a: [1, null], c: 1 }
      expect(await pool.query({ name: 'types', text }, values)).toEqual([row])
      expect(await pool.rows(text, values)).toEqual([Object.values(row)])
      expect(await pool.rows('SELECT 1; SELECT 2', [])).toEqual([[2]])
    })

    test('are prepared once for each connection, with a name, and values sent separately', async () => {
      const pool = poolOn(server.url, { poolSize: 1 })
      for (const n of [1, 2, 3]) expect(await pool.query<{ n: number }>(echo, [n])).toEqual([{ n }])
      await pool.rows('SELECT $1::int8', [1])
      const prepared =
        'SELECT name, statement, generic_plans + custom_plans AS used FROM pg_prepared_statements'
      expect(await pool.rows(prepared, [])).toEqual([[echo.name, echo.text, 3]])
    })

    test('run with the configured time-outs, at READ COMMITTED, in UTF-8, with an application name', async () => {
      const name = `settings_${crypto.randomUUID().slice(0, 8)}`
      const url = await server.database(name)
      await server.query(`ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`)
      await server.query(`ALTER DATABASE ${name} SET client_encoding = 'LATIN1'`)
      const pool = poolOn(url, { statementTimeoutMs: 7001, idleInTransactionTimeoutMs: 7002 })
      const settings = `SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'),
        current_setting('transaction_isolation'), current_setting('client_encoding'), current_setting('application_name')`
      const expected = ['7001ms', '7002ms', 'read committed', 'UTF8', 'otpost']
      expect(await pool.rows(settings, [])).toEqual([expected])
      expect(await pool.transaction((transaction) => transaction.rows(settings, []))).toEqual([expected])
      const longer = { statementTimeoutMs: 7003 }
      expect(await pool.transaction((it) => it.rows(settings, []), longer)).toEqual([
        ['7003ms', ...expected.slice(1)],
      ])
      expect(await pool.rows(settings, [])).toEqual([expected])
    })

    test('that fail report the error code without their values', async () => {
      const pool = poolOn(server.url, { poolSize: 1 })
      const table = await counterTable()
      await server.query(`ALTER TABLE ${table} ADD t text UNIQUE, ADD CHECK (t <> 'secret-2')`)
      await server.query(`UPDATE ${table} SET t = 'secret-1' WHERE id = 1`)
      const insert = `INSERT INTO ${table} (id, n, t) VALUES ($1, $2, $3)`
      const cases = [
        [insert, [3, 0, 'secret-1'], '23505'],
        [insert, [3, 0, 'secret-2'], '23514'],
        [insert, [3, null, 'secret-3'], '23502'],
        [insert, [3, 'secret-4', ''], '22P02'],
        ['SELECT $1::jsonb', ['{"secret-5'], '22P02'],
        ['SELECT $1::int2', [77_778_888], '22003'],
        ['SELECT no_such_thing', [], '42703'],
      ] as const
      for (const [place, [text, values, code]] of cases.entries()) {
        const error = await errorOf(pool.query({ name: `case_${place}`, text }, values))
        expect(error).toBeInstanceOf(StatementError)
        expect(error.code).toBe(code)
        expect(Bun.inspect(error) + JSON.stringify(error)).not.toMatch(/secret-\d|77778888/)
      }
      const [unique] = cases
      expect(await errorOf(pool.query({ name: 'insert', text: unique[0] }, unique[1]))).toMatchObject({
        constraint: `${table}_t_key`,
        message: expect.stringContaining('insert'),
      })
      expect(await works(pool)).toBe(true)
      expect(problems).toEqual([])
    })

    test('that cannot be sent fail without reporting their values', async () => {
      const pool = poolOn(server.url, { poolSize: 1 })
      await pool.query(echo, [1])
      const reused = await errorOf(pool.query({ ...echo, text: 'SELECT 2' }))
      expect(reused.message).toContain(echo.name)
      const unreadable = {
        toJSON: () => {
          throw new Error('secret-1')
        },
      }
      expect(Bun.inspect(await errorOf(pool.query(echo, [unreadable])))).not.toContain('secret-1')
      expect(await works(pool)).toBe(true)
    })

    test('that take too long are cancelled by the server, and the connection stays open', async () => {
      const pool = poolOn(server.url, { poolSize: 1, statementTimeoutMs: 300 })
      const [[before] = []] = await pool.rows('SELECT pg_backend_pid()', [])
      const error = await errorOf(pool.query(endless))
      expect(error).toBeInstanceOf(DatabaseUnavailable)
      expect(error.code).toBe('57014')
      expect(await pool.rows('SELECT pg_backend_pid()', [])).toEqual([[before]])
    })

    test('are prepared again when a migration has changed their result', async () => {
      const pool = poolOn(server.url, { poolSize: 1 })
      const table = await counterTable()
      const all = { name: 'all', text: `SELECT * FROM ${table} WHERE id = 1` }
      expect(await pool.query(all)).toEqual([{ id: 1, n: 0 }])
      await server.query(`ALTER TABLE ${table} ADD extra text`)
      expect(await pool.query(all)).toEqual([{ id: 1, n: 0, extra: null }])
    })
  })

  describe('an error that allows a retry', () => {
    /**
     * A function that counts its calls, even if the transaction is rolled back, and fails the first times.
     */
    async function failing(times: number, code: string) {
      const name = `failing_${crypto.randomUUID().replaceAll('-', '')}`
      await server.query(`CREATE SEQUENCE ${name}`)
      await server.query(`CREATE FUNCTION ${name}() RETURNS int8 LANGUAGE plpgsql AS $$
        DECLARE calls int8 := nextval('${name}');
        BEGIN
          IF calls <= ${times} THEN RAISE EXCEPTION 'no' USING ERRCODE = '${code}'; END IF;
          RETURN calls;
        END $$`)
      return {
        statement: { name, text: `SELECT ${name}() AS calls` },
        calls: async () => (await server.query(`SELECT last_value::int AS n FROM ${name}`))[0]?.n,
      }
    }

    test.each(['40001', '40P01'])('is retried a few times: %s', async (code) => {
      const pool = poolOn(server.url)
      const passing = await failing(3, code)
      expect(await pool.query(passing.statement)).toEqual([{ calls: 4 }])
      const inTransaction = await failing(3, code)
      expect(await pool.transaction((it) => it.query(inTransaction.statement))).toEqual([{ calls: 4 }])
    })

    test('fails after the last retry', async () => {
      const pool = poolOn(server.url)
      const lasting = await failing(100, '40001')
      expect(await errorOf(pool.query(lasting.statement))).toMatchObject({ code: '40001' })
      expect(await lasting.calls()).toBe(4)
      const inTransaction = await failing(100, '40001')
      const failed = pool.transaction((it) => it.query(inTransaction.statement))
      expect(await errorOf(failed)).toMatchObject({ code: '40001' })
      expect(await inTransaction.calls()).toBe(4)
    })

    test('is not retried for other errors', async () => {
      const pool = poolOn(server.url)
      const { statement, calls } = await failing(100, '23505')
      await errorOf(pool.query(statement))
      expect(await calls()).toBe(1)
      await errorOf(pool.transaction((it) => it.query(statement)))
      expect(await calls()).toBe(2)
    })

    test('is retried if the work wraps the error in its own', async () => {
      const pool = poolOn(server.url)
      const { statement } = await failing(2, '40001')
      const rows = await pool.transaction((it) =>
        it.query(statement).catch((error) => {
          throw new Error('wrapped', { cause: error })
        }),
      )
      expect(rows).toEqual([{ calls: 3 }])
    })

    test('includes a deadlock: both transactions are committed once', async () => {
      const pool = poolOn(server.url)
      const table = await counterTable()
      const bothHaveOne = Promise.withResolvers<void>()
      let begun = 0
      const add = (ids: readonly number[]) =>
        pool.transaction(async (it) => {
          for (const id of ids) {
            await it.rows(`UPDATE ${table} SET n = n + 1 WHERE id = $1`, [id])
            if (++begun === 2) bothHaveOne.resolve()
            await bothHaveOne.promise
          }
        })
      await Promise.all([add([1, 2]), add([2, 1])])
      expect([await counted(table, 1), await counted(table, 2)]).toEqual([2, 2])
      // Four updates, and those of the deadlock victim again.
      expect(begun).toBeGreaterThan(4)
    })
  })

  describe('a transaction', () => {
    test('is committed when its work succeeds, and rolled back when it throws', async () => {
      const pool = poolOn(server.url, { poolSize: 1 })
      const table = await counterTable()
      const add = `UPDATE ${table} SET n = n + 1 WHERE id = 1`
      expect(
        await pool.transaction(async (it) => {
          await it.rows(add, [])
          return 'done'
        }),
      ).toBe('done')
      expect(await counted(table)).toBe(1)
      const failed = pool.transaction(async (it) => {
        await it.rows(add, [])
        throw new Error('of work')
      })
      expect((await errorOf(failed)).message).toBe('of work')
      expect(await counted(table)).toBe(1)
      expect(await pool.rows(`SELECT n FROM ${table} WHERE id = 1`, [])).toEqual([[1]])
    })

    test('fails if one of its statements failed, even if the work ignored the error', async () => {
      const pool = poolOn(server.url, { poolSize: 1 })
      const table = await counterTable()
      const failed = pool.transaction(async (it) => {
        await it.rows(`UPDATE ${table} SET n = n + 1`, [])
        await it.rows('SELECT 1 / 0', []).catch(() => {})
      })
      expect(await errorOf(failed)).toMatchObject({ code: '22012' })
      expect(await counted(table)).toBe(0)
      expect(await works(pool)).toBe(true)
    })

    test('names the statement that failed, even if the work ignored it and a later one fails', async () => {
      const pool = poolOn(server.url, { poolSize: 1 })
      const failed = pool.transaction(async (it) => {
        await it.rows('SELECT 1 / 0', []).catch(() => {})
        await it.query(one)
      })
      expect(await errorOf(failed)).toMatchObject({ code: '22012' })
    })

    test('names the statement that failed, when the same new statement follows it twice', async () => {
      const pool = poolOn(server.url, { poolSize: 1 })
      const table = await counterTable()
      const addOne = { name: 'add_one', text: `UPDATE ${table} SET n = n + $1` }
      const failed = pool.transaction(async (it) => {
        it.send({ name: 'insert_again', text: `INSERT INTO ${table} (id, n) VALUES ($1, 0)` }, [1])
        it.send(addOne, [1])
        it.send(addOne, [1])
      })
      expect(await errorOf(failed)).toMatchObject({ name: 'StatementError', code: '23505' })
      expect(await counted(table)).toBe(0)
      expect(problems).toEqual([])
      await pool.transaction(async (it) => it.send(addOne, [1]))
      expect(await works(pool)).toBe(true)
    })

    test('runs concurrent statements in sequence, and accepts none after its end', async () => {
      const pool = poolOn(server.url, { poolSize: 1 })
      const table = await counterTable()
      const add = `UPDATE ${table} SET n = n + 1 WHERE id = 1 RETURNING n`
      const kept = await pool.transaction(async (it) => {
        expect(await Promise.all(Array.from({ length: 5 }, () => it.rows(add, [])))).toEqual(
          [1, 2, 3, 4, 5].map((n) => [[n]]),
        )
        return it
      })
      expect((await errorOf(kept.rows(add, []))).message).toContain('after its transaction')
      // A statement that the work did not await runs before the end, or not at all.
      const failed = pool.transaction(async (it) => {
        void it.rows(add, []).catch(() => {})
        throw new Error('of work')
      })
      await errorOf(failed)
      await pool.transaction(async (it) => {
        void it.rows(add, []).catch(() => {})
      })
      expect(await pool.rows(`SELECT n FROM ${table} WHERE id = 1`, [])).toEqual([[6]])
    })

    test('with a broken connection fails, is not retried, and stores nothing', async () => {
      const pool = poolOn(server.url, { poolSize: 2 })
      const table = await counterTable()
      const add = `UPDATE ${table} SET n = n + 1 WHERE id = 1`
      let runs = 0
      let afterwards: Promise<unknown> | undefined
      const failed = pool.transaction(async (it) => {
        runs++
        const [[pid] = []] = await it.rows('SELECT pg_backend_pid()', [])
        await it.rows(add, [])
        await terminate([Number(pid)])
        afterwards = it.rows(add, [])
        await afterwards
      })
      expect(await errorOf(failed)).toBeInstanceOf(DatabaseUnavailable)
      await afterwards?.catch(() => {})
      expect(await works(pool)).toBe(true)
      expect(await counted(table)).toBe(0)
      expect(runs).toBe(1)
    })

    test('that is idle too long is ended by the server', async () => {
      const pool = poolOn(server.url, { idleInTransactionTimeoutMs: 50 })
      const table = await counterTable()
      const failed = pool.transaction(async (it) => {
        const [[pid] = []] = await it.rows(`UPDATE ${table} SET n = 1 RETURNING pg_backend_pid()`, [])
        const alive = 'SELECT 1 FROM pg_stat_activity WHERE pid = $1'
        while ((await server.query(alive, [pid])).length > 0);
      })
      expect(await errorOf(failed)).toBeInstanceOf(DatabaseUnavailable)
      expect(await counted(table)).toBe(0)
      expect(await works(pool)).toBe(true)
    })

    test('that a caller did not end is rolled back before the connection is reused', async () => {
      const pool = poolOn(server.url, { poolSize: 1 })
      const table = await counterTable()
      await pool.rows('BEGIN', [])
      await pool.rows(`UPDATE ${table} SET n = n + 1`, [])
      expect(await counted(table)).toBe(1)
    })
  })

  describe('the pool', () => {
    test('has at most its maximum of connections, and serves all callers', async () => {
      // The server ends connections of earlier tests a moment after they were closed here.
      while ((await backends()) !== 0);
      const pool = poolOn(server.url, { poolSize: 3 })
      const count = {
        name: 'count',
        text: "SELECT count(*) AS n FROM pg_stat_activity, pg_sleep(0.01) WHERE application_name = 'otpost'",
      }
      const counts = await Promise.all(Array.from({ length: 60 }, () => pool.query<{ n: number }>(count)))
      expect(Math.max(...counts.map(([row]) => row?.n ?? 99))).toBe(3)
      expect(pool.stats()).toEqual({ size: 3, idle: 3, waiting: 0 })
    })

    test('opens no more connections than are needed simultaneously', async () => {
      const pool = poolOn(server.url)
      for (let asked = 0; asked < 20; asked++) await pool.query(one)
      expect(pool.stats()).toEqual({ size: 1, idle: 1, waiting: 0 })
    })

    test('limits the wait for a free connection to the connect time-out', async () => {
      const pool = poolOn(server.url, { poolSize: 1, connectTimeoutMs: 1000 })
      // On a busy machine a connection may take longer than that.
      while (!(await works(pool))) await Bun.sleep(5)
      const held = Promise.withResolvers<void>()
      const holding = pool.transaction(() => held.promise)
      const errors = await Promise.all([errorOf(pool.query(one)), errorOf(pool.transaction(async () => {}))])
      for (const error of errors) {
        expect(error).toBeInstanceOf(DatabaseUnavailable)
        expect(error.message).toStartWith('None of the 1 connections')
      }
      expect(pool.stats()).toEqual({ size: 1, idle: 0, waiting: 0 })
      held.resolve()
      await holding
      expect(await works(pool)).toBe(true)
    })

    test('closes after running and waiting queries are done, and rejects new ones', async () => {
      const pool = poolOn(server.url, { poolSize: 2 })
      const answers = Promise.all(Array.from({ length: 6 }, async () => (await pool.query(sleep(20))).length))
      const transaction = pool.transaction(async (it) => {
        await it.query(sleep(20))
        return it.rows('SELECT 7', [])
      })
      const closed = pool.close()
      expect((await errorOf(pool.query(one))).message).toContain('closed')
      expect(await answers).toEqual([1, 1, 1, 1, 1, 1])
      expect(await transaction).toEqual([[7]])
      await closed
      expect(pool.stats()).toEqual({ size: 0, idle: 0, waiting: 0 })
      while ((await backends()) !== 0);
      expect(problems).toEqual([])
    })

    test('closes after a limit if a query does not end', async () => {
      const pool = poolOn(server.url, {
        connectTimeoutMs: 1000,
        statementTimeoutMs: 500,
        idleInTransactionTimeoutMs: foreverMs,
      })
      const stuck = errorOf(pool.transaction(() => Promise.withResolvers<void>().promise))
      // The work of a transaction that never ends cannot be cancelled.
      void stuck.catch(() => {})
      while (!(await works(pool))) await Bun.sleep(5)
      await pool.close()
      while ((await backends()) !== 0);
    })

    test('continues with its open connections if the server allows no more', async () => {
      const role = `few_${crypto.randomUUID().slice(0, 8)}`
      await server.query(`CREATE ROLE ${role} LOGIN PASSWORD 'few' CONNECTION LIMIT 2`)
      const url = new URL(server.url)
      url.username = role
      url.password = 'few'
      while ((await backends()) !== 0);
      const pool = poolOn(url.href)
      await pool.query(one)
      const answers = await Promise.all(Array.from({ length: 20 }, () => pool.query(sleep(5))))
      expect(answers).toHaveLength(20)
      expect(await backends()).toBe(2)
      expect(problems[0]).toContain('max_connections')
    })
  })

  describe('a database server', () => {
    test('killed with running and waiting statements fails each of them, and accepts new ones after its restart', async () => {
      // No caller waits for a time-out.
      const pool = poolOn(server.url, { connectTimeoutMs: foreverMs, statementTimeoutMs: foreverMs })
      const errors = Array.from({ length: 50 }, () => errorOf(pool.query(endless)))
      await running(endless.text, 5)
      await server.stop('immediate')
      for (const error of await Promise.all(errors)) {
        expect(error).toBeInstanceOf(DatabaseUnavailable)
        expect(error.message).toContain(`127.0.0.1:${server.port}`)
      }
      const away = await Promise.all(Array.from({ length: 50 }, () => errorOf(pool.query(one))))
      for (const error of away) expect(error).toBeInstanceOf(DatabaseUnavailable)
      expect(pool.stats()).toEqual({ size: 0, idle: 0, waiting: 0 })
      await server.start()
      while (!(await works(pool))) await Bun.sleep(5)
      expect(problems[0]).toContain(`127.0.0.1:${server.port} cannot be reached`)
      expect(problems.at(-1)).toContain('can be reached again')
      expect(await Promise.all(Array.from({ length: 20 }, () => works(pool)))).not.toContain(false)
    })

    test('restarted while idle causes no error', async () => {
      const pool = poolOn(server.url)
      await Promise.all(Array.from({ length: 5 }, () => pool.query(sleep(20))))
      expect(pool.stats().size).toBe(5)
      await server.stop('fast')
      while (pool.stats().size > 0) await Bun.sleep(1)
      await server.start()
      expect(await works(pool)).toBe(true)
      expect(problems).toEqual([])
    })

    test('that cuts connections fails only running statements; idle connections are replaced', async () => {
      const pool = poolOn(server.url, { poolSize: 3 })
      await Promise.all([pool.query(sleep(20)), pool.query(sleep(20))])
      const failing = errorOf(pool.query(endless))
      const [pid = 0] = await running(endless.text, 1)
      await server.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'otpost'",
      )
      expect(await failing).toMatchObject({ name: 'DatabaseUnavailable', code: '57P01' })
      while (pool.stats().size > 0) await Bun.sleep(1)
      expect(await works(pool)).toBe(true)
      expect(await running('%one%', 0)).not.toContain(pid)
      expect(problems).toEqual([])
    })

    test('that refuses connections is tried at intervals, not by each caller', async () => {
      const { proxy, pool } = await proxied()
      proxy.refuse()
      const asked = 2000
      for (let i = 0; i < asked; i++)
        expect(await errorOf(pool.query(one))).toBeInstanceOf(DatabaseUnavailable)
      expect(proxy.taken()).toBeLessThan(asked / 4)
      expect(problems).toHaveLength(1)
      proxy.recover()
      while (!(await works(pool))) await Bun.sleep(5)
      expect(problems).toHaveLength(2)
    })

    test('that accepts connections without responding is abandoned within the time-out', async () => {
      const { proxy, pool } = await proxied({ connectTimeoutMs: 1000 })
      proxy.fallSilent()
      const errors = await Promise.all(Array.from({ length: 20 }, () => errorOf(pool.query(one))))
      for (const error of errors) {
        expect(error).toBeInstanceOf(DatabaseUnavailable)
        // Those that wait for a connection have a timer of their own, which can be first.
        expect(error.message).toMatch(/(?:accepted no connection|was free) within 1000 ms/)
      }
      const accepted = `127.0.0.1:${proxy.port} accepted no connection within 1000 ms`
      expect(errors.some(({ message }) => message.includes(accepted))).toBe(true)
      expect(proxy.taken()).toBeLessThanOrEqual(5)
      proxy.recover()
      while (!(await works(pool))) await Bun.sleep(5)
    })

    test('that falls silent is detected long before the statement time-out', async () => {
      const { proxy, pool } = await proxied({ connectTimeoutMs: 2000, statementTimeoutMs: foreverMs })
      await Promise.all(Array.from({ length: 5 }, () => pool.query(sleep(20))))
      proxy.fallSilent()
      const errors = await Promise.all(Array.from({ length: 20 }, () => errorOf(pool.query(echo, [0]))))
      for (const error of errors) expect(error).toBeInstanceOf(DatabaseUnavailable)
      expect(problems[0]).toContain('did not answer within 1600 ms')
      expect(pool.stats().size).toBe(0)
      proxy.recover()
      while (!(await works(pool))) await Bun.sleep(5)
      // Late responses have no recipient.
      const numbers = Array.from({ length: 50 }, (_, n) => n)
      expect(await Promise.all(numbers.map((n) => pool.query(echo, [n])))).toEqual(
        numbers.map((n) => [{ n }]),
      )
    })

    test('that is slow, but responds to a check, is waited for', async () => {
      const { proxy, pool } = await proxied({
        poolSize: 1,
        connectTimeoutMs: 5000,
        statementTimeoutMs: foreverMs,
      })
      expect(await pool.query(sleep(5500))).toHaveLength(1)
      // The pool checked whether the server responds.
      expect(proxy.taken()).toBeGreaterThan(1)
      expect(problems).toEqual([])
    })

    test('that responds in time is not abandoned when this process is blocked', async () => {
      const { pool } = await proxied({ connectTimeoutMs: 1000, statementTimeoutMs: 500 })
      // On a busy machine a connection may take longer than that.
      while (!(await works(pool))) await Bun.sleep(5)
      const answer = pool.query(echo, [1])
      // The query has been sent by then.
      await new Promise((resolve) => setImmediate(resolve))
      // Like a long computation or a sleeping machine. The proxy is blocked too.
      Bun.sleepSync(1500)
      expect(await answer).toEqual([{ n: 1 }])
    })

    test('with one silent connection: it is closed after the statement time-out, and its late response is discarded', async () => {
      const { proxy, pool } = await proxied({
        poolSize: 1,
        connectTimeoutMs: 10_000,
        statementTimeoutMs: 3000,
      })
      await pool.query(one)
      proxy.silencePresent()
      const silent = errorOf(pool.query(echo, [1]))
      const next = pool.query(echo, [2])
      expect((await silent).message).toContain('did not answer within 3500 ms')
      expect(await next).toEqual([{ n: 2 }])
      const third = pool.query(echo, [3])
      proxy.recover()
      expect(await third).toEqual([{ n: 3 }])
      expect(problems).toEqual([])
    })

    test('that became a standby is disconnected, so that the primary is found', async () => {
      const name = `standby_${crypto.randomUUID().slice(0, 8)}`
      const pool = poolOn(await server.database(name), { poolSize: 1 })
      await pool.rows('CREATE TABLE t (n int)', [])
      await server.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
      await server.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'otpost'",
      )
      while (pool.stats().size > 0) await Bun.sleep(1)
      const error = await errorOf(pool.rows('INSERT INTO t VALUES (1)', []))
      expect(error).toMatchObject({ name: 'DatabaseUnavailable', code: '25006' })
      await server.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`)
      expect(await pool.rows('INSERT INTO t VALUES (1) RETURNING n', [])).toEqual([[1]])
    })

    test.each([
      ['a wrong password', (url: URL) => url.username.concat(':no-such-password'), '/postgres', '28P01'],
      ['no such database', (url: URL) => `${url.username}:${url.password}`, '/no_such', '3D000'],
    ])('reports %s without the password', async (_, user, path, code) => {
      const url = new URL(server.url)
      const pool = poolOn(`postgres://${user(url)}@${url.host}${path}`)
      const error = await errorOf(pool.query(one))
      expect(error).toMatchObject({ name: 'DatabaseUnavailable', code })
      expect(error.message).toContain(url.host)
      expect(Bun.inspect(error) + problems.join()).not.toMatch(new RegExp(`no-such-password|${url.password}`))
    })

    test('with an unknown host name is reported', async () => {
      const pool = poolOn('postgres://otpost:secret@no-such-host.invalid/otpost')
      const error = await errorOf(pool.query(one))
      expect(error).toBeInstanceOf(DatabaseUnavailable)
      expect(error.message).toContain('no-such-host.invalid:5432')
    })
  })

  describe('TLS', () => {
    const folder = temporaryFolder()
    const fileOf = (name: keyof typeof certificates) => {
      const path = join(folder.path, `${name}.pem`)
      writeFileSync(path, certificates[name])
      return path
    }
    const caFile = fileOf('authority')
    // A certificate authority that did not sign the server's certificate.
    const otherCaFile = fileOf('client')
    const client = { certFile: fileOf('client'), keyFile: fileOf('clientKey') }
    const isEncrypted = 'SELECT ssl, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()'
    let encryptedUrl: string
    let certifiedUrl: string

    beforeAll(async () => {
      ;[encryptedUrl, certifiedUrl] = [await server.database('encrypted'), await server.database('certified')]
      await offerTls(server, [
        'hostssl certified all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca',
        'hostnossl certified,encrypted all 127.0.0.1/32 reject',
      ])
      // A configuration reload takes a moment.
      while ((await errorOf(poolOn(encryptedUrl).query(one)).catch(() => undefined))?.code !== '28000');
    })
    afterAll(() => folder.remove())

    const atHostName = (url: string) => url.replace('127.0.0.1', 'localhost')

    test.each([
      ['require', 'no', {}],
      ['require', 'another', { caFile: otherCaFile }],
      ['verify-ca', 'its', { caFile }],
      ['verify-full', 'its', { caFile }],
    ] as const)('%s with %s authority encrypts', async (mode, _, files) => {
      const pool = poolOn(encryptedUrl, { tls: { mode, ...files } })
      expect(await pool.rows(isEncrypted, [])).toEqual([[true, null]])
    })

    test('verify-ca accepts a certificate for another host name, verify-full rejects it', async () => {
      const url = atHostName(encryptedUrl)
      expect(await poolOn(url, { tls: { mode: 'verify-ca', caFile } }).rows(isEncrypted, [])).toEqual([
        [true, null],
      ])
      const error = await errorOf(poolOn(url, { tls: { mode: 'verify-full', caFile } }).query(one))
      expect(error).toMatchObject({ name: 'DatabaseUnavailable', code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
      expect(error.message).toContain('another host name')
    })

    test.each([
      ['verify-ca', 'another', { caFile: otherCaFile }],
      ['verify-full', 'another', { caFile: otherCaFile }],
      ['verify-ca', 'no', {}],
      ['verify-full', 'no', {}],
    ] as const)('%s with %s authority rejects its certificate', async (mode, _, files) => {
      const error = await errorOf(poolOn(encryptedUrl, { tls: { mode, ...files } }).query(one))
      expect(error).toBeInstanceOf(DatabaseUnavailable)
      expect(error.message).toContain('sslrootcert is the CA that signed its certificate')
    })

    test('sends a client certificate if the server requests one', async () => {
      const tls = { mode: 'verify-full', caFile } as const
      expect(await poolOn(certifiedUrl, { tls: { ...tls, ...client } }).rows(isEncrypted, [])).toEqual([
        [true, '/CN=otpost'],
      ])
      expect((await errorOf(poolOn(certifiedUrl, { tls }).query(one))).code).toBe('28000')
    })

    test('reports an unreadable file', async () => {
      const pool = poolOn(encryptedUrl, { tls: { mode: 'verify-full', caFile: '/no/such/file' } })
      const error = await errorOf(pool.query(one))
      expect(error).toBeInstanceOf(DatabaseUnavailable)
      expect(error.message).toContain('/no/such/file')
      expect(problems).toHaveLength(1)
    })

    test.each(['require', 'verify-full'] as const)('%s never continues without encryption', async (mode) => {
      // Replies that it has no TLS, and would read what follows.
      let heard = 0
      const plain = createServer((socket) => {
        socket.on('error', () => {})
        socket.on('data', (data) => {
          heard += data.length
          socket.write('N')
        })
      })
      await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
      const address = plain.address() as { port: number }
      const pool = poolOn(withPort(server.url, address.port), { tls: { mode, caFile } })
      expect(await errorOf(pool.query(one))).toBeInstanceOf(DatabaseUnavailable)
      expect(heard).toBe(8)
      plain.close()
    })

    test('detects a silent server, and its connections end at the server too', async () => {
      const proxy = await startTcpProxy(server.port)
      proxies.push(proxy)
      const pool = poolOn(withPort(encryptedUrl, proxy.port), {
        tls: { mode: 'verify-full', caFile },
        connectTimeoutMs: 2000,
        statementTimeoutMs: foreverMs,
      })
      await Promise.all(Array.from({ length: 5 }, () => pool.query(sleep(20))))
      proxy.fallSilent()
      expect(await errorOf(pool.query(one))).toBeInstanceOf(DatabaseUnavailable)
      proxy.recover()
      while (!(await works(pool))) await Bun.sleep(5)
      await pool.close()
      while ((await backends()) !== 0);
    })
  })

  if (withoutPgBouncer) console.warn(withoutPgBouncer)

  describe.skipIf(withoutPgBouncer !== undefined)('through PgBouncer in transaction mode', () => {
    let bouncer: Awaited<ReturnType<typeof startPgBouncer>>
    beforeAll(async () => {
      bouncer = await startPgBouncer(server, 2)
    })
    afterAll(() => bouncer?.[Symbol.asyncDispose]())

    test('each caller gets its own results, and no statement is prepared', async () => {
      // Two servers with ten connections each, and two sessions for both.
      const pools = [1, 2].map(() => poolOn(bouncer.url, { isPooled: true, poolSize: 10 }))
      const asked = Array.from({ length: 200 }, (_, n) => n)
      const answers = await Promise.all(
        asked.map((n) =>
          pools[n % 2]?.query({ name: `n${n % 3}`, text: `SELECT $1::int8 + ${n % 3} AS n` }, [n]),
        ),
      )
      expect(answers).toEqual(asked.map((n) => [{ n: n + (n % 3) }]))
      expect(await pools[0]?.rows('SELECT count(*) FROM pg_prepared_statements', [])).toEqual([[0]])
    })

    test('a transaction has its time-outs, and does not leave them in the session', async () => {
      const pool = poolOn(bouncer.url, {
        isPooled: true,
        poolSize: 1,
        statementTimeoutMs: 7001,
        idleInTransactionTimeoutMs: 7002,
      })
      const settings = `SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'),
        current_setting('transaction_isolation')`
      expect(await pool.transaction((it) => it.rows(settings, []))).toEqual([
        ['7001ms', '7002ms', 'read committed'],
      ])
      expect(await pool.rows(settings, [])).toEqual([['0', '0', 'read committed']])
      const table = await counterTable()
      await errorOf(
        pool.transaction(async (it) => {
          await it.rows(`UPDATE ${table} SET n = 1`, [])
          throw new Error('of work')
        }),
      )
      expect(await counted(table)).toBe(0)
    })

    test('a pooler that is not configured is reported', async () => {
      const error = await errorOf(poolOn(bouncer.url).query(one))
      expect(error).toBeInstanceOf(DatabaseUnavailable)
      expect(error.message).toContain('unsupported startup parameter')
      expect(error.message).toContain('pooler')
    })
  })
})
