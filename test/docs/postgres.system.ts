import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { distributedTables } from '../../src/adapters/postgres/distribution.ts'
import { temporaryFolder } from '../support/folder.ts'
import {
  databaseUrl,
  freshDatabase,
  queryOnce,
  startPostgres,
  withoutOwnPostgres,
} from '../support/postgres.ts'
import { freshPhone } from '../support/rows.ts'
import { otpost, startServer } from '../support/server.ts'
import { pageAt, pages } from './pages.ts'

// Runs the SQL of the pages, as the roles that the pages name.

const without = withoutOwnPostgres ? ` (${withoutOwnPostgres})` : ''

/** The SQL samples of a page, each as a list of statements. */
function sqlOf(path: string): readonly (readonly string[])[] {
  return pageAt(path)
    .samples.filter(({ language }) => language === 'sql')
    .map(({ code }) => code.split(/;\s*(?:\n|$)/).filter((statement) => statement.trim() !== ''))
}

async function runAll(url: string, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await queryOnce(url, statement)
}

test('every page with SQL has a test here', () => {
  const withSql = pages.filter(({ samples }) => samples.some(({ language }) => language === 'sql'))
  expect(withSql.map(({ path }) => path)).toEqual(['docs/engineering/distributed.md', 'docs/postgres.md'])
})

describe.skipIf(withoutOwnPostgres !== undefined)(`docs/postgres.md${without}`, () => {
  // The superuser of the test already has the name otpost.
  const blocks = sqlOf('docs/postgres.md').map((block) =>
    block.map((statement) => statement.replace(/\botpost(?=\b|_node\b)/g, 'pages_otpost')),
  )
  const [owner = [], node = [], grants = [], afterRestore = [], behindPooler = []] = blocks
  const password = (statements: readonly string[]) =>
    /PASSWORD '([^']+)'/.exec(statements.join())?.[1] ?? expect.unreachable()

  let ending: AsyncDisposableStack
  let adminUrl: string
  const urlAs = (user: string, secret: string) => {
    const url = new URL(databaseUrl(adminUrl, 'pages_otpost'))
    url.username = user
    url.password = encodeURIComponent(secret)
    return url.href
  }
  const settingsOf = (url: string) => ({
    DATABASE_URL: url,
    SECRET_KEY: 'of the test and 32 bytes long or more',
    APP_CREDENTIALS: '',
    // Slowness of a busy machine must not matter, and no cooldown may end before its check.
    DATABASE_CONNECT_TIMEOUT_MS: '30000',
    DATABASE_STATEMENT_TIMEOUT_MS: '30000',
    SMS_COOLDOWN_SECONDS: '600',
  })

  beforeAll(async () => {
    ending = new AsyncDisposableStack()
    const server = ending.use(await startPostgres({ fsync: 'off' }))
    adminUrl = server.url
  })
  afterAll(() => ending.disposeAsync())

  test('leads from an empty server to a node with minimal rights, and through a restore', async () => {
    expect(blocks).toHaveLength(5)
    await runAll(adminUrl, owner)
    const owning = urlAs('pages_otpost', password(owner))
    const asOwner = settingsOf(owning)
    expect(await otpost(['migrate'], asOwner)).toMatchObject({ code: 0 })
    await runAll(adminUrl, node)
    await runAll(owning, grants)
    const asNode = settingsOf(urlAs('pages_otpost_node', password(node)))

    const folder = temporaryFolder()
    ending.defer(folder.remove)
    const file = `file:${folder.path}/otpost.db`
    for (const args of [['migrate'], ['brand', 'put', 'moved', '--name', 'Moved']])
      expect(await otpost(args, { ...asNode, DATABASE_URL: file })).toMatchObject({ code: 0 })
    const move = ['move', '--from', file, '--keep']
    expect(await otpost(move, asNode)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Run `otpost move` as the owner'),
    })
    expect(await otpost(move, asOwner)).toMatchObject({ code: 0 })

    // Everything that a node and its commands do, except what the page leaves to the owner.
    expect(await otpost(['brand', 'put', 'acme', '--name', 'Acme'], asNode)).toMatchObject({ code: 0 })
    expect(await otpost(['migrate'], asNode)).toMatchObject({ code: 0 })
    const issued = await otpost(['app', 'issue', 'globex'], asNode)
    expect(issued).toMatchObject({ code: 0 })
    const app = { appId: 'globex', apiKey: issued.stdout.trim() }
    const [used, unused] = [freshPhone(), freshPhone()]
    const first = await startServer(asNode)
    const sent = await first.post('/otp/send', { ...app, phone: used })
    expect(sent.status).toBe(200)
    expect((await first.post('/otp/send', { ...app, phone: unused })).status).toBe(200)
    const codes = new Map<string, string>()
    for (const phone of [used, unused]) {
      const { body } = await first.get(`/outbox/messages?to=${phone}&wait=10`)
      codes.set(phone, /\d{6}/.exec(body.messages[0].text)?.[0] ?? expect.unreachable())
    }
    const verify = (server: typeof first, phone: string) =>
      server.post('/otp/verify', { ...app, phone, otp: codes.get(phone) ?? '' })
    expect((await verify(first, used)).status).toBe(200)
    await first.stop()
    const doctorsWord = async (settings: Readonly<Record<string, string>>) => {
      const { stdout } = await otpost(['doctor', '--json'], { PORT: '0', ...asNode, ...settings })
      const findings: readonly { what: string; level: string }[] = JSON.parse(stdout)
      return findings.filter(({ what }) => what === 'secret').map(({ level }) => level)
    }
    expect(await doctorsWord({})).toEqual(['ok'])
    expect(await doctorsWord({ SECRET_KEY: 'another-secret-of-32-bytes-or-more' })).toEqual(['fail'])
    const warnings = first.lines.filter((line) => /"level":[456]0/.test(line))
    expect(warnings.filter((line) => !line.includes('not protected against SMS pumping'))).toEqual([])
    expect((await otpost(['explain', sent.body.requestId], asNode)).stdout).toContain(
      'requested a code by SMS',
    )
    const refused = queryOnce(asNode.DATABASE_URL, 'CREATE TABLE extra (id int)')
    expect(await refused.catch(({ code }) => code)).toBe('42501')
    const forged = queryOnce(asNode.DATABASE_URL, 'DELETE FROM __drizzle_migrations')
    expect(await forged.catch(({ code }) => code)).toBe('42501')

    // The state just before the code was used.
    await runAll(owning, afterRestore)
    const second = await startServer(asNode)
    expect((await verify(second, unused)).status).toBe(404)
    expect(await second.post('/otp/send', { ...app, phone: unused })).toMatchObject({
      status: 429,
      body: { error: 'cooldown_active' },
    })
    await second.stop()

    expect(await otpost(['forget', used], asNode)).toMatchObject({ code: 0 })
    await runAll(adminUrl, behindPooler)
    expect(await queryOnce(owning, 'SHOW statement_timeout')).toEqual([{ statement_timeout: '5s' }])
  })
})

describe.skipIf(withoutOwnPostgres !== undefined)(`docs/engineering/distributed.md${without}`, () => {
  // Other statements call functions of Citus.
  const indexes =
    sqlOf('docs/engineering/distributed.md').find((block) => block.join().includes('CREATE INDEX')) ?? []
  let database: Awaited<ReturnType<typeof freshDatabase>>
  const query = (text: string, values: readonly unknown[] = []) => queryOnce(database.url, text, values)
  beforeAll(async () => {
    database = await freshDatabase()
  })
  afterAll(() => database.remove())

  test('names every table, and the first column of the primary key of those that are distributed', async () => {
    const keys = await query(`SELECT relname AS name, attname AS key FROM pg_index
      JOIN pg_class ON pg_class.oid = indrelid JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
      WHERE indisprimary AND relnamespace = 'public'::regnamespace ORDER BY relname`)
    const [, text = ''] = pageAt('docs/engineering/distributed.md').text.split(/^## /m)
    const rows = [...text.matchAll(/^\| (`[^|]+) \| ([^|]+) \|/gm)].flatMap(([, names = '', by = '']) =>
      [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => ({ name, by: by.trim() })),
    )
    expect(rows.map(({ name }) => name).sort()).toEqual(keys.map(({ name }) => String(name)).sort())
    const spread = rows.filter(({ by }) => by.startsWith('`'))
    expect(spread.map(({ name, by }) => [name, by])).toEqual(
      spread.map(({ name }) => [name, `\`${keys.find((each) => each.name === name)?.key}\``]),
    )
    expect(new Set(spread.map(({ name, by }) => `${name} by ${by.slice(1, -1)}`))).toEqual(
      new Set(distributedTables.map(({ table, column }) => `${table} by ${column}`)),
    )
  })

  test('has indexes that replace the existing ones', async () => {
    const described = () =>
      query(
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname",
      )
    const before = await described()
    await runAll(database.url, indexes)
    expect(await described()).toEqual(expect.arrayContaining(before))
  })
})
