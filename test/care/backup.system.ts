import { expect, test } from 'bun:test'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import Driver from 'better-sqlite3'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { createTestApp } from '../support/app.ts'
import { tester } from '../support/operator.ts'
import { programEnv, programLine } from '../support/program.ts'
import { otpost, startServer } from '../support/server.ts'
import { foundIn, inDatabase, isWhole, owner, place } from './scene.ts'

/** A database with so many rows that a backup takes a while. */
async function filled(file: string, rows: number): Promise<void> {
  await openDatabase(file).close()
  inDatabase(file, (driver) => {
    const insert = driver.prepare(
      "INSERT INTO codes_and_limits (subject, name, count, expires_at) VALUES (?, 'hour', ?, ?)",
    )
    driver.transaction(() => {
      for (let row = 0; row < rows; row++) {
        insert.run(`subject-${row}`, 1 + row, Date.now() + 3_600_000)
      }
    })()
  })
}

test('a backup of a server under load has every answered request, and blocks no request', async () => {
  using here = place()
  const context = await openContext(readConfig(here.env))
  await putBrand(context.acting(tester), 'acme', { displayName: 'Acme' })
  await context.close()
  const server = await startServer({ ...here.env, SMS_PLAIN: 'discard' })
  const answers: { status: number; requestId: string }[] = []
  let phones = 0
  let isOver = false
  const enough = Promise.withResolvers<void>()
  const client = async () => {
    while (!isOver) {
      phones += 1
      const { status, body } = await server.post('/otp/send', {
        phone: `1202${String(phones).padStart(7, '0')}`,
      })
      answers.push({ status, requestId: body.requestId })
      if (answers.length === 100) enough.resolve()
    }
  }
  const clients = Array.from({ length: 8 }, client)
  await enough.promise
  // Traces are written a moment after the answer, and all of them before the server stops.
  const before = answers.map(({ requestId }) => requestId).slice(0, 50)
  const copy = here.at('backup.db')
  const { code, stdout, stderr } = await otpost(['backup', copy], here.env)
  const during = answers.length
  isOver = true
  await Promise.all(clients)
  await server.stop()

  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^Backup written: \S+backup\.db, \d+\.\d MiB, in \d+\.\d s\.\n$/),
  })
  expect(stderr).toContain(`The backup does not contain the secret key in ${here.file}.key`)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(during).toBeGreaterThan(100)
  expect(readdirSync(here.folder).sort()).toEqual(['backup.db', 'data'])
  expect(statSync(copy).mode & 0o777).toBe(0o600)
  expect(isWhole(copy)).toBe(true)
  const kept = inDatabase(copy, (driver) =>
    driver.prepare<[], string>('SELECT request_id FROM requests').pluck().all(),
  )
  expect(before.filter((id) => !kept.includes(id))).toEqual([])
  const key = readFileSync(`${here.file}.key`, 'utf8').trim()
  expect(foundIn(here.data, [key])).toEqual([key])
  expect(readFileSync(copy).includes(key)).toBe(false)
})

test('a backup has no bytes of deleted rows', async () => {
  using here = place()
  await filled(here.file, 0)
  const secret = 'a row that is there no more'
  inDatabase(here.file, (driver) => {
    driver
      .prepare(
        "INSERT INTO brands (slug, display_name, name_key, status, notify_templates, dlt_enabled, login_id_enabled, registrations, lang, dlt_allow_list) VALUES (?, ?, 'x', 'active', '[]', 0, 0, '{}', 'en', '[]')",
      )
      .run('gone', secret)
    driver.exec('DELETE FROM brands')
  })
  // Otherwise the check below would prove nothing.
  expect(foundIn(here.data, [secret])).toEqual([secret])
  await here.backUp(here.at('backup.db'))
  expect(readFileSync(here.at('backup.db')).includes(secret)).toBe(false)
})

test('existing files are replaced only on request, and the files of the database never', async () => {
  using here = place()
  await filled(here.file, 1)
  // So that the database has a write-ahead log.
  const open = openDatabase(here.file)
  writeFileSync(`${here.file}.key`, 'a secret of 32 bytes or more, for the tests')
  writeFileSync(here.at('taken.db'), 'taken')
  mkdirSync(here.at('folder'))
  symlinkSync(here.data, here.at('link'))
  linkSync(here.file, here.at('second-name.db'))

  await expect(here.backUp(here.at('taken.db'))).rejects.toThrow(
    'already exists. Give another path, or add --force to replace it.',
  )
  await expect(here.backUp(here.at('folder'), { replace: true })).rejects.toThrow('is not a file')
  // Such as a disk that is not mounted.
  await expect(here.backUp(here.at('nowhere/backup.db'))).rejects.toThrow(
    'does not exist. Create or mount it first.',
  )
  expect(existsSync(here.at('nowhere'))).toBe(false)
  const own = ['', '-wal', '-shm', '-journal', '.key', '.created'].map((end) => here.file + end)
  for (const file of [
    ...own,
    here.at('link/otpost.db'),
    here.at('link/otpost.db-wal'),
    here.at('second-name.db'),
  ]) {
    await expect(here.backUp(file, { replace: true })).rejects.toThrow('belongs to the database')
  }
  await open.close()
  expect(isWhole(here.file)).toBe(true)
  expect(readFileSync(`${here.file}.key`, 'utf8')).toStartWith('a secret')

  expect(await here.backUp(here.at('taken.db'), { replace: true })).toBe(statSync(here.at('taken.db')).size)
  expect(isWhole(here.at('taken.db'))).toBe(true)
})

test('a backup removes the draft of a killed backup, but not that of a running one', async () => {
  using here = place()
  await filled(here.file, 1000)
  const copy = here.at('copies/backup.db')
  mkdirSync(here.at('copies'))
  // The backup stops after its draft.
  const holder = new Driver(here.file)
  holder.pragma('journal_mode = DELETE')
  holder.exec('BEGIN EXCLUSIVE')
  const child = Bun.spawn(programLine(['backup', copy]), {
    env: programEnv(here.env),
    stdout: 'ignore',
    stderr: 'ignore',
  })
  // The first new file is the draft.
  const appeared = Promise.withResolvers<void>()
  const watching = watch(here.at('copies'), () => appeared.resolve())
  await appeared.promise
  child.kill('SIGKILL')
  await child.exited
  watching.close()
  holder.close()
  expect(readdirSync(here.at('copies'))).toContain(`backup.db.${child.pid}.draft`)
  expect(existsSync(copy)).toBe(false)

  const others = `${copy}.1.draft`
  writeFileSync(others, '')
  await here.backUp(copy, { owner: { ...owner, isRunning: (pid) => pid === 1 } })
  expect(readdirSync(here.at('copies')).sort()).toEqual(['backup.db', 'backup.db.1.draft'])
  expect(isWhole(copy)).toBe(true)
})

test('a damaged database is not backed up', async () => {
  using here = place()
  await filled(here.file, 5000)
  const bytes = readFileSync(here.file)
  bytes.fill(0xff, 40 * 4096, 60 * 4096)
  writeFileSync(here.file, bytes)
  const { code, stdout, stderr } = await otpost(['backup', here.at('backup.db')], here.env)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain(here.file)
  expect(readdirSync(here.folder)).toEqual(['data'])
})

test('without a database or a writable target the command fails and creates nothing', async () => {
  using here = place()
  const missing = await otpost(['backup', here.at('backup.db')], here.env)
  expect(missing.code).toBe(1)
  expect(missing.stderr).toContain('There is no database at')
  expect(readdirSync(here.folder)).toEqual([])
  await filled(here.file, 1)
  writeFileSync(here.at('file'), '')
  await expect(here.backUp(join(here.at('file'), 'backup.db'))).rejects.toThrow('cannot be written')
})

test('a backup keeps the schema version of the database', async () => {
  using here = place()
  const app = await createTestApp(here.env)
  await app.close()
  const last = inDatabase(here.file, (driver) => {
    const at = driver.prepare('SELECT max(created_at) FROM __drizzle_migrations').pluck().get()
    driver.prepare('DELETE FROM __drizzle_migrations WHERE created_at = ?').run(at)
    return driver.prepare('SELECT max(created_at) FROM __drizzle_migrations').pluck().get()
  })
  expect((await otpost(['backup', here.at('backup.db')], here.env)).code).toBe(0)
  for (const file of [here.file, here.at('backup.db')]) {
    const found = inDatabase(file, (driver) =>
      driver.prepare('SELECT max(created_at) FROM __drizzle_migrations').pluck().get(),
    )
    expect(found).toBe(last)
  }
})
