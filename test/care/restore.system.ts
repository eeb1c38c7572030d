import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import type { RestoreStep } from '../../src/adapters/sqlite/restore.ts'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { inviteOperator, removeOperator, setRole } from '../../src/domain/accounts/account-changes.ts'
import { issueApp } from '../../src/domain/operator/apps.ts'
import { brandSetStatus, putBrand } from '../../src/domain/operator/brands.ts'
import { queueRetry } from '../../src/domain/operator/queue.ts'
import { createTestApp, verdict } from '../support/app.ts'
import { operate, tester } from '../support/operator.ts'
import { otpost, startServer } from '../support/server.ts'
import { foundIn, inDatabase, isWhole, place } from './scene.ts'

const phone = '12025550143'

/** The brands of a database; one of them identifies it. */
async function marked(file: string, slug: string): Promise<void> {
  const context = await openContext(readConfig({ DATABASE_URL: `file:${file}` }))
  await putBrand(context.acting(tester), slug, { displayName: slug })
  await context.close()
}

function slugs(file: string): readonly string[] {
  return inDatabase(file, (driver) =>
    driver.prepare<[], string>('SELECT slug FROM brands ORDER BY slug').pluck().all(),
  )
}

test.each([0o644, 0o400])('a backup with mode %o becomes a database with mode 0600', async (mode) => {
  using here = place()
  await marked(here.file, 'backed')
  await here.backUp(here.at('backup.db'))
  chmodSync(here.at('backup.db'), mode)
  here.restore(here.at('backup.db'))
  expect(slugs(here.file)).toEqual(['backed'])
  expect(statSync(here.file).mode & 0o777).toBe(0o600)
  expect(statSync(here.at('backup.db')).mode & 0o777).toBe(mode)
})

test('what was spent of a budget after the backup stays spent, and alerts are not sent again', async () => {
  using here = place()
  const budget = (scope: string, countsFrom: number) =>
    `INSERT INTO budgets VALUES ('${scope}', 'all', 'month', 100, 'EUR', '[]', 1, NULL, ${countsFrom})`
  const spent = (scope: string, count: number, endsAt: number, countsFrom = 5) =>
    `INSERT OR REPLACE INTO codes_and_limits (subject, name, count, expires_at)
     VALUES ('budget:${scope}', 'month:all:${countsFrom}', ${count}, ${endsAt})`
  const run = (...statements: readonly string[]) =>
    inDatabase(here.file, (driver) => void driver.exec(statements.join(';')))
  const counters = () =>
    inDatabase(here.file, (driver) =>
      driver.prepare('SELECT subject, name, count, expires_at FROM codes_and_limits').raw().all(),
    )
  await marked(here.file, 'backed')
  run(budget('server', 5), spent('server', 40, 9e12), budget('brand:a', 5), spent('brand:a', 90, 8e12))
  run(
    budget('brand:b', 5),
    budget('country:*', 5),
    "INSERT INTO alert_deliveries VALUES ('a', 'email', 0, 1)",
  )
  await here.backUp(here.at('backup.db'))
  run(
    spent('server', 60, 9e12),
    spent('brand:a', 10, 9e12),
    spent('brand:b', 1, 9e12),
    spent('brand:b', 7, 9e12, 6),
    spent('country:*:LV', 3, 9e12),
  )
  run(spent('brand:c', 7, 9e12))
  expect(here.restore(here.at('backup.db'))).toMatchObject({ droppedAlerts: 1, knowsSpent: true })
  expect(counters()).toEqual([
    ['budget:brand:a', 'month:all:5', 10, 9e12],
    ['budget:brand:b', 'month:all:5', 1, 9e12],
    ['budget:country:*:LV', 'month:all:5', 3, 9e12],
    ['budget:server', 'month:all:5', 60, 9e12],
  ])
  run(spent('server', 50, 9e12))
  here.restore(here.at('backup.db'))
  expect(counters()).toContainEqual(['budget:server', 'month:all:5', 50, 9e12])
  run(spent('server', 50, 1e12))
  here.restore(here.at('backup.db'))
  expect(counters()).toContainEqual(['budget:server', 'month:all:5', 40, 9e12])
  rmSync(here.file)
  expect(here.restore(here.at('backup.db'))).toMatchObject({ knowsSpent: false })
  expect(counters()).toContainEqual(['budget:server', 'month:all:5', 40, 9e12])
})

test('restore --dry-run says what it would restore, also while the database is in use, and changes nothing', async () => {
  using here = place()
  await marked(here.file, 'backed')
  await here.backUp(here.at('backup.db'))
  const open = openDatabase(here.file)
  const [bytes, names] = [readFileSync(here.file), here.names()]
  const preview = await otpost(['restore', here.at('backup.db'), '--dry-run'], here.env)
  expect(preview).toMatchObject({ code: 0, stderr: '' })
  expect(preview.stdout).toContain(`Would restore ${here.file} from ${here.at('backup.db')}.`)
  expect(preview.stdout).toEndWith('Nothing was changed (--dry-run).\n')
  expect([readFileSync(here.file), here.names()]).toEqual([bytes, names])
  await open.close()
})

test('asynchronous notifications that waited are not sent again, until an operator retries them', async () => {
  using here = place()
  const before = await createTestApp({
    ...here.env,
    SMTP_URL: 'smtp://127.0.0.1:1',
    MAIL_FROM: 'a@example.com',
  })
  const mail = { channel: 'EMAIL', subject: 'Ready', html: '<p>Ready</p>', async: true }
  const to = ['ann@example.com', 'bob@example.com', 'cem@example.com']
  const { body } = await before.post('/notify', { ...mail, to })
  await before.app.queue.idle()
  const change = 'UPDATE notify_jobs SET state = ? WHERE position = ?'
  inDatabase(here.file, (driver) => {
    driver.prepare(change).run('sending', 2)
    driver.prepare(change).run('failed', 3)
  })
  await here.backUp(here.at('backup.db'))
  await before.close()
  expect(here.restore(here.at('backup.db'))).toMatchObject({ unknownJobs: 2 })
  const after = await createTestApp(here.env)
  after.clock.now = before.clock.now
  const { jobs, acting } = after.app.context
  const states = async () => (await jobs.ofRequest(body.requestId)).map(({ state }) => state)
  after.app.queue.tick()
  await after.app.queue.idle()
  expect(await states()).toEqual(['unknown', 'unknown', 'failed'])
  await queueRetry.run({ ...acting(tester), jobs }, { requestId: body.requestId, unknown: true })
  after.app.queue.tick()
  await after.app.queue.idle()
  expect((await after.outbox()).map((message) => message.to).toSorted()).toEqual(to)
  await after.close()
})

test.skipIf(process.getuid?.() !== 0)(
  'as root, the database gets the owner of the existing one, or of the folder',
  async () => {
    using here = place()
    await marked(here.file, 'backed')
    await here.backUp(here.at('backup.db'))
    chownSync(here.file, 65_534, 65_534)
    here.restore(here.at('backup.db'))
    expect(statSync(here.file)).toMatchObject({ uid: 65_534, gid: 65_534 })
    rmSync(here.file)
    chownSync(here.data, 65_533, 65_533)
    here.restore(here.at('backup.db'))
    expect(statSync(here.file)).toMatchObject({ uid: 65_533, gid: 65_533 })
    expect(statSync(here.at('backup.db')).uid).toBe(0)
  },
)

test.skipIf(process.getuid?.() !== 0)(
  'a file in the place of the draft is neither written nor given to another user',
  async () => {
    using here = place()
    await marked(here.file, 'backed')
    await here.backUp(here.at('backup.db'))
    chownSync(here.data, 65_534, 65_534)
    writeFileSync(here.at('of-root'), 'of root', { mode: 0o640 })
    const draft = `${here.file}.${process.pid}.draft`
    for (const end of ['', '-wal']) {
      const onStep = (step: RestoreStep) => {
        if (step !== 'copy') return
        rmSync(draft + end, { force: true })
        symlinkSync(here.at('of-root'), draft + end)
      }
      const restoring = () => here.restore(here.at('backup.db'), { onStep })
      // SQLite opens no log through a link.
      if (end === '-wal') expect(restoring).toThrow('cannot be restored')
      else restoring()
      expect(statSync(here.at('of-root'))).toMatchObject({ uid: 0, mode: 0o100640 })
      expect(readFileSync(here.at('of-root'), 'utf8')).toBe('of root')
    }
  },
)

test('codes are not restored, used or not; limits, brands and the event log are', async () => {
  using here = place()
  const before = await createTestApp(here.env)
  await before.brand('globex')
  await before.post('/otp/send', { phone })
  const used = await before.lastCode(phone)
  await before.post('/otp/send', { phone: '12025550144' })
  const unused = await before.lastCode('12025550144')
  const sent = await before.post('/otp/send', { channel: 'EMAIL', email: 'ann@example.com' })
  await before.eventsOf(sent)
  inDatabase(here.file, (driver) => {
    driver.exec(
      "INSERT INTO console_sessions VALUES ('s', 1, 1, 9e15, 'link', NULL, 1, '', ''); INSERT INTO console_links (token_sha256, expires_at) VALUES ('l', 9e15)",
    )
  })
  await here.backUp(here.at('backup.db'))
  expect(verdict(await before.post('/otp/verify', { phone, otp: used }))).toBe('200')
  await before.brand('later')
  await before.close()

  const restored = here.restore(here.at('backup.db'))
  expect(restored).toEqual({
    asideFile: expect.stringContaining(`${here.file}.before-restore-2`),
    ownerUid: null,
    droppedCodes: 3,
    droppedSessions: 2,
    droppedAlerts: 0,
    unknownJobs: 0,
    knowsSpent: true,
    lastRequestAt: before.clock.now,
    validAgain: { appIds: [], brands: [], accounts: [] },
  })
  expect(slugs(here.file)).toEqual(['acme', 'globex'])
  expect(slugs(restored.asideFile ?? '')).toEqual(['acme', 'globex', 'later'])
  expect(statSync(here.file).mode & 0o777).toBe(0o600)

  const after = await createTestApp(here.env)
  after.clock.now = before.clock.now
  for (const [to, otp] of [
    [phone, used],
    ['12025550144', unused],
  ]) {
    expect(verdict(await after.post('/otp/verify', { phone: to, otp }))).toBe('404 not_found')
  }
  expect(verdict(await after.post('/otp/send', { phone }))).toBe('429 cooldown_active')
  expect((await after.eventsOf(sent)).trace?.operation).toBe('send')
  const entries = await after.app.context.audit.list({ limit: 10 })
  expect(entries.find(({ action }) => action === 'data.restored')).toMatchObject({
    actor: { by: 'command', name: 'test' },
    target: 'database',
    details: { droppedCodes: '3', droppedSessions: '2' },
  })
  after.advance(61)
  expect(verdict(await after.post('/otp/send', { phone }))).toBe('200')
  expect(verdict(await after.post('/otp/verify', { phone, otp: await after.lastCode(phone) }))).toBe('200')
  await after.close()
})

test('reports what had been withdrawn since, what else is restored, and that the secret key is missing', async () => {
  using here = place()
  const context = await openContext(readConfig(here.env))
  const operator = context.acting(tester)
  await putBrand(operator, 'acme', { displayName: 'Acme' })
  await putBrand(operator, 'globex', { displayName: 'Globex' })
  for (const appId of ['shop', 'stolen']) await issueApp(operator, appId)
  const { contacts } = readConfig(here.env)
  for (const name of ['gone', 'more', 'same']) {
    await inviteOperator({ ...context, contacts, actor: tester }, `${name}@example.com`, 'viewer')
  }
  await context.close()
  await here.backUp(here.at('backup.db'))
  const later = await openContext(readConfig(here.env))
  await operate({ app: { context: later } }, 'app revoke', { appId: 'stolen' })
  await brandSetStatus.run(later.acting(tester), { slug: 'globex', status: 'suspended' })
  await removeOperator({ ...later, actor: tester }, 'gone@example.com')
  await setRole({ ...later, actor: tester }, 'more@example.com', 'operator')
  await later.close()
  rmSync(`${here.file}.key`)

  const { code, stdout, stderr } = await otpost(['restore', here.at('backup.db')], here.env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`Restore ${here.file}.key`) })
  expect(stdout).toContain('are valid again: stolen. Revoke them again')
  expect(stdout).toContain('are active again: globex. Suspend them again')
  expect(stdout).toContain('are as they were then: gone@example.com, more@example.com. Remove or reset')
  expect(stdout).toContain('Run `otpost forget` for them again')
})

test('a database that a server has open is not replaced', async () => {
  using here = place()
  await marked(here.file, 'old')
  await marked(here.at('other/otpost.db'), 'new')
  const server = await startServer(here.env)
  try {
    const { code, stdout, stderr } = await otpost(['restore', here.at('other/otpost.db')], here.env)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('open. Stop the server')
    expect((await server.get('/health')).status).toBe(200)
  } finally {
    await server.stop()
  }
  expect(slugs(here.file)).toEqual(['old'])
  expect(here.names()).toEqual(['otpost.db', 'otpost.db.created', 'otpost.db.key'])
  expect((await otpost(['restore', here.at('other/otpost.db')], here.env)).code).toBe(0)
  expect(slugs(here.file)).toEqual(['new'])
})

test('without a database a restore creates one, and does not apply a leftover log to it', async () => {
  using here = place()
  await marked(here.at('other/otpost.db'), 'new')
  mkdirSync(here.data)
  for (const end of ['-wal', '-shm', '-journal']) writeFileSync(here.file + end, `left ${end}`)
  expect(here.restore(here.at('other/otpost.db')).asideFile).toBeNull()
  expect(slugs(here.file)).toEqual(['new'])
  const aside = here.names().filter((name) => name.includes('before-restore'))
  expect(aside.map((name) => readFileSync(join(here.data, name), 'utf8')).sort()).toEqual([
    'left -journal',
    'left -shm',
    'left -wal',
  ])
})

test('a copy with a log is restored with the content of the log, and does not change', async () => {
  using here = place()
  const other = here.at('other/otpost.db')
  await marked(other, 'new')
  const open = openDatabase(other)
  await open.writer.write(() => void open.driver.exec("UPDATE brands SET slug = 'in-the-log'"))
  mkdirSync(here.at('copy'))
  for (const end of ['', '-wal']) writeFileSync(here.at(`copy/otpost.db${end}`), readFileSync(other + end))
  await open.close()
  const bytes = readdirSync(here.at('copy')).map((name) => readFileSync(here.at(`copy/${name}`)))
  here.restore(here.at('copy/otpost.db'))
  expect(slugs(here.file)).toEqual(['in-the-log'])
  expect(readdirSync(here.at('copy')).map((name) => readFileSync(here.at(`copy/${name}`)))).toEqual(bytes)
})

describe('a file that is no backup is rejected, and the database stays:', () => {
  const refusals: readonly (readonly [name: string, says: string, make: (file: string) => void])[] = [
    ['nothing', 'does not exist.', () => {}],
    ['a folder', 'does not exist.', (file) => mkdirSync(file)],
    ['an empty file', 'but not of otpost.', (file) => writeFileSync(file, '')],
    [
      'a text',
      'is not an SQLite database',
      (file) => writeFileSync(file, 'nothing of the kind. '.repeat(200)),
    ],
    [
      'a database of another program',
      'but not of otpost.',
      (file) => inDatabase(file, (d) => void d.exec('CREATE TABLE t (a)')),
    ],
    [
      'one of a newer version',
      'a newer version of otpost',
      (file) =>
        inDatabase(
          file,
          (d) => void d.exec("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 9e15)"),
        ),
    ],
    [
      'one that lacks a column',
      'it lacks brands.entity_id',
      (file) => inDatabase(file, (d) => void d.exec('ALTER TABLE brands DROP COLUMN entity_id')),
    ],
    [
      'one whose rows break a rule',
      'is damaged: CHECK constraint failed',
      (file) =>
        inDatabase(
          file,
          (d) => void d.exec("PRAGMA ignore_check_constraints = ON; UPDATE brands SET status = 'x'"),
        ),
    ],
    [
      'one that is cut short',
      'damaged',
      (file) => writeFileSync(file, readFileSync(file).subarray(0, 3 * 4096)),
    ],
  ]
  test.each(refusals)('%s', async (_, says, make) => {
    using here = place()
    await marked(here.file, 'old')
    const file = here.at('backup.db')
    if (/^one /.test(_)) await here.backUp(file)
    make(file)
    expect(() => here.restore(file)).toThrow(says)
    expect(slugs(here.file)).toEqual(['old'])
    expect(here.names()).toEqual(['otpost.db', 'otpost.db.created', 'otpost.db.key'])
  })

  test('the database itself, by any of its names', async () => {
    using here = place()
    await marked(here.file, 'old')
    expect(() => here.restore(here.file)).toThrow('belongs to the database')
    expect(() => here.restore(`${here.file}.key`)).toThrow('belongs to the database')
  })
})

test('a damaged database is replaced on request, and kept aside with its log', async () => {
  using here = place()
  await marked(here.file, 'old')
  await marked(here.at('other/otpost.db'), 'new')
  writeFileSync(here.file, 'no database any more. '.repeat(400))
  writeFileSync(`${here.file}-wal`, 'its log')
  expect(() => here.restore(here.at('other/otpost.db'))).toThrow('Stop the server, and add --force.')
  expect(foundIn(here.data, ['no database any more', 'its log'])).toHaveLength(2)
  const { asideFile } = here.restore(here.at('other/otpost.db'), { force: true })
  expect(slugs(here.file)).toEqual(['new'])
  expect(readFileSync(asideFile ?? '', 'utf8')).toStartWith('no database any more')
  expect(readFileSync(`${asideFile}-wal`, 'utf8')).toBe('its log')
})

const steps: readonly (readonly [RestoreStep, 'old' | 'new'])[] = [
  ['hold', 'old'],
  ['copy', 'old'],
  ['prepare', 'old'],
  ['set aside', 'old'],
  ['publish', 'old'],
  ['done', 'new'],
]

test.concurrent.each(steps)('killed before the step "%s" the %s database is whole', async (step, which) => {
  using here = place()
  await marked(here.file, 'old')
  await marked(here.at('other/otpost.db'), 'new')
  const script = join(import.meta.dir, 'restore-and-die.ts')
  const child = Bun.spawn([process.execPath, script, here.file, here.at('other/otpost.db'), step], {
    stdout: 'ignore',
  })
  expect(await child.exited).toBe(137)
  expect(slugs(here.file)).toEqual([which])
  expect(isWhole(here.file)).toBe(true)
  // The next start finds a sound database, and the next restore removes the leftovers.
  await marked(here.file, 'next')
  expect((await otpost(['restore', here.at('other/otpost.db')], here.env)).code).toBe(0)
  expect(slugs(here.file)).toEqual(['new'])
  expect(here.names().filter((name) => name.includes('draft'))).toEqual([])
})

test('a process that had opened the file before can write neither to the old database nor to the new one', async () => {
  using here = place()
  await marked(here.file, 'old')
  await marked(here.at('other/otpost.db'), 'new')
  const script = join(import.meta.dir, 'open-and-wait.ts')
  const child = Bun.spawn([process.execPath, script, here.file], { stdin: 'pipe', stdout: 'pipe' })
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  expect((await lines.read()).value).toBe('open\n')
  const { asideFile } = here.restore(here.at('other/otpost.db'))
  child.stdin.write('go on\n')
  child.stdin.end()
  expect((await lines.read()).value).toBe('SQLITE_READONLY_DBMOVED\n')
  await child.exited
  expect([slugs(here.file), slugs(asideFile ?? '')]).toEqual([['new'], ['old']])
})
