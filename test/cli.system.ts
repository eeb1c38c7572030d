import { afterAll, describe, expect, test } from 'bun:test'
import { createHash, randomUUID } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Driver from 'better-sqlite3'
import { readConfig } from '../src/config/config.ts'
import { type Context, openContext } from '../src/context.ts'
import { addAccount, enterAs } from './support/accounts.ts'
import { createTestApp, temporaryFolder } from './support/app.ts'
import { Visitor } from './support/console.ts'
import {
  migratedTestDatabase,
  newTestDatabase,
  sqliteAlone,
  store,
  type TestDatabase,
} from './support/database.ts'
import { programEnv, programLine } from './support/program.ts'
import { otpost } from './support/server.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const databases: TestDatabase[] = []
afterAll(() => Promise.all(databases.map((database) => database.remove())))

/** A database for one test, and otpost on it. */
async function scene(make = migratedTestDatabase, settings: Readonly<Record<string, string>> = {}) {
  const database = await make()
  databases.push(database)
  const env = { ...database.env, ...settings }
  return {
    database,
    env,
    run: (...args: string[]) => otpost(args, env),
    /** Runs a command that must succeed. Resolves to its standard output. */
    async ok(...args: string[]): Promise<string> {
      const { code, stdout, stderr } = await otpost(args, env)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      return stdout
    },
    /** Reads or prepares the database without a process. */
    async context<T>(work: (context: Context) => Promise<T>): Promise<T> {
      const context = await openContext(readConfig(env))
      const result = await work(context)
      await context.close()
      return result
    },
  }
}

/** The database in the messages of a command: its path, or its URL without the credentials. */
function nameOf({ DATABASE_URL = '' }: Readonly<Record<string, string>>): string {
  return DATABASE_URL.replace(/^file:/, '').replace(/\/\/.*@/, '//')
}

/** The error of a command that fails: on standard error alone, in words and without a stack. */
function complaint({ stdout, stderr }: { stdout: string; stderr: string }): string {
  expect(stdout).toBe('')
  expect(stderr).not.toBe('')
  expect(stderr).not.toMatch(/^\s+at /m)
  expect(stderr).not.toMatch(/\b\w*Error:|node_modules|\.ts:\d/)
  return stderr
}

describe.concurrent('--help', () => {
  const commands = [
    '',
    'serve',
    'migrate',
    'brand put',
    'app issue',
    'budget set',
    'request approve',
    'outbox',
  ]
  test.each(commands)('otpost %s', async (command) => {
    const words = command.split(' ').filter((word) => word !== '')
    // Help must work with any settings, since users read it to fix them.
    const { code, stdout, stderr } = await otpost([...words, '--help'], { PORT: 'nonsense' })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toStartWith(`Usage: ${['otpost', ...words].join(' ')} `)
  })
})

test('--version prints the version of the package, the commit and the Bun version', async () => {
  const { version } = await Bun.file(join(import.meta.dir, '../package.json')).json()
  const { code, stdout, stderr } = await otpost(['--version'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const [, printed, commit, bun] = /^otpost (\S+) \(commit (\S+), Bun (\S+)\)\n$/.exec(stdout) ?? []
  expect([printed, bun]).toEqual([version, Bun.version])
  expect(commit).toMatch(/^([0-9a-f]{7,40}(-dirty)?|unknown)$/)
})

test.skipIf(!existsSync('/dev/full'))('a failed write to standard output is reported in words', async () => {
  const { env } = await scene()
  const child = Bun.spawn(programLine(['app', 'issue', 'shop']), {
    env: programEnv(env),
    stdout: Bun.file('/dev/full'),
    stderr: 'pipe',
  })
  const stderr = await new Response(child.stderr).text()
  expect(await child.exited).toBe(1)
  expect(complaint({ stdout: '', stderr })).toContain('Standard output cannot be written (ENOSPC)')
})

describe.concurrent('--env-file', () => {
  const written = (name: string, text: string) => {
    const path = join(folder.path, name)
    writeFileSync(path, text)
    return path
  }

  test('provides the settings of a command; environment variables take precedence', async () => {
    const { env } = await scene()
    const other = await scene()
    const settings = [
      '# As for a systemd unit.',
      '',
      `DATABASE_URL=${other.env.DATABASE_URL}`,
      `APP_CREDENTIALS='{"shop":`,
      `  "a key of the file"}'`,
      `SECRET_KEY="${other.env.SECRET_KEY ?? '0123456789abcdef0123456789abcdef'}"`,
    ]
    const path = written('settings.env', settings.join('\n'))
    const apps = await otpost(['--env-file', path, 'app', 'list'], { DATABASE_URL: '' })
    expect({ code: apps.code, stderr: apps.stderr }).toEqual({ code: 0, stderr: '' })
    expect(await other.ok('app', 'list', '--json')).toBe('[]\n')
    const half = written('half.env', settings.slice(0, 4).join('\n'))
    expect((await otpost(['--env-file', half, 'app', 'list'])).stderr).toContain('line 4 of')
    const migrated = await otpost(['migrate', '--env-file', path], env)
    expect(migrated).toEqual({ code: 0, stdout: `The schema of ${nameOf(env)} is up to date.\n`, stderr: '' })
  })

  test('is rejected if it can not be read, or if a line has no setting', async () => {
    const missing = await otpost(['app', 'list', '--env-file', join(folder.path, 'none.env')])
    expect(missing.code).toBe(78)
    expect(complaint(missing)).toContain('ENOENT')
    const secret = 'not to be printed'
    const path = written('wrong.env', `PORT=3000\n${secret}\nSECRET_KEY="${secret}\nHOST=::1\n`)
    const invalid = written('invalid.env', 'PORT=30O0\n')
    expect((await otpost(['settings', '--env-file', invalid])).stderr).toEndWith(
      `  These settings come from the environment and ${invalid}.\n`,
    )
    const wrong = await otpost(['app', 'list', '--env-file', path])
    expect(wrong.code).toBe(78)
    expect(complaint(wrong)).toContain('line 2 of')
    expect(wrong.stderr).toContain('line 3 of')
    expect(wrong.stderr).not.toContain(secret)
  })
})

describe.concurrent('wrong usage exits with status 2', () => {
  test.each([
    [[]],
    [['nonsense']],
    [['brand']],
    [['brand', 'put', 'acme', '--nonsense']],
    [['brand', 'put', 'acme', '--name']],
    [['brand', 'put', 'acme', '--name', 'Acme', '--status', 'nonsense']],
    [['brand', 'status', 'acme', 'nonsense']],
    [['brand', 'list', 'nonsense']],
    [['app', 'issue']],
    [['serve', 'nonsense']],
    [['outbox', '--wait', 'nonsense']],
    [['outbox', '--to', 'nobody']],
    [['audit', '--since', 'nonsense']],
    [['explain', 'nonsense']],
    [['forget', 'nobody']],
    [['guard', 'block', '+3712000', '--for', 'nonsense']],
    [['destination', 'set', 'nonsense', 'allow']],
    [['destination', 'check', '12']],
    [['text', 'set', 'acme', 'TABLE_READY', '--file', '/dev/null', '--var', 'nonsense']],
    [['test-send', '12025550143', '--value', 'nonsense']],
    [['move', '--from', 'nonsense']],
    [['serve', '--port', '65536']],
    [['completion', 'nonsense']],
    [['relay', 'add', 'auth', '--kind', 'logto', '--brand', 'acme', '--secret-file', '/dev/null']],
    // As an unset variable of a shell.
    [['app', 'set', 'shop', '--per-minute', '']],
    [['help', 'brand', 'nonsense']],
    // A script that would cut off a whole country must say so.
    [['guard', 'block', '+1']],
  ])('otpost %j', async (command) => {
    const result = await (await scene()).run(...command)
    expect(result.code).toBe(2)
    complaint(result)
  })
})

describe.concurrent('wrong settings exit with status 78', () => {
  const wrong = { SECRET_KEY: 'canary-1', PHONE_DEFAULT_REGION: 'canary-2' }
  test.each([[['serve']], [['migrate']], [['brand', 'status', 'acme', 'active']], [['outbox']]])(
    'otpost %j',
    async (command) => {
      const { env, database } = await scene(newTestDatabase)
      const result = await otpost(command, { ...env, ...wrong })
      expect(result.code).toBe(78)
      const text = complaint(result)
      expect(text).toContain('SECRET_KEY ')
      expect(text).toContain('PHONE_DEFAULT_REGION ')
      expect(text).not.toContain('canary')
      if (store === 'sqlite') expect(existsSync(database.file)).toBe(false)
    },
  )

  test('a command that delivers nothing needs no provider settings; the server does', async () => {
    const { env } = await scene()
    const production = { ...env, NODE_ENV: 'production', PORT: 'none' }
    expect((await otpost(['brand', 'list'], production)).code).toBe(0)
    const server = await otpost(['serve'], production)
    expect(server.code).toBe(78)
    for (const name of ['SMS_PLAIN ', 'SMTP_URL ', 'PORT ']) expect(server.stderr).toContain(name)
  })
})

test('migrate creates the database, and changes nothing the second time', async () => {
  const { ok, env, database } = await scene(newTestDatabase)
  expect(await ok('migrate')).toBe(
    store === 'sqlite'
      ? `Created the database ${nameOf(env)}.\n`
      : `The schema of ${nameOf(env)} is up to date.\n`,
  )
  const schema = () =>
    database.query(
      store === 'sqlite'
        ? 'SELECT name, sql FROM sqlite_master ORDER BY name'
        : `SELECT oid::text, xmin::text, relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
           UNION ALL SELECT oid::text, xmin::text, proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
           ORDER BY 1`,
    )
  const made = await schema()
  expect(made.length).toBeGreaterThan(5)
  await ok('migrate')
  expect(await schema()).toEqual(made)
})

test.skipIf(store !== 'sqlite' || process.getuid?.() !== 0)(
  'migrate as root names the user of the folder, who cannot use the new database',
  async () => {
    const other = temporaryFolder()
    chownSync(other.path, 12345, 12345)
    const file = join(other.path, 'otpost.db')
    const migrated = await otpost(['migrate'], { DATABASE_URL: `file:${file}` })
    expect(migrated).toMatchObject({ code: 0, stdout: `Created the database ${file}.\n` })
    expect(migrated.stderr).toContain(`run \`chown -R 12345 ${other.path}\`.`)
    expect((await otpost(['migrate'], { DATABASE_URL: `file:${file}` })).stderr).toBe('')
  },
)

describe.concurrent('a command that may not create a database (design D51)', () => {
  /** One of each group, with arguments that are valid. */
  const commands = [
    ['brand', 'put', 'acme', '--name', 'Acme'],
    ['text', 'list', 'acme'],
    ['request', 'list'],
    ['app', 'issue', 'shop'],
    ['destination', 'list'],
    ['guard', 'block', '+3712000'],
    ['review-number', 'list'],
    ['budget', 'list'],
    ['price', 'check', '12025550143'],
    ['admin', 'link'],
    ['audit'],
    ['test-send', '12025550143'],
    ['deliveries'],
    ['explain', '00000000-0000-4000-8000-000000000000'],
    ['callbacks'],
    ['outbox'],
    ['queue', 'list'],
    ['forget', '12025550143'],
    ['doctor'],
    ...(store === 'sqlite' ? [['backup', 'copy.db']] : []),
  ]

  test.each(commands.map((command) => [command]))(
    'otpost %j exits with status 1, names the database and its source, and creates nothing',
    async (command) => {
      const { env, database } = await scene(newTestDatabase)
      const { code, stdout, stderr } = await otpost(command, env)
      const [line = ''] = (command[0] === 'doctor' ? stdout : stderr).split('\n')
      expect([code, line]).toEqual([1, expect.stringContaining(nameOf(env))])
      expect(line).toContain('DATABASE_URL: environment.')
      if (command[0] === 'doctor') expect(line).toStartWith('FAIL  database ')
      if (store === 'sqlite') expect(existsSync(dirname(database.file))).toBe(false)
      else {
        expect(
          await database.query("SELECT 1 FROM pg_class WHERE relnamespace = 'public'::regnamespace"),
        ).toEqual([])
      }
    },
  )

  test('names the file that DATABASE_URL comes from, or that it has its default', async () => {
    const empty = temporaryFolder()
    const file = join(empty.path, 'settings.env')
    writeFileSync(file, 'DATABASE_URL=file:none/otpost.db\n')
    const run = async (settings: Readonly<Record<string, string>>, ...args: readonly string[]) => {
      const child = Bun.spawn(programLine([...args, 'guard', 'block', '+3712000']), {
        cwd: empty.path,
        env: programEnv(settings),
        stderr: 'pipe',
      })
      const stderr = await new Response(child.stderr).text()
      return [await child.exited, stderr]
    }
    const of = (path: string, source: string) =>
      expect.stringContaining(
        `${path} in ${empty.path}, or this user cannot read its folder. DATABASE_URL: ${source}.`,
      )
    expect(await run({})).toEqual([1, of('data/otpost.db', 'default')])
    expect(await run({ OTPOST_ENV_FILE: file })).toEqual([1, of('none/otpost.db', `env file ${file}`)])
    expect(await run({}, '--env-file', file)).toEqual([1, of('none/otpost.db', `env file ${file}`)])
    const gone = join(empty.path, 'gone.env')
    expect(await run({ OTPOST_ENV_FILE: gone })).toEqual([
      78,
      expect.stringContaining(`OTPOST_ENV_FILE ${gone} cannot be read (ENOENT)`),
    ])
    expect(readdirSync(empty.path)).toEqual(['settings.env'])
    empty.remove()
  })
})

describe.concurrent('brand', () => {
  const acme = {
    brandId: 'acme',
    displayName: 'Acme',
    status: 'active',
    notifyTemplates: [],
    dltEnabled: false,
    loginIdEnabled: false,
    domain: null,
    entityId: null,
    registrations: {},
    lang: 'en',
    androidHash: null,
    logoUrl: null,
    linkUrl: null,
    color: null,
    dltAllowList: [],
  }

  test('put creates a brand, and later changes only the given fields', async () => {
    const { ok } = await scene()
    const list = async () => JSON.parse(await ok('brand', 'list', '--json'))
    await ok('brand', 'put', 'ACME', '--name', 'Acme')
    expect(await list()).toEqual([acme])
    const properties = [
      '--notify',
      'ORDER_PLACED,ORDER_DELIVERED,ORDER_PLACED',
      '--dlt',
      '--login-id',
      '--domain',
    ]
    await ok('brand', 'put', 'acme', ...properties, 'shop.example')
    const changed = {
      ...acme,
      notifyTemplates: ['ORDER_PLACED', 'ORDER_DELIVERED'],
      dltEnabled: true,
      loginIdEnabled: true,
      domain: 'shop.example',
    }
    expect(await list()).toEqual([changed])
    await ok('brand', 'put', 'acme', '--name', 'Acme & Söhne', '--notify', '', '--no-dlt')
    expect(await list()).toEqual([
      { ...changed, displayName: 'Acme & Söhne', notifyTemplates: [], dltEnabled: false },
    ])
  })

  test.each<[string, string[], string, number]>([
    ['a new brand without a name', ['acme'], '--name', 1],
    ['a slug that no name would fix', ['ac me'], 'slug', 2],
    ['an unknown template', ['acme', '--name', 'Acme', '--notify', 'ORDER_PLACED,NONSENSE'], 'NONSENSE', 2],
    ['a template of the OTP endpoints', ['acme', '--name', 'Acme', '--notify', 'LOGIN_OTP'], 'LOGIN_OTP', 2],
  ])('put refuses %s', async (_, args, word, status) => {
    const { run, context } = await scene()
    const result = await run('brand', 'put', ...args)
    expect(result.code).toBe(status)
    expect(complaint(result)).toContain(word)
    expect(await context(({ brands }) => brands.list())).toEqual([])
  })
})

describe.concurrent('app', () => {
  test('issue prints only the key, and only its SHA-256 is stored', async () => {
    const { ok, database } = await scene()
    const printed = await ok('app', 'issue', 'shop')
    expect(printed).toMatch(/^[\x21-\x7e]{32,}\n$/)
    const key = printed.trim()
    const bytes = await database.contents()
    expect(bytes.includes(key)).toBe(false)
    const digest = createHash('sha256').update(key).digest()
    const encodings = (['hex', 'base64', 'base64url'] as const).map((encoding) => digest.toString(encoding))
    expect([digest, ...encodings].filter((kept) => bytes.includes(kept))).not.toEqual([])
  })

  test('issue does not replace a key in use; after revoke it creates a new one', async () => {
    const { run, ok } = await scene()
    const list = async () => JSON.parse(await ok('app', 'list', '--json'))
    const first = await ok('app', 'issue', 'shop')
    const again = await run('app', 'issue', 'shop')
    expect(again.code).toBe(1)
    expect(complaint(again)).toContain('revoke')
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)
    const key = { lastFour: first.trim().slice(-4), issuedAt: time, lastUsedAt: null, revokedAt: null }
    const scope = { brands: [], allow: ['otp', 'notify'], perMinute: null }
    expect(await list()).toEqual([{ appId: 'shop', issuedAt: time, revokedAt: null, keys: [key], ...scope }])

    await ok('app', 'revoke', 'shop')
    expect(await list()).toEqual([
      { appId: 'shop', issuedAt: time, revokedAt: time, keys: [{ ...key, revokedAt: time }], ...scope },
    ])
    const twice = await run('app', 'revoke', 'shop')
    expect(twice.code).toBe(1)
    expect(complaint(twice)).toContain('shop')

    const second = await ok('app', 'issue', 'shop')
    expect(second).not.toBe(first)
    expect((await list())[0].revokedAt).toBeNull()
  })

  test('webhook prints a new secret each time, which events are sent, and ends it', async () => {
    const { env, run, ok } = await scene()
    await ok('app', 'issue', 'shop')
    const webhook = (...args: readonly string[]) => run('app', 'webhook', 'shop', ...args)
    const events = ['--event', 'otp.locked', '--event', 'message.failed']
    const first = await webhook('--url', 'https://shop.example/hook?key=1', ...events)
    expect([first.code, first.stderr]).toEqual([0, ''])
    expect(first.stdout).toMatch(/^whsec_[A-Za-z0-9+/]{43}=\n$/)
    const list = async () => JSON.parse(await ok('app', 'list', '--json'))
    const shown = {
      url: 'https://shop.example/hook?…',
      events: ['message.failed', 'otp.locked'],
      disabledAt: null,
    }
    expect(await list()).toMatchObject([{ appId: 'shop', webhook: shown }])
    const development = { ...env, NODE_ENV: 'development' }
    const second = await otpost(['app', 'webhook', 'shop', '--url', 'http://localhost:3001/'], development)
    expect([second.code, second.stderr]).toEqual([0, expect.stringContaining('previous secret')])
    expect(second.stdout).not.toBe(first.stdout)
    expect(await list()).toMatchObject([{ webhook: { url: 'http://localhost:3001/', events: [] } }])
    expect(await ok('app', 'list')).toMatch(/WEBHOOK\n.* on$/m)
    const production = { ...env, NODE_ENV: 'production' }
    const local = await otpost(['app', 'webhook', 'shop', '--url', 'https://10.0.0.1/'], production)
    expect([local.code, local.stderr]).toEqual([2, expect.stringContaining('not public')])

    await ok('app', 'webhook', 'shop', '--off')
    expect((await list())[0]).not.toHaveProperty('webhook')
    const audit = JSON.parse(await ok('audit', '--json'))
    expect(JSON.stringify(audit)).not.toContain(second.stdout.trim())
    expect(JSON.stringify(audit)).not.toContain('key=1')
  })

  test('issue and set scope an app; lists replace earlier ones, other fields stay, and the audit log has each change', async () => {
    const { env, run, ok } = await scene()
    for (const slug of ['acme', 'globex', 'initech']) await ok('brand', 'put', slug, '--name', slug)
    const settings = { ...env, APP_CREDENTIALS: '{"legacy":"a-key-of-the-settings"}' }
    const list = async () => JSON.parse(await ok('app', 'list', '--json'))
    const scope = ['--brand', 'Globex', '--brand', 'acme', '--allow', 'otp', '--per-minute', '60']
    await ok('app', 'issue', 'till', ...scope)
    const set = async (...args: readonly string[]) => {
      const { code, stdout } = await otpost(['app', 'set', ...args], settings)
      expect(code).toBe(0)
      return JSON.parse(stdout)
    }
    const changed = { appId: 'till', brands: ['initech'], allow: ['otp'], perMinute: 60 }
    expect(await set('till', '--brand', 'initech')).toEqual(changed)
    expect(await set('till', '--allow', 'notify', '--per-minute', 'default')).toMatchObject({
      brands: ['initech'],
      allow: ['notify'],
      perMinute: null,
    })
    expect(await set('till', '--any-brand', '--allow', 'otp', '--allow', 'notify')).toMatchObject({
      brands: [],
      allow: ['otp', 'notify'],
      perMinute: null,
    })
    expect(await set('legacy', '--per-minute', '600')).toMatchObject({ appId: 'legacy', perMinute: 600 })
    expect(await list()).toMatchObject([
      { appId: 'till', keys: [{}] },
      { appId: 'legacy', issuedAt: null, revokedAt: null, keys: [], perMinute: 600 },
    ])
    expect(await ok('app', 'list')).toMatch(/^legacy +- +- +- +- +any +otp,notify +600$/m)

    // The earlier scope of an app stays when it gets a new key.
    await set('till', '--brand', 'acme')
    await ok('app', 'revoke', 'till')
    const again = await run('app', 'issue', 'till')
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('brands acme;')])
    const audit = JSON.parse(await ok('audit', '--json'))
    const changes = audit.filter(({ action }: { action: string }) => action.startsWith('app.'))
    expect(
      changes.map(({ action, target, details }: Record<string, object>) => [action, target, details]),
    ).toEqual(
      expect.arrayContaining([
        ['app.changed', 'till', { brands: 'acme, globex → initech' }],
        ['app.changed', 'till', { allow: 'otp → notify', perMinute: '60 → default' }],
        ['app.changed', 'till', { brands: 'initech → any', allow: 'notify → otp, notify' }],
        ['app.changed', 'legacy', { perMinute: 'default → 600' }],
        ['app.issued', 'till', expect.objectContaining({ brands: 'acme', allow: 'otp, notify' })],
      ]),
    )
  })

  test('revoke reports that a key in APP_CREDENTIALS stays valid', async () => {
    const { env, ok } = await scene()
    await ok('app', 'issue', 'shop')
    const settings = { ...env, APP_CREDENTIALS: '{"shop":"a-key-of-the-settings","till":"another"}' }
    const revoked = await otpost(['app', 'revoke', 'shop'], settings)
    expect(revoked).toMatchObject({ code: 0, stdout: 'Every key of shop is revoked.\n' })
    expect(revoked.stderr).toContain('The key of shop in APP_CREDENTIALS is still valid')
    const other = await otpost(['app', 'revoke', 'till'], settings)
    expect([other.code, complaint(other)]).toEqual([1, expect.stringContaining('APP_CREDENTIALS')])
  })
})

describe.concurrent('otpost destination', () => {
  test('set, list, check and remove rules', async () => {
    const { env, ok, run } = await scene()
    await ok('brand', 'put', 'acme', '--name', 'Acme')
    expect(await ok('destination', 'set', '*', 'block')).toBe('*: block.\n')
    const set = ['GB', 'allow', '--group', '--providers', 'outbox', '--sender', 'Acme', '--brand', 'acme']
    expect((await ok('destination', 'set', ...set)).split('\n')[0]).toBe(
      'GB for brand acme: allow, providers outbox, sender Acme.',
    )
    const listed = await otpost(['destination', 'list', '--json'], { ...env, SMS_COUNTRIES: 'IN' })
    const rules: { rule: string; source: string }[] = JSON.parse(listed.stdout)
    expect(rules.map(({ rule, source }) => `${rule} ${source}`).sort()).toEqual([
      '* stored',
      'GB stored',
      'GG stored',
      'IM stored',
      'IN SMS_COUNTRIES',
      'JE stored',
    ])
    const check = ['destination', 'check', '07400 123456', '--json']
    const checked = (args: string[]) => otpost([...check, ...args], { ...env, PHONE_DEFAULT_REGION: 'GB' })
    const blocked = await checked([])
    expect([blocked.code, JSON.parse(blocked.stdout)]).toEqual([
      0,
      expect.objectContaining({ number: '+447400123456', country: 'GB', action: 'block', rule: '*' }),
    ])
    expect(JSON.parse((await checked(['--brand', 'acme'])).stdout)).toMatchObject({
      action: 'allow',
      rule: 'GB',
      brand: 'acme',
      providers: ['outbox'],
      sender: 'Acme',
      route: null,
      guard: null,
    })
    for (const command of [check, ['price', 'check', '(478) 513-2397']]) {
      const args = command.with(2, '(478) 513-2397')
      const both = await otpost(args, { ...env, PHONE_DEFAULT_REGION: 'US' })
      expect([both.code, complaint(both)]).toEqual([2, expect.stringContaining('Begin it with + and')])
    }
    await ok('guard', 'block', '+447')
    expect(await ok('destination', 'check', '+447400123456')).toContain('an operator blocks +447 until 20')
    expect(await ok('destination', 'remove', 'GB', '--brand', 'acme')).toBe(
      'Removed the rule GB for brand acme.\n',
    )
    const refused = await run('destination', 'set', 'GB', 'allow', '--providers', 'twilio')
    expect([refused.code, complaint(refused)]).toEqual([1, expect.stringContaining('Add it to SMS_PLAIN')])
  })
})

describe.concurrent('otpost guard', () => {
  test('allow, block, remove and status', async () => {
    const { env, ok } = await scene()
    expect(await ok('guard', 'block', '+371 2000', '--for', '2h')).toMatch(
      /^\+3712000 \(LV\) is blocked until 20/,
    )
    expect(await ok('guard', 'allow', '3712000')).toMatch(/^\+3712000 \(LV\) is allowed until 20/)
    const off = await otpost(['guard', 'block', '+44', '--yes'], { ...env, GUARD: 'off' })
    expect([off.code, off.stderr]).toEqual([0, expect.stringContaining('The guard is off')])
    const status = JSON.parse(await ok('guard', 'status', '--json'))
    expect(status).toMatchObject({
      mode: 'record',
      blocked: [{ prefix: '+44', country: null, by: 'operator' }],
      allowed: [{ prefix: '+3712000', country: 'LV', by: 'operator' }],
      buckets: [],
      countries: [],
      lastHour: { denied: 0, recorded: 0 },
    })
    expect(await ok('guard', 'status')).toMatch(/\n\+44 +- +operator/)
    expect(await ok('guard', 'remove', '+44')).toBe('Ended the block of +44 by the operator.\n')
  })
})

describe.concurrent('otpost review-number', () => {
  test('add prints the code once, list masks the number, and remove ends it', async () => {
    const { env, ok, run } = await scene()
    await ok('brand', 'put', 'acme', '--name', 'Acme')
    const until = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)
    const add = ['review-number', 'add', '+1 (202) 555-0143', '--brand', 'acme', '--until', until]
    const code = (await ok(...add)).trimEnd()
    expect(code).toMatch(/^[0-9]{6}$/)
    const listed = await ok('review-number', 'list', '--json')
    const createdAt = expect.stringMatching(/^20.*Z$/)
    expect(JSON.parse(listed)).toEqual([{ phone: '12*******43', brand: 'acme', until, createdAt }])
    expect(await ok('review-number', 'list')).toContain('12*******43')

    const app = await createTestApp(env, {})
    app.clock.now = Date.now()
    const phone = '12025550143'
    expect((await app.post('/otp/send', { phone })).status).toBe(200)
    expect((await app.post('/otp/verify', { phone, otp: code })).status).toBe(200)
    expect(await app.outbox(phone)).toEqual([])
    await app.close()

    expect(complaint(await run(...add))).toContain('already a review number')
    const remove = ['review-number', 'remove', phone, '--brand', 'acme']
    expect(await ok(...remove)).toBe('Removed the review number 12*******43 of brand acme.\n')
    expect(complaint(await run(...remove))).toContain('no review number of brand acme')
    expect(await ok('review-number', 'list', '--json')).toBe('[]\n')
    expect(await ok('audit')).not.toContain(code)
  })

  test.each([
    ['without --until', ['--brand', 'acme']],
    ['without --brand', ['--until', '2030-01-01']],
  ])('add %s is wrong usage', async (_, options) => {
    const { run } = await scene()
    expect((await run('review-number', 'add', '+12025550143', ...options)).code).toBe(2)
  })
})

test('otpost text lint and text export check and print a text for a DLT portal', async () => {
  const { run, ok } = await scene()
  const file = join(folder.path, 'registered.txt')
  const lint = async (...args: string[]) => {
    const { code, stdout } = await run('text', 'lint', 'acme', ...args)
    return { code, stdout }
  }
  await ok('brand', 'put', 'acme', '--name', 'Acme', '--dlt', '--entity', '1101')
  for (const lang of ['en', 'hi']) {
    await ok(
      'brand',
      'template',
      'acme',
      'LOGIN_OTP',
      ...(lang === 'en' ? [] : ['--lang', lang]),
      '--id',
      '1107',
    )
  }
  const { code, stdout } = await lint()
  expect(code).toBe(0)
  expect(stdout).toStartWith(
    'LOGIN_OTP en (Service Implicit): no findings\nLOGIN_OTP hi (Service Implicit)\n',
  )
  const exported = await run('text', 'export', 'acme', 'LOGIN_OTP', '--lang', 'hi')
  expect(exported).toMatchObject({
    stdout: 'आपका Acme कोड {#numeric#} है। {#numeric#} मिनट तक मान्य। किसी को न बताएं।\n',
    stderr: 'Category: Service Implicit. Message type: Unicode.\n',
  })
  const registered = ['LOGIN_OTP', '--lang', 'hi', '--registered', file]
  writeFileSync(file, exported.stdout)
  expect((await lint(...registered)).stdout).toEndWith('\nThe registered text is what otpost sends.\n')
  writeFileSync(file, exported.stdout.replace('। किसी', ' किसी'))
  expect(await lint(...registered)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('registered-text: Character 56 differs.'),
  })
  writeFileSync(file, '{{long}} < {{businessName}} now')
  await ok('text', 'set', 'acme', 'TABLE_READY', '--file', file, '--var', 'long:text:35')
  const rules = async (...args: string[]) =>
    JSON.parse((await lint('TABLE_READY', '--json', ...args)).stdout).map(
      ({ rule }: { rule: string }) => rule,
    )
  expect(await rules()).toEqual(['template-id', 'variable-length', 'fixed-text', 'angle-brackets'])
  expect(await rules('--variable-length', '35')).toEqual(['template-id', 'fixed-text', 'angle-brackets'])
  expect((await lint('TABLE_READY', '--variable-length', '29')).code).toBe(2)
  for (const [args, status] of [
    [['NONE'], 1],
    [['TABLE_READY', '--lang', 'hi'], 1],
    [['--registered', file], 2],
  ] as const) {
    expect(await lint(...args)).toEqual({ code: status, stdout: '' })
  }
})

describe.concurrent('otpost budget and otpost price', () => {
  test('set, list, lift and remove budgets, before and after an import of prices', async () => {
    const { env, ok, run } = await scene()
    expect(await ok('budget', 'set', 'server', '--per', 'day', '--amount', '50')).toBe(
      'Budget server: 50 units per day.\n',
    )
    expect(await ok('price', 'check', '+371 20 000 000')).toContain('in units')
    const file = join(folder.path, `prices-${randomUUID()}.csv`)
    writeFileSync(
      file,
      'prefix,currency,price,provider\n+44,EUR,0.04,\n+44,EUR,0.035,twilio\n+371,EUR,0.07,\n',
    )
    const imported = await run('price', 'import', file)
    expect([imported.code, imported.stdout]).toEqual([0, 'Imported 3 prices in EUR.\n'])
    expect(imported.stderr).toContain('still count in units of the built-in prices: server.')
    const check = ['price', 'check', '+44 7400 123456', '--json']
    const { stdout } = await otpost(check, { ...env, SMS_PLAIN: 'twilio,vonage' })
    expect(JSON.parse(stdout)).toEqual({
      number: '+447400123456',
      country: 'GB',
      currency: 'EUR',
      prefix: '+44',
      price: 0.04,
      providers: [
        { provider: 'vonage', prefix: '+44', price: 0.04 },
        { provider: 'twilio', prefix: '+44', price: 0.035 },
      ],
    })
    expect(await ok('price', 'check', '+44 70 1234 5678')).toContain(
      'a personal number: the dearest price  0.07',
    )
    await ok(
      'budget',
      'set',
      'country:gb',
      '--per',
      'month',
      '--amount',
      '99.5',
      '--alert',
      '100,50',
      '--no-stop',
    )
    expect(await ok('budget', 'lift', 'server', '--for', '12h')).toMatch(/^Budget server is lifted until 20/)
    const listed: Record<string, unknown>[] = JSON.parse(await ok('budget', 'list', '--json'))
    expect(listed.map(({ resetsAt, liftedUntil, ...row }) => row)).toEqual([
      {
        scope: 'country:GB',
        of: 'all',
        per: 'month',
        amount: 99.5,
        currency: 'EUR',
        spent: 0,
        remaining: 99.5,
        forecast: null,
        state: 'ok',
        percent: 0,
        usedUpAt: null,
        countries: [],
        alerts: [50, 100],
        stops: false,
      },
      {
        scope: 'server',
        of: 'all',
        per: 'day',
        amount: 50,
        currency: 'units',
        spent: 0,
        remaining: 50,
        forecast: null,
        state: 'ok',
        percent: 0,
        usedUpAt: null,
        countries: [],
        alerts: [80, 100],
        stops: true,
      },
    ])
    writeFileSync(file, 'prefix,currency,price\n+44,USD,0.04\n')
    const refused = await run('price', 'import', file)
    expect([refused.code, complaint(refused)]).toEqual([1, expect.stringContaining('in EUR: country:GB.')])
    expect(await ok('budget', 'remove', 'server')).toBe('Removed the budget server.\n')
    const again = await run('budget', 'remove', 'server')
    expect([again.code, complaint(again)]).toEqual([1, expect.stringContaining('no budget server')])
  })
})

describe.concurrent('request', () => {
  const asked = {
    companyName: 'Globex Ltd',
    contactName: 'Jo',
    contactEmail: 'jo@globex.example',
    brandName: 'Globex & Söhne',
    useCase: 'Codes for\nour shop',
  }

  /** A database with requests of these names. Resolves to their ids. */
  async function withRequests(env: Readonly<Record<string, string>>, ...companies: string[]) {
    const service = await createTestApp(env)
    const ids: string[] = []
    for (const companyName of companies) {
      service.advance(1)
      const { body } = await service.postRaw('/integrations/requests', { ...asked, companyName })
      ids.push(body.integrationRequestId)
    }
    await service.close()
    return ids
  }

  test('list, show, approve: a call with the printed key works, and the decision is stored', async () => {
    const { env, run, ok } = await scene()
    const [first = '', second = ''] = await withRequests(env, 'First Ltd', 'Second Ltd')
    expect((await ok('request', 'list')).trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^REQUEST +ASKED +STATUS/),
      expect.stringMatching(
        new RegExp(`^${first} .* pending +First Ltd +Globex & Söhne +Jo <jo@globex.example>$`),
      ),
      expect.stringMatching(new RegExp(`^${second} .* pending +Second Ltd `)),
    ])
    expect(await ok('request', 'show', ` ${first.toUpperCase()}`)).toContain(
      `Codes for\n${' '.repeat(22)}our shop`,
    )
    const { stdout: approved } = await run('request', 'approve', first, '--app', 'till', '--brand', 'Globex')
    expect(approved).toMatch(/^otp_live_[0-9A-Za-z]{49}\n$/)

    const service = await createTestApp({ ...env, APP_CREDENTIALS: '' })
    const apiKey = approved.trimEnd()
    const call = { appId: 'till', apiKey, brandId: 'globex', phone: '12025550143' }
    expect((await service.postRaw('/otp/send', call)).status).toBe(200)
    await service.close()

    const rows = JSON.parse(await ok('request', 'list', '--json'))
    expect(rows[0]).toMatchObject({ status: 'approved', appId: 'till', brandSlug: 'globex' })
    expect(JSON.parse(await ok('request', 'list', '--pending', '--json'))).toMatchObject([
      { integrationRequestId: second, status: 'pending', decidedAt: null, decidedBy: null },
    ])
    const again = await run('request', 'approve', first, '--app', 'other', '--brand', 'other')
    expect([again.code, complaint(again)]).toEqual([1, expect.stringContaining('already approved')])
  })

  test('reject stores the reason, and creates nothing', async () => {
    const { env, ok, context } = await scene()
    const [id = ''] = await withRequests(env, 'First Ltd')
    await ok('request', 'reject', id, '--reason', 'no contract yet')
    expect(JSON.parse(await ok('request', 'show', id, '--json'))).toMatchObject({
      status: 'rejected',
      reason: 'no contract yet',
      appId: null,
    })
    expect(await context(({ apps }) => apps.list())).toEqual([])
  })

  test('show prints no text that looks like a field', async () => {
    const { env, ok } = await scene()
    const [id = ''] = await withRequests(env, 'First Ltd')
    await ok('request', 'reject', id, '--reason', 'no\nstatus                approved\r\nappId  x')
    const lines = (await ok('request', 'show', id)).split('\n')
    expect(lines.filter((line) => /^(status|appId) /.test(line))).toEqual([
      'status                rejected',
      'appId                 -',
    ])
    expect(lines).toContain(`${' '.repeat(22)}status                approved`)
  })
})

describe.concurrent('app rotate, revoke-key', () => {
  test('a second key works beside the first until one is revoked; both are listed with their last use', async () => {
    const { env, run, ok } = await scene()
    const first = (await ok('app', 'issue', 'till')).trimEnd()
    const second = (await ok('app', 'rotate', 'till')).trimEnd()
    const third = await run('app', 'rotate', 'till')
    expect([third.code, complaint(third)]).toEqual([1, expect.stringContaining('revoke-key till')])

    const service = await createTestApp({ ...env, APP_CREDENTIALS: '' })
    const call = (apiKey: string) =>
      service.postRaw('/notify', { appId: 'till', apiKey }).then(({ body }) => body.error)
    expect(await call(first)).toBe('validation_error')
    expect(await call(second)).toBe('validation_error')
    expect(await ok('app', 'revoke-key', 'till', first.slice(-4))).toContain('Its other key is active.')
    expect(await call(first)).toBe('forbidden')
    expect(await call(second)).toBe('validation_error')
    await service.close()

    const [app] = JSON.parse(await ok('app', 'list', '--json'))
    const used = new Date(service.clock.now).toISOString()
    expect(app.keys).toMatchObject([
      { lastFour: first.slice(-4), lastUsedAt: used, revokedAt: expect.any(String) },
      { lastFour: second.slice(-4), lastUsedAt: used, revokedAt: null },
    ])
    const table = await ok('app', 'list')
    for (const key of [first, second]) expect(table).toContain(`…${key.slice(-4)} `)
    const unknown = await run('app', 'revoke-key', 'till', 'nope')
    expect([unknown.code, complaint(unknown)]).toEqual([1, expect.stringContaining(second.slice(-4))])
  })
})

describe.concurrent('audit', () => {
  test('lists every change in order, and no secret', async () => {
    const { ok } = await scene()
    await ok('brand', 'put', 'acme', '--name', 'Acme')
    await ok('brand', 'put', 'acme', '--name', 'Acme Ltd', '--dlt')
    await ok('brand', 'status', 'acme', 'suspended')
    const key = (await ok('app', 'issue', 'till')).trimEnd()
    await ok('app', 'revoke', 'till')
    const told = JSON.parse(await ok('audit', '--json'))
    expect(told).toMatchObject([
      { action: 'brand.created', target: 'acme', details: { displayName: '- → Acme' } },
      { action: 'brand.changed', details: { displayName: 'Acme → Acme Ltd', dltEnabled: 'false → true' } },
      { action: 'brand.status', details: { status: 'active → suspended' } },
      { action: 'app.issued', target: 'till', details: { key: key.slice(-4) } },
      { action: 'app.revoked', target: 'till' },
    ])
    for (const { by, at } of told)
      expect([by, Date.parse(at)]).toEqual([expect.stringMatching(/^command ./), expect.any(Number)])
    const table = await ok('audit', '--since', '1h', '--limit', '2')
    expect(table.trimEnd().split('\n')).toHaveLength(3)
    expect(JSON.stringify(told) + table).not.toContain(key)
    const ofGroup = JSON.parse(await ok('audit', '--group', 'app', '--target', 'till', '--json'))
    expect(ofGroup.map(({ action }: { action: string }) => action)).toEqual(['app.issued', 'app.revoked'])
    expect(JSON.parse(await ok('audit', '--by', 'nobody else', '--json'))).toEqual([])
  })
})

describe.concurrent('admin', () => {
  test('link prints a URL with a token that is not in the database, and log-out ends its session', async () => {
    const { env, ok, database } = await scene()
    const { stdout, stderr } = await otpost(['admin', 'link'], {
      ...env,
      PUBLIC_URL: 'https://otp.example.com/',
    })
    const [, token = ''] = /^http:\/\/localhost:3000\/admin\/link#([\w-]{43})\n$/.exec(stdout) ?? []
    expect(token).toHaveLength(43)
    expect(stderr).toContain('ssh -L 3000:127.0.0.1:3000 SERVER')
    expect(stderr).toContain(`https://otp.example.com/admin/link#${token}`)
    expect((await database.contents()).includes(token)).toBe(false)
    expect(await ok('admin', 'log-out')).toBe('0 sessions ended.\n')
  })

  test('operator commands change accounts, and the running server follows at the next request', async () => {
    const { run, ok, env } = await scene()
    const service = await createTestApp(env)
    service.clock.now = Date.now()
    const operator = (...args: string[]) => run('admin', 'operator', ...args)
    const listed = async () => JSON.parse(await ok('admin', 'operator', 'list', '--json'))
    const opened = async ({ stdout }: { stdout: string }) => {
      const visitor = new Visitor(service)
      const { status } = await visitor.post('/admin/link', { token: stdout.trimEnd().split('#')[1] ?? '' })
      return { visitor, status }
    }

    const invited = await operator('invite', ' Ana@Example.com', '--role', 'owner')
    expect([invited.code, invited.stderr]).toEqual([
      0,
      'otpost: The link works once and expires in 72 hours.\n',
    ])
    expect(invited.stdout).toMatch(/^http:\/\/127\.0\.0\.1:3000\/admin\/link#[\w-]{43}\n$/)
    const ana = await opened(invited)
    expect([ana.status, (await ana.visitor.get('/admin')).headers.get('location')]).toEqual([
      303,
      '/admin/account',
    ])
    expect((await opened(invited)).status).toBe(401)
    expect(await listed()).toEqual([
      {
        email: 'ana@example.com',
        role: 'owner',
        status: 'invited',
        passkeys: 0,
        hasApp: false,
        signedInAt: expect.any(String),
      },
    ])

    const block = { prefix: '+4479', action: 'block', duration: '1h' }
    const bo = await enterAs(service, await addAccount(service, 'bo@example.com', 'operator'))
    expect((await bo.post('/admin/guard', block)).status).toBe(303)
    expect(await ok('admin', 'operator', 'role', 'Bo@Example.com', 'viewer')).toBe(
      'bo@example.com has the role viewer.\n',
    )
    expect((await bo.post('/admin/guard', block)).status).toBe(403)
    const reset = await operator('reset', 'BO@example.com')
    expect((await bo.get('/admin')).status).toBe(401)
    expect((await opened(reset)).status).toBe(303)
    const ci = await enterAs(service, await addAccount(service, 'ci@example.com', 'viewer'))
    expect(await ok('admin', 'operator', 'remove', 'CI@example.com')).toBe('Removed ci@example.com.\n')
    expect((await ci.get('/admin')).status).toBe(401)
    expect(await ok('admin', 'operator', 'list')).toMatch(
      /^E-MAIL ADDRESS +ROLE +STATUS +PASSKEYS +APP +LAST SIGN-IN\nana@example\.com +owner +invited +0 +- +\S+\nbo@example\.com +viewer +invited .*\n$/,
    )
    const changes = JSON.parse(await ok('audit', '--json')).filter(({ action }: { action: string }) =>
      action.startsWith('operator.'),
    )
    expect(changes).toMatchObject([
      { action: 'operator.invited', target: 'ana@example.com' },
      { action: 'operator.role', target: 'bo@example.com', details: { role: 'operator → viewer' } },
      { action: 'operator.reset', target: 'bo@example.com' },
      { action: 'operator.removed', target: 'ci@example.com' },
    ])
    await service.close()
  })
})

describe.concurrent('outbox', () => {
  const jsonLines = (text: string) =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))

  test('prints messages as JSON lines, oldest first, also those of one recipient in any spelling', async () => {
    const { env, ok } = await scene()
    const service = await createTestApp(env)
    const sms = { channel: 'SMS', brandId: 'acme' }
    await service.post('/notify', { ...sms, to: ['12025550143'], message: 'one' })
    await service.post('/notify', { ...sms, to: ['12025550144'], message: 'two' })
    await service.post('/notify', {
      channel: 'EMAIL',
      to: ['Jane@example.com'],
      subject: 'three',
      html: '<p>3</p>',
    })
    const all = jsonLines(await ok('outbox'))
    expect(all.map(({ channel, to, text, subject }) => [channel, to, subject ?? text])).toEqual([
      ['SMS', '12025550143', 'one'],
      ['SMS', '12025550144', 'two'],
      ['EMAIL', 'jane@example.com', 'three'],
    ])
    const some = await Promise.all(
      ['+1 (202) 555-0144', 'jane@EXAMPLE.com', '12025550145'].map((to) => ok('outbox', '--to', to)),
    )
    expect(some.map(jsonLines)).toEqual([[all[1]], [all[2]], []])
    await service.close()
  })

  test('--wait waits for a message of another process', async () => {
    const { env, ok } = await scene()
    const service = await createTestApp(env)
    const waiting = ok('outbox', '--to', '12025550143', '--wait', '30')
    await service.post('/notify', { channel: 'SMS', brandId: 'acme', to: ['12025550143'], message: 'hello' })
    expect(jsonLines(await waiting).map(({ text }) => text)).toEqual(['hello'])
    await service.close()
  })

  test('--wait fails if no message comes in time', async () => {
    const result = await (await scene()).run('outbox', '--wait', '1')
    expect(result.code).toBe(1)
    complaint(result)
  })

  test('--to must be a recipient', async () => {
    const result = await (await scene()).run('outbox', '--to', 'nobody')
    expect([1, 2]).toContain(result.code)
    expect(complaint(result)).toContain('--to')
  })
})

describe.skipIf(store !== 'sqlite').concurrent(`a file that can not be used${sqliteAlone}`, () => {
  /** The path of the database in a test. */
  const fileScene = async () => {
    const made = await scene(newTestDatabase)
    const { file } = made.database
    mkdirSync(dirname(file))
    return { ...made, file }
  }

  /** One line that names the file and says what to do. */
  const expectOneLine = (result: { code: number; stdout: string; stderr: string }, file: string) => {
    expect(result.code).toBe(1)
    const text = complaint(result)
    expect(text.trimEnd().split('\n')).toHaveLength(1)
    expect(text).toContain(file)
    return text
  }
  const isRoot = process.getuid?.() === 0

  test.each([[['serve']]])('because its folder can not be created is reported by %j', async (command) => {
    const { file, env } = await fileScene()
    writeFileSync(file, '')
    const inside = join(file, 'otpost.db')
    const result = await otpost(command, { ...env, DATABASE_URL: `file:${inside}` })
    expect(expectOneLine(result, file)).toContain('DATABASE_URL')
  })

  test.skipIf(isRoot)('because its folder is not writable is reported', async () => {
    const { file } = await fileScene()
    mkdirSync(file)
    chmodSync(file, 0o500)
    const result = await otpost(['migrate'], { DATABASE_URL: `file:${join(file, 'otpost.db')}` })
    expect(expectOneLine(result, file)).toContain('DATABASE_URL')
  })

  test('because it is a folder is reported', async () => {
    const { file, run } = await fileScene()
    mkdirSync(file)
    expect(expectOneLine(await run('migrate'), file)).toContain('DATABASE_URL')
  })

  test.each([[['serve']], [['app', 'issue', 'shop']]])(
    'because it is not an SQLite file is reported by %j, and the file does not change',
    async (command) => {
      const { file, run } = await fileScene()
      const content = 'Not a database; must not change.\n'.repeat(200)
      writeFileSync(file, content)
      expect(expectOneLine(await run(...command), file)).toContain('DATABASE_URL')
      expect(readFileSync(file, 'utf8')).toBe(content)
    },
  )

  test.each([[['serve']], [['brand', 'list']]])(
    'because a newer otpost wrote it is reported by %j, and the file does not change',
    async (command) => {
      const { file, run, context } = await fileScene()
      await context(async () => undefined)
      const driver = new Driver(file)
      driver
        .prepare('INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)')
        .run('9999_later', Date.UTC(2100, 0))
      const rows = () => driver.prepare('SELECT * FROM __drizzle_migrations').all()
      const before = rows()
      const text = expectOneLine(await run(...command), file)
      expect(text).toContain('newer')
      expect(text).toMatch(/version|backup/)
      expect(rows()).toEqual(before)
      driver.close()
    },
  )

  test.each([[['serve']], [['migrate']]])(
    'because it was deleted is reported by %j, which creates no other; a restored backup is used',
    async (command) => {
      const { file, env, ok } = await fileScene()
      await ok('migrate')
      await ok('brand', 'put', 'acme', '--name', 'Acme')
      const backup = `${file}.backup`
      expect((await otpost(['backup', backup], env)).code).toBe(0)
      rmSync(file)
      // Also with a secret key that has no file.
      const lost = await otpost(command, {
        ...env,
        PORT: '0',
        SECRET_KEY: 'another key of 32 bytes or more here',
      })
      expect(expectOneLine(lost, file)).toContain(`restore a backup with \`otpost restore FILE\``)
      expect(existsSync(file)).toBe(false)
      await ok('restore', backup)
      expect(JSON.parse(await ok('brand', 'list', '--json'))).toHaveLength(1)
      expect(existsSync(`${file}.created`)).toBe(true)
    },
  )

  test('because its key is too short is reported', async () => {
    const { file, run } = await fileScene()
    writeFileSync(`${file}.key`, 'canary\n')
    const text = expectOneLine(await run('migrate'), `${file}.key`)
    expect(text).toContain('SECRET_KEY')
    expect(text).not.toContain('canary')
  })
})

test('processes that create a database together all succeed, and create one key', async () => {
  const { ok, context, database } = await scene(newTestDatabase)
  await Promise.all(Array.from({ length: 4 }, () => ok('migrate')))
  expect(await context(({ brands }) => brands.list())).toEqual([])
  if (store !== 'sqlite') return
  const files = readdirSync(dirname(database.file))
  expect(files.filter((name) => name.endsWith('.tmp'))).toEqual([])
})

describe.concurrent('an option with several values', () => {
  test('is repeated, or has them separated by commas', async () => {
    const { ok } = await scene()
    for (const slug of ['acme', 'globex', 'initech']) await ok('brand', 'put', slug, '--name', slug)
    await ok('app', 'issue', 'till', '--brand', 'acme, globex', '--brand', 'initech', '--allow', 'otp,notify')
    await ok('app', 'webhook', 'till', '--url', 'https://shop.example', '--event', 'otp.locked,otp.verified')
    const [till] = JSON.parse(await ok('app', 'list', '--json'))
    expect(till).toMatchObject({
      brands: ['acme', 'globex', 'initech'],
      allow: ['otp', 'notify'],
      webhook: { events: ['otp.verified', 'otp.locked'] },
    })
    const put = await ok('brand', 'put', 'acme', '--notify', 'ORDER_PLACED', '--notify', 'ORDER_DELIVERED')
    expect(JSON.parse(put).notifyTemplates).toEqual(['ORDER_PLACED', 'ORDER_DELIVERED'])
    const template = ['brand', 'template', 'acme', 'ORDER_PLACED', '--id', '1107,msg91=abc']
    expect(JSON.parse(await ok(...template))).toMatchObject({ id: '1107', ids: { msg91: 'abc' } })
    await ok('budget', 'set', 'server', '--per', 'day', '--amount', '5', '--alert', '50', '--alert', '80,100')
    expect(JSON.parse(await ok('budget', 'list', '--json'))[0].alerts).toEqual([50, 80, 100])
    const preview = ['text', 'preview', 'acme', 'ORDER_PLACED', '--value', 'orderId=A-1,customerName=Doe, Jo']
    expect(await ok(...preview)).toMatch(/Doe, Jo.*A-1/)
    expect(await ok('deliveries', '--status', 'unknown,skipped', '--status', 'rejected', '--json')).toBe(
      '[]\n',
    )
  })
})

test('guard block, app revoke and destination set with --dry-run print what would change, and change nothing', async () => {
  const { env, ok } = await scene()
  const service = await createTestApp(env)
  service.clock.now = Date.now()
  await service.post('/otp/send', { phone: '+371 20 000 001' })
  await service.post('/otp/send', { phone: '+1 202 555 0143' })
  await service.close()
  await ok('app', 'issue', 'till')
  await ok('destination', 'set', 'LV', 'monitor')
  const before = await ok('audit')
  const block = await ok('guard', 'block', '+371', '--dry-run')
  expect(block).toContain('+371 covers every number of 1 country: LV.')
  expect(block).toContain('Codes by SMS to LV in the last 24 hours: 1 sent, 0 verified.')
  expect(await ok('app', 'revoke', 'till', '--dry-run')).toMatch(
    /^Would revoke 1 API key of till:\n {2}….{4}, never used\nRequests of till in the last 24 hours: 0\./,
  )
  const set = await ok('destination', 'set', 'LV', 'block', '--dry-run')
  expect(set).toMatch(
    /^LV: block\.\nIt would replace LV: monitor\.\nOf the last 7 days it would have rejected 1 code by SMS/,
  )
  for (const text of [block, set]) expect(text).toEndWith('Nothing was changed (--dry-run).\n')
  expect(await ok('audit')).toBe(before)
})

test.skipIf(!Bun.which('script'))('at a terminal, app revoke and guard block ask first', async () => {
  const { env, ok } = await scene()
  await ok('app', 'issue', 'shop')
  const typed = async (answer: string, ...args: string[]) => {
    const line = programLine(args).map((word) => `'${word}'`)
    const child = Bun.spawn(['script', '-qec', line.join(' '), '/dev/null'], {
      env: programEnv({ ...env, TERM: 'dumb' }),
      stdin: new Blob([`${answer}\n`]),
      stdout: 'pipe',
    })
    const text = await new Response(child.stdout).text()
    return [await child.exited, text]
  }
  expect(await typed('n', 'app', 'revoke', 'shop')).toEqual([
    1,
    expect.stringContaining('Nothing was changed.'),
  ])
  expect(await typed('y', 'app', 'revoke', 'shop')).toEqual([0, expect.stringContaining('is revoked.')])
  expect(await typed('yes', 'guard', 'block', '+1')).toEqual([
    0,
    expect.stringContaining('+1 is blocked until'),
  ])
  expect(await typed('', 'guard', 'block', '+44')).toEqual([1, expect.stringContaining('[y/N]')])
})

describe.concurrent('otpost completion', () => {
  const lines = [
    [['bra'], 'brand'],
    [['brand', 'pu'], 'put'],
    [['brand', 'put', 'acme', '--sta'], '--status'],
    [['brand', 'put', 'acme', '--status', 'susp'], 'suspended'],
    [['completion', 'fi'], 'fish'],
  ] as const
  /** Programs that print what each shell would offer for the words after `script`. */
  const shells = {
    bash: `source "$0"; COMP_WORDS=(otpost "$@"); COMP_CWORD=$#; _otpost; printf '%s\\n' "\${COMPREPLY[@]}"`,
    zsh: `compdef() {}; _describe() { print -l -- "\${(@P)2}" }; compadd() { shift; print -l -- "$@" }; _files() {}
      source "$0"; words=(otpost "$@"); CURRENT=$(($# + 1)); _otpost`,
    fish: `source $argv[1]; complete -C "otpost $argv[2..]"`,
  }

  test.each(Object.entries(shells).filter(([shell]) => Bun.which(shell) !== null))(
    'prints a script that completes commands, options and values in %s',
    async (shell, program) => {
      const { code, stdout } = await otpost(['completion', shell], { OTPOST_ENV_FILE: '/nowhere' })
      expect(code).toBe(0)
      const file = join(folder.path, `completion.${shell}`)
      writeFileSync(file, stdout)
      for (const [words, wanted] of lines) {
        const line = shell === 'zsh' ? [shell, '-fc', program, file] : [shell, '-c', program, file]
        const child = Bun.spawn([...line, ...words], { env: programEnv(), stdout: 'pipe', stderr: 'pipe' })
        const offered = (await new Response(child.stdout).text())
          .split('\n')
          .map((each) => each.split(/[:\t]/)[0])
        expect({ words, offered, stderr: await new Response(child.stderr).text() }).toEqual({
          words,
          offered: expect.arrayContaining([wanted]),
          stderr: '',
        })
      }
    },
  )
})

test('settings prints each value with its source, and no secret', async () => {
  const { env } = await scene()
  const file = join(folder.path, 'for-settings.env')
  writeFileSync(file, `PORT=4000\nOUTBOX_TOKEN=canary-of-the-outbox\n`)
  const given = {
    ...env,
    OTPOST_ENV_FILE: file,
    HOST: '::1',
    SECRET_KEY: 'canary of the key of 32 bytes or more',
  }
  const { code, stdout } = await otpost(['settings', '--json'], given)
  expect(code).toBe(0)
  const rows: Record<string, unknown>[] = JSON.parse(stdout)
  const row = (name: string) => rows.find((each) => each.name === name)
  expect(row('PORT')).toEqual({ name: 'PORT', source: 'file', file, value: '4000' })
  expect(row('HOST')).toEqual({ name: 'HOST', source: 'environment', value: '::1' })
  expect(row('GUARD')).toEqual({ name: 'GUARD', source: 'default', value: 'record' })
  expect(row('SECRET_KEY')).toEqual({ name: 'SECRET_KEY', source: 'environment', value: null })
  expect(row('OUTBOX_TOKEN')).toEqual({ name: 'OUTBOX_TOKEN', source: 'file', file, value: null })
  const table = await otpost(['settings'], given)
  expect(table.stdout).toMatch(new RegExp(`^PORT +4000 +env file ${file}$`, 'm'))
  expect(table.stdout).toMatch(/^SECRET_KEY +\(secret\) +environment$/m)
  expect(stdout + table.stdout).not.toContain('canary')
})
