import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import Driver from 'better-sqlite3'
import type { Migration } from '../drizzle/migration.ts'
import { migrations as postgresMigrations } from '../drizzle/postgres/migrations.ts'
import { migrations as sqliteMigrations } from '../drizzle/sqlite/migrations.ts'
import packageJson from '../package.json'
import { migrate as migratePostgres } from '../src/adapters/postgres/migrate.ts'
import { openPool } from '../src/adapters/postgres/pool.ts'
import { migrate as migrateSqlite } from '../src/adapters/sqlite/migrate.ts'
import { issueApp } from '../src/domain/operator/apps.ts'
import { targetOf } from './store/postgres-database.ts'
import { createTestApp, otherThan } from './support/app.ts'
import { migratedTestDatabase, sqliteOnly, store, type TestDatabase } from './support/database.ts'
import { tester } from './support/operator.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'
import { nextMigration } from './upgrade/next.ts'

// A database of this version with data in it, and a made-up next migration.

const phones = { live: '12025550141', guessed: '12025550142', locked: '12025550143' } as const
const next = nextMigration(store)
const isNewer = `newer version of otpost, or one that was never released, has upgraded ${store === 'sqlite' ? 'it' : 'the database'} (9999_next); this is ${packageJson.version}.`

const servers: TestServer[] = []
afterAll(async () => {
  for (const server of servers) await server.stop('SIGKILL')
})

let database: TestDatabase
let codes: Record<keyof typeof phones, string>
let apiKey: string
beforeEach(async () => {
  database = await migratedTestDatabase()
  const app = await createTestApp(database.env)
  const codeTo = async (phone: string) => {
    expect((await app.post('/otp/send', { phone })).status).toBe(200)
    return app.lastCode(phone)
  }
  codes = {
    live: await codeTo(phones.live),
    guessed: await codeTo(phones.guessed),
    locked: await codeTo(phones.locked),
  }
  for (const phone of [phones.guessed, ...Array<string>(3).fill(phones.locked)]) {
    await app.post('/otp/verify', { phone, otp: otherThan(codes.guessed) })
  }
  const { operator, secrets } = app.app.context
  const ports = { operator, secrets, now: () => app.clock.now, actor: tester }
  apiKey = (await issueApp(ports, 'scoped', { brands: ['acme'] })).key
  await app.close()
})
afterEach(() => database.remove())

/** Starts the version after this one, as far as its migration is concerned. */
async function upgrade(known?: readonly Migration[]): Promise<void> {
  if (store === 'sqlite') {
    const driver = new Driver(database.file, { timeout: 30_000 })
    try {
      migrateSqlite(driver, known ?? [...sqliteMigrations, next])
    } finally {
      driver.close()
    }
    return
  }
  const pool = openPool(targetOf(String(database.env.DATABASE_URL)), () => {})
  try {
    await migratePostgres(pool, known ?? [...postgresMigrations, next])
  } finally {
    await pool.close()
  }
}

async function rowsOf(table: string): Promise<string[]> {
  return (await database.query(`SELECT * FROM ${table}`)).map((row) => JSON.stringify(row)).sort()
}

/** All that the database has: tables, columns and rows. */
async function everything(): Promise<string> {
  const tables = await database.query(
    store === 'sqlite'
      ? "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
      : "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
  )
  const rows = await Promise.all(tables.map(async ({ name }) => [name, await rowsOf(String(name))]))
  return JSON.stringify(rows)
}

describe('an upgrade', () => {
  test('keeps every row, and happens once', async () => {
    const tables = ['codes_and_limits', 'app_brands', 'requests', 'audit']
    const before = await Promise.all(tables.map(rowsOf))
    expect(before.map((rows) => rows.length > 0)).toEqual([true, true, true, true])
    await upgrade()
    const after = await Promise.all(tables.map(rowsOf))
    const added = /,"(?:note":"none"|since":null)/
    expect(after.map((rows) => rows.map((row) => row.replace(added, '')))).toEqual(before)
    expect(
      after
        .slice(0, 2)
        .flat()
        .every((row) => added.test(row)),
    ).toBe(true)
    expect(await rowsOf('own_brands')).toEqual(before[1] ?? [])
    expect(await database.isWhole()).toBe(true)
    const upgraded = await everything()
    await upgrade()
    expect(await everything()).toEqual(upgraded)
  })

  test('keeps live codes, attempts, limits and keys', async () => {
    await upgrade()
    // So that this version accepts it.
    await database.query("DELETE FROM __drizzle_migrations WHERE hash = '9999_next'")
    const app = await createTestApp(database.env)
    const verdict = async (path: string, fields: object) => {
      const { status, body } = await app.post(path, { ...fields })
      return body.error === undefined ? String(status) : `${status} ${body.error}`
    }
    const guess = (of: keyof typeof phones, otp: string) => verdict('/otp/verify', { phone: phones[of], otp })
    expect(await guess('live', codes.live)).toBe('200')
    expect(await guess('locked', codes.locked)).toBe('429 max_attempts')
    expect(await guess('guessed', otherThan(codes.guessed))).toBe('401 mismatch')
    expect(await guess('guessed', otherThan(codes.guessed))).toBe('401 mismatch')
    expect(await guess('guessed', codes.guessed)).toBe('429 max_attempts')
    expect(await verdict('/otp/send', { phone: phones.guessed })).toBe('429 cooldown_active')
    const scoped = { appId: 'scoped', apiKey, phone: '12025550149' }
    expect(await verdict('/otp/send', scoped)).toBe('200')
    expect(await verdict('/otp/send', { ...scoped, brandId: 'globex' })).toBe('403 brand_not_approved')
    await app.close()
  })

  test('is done completely or not at all', async () => {
    const before = await everything()
    const failing = { ...next, statements: [...next.statements, 'DROP TABLE nothing'] }
    const known = store === 'sqlite' ? sqliteMigrations : postgresMigrations
    await expect(upgrade([...known, failing])).rejects.toThrow('nothing')
    expect(await everything()).toEqual(before)
  })

  const last = next.statements.length
  for (const statement of [1, Math.floor(last / 2), last]) {
    sqliteOnly(`is not done if the process is killed after ${statement} of ${last} statements`, async () => {
      const before = await everything()
      const program = join(import.meta.dir, 'upgrade/migrate-and-die.ts')
      const child = Bun.spawn([process.execPath, program, database.file, String(statement)])
      await child.exited
      expect(child.signalCode).toBe('SIGKILL')
      expect(await everything()).toEqual(before)
      expect(await database.isWhole()).toBe(true)
      await upgrade()
      expect(await rowsOf('own_brands')).toHaveLength(1)
    })
  }
})

describe('a database of a newer version', () => {
  test('is rejected by a server and by commands, which say what to do, and does not change', async () => {
    await upgrade()
    const before = await everything()
    for (const command of [['serve'], ['migrate'], ['app', 'issue', 'shop']]) {
      const { code, stdout, stderr } = await otpost(command, { ...database.env, PORT: '0' })
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toContain(
        `${isNewer} Start that version, or restore a backup from before the upgrade${store === 'sqlite' ? ' with `otpost restore FILE`' : ''}.\n`,
      )
    }
    expect(await everything()).toEqual(before)
  })

  test('makes a server that has it open unhealthy, which its log explains', async () => {
    const server = await startServer(database.env)
    servers.push(server)
    expect((await server.get('/health')).status).toBe(200)
    await upgrade()
    const { status, body } = await server.get('/health')
    expect([status, body.status]).toEqual([503, 'unavailable'])
    await server.logged(isNewer)
  })

  sqliteOnly('is replaced by a restore of the backup from before the upgrade', async () => {
    const backup = `${database.file}.backup`
    copyFileSync(database.file, backup)
    await upgrade()
    const { code, stderr } = await otpost(['restore', backup], database.env)
    expect([code, stderr]).toEqual([0, ''])
    const [column] = await database.query(
      "SELECT name FROM pragma_table_info('app_brands') WHERE name = 'since'",
    )
    expect(column).toBeUndefined()
    expect((await otpost(['migrate'], database.env)).code).toBe(0)
  })
})
