import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Column, getTableColumns, getTableName, type Table } from 'drizzle-orm'
import fc from 'fast-check'
import { Client } from 'pg'
import { openDatabase } from '../src/adapters/sqlite/database.ts'
import { tables as schema } from '../src/adapters/sqlite/schema.ts'
import type { AnyTable } from '../src/adapters/store/dialect.ts'
import { firstIdOf } from '../src/adapters/store/request-ids.ts'
import { schema as declarations } from '../src/adapters/store/schema.ts'
import { move } from '../src/commands/move-data.ts'
import { readDatabaseUrl, readStoreConfig } from '../src/config/store.ts'
import { openContext } from '../src/context.ts'
import { issueApp } from '../src/domain/operator/apps.ts'
import { putBrand } from '../src/domain/operator/brands.ts'
import { inDatabase, isWhole, place } from './care/scene.ts'
import { codeIn, createTestApp, otherThan, verdict } from './support/app.ts'
import { accessRequest } from './support/calls.ts'
import { tester } from './support/operator.ts'
import { freshDatabase, queryOnce, withoutPostgres } from './support/postgres.ts'
import { programEnv, programLine } from './support/program.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'
import { startTcpProxy } from './support/tcp-proxy.ts'

const secretKey = 'the-secret-of-a-file-of-32-bytes-or-more'

/** A file to move, and an empty database as the target. */
async function scene() {
  const here = place()
  const { url, remove } = await freshDatabase()
  return {
    ...here,
    url,
    /** The settings of a server on the database. */
    moved: { DATABASE_URL: url, SECRET_KEY: secretKey },
    move: (...options: string[]) =>
      otpost(['move', '--from', `file:${here.file}`, '--to', url, ...options], { SECRET_KEY: secretKey }),
    query: (text: string) => queryOnce(url, text),
    /** The row counts of all tables with rows. */
    async rows(): Promise<Record<string, number>> {
      const counts: Record<string, number> = {}
      for (const table of tables) {
        const [row] = await queryOnce(url, `SELECT count(*)::int AS rows FROM ${getTableName(table)}`)
        if (row?.rows !== 0) counts[getTableName(table)] = Number(row?.rows)
      }
      return counts
    },
    /** The files under which the moved file was set aside. */
    aside: () => readdirSync(here.data).filter((name) => name.startsWith(`${basename(here.file)}.moved-`)),
    async [Symbol.asyncDispose]() {
      here.remove()
      await remove()
    },
  }
}

const tables: readonly Table[] = [
  schema.brands,
  schema.appKeys,
  schema.apps,
  schema.appBrands,
  schema.destinationRules,
  schema.guardPrefixes,
  schema.verifiedNumbers,
  schema.prices,
  schema.priceLists,
  schema.budgets,
  schema.alerts,
  schema.alertDeliveries,
  schema.webhooks,
  schema.reviewNumbers,
  schema.texts,
  schema.textVariables,
  schema.events,
  schema.idempotencyKeys,
  schema.notifyOrders,
  schema.notifyJobs,
  schema.integrationRequests,
  schema.audit,
  schema.operators,
  schema.passkeys,
  schema.recoveryCodes,
  schema.consoleSessions,
  schema.consoleLinks,
  schema.outbox,
  schema.stats,
  schema.deliveryReports,
  schema.attempts,
  schema.requests,
  schema.codesAndLimits,
]

/** A file with a brand and an app. */
async function furnish(file: string): Promise<void> {
  const context = await openContext(readStoreConfig({ DATABASE_URL: `file:${file}`, SECRET_KEY: secretKey }))
  await putBrand(context.acting(tester), 'acme', { displayName: 'Acme' })
  await issueApp(context.acting(tester), 'shop')
  await context.close()
}

function slugs(file: string): readonly string[] {
  return inDatabase(file, (driver) => driver.prepare<[], string>('SELECT slug FROM brands').pluck().all())
}

function targetOf(url: string) {
  const read = readDatabaseUrl({}, 'url', url)
  if (read.kind !== 'postgres') throw new Error('it is not a database of PostgreSQL')
  return read.target
}

/** Waits until a condition is true. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await Bun.sleep(20)
}

describe.skipIf(withoutPostgres !== undefined)(
  `otpost move${withoutPostgres ? ` (${withoutPostgres})` : ''}`,
  () => {
    test('copies the data of a server, and a server on PostgreSQL continues with them', async () => {
      await using here = await scene()
      const env = {
        ...here.env,
        SECRET_KEY: secretKey,
        SMS_COOLDOWN_SECONDS: '86400',
        EMAIL_LIMIT_PER_HOUR: '1',
        OTP_TTL_SECONDS: '600',
      }
      const command = async (...args: string[]) => {
        const { code, stdout, stderr } = await otpost(args, env)
        expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' })
        return stdout.trim()
      }
      await command('migrate')
      await command('brand', 'put', 'acme', '--name', 'Acme', '--notify', 'ORDER_PLACED')
      await command('brand', 'template', 'acme', 'LOGIN_OTP', '--id', '1107160000000000001')
      await command('app', 'issue', 'stolen')
      const stolenKey = await command('app', 'rotate', 'stolen')
      await command('app', 'revoke', 'stolen')

      const server = await startServer(env)
      const [used, live, guessed] = ['12025550101', '12025550102', '12025550103'] as const
      const asked = await server.post('/integrations/requests', accessRequest)
      const approved = [
        'request',
        'approve',
        asked.body.integrationRequestId,
        '--app',
        'globex',
        '--brand',
        'globex',
      ]
      const key = (await command(...approved)).match(/otp_live_\w+/)?.[0]
      const sent = await server.post('/otp/send', { phone: used })
      for (const phone of [live, guessed])
        expect(verdict(await server.post('/otp/send', { phone }))).toBe('200')
      const codes: Record<string, string> = {}
      for (const phone of [used, live, guessed]) codes[phone] = await lastCode(server, phone)
      const verify = (at: TestServer, phone: string, otp = codes[phone] ?? '') =>
        at.post('/otp/verify', { phone, otp }).then(verdict)
      expect(await verify(server, used)).toBe('200')
      for (const phone of [live, guessed])
        expect(await verify(server, phone, otherThan(codes[phone] ?? ''))).toBe('401 mismatch')
      const mail = { channel: 'EMAIL', email: 'ann@example.com' }
      expect(verdict(await server.post('/otp/send', mail))).toBe('200')
      const link = new URL(await command('admin', 'link'))
      const entered = await server.request('POST', '/admin/link', {
        headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
        body: new URLSearchParams({ token: link.hash.slice(1) }).toString(),
        redirect: 'manual',
      })
      const cookie = entered.headers.getSetCookie()[0]?.split(';')[0] ?? ''
      const overview = (at: TestServer) =>
        at.request('GET', '/admin', { headers: { cookie }, redirect: 'manual' })
      expect((await overview(server)).status).toBe(200)
      const messages = (await server.get('/outbox/messages')).body.messages
      expect(await server.stop()).toBe(0)

      const lists = [
        ['brand', 'list', '--json'],
        ['app', 'list', '--json'],
        ['request', 'list', '--json'],
        ['audit', '--json'],
        ['deliveries', '--json'],
        ['explain', sent.body.requestId],
      ]
      // The fields of an object may be in another order.
      const listed = () =>
        Promise.all(
          lists.map(async (args) => {
            const text = await command(...args)
            return args.includes('--json') ? JSON.parse(text) : text
          }),
        )
      const before = await listed()
      const { code, stdout, stderr } = await here.move()
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toMatch(/^brands +2 +-$/m)
      expect(stdout).toMatch(/^requests +\d+ +-$/m)
      expect(stdout).not.toContain(secretKey)
      expect(stdout).not.toContain(new URL(here.url).password)
      expect(here.aside()).toHaveLength(1)
      expect(existsSync(here.file)).toBe(false)

      Object.assign(env, here.moved)
      expect(await listed()).toEqual(before)
      const after = await startServer(env)
      try {
        expect((await after.get('/outbox/messages')).body.messages).toEqual(messages)
        expect(await verify(after, used)).toBe('404 not_found')
        expect(await verify(after, live)).toBe('200')
        expect(await verify(after, live)).toBe('404 not_found')
        for (const _ of [2, 3])
          expect(await verify(after, guessed, otherThan(codes[guessed] ?? ''))).toBe('401 mismatch')
        expect(await verify(after, guessed)).toBe('429 max_attempts')
        expect(verdict(await after.post('/otp/send', { phone: used }))).toBe('429 cooldown_active')
        expect(verdict(await after.post('/otp/send', mail))).toBe('429 rate_limited')
        const other = { phone: '12025550104' }
        const stolen = { ...other, appId: 'stolen', apiKey: stolenKey.match(/otp_live_\w+/)?.[0] }
        expect(verdict(await after.post('/otp/send', stolen))).toBe('403 forbidden')
        const globex = { ...other, appId: 'globex', apiKey: key, brandId: 'globex' }
        expect(verdict(await after.post('/otp/send', globex))).toBe('200')
        const ids = (await after.get('/outbox/messages')).body.messages.map(({ id }: { id: number }) => id)
        expect(ids).toEqual([...messages.map(({ id }: { id: number }) => id), messages.at(-1).id + 1])
        expect((await overview(after)).status).toBe(200)
      } finally {
        await after.stop()
      }
      await command('brand', 'put', 'later', '--name', 'Later')
      const [last] = JSON.parse(await command('audit', '--limit', '1', '--json'))
      expect(last).toMatchObject({ action: 'brand.created', target: 'later' })
    })

    /** Moves while something blocks it at one point; `meanwhile` unblocks or ends it. */
    async function heldUp(
      here: Awaited<ReturnType<typeof scene>>,
      trigger: string,
      meanwhile: (child: ReturnType<typeof Bun.spawn>, letGo: () => Promise<void>) => Promise<void>,
    ): Promise<void> {
      await here.query(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END$$`)
      await here.query(trigger)
      const holder = new Client({ connectionString: here.url })
      await holder.connect()
      await holder.query('SELECT pg_advisory_lock(7)')
      const child = spawnMove(here.file, here.url)
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`
      try {
        await until(async () => child.exitCode !== null || (await here.query(waiting)).length > 0)
        expect(child.exitCode).toBeNull()
        let isHeld = true
        await meanwhile(child, async () => {
          if (isHeld) await holder.query('SELECT pg_advisory_unlock(7)')
          isHeld = false
          await until(async () => (await here.query(others)).length === 0)
        })
      } finally {
        child.kill('SIGKILL')
        await holder.end()
      }
      await here.query('DROP FUNCTION wait CASCADE')
    }

    const others = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'otpost'`
    const statement = (table: string) =>
      `CREATE TRIGGER wait BEFORE INSERT ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION wait()`
    const atCommit = `CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON brands DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait()`

    test.each(['app_keys', 'audit', 'codes_and_limits'])(
      'leaves the file usable and the database empty when killed while copying %s',
      async (table) => {
        await using here = await scene()
        await furnish(here.file)
        inDatabase(here.file, (driver) =>
          driver.exec(
            "INSERT INTO codes_and_limits (subject, name, count, expires_at) VALUES ('r', 'minute', 1, 9000000000000)",
          ),
        )
        await heldUp(here, statement(table), async (child, letGo) => {
          child.kill('SIGKILL')
          await child.exited
          await letGo()
        })
        expect(await here.rows()).toEqual({})
        expect([slugs(here.file), isWhole(here.file), here.aside()]).toEqual([['acme'], true, []])
        expect((await here.move()).code).toBe(0)
        expect(await here.rows()).toEqual({ brands: 1, app_keys: 1, audit: 2, codes_and_limits: 1 })
      },
    )

    test('leaves the file aside when killed within its COMMIT: file and database are never both usable', async () => {
      await using here = await scene()
      await furnish(here.file)
      await heldUp(here, atCommit, async (child, letGo) => {
        expect(here.aside()).toHaveLength(1)
        child.kill('SIGKILL')
        await child.exited
        // The server has received the COMMIT, and its client has exited.
        await letGo()
      })
      expect(await here.rows()).toEqual({ brands: 1, app_keys: 1, audit: 2 })
      const { code, stderr } = await here.move()
      expect(code).toBe(1)
      expect(stderr).toContain(`renamed it to ${join(here.data, here.aside()[0] ?? '')}.`)
    })

    test('during the move no other process can open the file, and writers of the database wait until it ends', async () => {
      await using here = await scene()
      await furnish(here.file)
      let isWritten = false
      await heldUp(here, statement('audit'), async (child, letGo) => {
        const { code, stderr } = await otpost(['brand', 'list'], { ...here.env, SECRET_KEY: secretKey })
        expect({ code, stderr }).toEqual({
          code: 1,
          stderr: expect.stringContaining('another process has locked it'),
        })
        const write = here
          .query("INSERT INTO console_links (token_sha256, expires_at) VALUES ('l', 1)")
          .then(() => {
            isWritten = true
          })
        await until(
          async () =>
            (await here.query("SELECT FROM pg_stat_activity WHERE wait_event = 'relation'")).length > 0,
        )
        expect([isWritten, await here.rows()]).toEqual([false, {}])
        await letGo()
        await write
        expect(await child.exited).toBe(0)
      })
      expect(await here.rows()).toEqual({ brands: 1, app_keys: 1, audit: 2, console_links: 1 })
    })

    test('moves nothing if the database rejects the COMMIT, and restores the name of the file', async () => {
      await using here = await scene()
      await furnish(here.file)
      await here.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN RAISE EXCEPTION 'not today'; END$$`)
      await here.query(atCommit.replace('wait()', 'refuse()'))
      const { code, stderr } = await here.move()
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('not today') })
      expect([await here.rows(), slugs(here.file), here.aside()]).toEqual([{}, ['acme'], []])
    })

    test('moves nothing if some rows do not arrive', async () => {
      await using here = await scene()
      await furnish(here.file)
      await here.query(
        `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$`,
      )
      await here.query('CREATE TRIGGER lose BEFORE INSERT ON app_keys FOR EACH ROW EXECUTE FUNCTION lose()')
      const { code, stderr } = await here.move()
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: 'otpost: 0 of 1 rows of table app_keys were copied. Nothing was changed.\n',
      })
      expect([await here.rows(), slugs(here.file), here.aside()]).toEqual([{}, ['acme'], []])
    })

    test.each([
      ['was heard', 0],
      ['was not heard', 3],
    ])('finds out whether a COMMIT %s whose answer was lost', async (heard, missingBytes) => {
      await using here = await scene()
      await furnish(here.file)
      const direct = new URL(here.url)
      await using proxy = await startTcpProxy(Number(direct.port))
      // A text ends with a NUL; that of BEGIN contains the word.
      const broken = proxy.breakOff(['COMMIT\0'], missingBytes)
      const through = new URL(here.url)
      through.port = String(proxy.port)
      // The schema exists, so that the first COMMIT is that of the move.
      const child = spawnMove(here.file, through.href)
      await Promise.race([broken, child.exited])
      expect(child.exitCode).toBeNull()
      if (heard === 'was heard') await until(async () => (await here.rows()).brands === 1)
      proxy.cut()
      const code = await child.exited
      if (heard === 'was heard') {
        expect({ code, aside: here.aside().length }).toEqual({ code: 0, aside: 1 })
        expect(await here.rows()).toEqual({ brands: 1, app_keys: 1, audit: 2 })
      } else {
        expect({ code, aside: here.aside() }).toEqual({ code: 1, aside: [] })
        expect([await here.rows(), slugs(here.file)]).toEqual([{}, ['acme']])
      }
    })

    test('fails if the file is in use, damaged or not of otpost, or if the database is not empty', async () => {
      await using here = await scene()
      expect((await here.move()).stderr).toContain(`There is no database at ${here.file}`)
      await furnish(here.file)
      const server = await startServer({ ...here.env, SECRET_KEY: secretKey })
      try {
        const { code, stdout, stderr } = await here.move()
        expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
        expect(stderr).toContain('open. Stop the server')
        expect((await server.get('/health')).status).toBe(200)
      } finally {
        await server.stop()
      }
      const whole = readFileSync(here.file)
      writeFileSync(here.file, 'no database. '.repeat(1000))
      expect((await here.move()).stderr).toContain('it is not an SQLite database')
      rmSync(here.file)
      inDatabase(here.file, (driver) => void driver.exec('CREATE TABLE t (a)'))
      expect((await here.move()).stderr).toContain('but not of otpost.')
      writeFileSync(here.file, whole)
      inDatabase(
        here.file,
        (driver) => void driver.exec("PRAGMA ignore_check_constraints = ON; UPDATE brands SET status = 'x'"),
      )
      expect((await here.move()).stderr).toContain('is damaged')
      expect(await here.rows()).toEqual({})

      writeFileSync(here.file, whole)
      expect((await here.move('--keep')).code).toBe(0)
      expect([slugs(here.file), here.aside()]).toEqual([['acme'], []])
      const { code, stderr } = await here.move()
      expect(code).toBe(1)
      expect(stderr).toContain('brands has 1 row, app_keys has 1 row, audit has 2 rows. Nothing was changed')
      expect([slugs(here.file), here.aside()]).toEqual([['acme'], []])
    })

    test('fails if the secret key is wrong or missing, and names the setting without printing the key', async () => {
      await using here = await scene()
      await furnish(here.file)
      const keyFile = `${here.file}.key`
      const args = ['move', '--from', `file:${here.file}`, '--keep']
      const to = { DATABASE_URL: here.url }
      const missing = await otpost(args, to)
      expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining(`Restore ${keyFile}`)])
      writeFileSync(keyFile, `${secretKey}\n`)
      const wrong = await otpost(args, { ...to, SECRET_KEY: 'another-secret-of-32-bytes-or-more' })
      expect([wrong.code, wrong.stderr]).toEqual([
        1,
        expect.stringContaining(`differs from the secret key in ${keyFile}`),
      ])
      expect(await here.rows()).toEqual({})
      const right = await otpost(args, to)
      expect([right.code, right.stdout]).toEqual([
        0,
        expect.stringContaining(`SECRET_KEY="$(cat ${keyFile})"`),
      ])
      const other = await otpost(['brand', 'list'], {
        ...to,
        SECRET_KEY: 'another-secret-of-32-bytes-or-more',
      })
      expect([other.code, other.stderr]).toEqual([
        1,
        expect.stringContaining('SECRET_KEY does not list the secret key'),
      ])
      expect(wrong.stderr + right.stdout + right.stderr).not.toContain(secretKey)

      for (const [settings, ...more] of [
        [{ SECRET_KEY: `the-newest-secret-of-32-bytes-or-more,${secretKey}` }],
        [{ SECRET_KEY: 'another-secret-of-32-bytes-or-more' }, '--force'],
      ] as const) {
        await here.query('TRUNCATE brands, app_keys, audit, key_fingerprints')
        expect((await otpost([...args, ...more], { ...to, ...settings })).code).toBe(0)
      }
    })

    test('is rejected with a secret key that the file’s server never had, even without a key file', async () => {
      await using here = await scene()
      const service = await createTestApp({ DATABASE_URL: `file:${here.file}`, SECRET_KEY: secretKey })
      await service.app.context.noteSecret()
      await service.close()
      const run = (SECRET_KEY: string, ...more: string[]) =>
        otpost(['move', '--from', `file:${here.file}`, '--keep', ...more], {
          DATABASE_URL: here.url,
          SECRET_KEY,
        })
      const wrong = await run('another-secret-of-32-bytes-or-more')
      expect([wrong.code, wrong.stderr]).toEqual([
        1,
        expect.stringContaining("Set SECRET_KEY to the server's value"),
      ])
      expect(await here.rows()).toEqual({})
      expect((await run(secretKey)).code).toBe(0)
    })

    test('names the alternatives to unsupported moves', async () => {
      await using here = await scene()
      const run = (from: string, to: string) =>
        otpost(['move', '--from', from, '--to', to]).then(({ stderr }) => stderr)
      expect(await run(here.url, `file:${here.file}`)).toContain('cannot move data from PostgreSQL to a file')
      expect(await run(`file:${here.file}`, 'file:other.db')).toContain('otpost backup')
      expect(await run(here.url, here.url)).toContain('pg_dump')
      expect(await run('data/otpost.db', here.url)).toContain('--from must be file: and a path')
    })

    test.each([
      ['behind', -3_600_000],
      ['ahead', 3_600_000],
    ])(
      'a code lives on as long as it would have where the clock of its machine is an hour %s',
      async (_, aheadMs) => {
        await using here = await scene()
        const source = await createTestApp({ ...here.env, SECRET_KEY: secretKey })
        source.clock.now = Date.now() + aheadMs
        await source.post('/otp/send', { phone: '12025550143' })
        const code = await source.lastCode('12025550143')
        await source.close()
        await move(here.file, targetOf(here.url), {
          secretKeys: [secretKey],
          keep: false,
          now: () => Date.now() + aheadMs,
        })

        const [{ left } = { left: 0 }] = await here.query(
          `SELECT (expires_at - ${serverNow})::int AS left FROM codes_and_limits WHERE name = 'code:acme'`,
        )
        expect(Number(left)).toBeGreaterThan(200_000)
        expect(Number(left)).toBeLessThanOrEqual(300_000)
        const target = await createTestApp(here.moved)
        const [{ now } = { now: 0 }] = await here.query(`SELECT (${serverNow})::text AS now`)
        target.clock.now = Number(now)
        expect(verdict(await target.post('/otp/send', { phone: '12025550143' }))).toBe('429 cooldown_active')
        expect(verdict(await target.post('/otp/verify', { phone: '12025550143', otp: code }))).toBe('200')
        await target.close()
      },
    )

    test('PostgreSQL returns the same rows as the file, for any content', async () => {
      await fc.assert(
        fc.asyncProperty(fc.tuple(...tables.map(rowsFor)), async (drawn) => {
          await using here = await scene()
          const database = openDatabase(here.file)
          for (const [index, table] of tables.entries()) {
            for (const row of drawn[index] ?? []) database.orm.insert(table).values(row).run()
          }
          // Ids that were used before, and whose rows are deleted.
          await database.close()
          inDatabase(here.file, (driver) =>
            driver.exec("UPDATE sqlite_sequence SET seq = seq + 5 WHERE name = 'audit'"),
          )
          const kept = await readings(here.env, drawn)
          const lastIds = inDatabase(here.file, (driver) =>
            ['audit', 'outbox'].map((name) =>
              Number(driver.prepare('SELECT seq FROM sqlite_sequence WHERE name = ?').pluck().get(name) ?? 0),
            ),
          )
          const { moved } = await move(here.file, targetOf(here.url), { secretKeys: [secretKey], keep: true })

          expect(await readings(here.moved, drawn)).toEqual(storable(kept))
          for (const [index, table] of tables.entries()) {
            const name = getTableName(table)
            const rows = await here.query(`SELECT to_jsonb(t) AS row FROM ${name} AS t`)
            const expected = (drawn[index] ?? [])
              .map((row) => asStored(table, row))
              .filter((row) => row !== undefined)
            expect({ name, rows: inOrder(rows.map(({ row }) => row)) }).toEqual({
              name,
              rows: inOrder(expected),
            })
            expect(moved.find((each) => each.name === name)).toEqual({
              name,
              called: expect.any(String),
              rows: expected.length,
              leftOut: (drawn[index]?.length ?? 0) - expected.length,
            })
          }
          const next = await here.query(`SELECT nextval(pg_get_serial_sequence('audit', 'id'))::int AS audit,
          nextval(pg_get_serial_sequence('outbox', 'id'))::int AS outbox`)
          expect(next).toEqual([{ audit: (lastIds[0] ?? 0) + 1, outbox: (lastIds[1] ?? 0) + 1 }])
        }),
        { numRuns: 5 },
      )
    })
  },
)

/** The clock of the database server, in epoch milliseconds. */
const serverNow = 'floor(extract(epoch FROM clock_timestamp()) * 1000)'

/** When the generated rows were created. */
const cameAt = Date.UTC(2026, 0, 1)

/** A text that a caller or a provider may send, with characters that PostgreSQL cannot store. */
const anyText = fc.string({
  unit: fc.constantFrom('a', 'B', 'é', '😀', '\0', '\ud800', '"', '\\', '\n', "'", '\\u0000', '{', ','),
  maxLength: 9,
})
/** Far in the past or the future, so that expiry does not depend on the current day. */
const past = fc.integer({ min: 1, max: 2 ** 40 })
const future = fc.integer({ min: 2 ** 42, max: 2 ** 43 })
const anyInstant = fc.oneof(past, future)
const named = (value: fc.Arbitrary<unknown>, ...names: readonly string[]) =>
  fc.dictionary(fc.constantFrom(...names), value, { noNullPrototype: true })
const anyJson: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  'brands.notify_templates': fc.array(anyText, { maxLength: 3 }),
  'brands.dlt_allow_list': fc.array(anyText, { maxLength: 3 }),
  'brands.registrations': named(fc.record({ id: anyText }), 'LOGIN_OTP', 'ORDER_PLACED'),
  'destination_rules.providers': fc.array(anyText, { maxLength: 3 }),
  'budgets.alert_at': fc.array(fc.nat(), { maxLength: 3 }),
  'webhooks.previous_secrets': fc.constant([]),
  'webhooks.event_types': fc.subarray(['message.failed', 'otp.locked']),
  'integration_requests.channels': fc.subarray(['SMS', 'EMAIL']),
  'requests.limits': fc.array(fc.record({ limit: anyText, max: fc.nat(), refused: fc.boolean() }), {
    maxLength: 2,
  }),
  'audit.details': named(anyText, 'a', 'b'),
  'outbox.variables': named(anyText, 'a', 'b'),
}

type Drawn = Record<string, unknown>

/** Some rows of a table, by its properties. */
function rowsFor(table: Table): fc.Arbitrary<Drawn[]> {
  const name = getTableName(table)
  const columns = Object.entries(getTableColumns(table))
  const row = fc.record(
    Object.fromEntries(columns.map(([property, column]) => [property, valueFor(name, property, column)])),
  )
  return fc.array(row, { maxLength: 5 }).map((rows) => rows.map((each, index) => withKey(name, each, index)))
}

/** Of texts that the database does not check. */
const words: Readonly<Record<string, readonly string[]>> = {
  channel: ['SMS', 'EMAIL'],
  route: ['plain', 'template'],
  encoding: ['GSM-7', 'UCS-2'],
  errorClass: ['recipient', 'content', 'account', 'retryable', 'unknown'],
  by: ['password', 'link', 'passkey'],
}

function valueFor(table: string, property: string, column: Column): fc.Arbitrary<unknown> {
  const { name, dataType, notNull } = column
  const declared = Object.values<AnyTable>(declarations).find((each) => each.name === table)
  const { allowed } = declared?.columns[property]?.properties ?? {}
  const values = typeof allowed === 'object' ? allowed : table === 'stats' ? undefined : words[property]
  const value =
    values !== undefined
      ? fc.constantFrom(...values)
      : dataType === 'boolean'
        ? fc.boolean()
        : dataType === 'json'
          ? (anyJson[`${table}.${name}`] ?? fc.constant(undefined))
          : dataType !== 'number'
            ? anyText
            : /(?:^|_)at$/.test(name)
              ? table.startsWith('console')
                ? future
                : anyInstant
              : fc.nat()
  return notNull ? value : fc.option(value)
}

/** A row with a unique key that meets the constraints of its table. */
function withKey(table: string, row: Drawn, index: number): Drawn {
  const id = `${firstIdOf(cameAt - 1000 + index)}7000-8000-00000000000${index}`
  switch (table) {
    case 'brands':
      return { ...row, slug: `brand-${index}` }
    case 'app_keys':
      return { ...row, keySha256: `${index}`.padEnd(43, 'k'), appId: index < 3 ? 'shop' : 'stock' }
    case 'audit':
    case 'outbox':
      return { ...row, id: index * 3 + 1 }
    case 'requests':
      return { ...row, requestId: id }
    case 'attempts':
      return { ...row, requestId: id, attempt: index + 2, reportKey: `report-${index}` }
    case 'delivery_reports':
      return { ...row, key: `report-${index}` }
    case 'prices':
      return { ...row, generation: index }
    case 'stats':
      return { ...row, at: index }
    case 'codes_and_limits': {
      const ofLimit = {
        name: 'minute',
        count: index === 0 ? 9e15 : index,
        codeId: null,
        codeHash: null,
        attempts: null,
        createdAt: null,
        provider: null,
      }
      const ofCode = {
        name: 'code:acme',
        count: null,
        codeId: 'id',
        codeHash: 'hash',
        attempts: 1,
        createdAt: cameAt,
        provider: 'twilio',
      }
      return { ...row, subject: `subject-${index}`, ...(index % 2 === 0 ? ofLimit : ofCode) }
    }
    case 'events':
      return { ...row, id: `key-${index}`, requestId: id }
    case 'operators':
      return { ...row, id: `key-${index}`, email: `${index}${row.email}` }
    default:
      return { ...row, [Object.keys(row)[0] ?? '']: `key-${index}` }
  }
}

/** The expected row in PostgreSQL, by its columns; undefined if it has expired. */
function asStored(table: Table, row: Drawn): unknown {
  const kept: Record<string, unknown> = {}
  for (const [property, { name }] of Object.entries(getTableColumns(table)))
    kept[name] = row[property] ?? null
  switch (getTableName(table)) {
    case 'stats':
      return storable({ ...kept, part: 0 })
    case 'codes_and_limits':
      return Number(kept.expires_at) < 2 ** 42 ? undefined : storable(kept)
    default:
      return storable(kept)
  }
}

/** The value in PostgreSQL: no NUL, and no half of a surrogate pair. */
function storable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, part) =>
    typeof part === 'string' ? part.toWellFormed().replaceAll('\0', '\ufffd') : part,
  )
}

function inOrder(rows: readonly unknown[]): readonly unknown[] {
  const text = (row: unknown) =>
    JSON.stringify(Object.entries(row ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)))
  return [...rows].sort((a, b) => (text(a) < text(b) ? -1 : 1))
}

/** Everything that the service reads from its tables. */
async function readings(env: Readonly<Record<string, string>>, drawn: readonly Drawn[][]): Promise<unknown> {
  const context = await openContext(readStoreConfig({ SECRET_KEY: secretKey, ...env }))
  const ids = drawn[tables.indexOf(schema.requests)] ?? []
  const read = {
    brands: await context.brands.list(),
    apps: await context.apps.list(),
    requests: await context.requests.list(),
    audit: await context.audit.list({ limit: 100 }),
    sessions: await context.sessions.list(Date.now()),
    outbox: await context.outbox.list({ limit: 100 }),
    deliveries: await context.eventLog.deliveries({ limit: 100 }),
    traces: await Promise.all(ids.map(({ requestId }) => context.eventLog.trace(String(requestId)))),
  }
  await context.close()
  return JSON.parse(JSON.stringify(read))
}

/** A move in a process of its own. */
function spawnMove(file: string, url: string) {
  return Bun.spawn(programLine(['move', '--from', `file:${file}`]), {
    env: programEnv({ DATABASE_URL: url, SECRET_KEY: secretKey }),
    stdout: 'ignore',
    stderr: 'ignore',
  })
}

async function lastCode(server: TestServer, to: string): Promise<string> {
  const { body } = await server.get(`/outbox/messages?to=${to}`)
  return codeIn(body.messages.at(-1)?.text)
}
