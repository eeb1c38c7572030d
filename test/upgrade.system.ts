import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import Driver from 'better-sqlite3'
import type { Migration } from '../drizzle/migration.ts'
import { migrations as postgresMigrations } from '../drizzle/postgres/migrations.ts'
import { migrations } from '../drizzle/sqlite/migrations.ts'
import packageJson from '../package.json'
import { migrate } from '../src/adapters/sqlite/migrate.ts'
import { createApp } from '../src/app.ts'
import { readConfig } from '../src/config/config.ts'
import { readStoreConfig } from '../src/config/store.ts'
import { type Context, openContext } from '../src/context.ts'
import type { Delivery } from '../src/domain/log/event-log.ts'
import { inDatabase, isWhole, place } from './care/scene.ts'
import { otherThan } from './support/app.ts'
import { emptyDatabase, queryOnce, withoutPostgres } from './support/postgres.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'
import { copyFixture, type Facts, fixtures } from './upgrade/fixtures.ts'

// Opens a database of each earlier schema, created by that version itself (test/upgrade/README.md), with this version.

/** A column of former schemas with the events of a request. */
const traceColumn = 'story'

const cases = fixtures.map((facts) => [facts.schema, facts] as const)
const [oldest, latest] = ends(fixtures)

function ends([first, ...rest]: readonly Facts[]): readonly [Facts, Facts] {
  if (!first) throw new Error('there are no databases of former versions')
  return [first, rest.at(-1) ?? first]
}

const places: ReturnType<typeof place>[] = []
const servers: TestServer[] = []
afterAll(async () => {
  for (const server of servers) await server.stop('SIGKILL')
  for (const each of places) each.remove()
})

/** A copy of a stored database, and the settings for it. */
function copyOf(facts: Facts) {
  const scene = place()
  places.push(scene)
  const file = scene.at('otpost.db')
  copyFixture(facts, file)
  return { ...scene, file, env: { DATABASE_URL: `file:${file}`, SECRET_KEY: facts.secretKey } }
}

function schemaOf(driver: Driver.Database): unknown {
  return driver
    .prepare(
      "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name <> 'sqlite_sequence' ORDER BY name",
    )
    .all()
}

/** The structure of a database that begins with these migrations. */
function schemaAfter(known: readonly Migration[]): unknown {
  const driver = new Driver(':memory:')
  try {
    migrate(driver, known)
    return schemaOf(driver)
  } finally {
    driver.close()
  }
}

/** Every row of every table. */
function rowsOf(driver: Driver.Database): unknown {
  const tables = driver
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .pluck()
    .all()
  return tables.map((table) => [table, driver.prepare(`SELECT * FROM "${table}"`).all()])
}

describe('of each schema', () => {
  test('but the newest there is a database of a former version', () => {
    // No version had these without the migration that follows.
    const neverNewest = ['0005_codes_and_limits', '0007_provider']
    const before = migrations
      .slice(0, -1)
      .map(({ tag }) => tag)
      .filter((tag) => !neverNewest.includes(tag))
    expect(
      before.filter((tag) => !fixtures.some(({ schema }) => schema === tag)),
      'A new migration needs a database of the schema before it: test/upgrade/README.md says how.',
    ).toEqual([])
  })

  test.each(cases)('%s, the migration has not changed since its release', (schema, facts) => {
    const { file } = copyOf(facts)
    const known = migrations.slice(0, migrations.findIndex(({ tag }) => tag === schema) + 1)
    expect(
      inDatabase(file, schemaOf),
      'A migration that databases have had is history: a change to it never reaches them. Add another.',
    ).toEqual(schemaAfter(known))
    expect(
      inDatabase(file, (driver) => driver.prepare('SELECT hash, created_at FROM __drizzle_migrations').all()),
    ).toEqual(known.map(({ tag, when }) => ({ hash: tag, created_at: when })))
  })
})

describe('an older database', () => {
  test.each(cases)(
    'of %s has the schema of a new database after its migration, and then does not change',
    (_, facts) => {
      const { file } = copyOf(facts)
      inDatabase(file, (driver) => {
        migrate(driver)
        expect(schemaOf(driver)).toEqual(schemaAfter(migrations))
        const before = [rowsOf(driver), driver.pragma('schema_version')]
        migrate(driver)
        expect([rowsOf(driver), driver.pragma('schema_version')]).toEqual(before)
      })
      expect(isWhole(file)).toBe(true)
    },
  )

  test.each(cases)('of %s can be served: its brands, its apps and their keys work', async (_, facts) => {
    const { env } = copyOf(facts)
    const server = await startServer({ ...env, APP_CREDENTIALS: '' })
    servers.push(server)
    const verdict = async (app: { appId: string; apiKey: string; brandId?: string }) => {
      const { appId, apiKey, brandId = 'acme' } = app
      const { status, body } = await server.post('/otp/verify', {
        appId,
        apiKey,
        brandId,
        phone: '+12025550199',
        otp: '123456',
      })
      return `${status} ${body.error}`
    }
    const { app, revokedApp, approvedApp } = facts
    expect(await verdict(app)).toBe('404 not_found')
    if (app.secondApiKey) expect(await verdict({ ...app, apiKey: app.secondApiKey })).toBe('404 not_found')
    if (approvedApp) expect(await verdict(approvedApp)).toBe('404 not_found')
    expect(await verdict(revokedApp)).toBe('403 forbidden')
    expect(await verdict({ ...app, brandId: 'umbrella' })).toBe('403 brand_suspended')
    expect(await verdict({ ...app, brandId: 'globex' })).toBe('403 brand_not_approved')
    const shown = facts.brands
      .filter(({ status }) => status === 'active')
      .map(({ brandId, displayName }) => ({ brandId, displayName }))
    expect((await server.get('/platform/brands')).body.brands).toEqual(shown)
    const listed = await otpost(['app', 'list', '--json'], env)
    for (const { appId, brands, allow, perMinute } of JSON.parse(listed.stdout)) {
      // Since this version, an approved request scopes its app.
      const scoped =
        facts.schema >= '0009_money' && approvedApp && appId === approvedApp.appId
          ? [approvedApp.brandId]
          : []
      const expected = { brands: scoped, allow: ['otp', 'notify'], perMinute: null }
      expect({ brands, allow, perMinute }).toEqual(expected)
    }
    expect((await otpost(['app', 'set', app.appId, '--brand', 'umbrella'], env)).code).toBe(0)
    expect(await verdict(app)).toBe('403 brand_not_approved')
    expect(await verdict({ ...app, brandId: 'umbrella' })).toBe('403 brand_suspended')
    expect(await server.stop()).toBe(0)
  })

  test.each(cases)('of %s keeps live codes and limits', async (schema, facts) => {
    const { env } = copyOf(facts)
    await using service = await serviceOf(facts, env)
    const { verdict } = service
    const { live, guessed, locked, used, busy, cooling } = facts.codes
    // Former hashes of codes had another format: their codes no longer verify.
    const codes =
      schema === '0000_init'
        ? { right: '404 not_found', wrong: '404 not_found', locked: '404 not_found' }
        : { right: '200', wrong: '401 mismatch', locked: '429 max_attempts' }
    expect(await verdict('/otp/verify', live)).toBe(codes.right)
    expect(await verdict('/otp/verify', live)).toBe('404 not_found')
    expect(await verdict('/otp/verify', facts.mail)).toBe(codes.right)
    expect(await verdict('/otp/verify', used)).toBe('404 not_found')
    expect(await verdict('/otp/verify', locked)).toBe(codes.locked)
    // One wrong guess was counted before the upgrade; two are left.
    expect(await verdict('/otp/verify', { ...guessed, otp: otherThan(guessed.otp) })).toBe(codes.wrong)
    expect(await verdict('/otp/verify', { ...guessed, otp: otherThan(guessed.otp) })).toBe(codes.wrong)
    expect(await verdict('/otp/verify', guessed)).toBe(codes.locked)
    expect(await verdict('/otp/send', { phone: cooling.phone })).toBe('429 cooldown_active')
    expect(await verdict('/otp/send', { phone: busy.phone })).toBe('429 rate_limited')
    expect(await verdict('/otp/send', { phone: '12025550198' })).toBe('200')
    // The minute limit of the number has ended; its hour limit and its cooldown do not start again.
    service.advance(60)
    expect(await verdict('/otp/send', { phone: busy.phone })).toBe('200')
    expect(await verdict('/otp/send', { phone: cooling.phone })).toBe('200')
  })

  const logged = cases.filter(([schema]) => schema >= '0002_journal' && schema < '0006_event_log')

  test.each(logged)('of %s keeps its event log, delivery reports and statistics', async (_, facts) => {
    const { file, env } = copyOf(facts)
    const before = formerLog(file)
    expect(before.stories.length).toBeGreaterThan(15)
    expect(before.receipts.length).toBeGreaterThan(0)
    await using context = await contextOf(env)
    await expectLog(context, before, facts)
  })

  test.skipIf(withoutPostgres !== undefined)('on PostgreSQL keeps them too', async () => {
    const [, newest] = ends(logged.map(([, facts]) => facts))
    const { file } = copyOf(newest)
    const before = formerLog(file)
    const { url, remove } = await emptyDatabase()
    try {
      const former = postgresMigrations
        .slice(0, 2)
        .flatMap(({ tag, when, statements }) => [
          ...statements.map((statement) => [statement, []] as const),
          ['INSERT INTO __drizzle_migrations (hash, created_at) VALUES ($1, $2)', [tag, when]] as const,
        ])
      await queryOnce(
        url,
        'CREATE TABLE __drizzle_migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint NOT NULL)',
      )
      for (const [statement, values] of former) await queryOnce(url, statement, values)
      for (const [table, rows] of Object.entries(before)) {
        const columns =
          {
            stories: `request_id, ${traceColumn}::jsonb ->> 2 AS app, ${traceColumn}::jsonb AS ${traceColumn}`,
            tallies: '0 AS part, *',
          }[table] ?? '*'
        await queryOnce(
          url,
          `INSERT INTO ${table} SELECT own.* FROM (SELECT ${columns} FROM jsonb_to_recordset($1::jsonb) AS given (${typesOf(rows[0])})) AS kept
            CROSS JOIN LATERAL jsonb_populate_record(NULL::${table}, to_jsonb(kept)) AS own`,
          [JSON.stringify(rows)],
        )
      }
      await using context = await contextOf({ DATABASE_URL: url, SECRET_KEY: newest.secretKey })
      await expectLog(context, before, newest)
    } finally {
      await remove()
    }
  })

  test.each(cases)('of %s can be restored from a backup', (_, facts) => {
    const { file } = copyOf(facts)
    const scene = place()
    places.push(scene)
    scene.restore(file)
    expect(inDatabase(scene.file, schemaOf)).toEqual(schemaAfter(migrations))
    expect(
      inDatabase(scene.file, (driver) =>
        driver.prepare('SELECT slug FROM brands ORDER BY slug').pluck().all(),
      ),
    ).toEqual(facts.brands.map(({ brandId }) => brandId))
  })

  test('is migrated by a command too, after which doctor reports no failure', async () => {
    const { env, file } = copyOf(oldest)
    expect(await otpost(['migrate'], env)).toEqual({
      code: 0,
      stdout: `The schema of ${file} is up to date.\n`,
      stderr: '',
    })
    const [list, doctor] = await Promise.all([
      otpost(['brand', 'list', '--json'], env),
      otpost(['doctor', '--full', '--json'], { ...env, PORT: '0' }),
    ])
    const properties = {
      entityId: null,
      registrations: {},
      lang: 'en',
      androidHash: null,
      logoUrl: null,
      color: null,
      dltAllowList: [],
    }
    expect(JSON.parse(list.stdout)).toEqual(oldest.brands.map((brand) => ({ ...brand, ...properties })))
    const findings: { level: string; what: string }[] = JSON.parse(doctor.stdout)
    expect(findings.filter(({ level }) => level === 'fail')).toEqual([])
    expect(findings).toContainEqual(expect.objectContaining({ level: 'ok', what: 'schema' }))
    expect(findings).toContainEqual(expect.objectContaining({ level: 'ok', what: 'integrity' }))
    expect(doctor.code).toBe(0)
  })
})

describe('an unfinished upgrade does not change the old database:', () => {
  const missing = migrations.slice(migrations.findIndex(({ tag }) => tag === oldest.schema) + 1)
  const statements = missing.flatMap((migration) => migration.statements).length

  test.each([
    ['at its first statement', '1'],
    ['half way', String(Math.floor(statements / 2))],
    ['before its commit', 'commit'],
  ])('killed %s', async (_, before) => {
    const { file } = copyOf(oldest)
    const untouched = inDatabase(file, (driver) => [schemaOf(driver), rowsOf(driver)])
    const child = Bun.spawn([
      process.execPath,
      join(import.meta.dir, 'upgrade/migrate-and-die.ts'),
      file,
      before,
    ])
    await child.exited
    expect(child.signalCode).toBe('SIGKILL')
    expect(inDatabase(file, (driver) => [schemaOf(driver), rowsOf(driver)])).toEqual(untouched)
    expect(isWhole(file)).toBe(true)
    inDatabase(file, (driver) => void migrate(driver))
    expect(inDatabase(file, schemaOf)).toEqual(schemaAfter(migrations))
  })

  test('a statement that fails', () => {
    const { file } = copyOf(oldest)
    const failing = {
      tag: '9999_fails',
      when: Date.UTC(2999, 0),
      statements: ['DROP TABLE brands', 'DROP TABLE nothing'],
    }
    inDatabase(file, (driver) => {
      const untouched = [schemaOf(driver), rowsOf(driver)]
      expect(() => migrate(driver, [...migrations, failing])).toThrow('nothing')
      expect([schemaOf(driver), rowsOf(driver)]).toEqual(untouched)
    })
  })
})

describe('a database of a newer version', () => {
  /** A database of the version after this one. */
  function upgraded() {
    const scene = copyOf(latest)
    const next = {
      tag: '9999_next',
      when: Date.UTC(2999, 0),
      statements: ['ALTER TABLE brands RENAME TO names'],
    }
    inDatabase(scene.file, (driver) => void migrate(driver, [...migrations, next]))
    return scene
  }

  test('is rejected by a server and by commands, which say what to do, and does not change', async () => {
    const { env, file } = upgraded()
    const content = () => inDatabase(file, (driver) => [schemaOf(driver), rowsOf(driver)])
    const before = content()
    for (const command of [['serve'], ['migrate'], ['app', 'issue', 'shop']]) {
      const { code, stdout, stderr } = await otpost(command, { ...env, PORT: '0' })
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toBe(
        `otpost: The database ${file} cannot be used: a newer version of otpost has upgraded it (9999_next); this is ${packageJson.version}. Start that version, or restore a backup from before the upgrade with \`otpost restore FILE\`.\n`,
      )
    }
    expect(content()).toEqual(before)
  })

  test('makes a server that has it open unhealthy, which its log explains', async () => {
    const scene = copyOf(latest)
    const server = await startServer(scene.env)
    try {
      expect((await server.get('/health')).status).toBe(200)
      inDatabase(scene.file, (driver) => {
        driver.pragma('busy_timeout = 30000')
        // This version could work with the change, but must still report it.
        const next = {
          tag: '9999_next',
          when: Date.UTC(2999, 0),
          statements: ['CREATE TABLE more (id INTEGER)'],
        }
        migrate(driver, [...migrations, next])
      })
      const { status, body } = await server.get('/health')
      expect([status, body.status]).toEqual([503, 'unavailable'])
      await server.logged('newer version of otpost has upgraded it (9999_next)')
    } finally {
      await server.stop()
    }
  })

  test('is replaced by a restore of the backup from before the upgrade', async () => {
    const { env, file, at } = upgraded()
    copyFixture(latest, at('backup.db'))
    const { code, stderr } = await otpost(['restore', at('backup.db')], env)
    expect([code, stderr]).toEqual([0, ''])
    expect(inDatabase(file, schemaOf)).toEqual(schemaAfter(migrations))
  })
})

/** The rows of the event log from before requests had typed columns. */
function formerLog(file: string) {
  return inDatabase(file, (driver) => {
    function all<Row>(table: string) {
      return driver.prepare<[], Row>(`SELECT * FROM ${table}`).all()
    }
    const hasStats = driver.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get('tallies') !== undefined
    return {
      stories: all<{ request_id: string; story: string }>('stories'),
      deliveries: all<FormerDelivery>('deliveries'),
      receipts: all<{ key: string; status: string; reason: string | null; at: number }>('receipts'),
      tallies: hasStats ? all<{ step_ms: number; count: number }>('tallies') : [],
    }
  })
}

interface FormerDelivery {
  readonly request_id: string
  readonly attempt: number
  readonly recipient_hash: string
  readonly receipt_key: string | null
  readonly [column: string]: unknown
}

/** The columns of a row, as PostgreSQL extracts them from JSON. */
function typesOf(row: object = {}): string {
  return Object.entries(row)
    .map(([name, value]) => `"${name}" ${typeof value === 'number' ? 'bigint' : 'text'}`)
    .join()
}

async function contextOf(env: Readonly<Record<string, string>>) {
  const context = await openContext(readStoreConfig(env))
  return Object.assign(context, { [Symbol.asyncDispose]: () => context.close() })
}

/** All rows of an earlier event log have their values. */
async function expectLog(
  { eventLog }: Context,
  { stories, deliveries, receipts, tallies }: ReturnType<typeof formerLog>,
  { madeAt }: Facts,
): Promise<void> {
  for (const { request_id: requestId, story } of stories) {
    const [at, operation, app, brand, channel, recipient, recipients, limits, end, hash] = JSON.parse(story)
    const first = deliveries.find((row) => row.request_id === requestId && row.attempt === 1)
    expect(await eventLog.trace(requestId)).toEqual({
      ...{ requestId, at, operation, app, brand, channel, recipient, recipients },
      recipientSubject: (recipients ?? 1) > 1 ? null : (hash ?? first?.recipient_hash ?? null),
      ...{ country: null, reference: null, flags: [], unknownFields: [] },
      limits: limits.map(([limit, max, used, endsAt, refused]: readonly unknown[]) => ({
        ...{ limit, max, used, endsAt },
        refused: refused === 1,
      })),
      end: end && { status: end[0], error: end[1], message: end[2], durationMs: end[3] },
    })
  }
  const expected = deliveries.map((row) => ({
    requestId: row.request_id,
    ...{ attempt: row.attempt, at: row.at, app: row.app, brand: row.brand, channel: row.channel },
    ...{ route: row.route, provider: row.provider, template: row.template, recipient: row.recipient },
    ...{ position: row.position, country: null, lang: null },
    recipientSubject: row.recipient_hash,
    segments: row.segments === null ? null : { count: row.segments, encoding: row.encoding },
    ...{ outcome: row.outcome, errorClass: row.error_class, reason: row.reason },
    providerMessageId: row.vendor_id,
    reportKey: row.receipt_key,
    durationMs: row.duration_ms,
    report: reportOf(receipts.find(({ key }) => key === row.receipt_key)),
  }))
  expect(await eventLog.deliveries({ limit: 1000 })).toEqual(expected as Delivery[])
  const { points } = await eventLog.statistics('day', madeAt)
  const sent = points.reduce((sum, { sends, notified }) => sum + sends + notified, 0)
  expect(sent > 0).toBe(tallies.length > 0)
}

function reportOf(row: { status: string; reason: string | null; at: number } | undefined) {
  return row ? { status: row.status, reason: row.reason, at: row.at } : null
}

/** This version in this process, at a moment when the codes and limits of the stored database were live. */
async function serviceOf(facts: Facts, env: Readonly<Record<string, string>>) {
  const clock = { now: facts.madeAt + 1000 }
  const quiet = () => undefined
  const service = await createApp(readConfig({ ...env, GLOBAL_LIMIT_PER_MINUTE: '1000' }), {
    now: () => clock.now,
    log: { info: quiet, warn: quiet, error: quiet },
  })
  return {
    advance(seconds: number): void {
      clock.now += seconds * 1000
    },
    /** The status of a POST as the shop, and its error. */
    async verdict(path: string, fields: object): Promise<string> {
      const channel = 'email' in fields ? { channel: 'EMAIL' } : {}
      const { appId, apiKey } = facts.app
      const response = await service.handle(
        new Request(`http://localhost${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ appId, apiKey, brandId: 'acme', ...channel, ...fields }),
        }),
      )
      const { error } = (await response.json()) as { error?: string }
      return error === undefined ? String(response.status) : `${response.status} ${error}`
    },
    [Symbol.asyncDispose]: () => service.close(),
  }
}
