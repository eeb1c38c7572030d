import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import fs, { copyFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Driver from 'better-sqlite3'
import { isHashOf } from '../../src/adapters/crypto/secrets.ts'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import { createOtpStore } from '../../src/adapters/sqlite/otp-store.ts'
import { WriteAheadLog } from '../../src/adapters/sqlite/write-ahead-log.ts'
import { type DurableLog, Writer } from '../../src/adapters/sqlite/writer.ts'
import { createTestApp, temporaryFolder } from '../support/app.ts'
import { claimOf } from '../support/calls.ts'
import { sqliteStores } from '../support/operator.ts'
import { freshPhone } from '../support/rows.ts'
import { testOtpStore } from './contract.ts'

const silent = { warn: () => {} }

/** A database as in a server. */
function served() {
  const folder = temporaryFolder()
  const file = join(folder.path, 'otpost.db')
  const database = openDatabase(file)
  database.serve(silent)
  return {
    file,
    database,
    otps: createOtpStore(database, isHashOf),
    empty: () => database.writer.write(() => void database.driver.exec('DELETE FROM codes_and_limits')),
    close: async () => {
      await database.close()
      folder.remove()
    },
  }
}

testOtpStore('SQLite, as in a server', served)

describe('the database of a server', () => {
  let scene: ReturnType<typeof served>
  beforeEach(() => {
    scene = served()
  })
  afterEach(() => scene.close())

  const claim = claimOf()
  const admit = () => scene.otps.admit([claim], 1)
  const failure = (asked: Promise<unknown>) => asked.catch((error: Error) => error.message)

  test('does not create a missing file again, and continues when it is back', async () => {
    await admit()
    renameSync(scene.file, `${scene.file}.away`)
    expect(await failure(admit())).toMatch(/was removed/)
    expect(await failure(scene.database.check())).toMatch(/was removed/)
    expect(existsSync(scene.file)).toBe(false)
    renameSync(`${scene.file}.away`, scene.file)
    expect(await admit()).toMatchObject({ allowed: true })
  })

  test('stops writing if the WAL file is missing, because the writes would be lost', async () => {
    await admit()
    rmSync(`${scene.file}-wal`)
    expect(await failure(admit())).toMatch(/-wal file was removed/)
    expect(await failure(scene.database.check())).toMatch(/-wal file was removed/)
  })

  test('finishes its writes on close', async () => {
    const last = admit()
    await scene.close()
    expect(await last).toMatchObject({ allowed: true })
    scene = served()
  })

  test('checkpoints on another thread, so that the log does not grow', async () => {
    const { driver, writer } = scene.database
    for (let write = 0; write < 400; write++) {
      await writer.write(() => void driver.exec('UPDATE revision SET number = number + 1'))
      await writer.write(
        () => void driver.exec("REPLACE INTO app_brands VALUES ('a', hex(randomblob(50000)))"),
      )
    }
    const log = statSync(`${scene.file}-wal`).size
    expect(log).toBeLessThan(20 * 2 ** 20)
  })
})

describe('a write of a server', () => {
  const folder = temporaryFolder()
  let driver: Driver.Database
  let writer: Writer
  /** The syncs under way. */
  let syncs: PromiseWithResolvers<void>[]
  let events: string[]
  let room: PromiseWithResolvers<void> | undefined

  beforeEach(() => {
    driver = new Driver(join(folder.path, `${Math.random()}.db`), { timeout: 0 })
    driver.pragma('journal_mode = WAL')
    driver.exec('CREATE TABLE numbers (n INTEGER PRIMARY KEY) STRICT')
    writer = new Writer(driver, () => {})
    syncs = []
    events = []
    room = undefined
    writer.syncWith({
      sync: () => {
        events.push('sync')
        const sync = Promise.withResolvers<void>()
        syncs.push(sync)
        return sync.promise
      },
      committed: () => events.push('commit'),
      room: () => room?.promise,
    } satisfies DurableLog)
  })
  afterEach(() => {
    writer.close()
    driver.close()
  })

  const insert = (number: number) =>
    writer
      .write(() => void driver.prepare('INSERT INTO numbers VALUES (?)').run(number))
      .then(
        () => events.push(`stored ${number}`),
        (error: Error) => events.push(`lost ${number}: ${error.message}`),
      )
  const turn = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))

  test('resolves after the sync that began after its commit', async () => {
    const writes = [insert(1), insert(2)]
    await turn()
    writes.push(insert(3))
    await turn()
    expect(events).toEqual(['commit', 'sync', 'commit'])
    expect(writer.stats().queue).toBe(3)
    syncs[0]?.resolve()
    await turn()
    expect(events.slice(3)).toEqual(['sync', 'stored 1', 'stored 2'])
    syncs[1]?.resolve()
    await Promise.all(writes)
    expect(events.slice(6)).toEqual(['stored 3'])
  })

  test('waits for a sync also if it changed nothing, while another is not on the disk', async () => {
    const write = insert(1)
    await turn()
    const read = writer
      .write(() => driver.prepare('SELECT max(n) FROM numbers').pluck().get() as number)
      .then((most) => events.push(`read ${most}`))
    await turn()
    syncs[0]?.resolve()
    await turn()
    expect(events).toEqual(['commit', 'sync', 'commit', 'sync', 'stored 1'])
    syncs[1]?.resolve()
    await Promise.all([write, read])
    await writer.write(() => undefined)
    expect(events.slice(5)).toEqual(['read 1', 'commit'])
  })

  test('that a read needs is waited for, if it is not on the disk', async () => {
    expect(writer.durable()).toBe(undefined)
    const write = insert(1)
    await turn()
    const read = writer.durable()?.then(() => events.push('read'))
    await turn()
    syncs[0]?.resolve()
    await turn()
    syncs[1]?.resolve()
    await Promise.all([write, read])
    expect(events.slice(-2)).toEqual(['stored 1', 'read'])
  })

  test('is rejected if its sync fails, and a later one is not', async () => {
    const first = insert(1)
    await turn()
    const second = insert(2)
    await turn()
    syncs[0]?.reject(new Error('EIO'))
    await first
    expect(writer.hasWritten(1000)).toBe(false)
    await turn()
    expect(events).toEqual(['commit', 'sync', 'commit', 'sync', 'lost 1: EIO'])
    syncs[1]?.resolve()
    await second
    expect(events.at(-1)).toBe('stored 2')
    expect(writer.hasWritten(1000)).toBe(true)
    expect(writer.stats().lost).toBe(1)
  })

  test('that changes nothing waits for a sync too, since one failed', async () => {
    const lost = insert(1)
    await turn()
    syncs[0]?.reject(new Error('EIO'))
    await lost
    expect(writer.durable()).toBeInstanceOf(Promise)
    await turn()
    expect(events.at(-1)).toBe('sync')
    syncs[1]?.resolve()
    await turn()
    expect(writer.durable()).toBe(undefined)
  })

  test('is busy until it is on the disk, and a moment longer', async () => {
    expect(writer.isBusy(1000)).toBe(false)
    const write = insert(1)
    await turn()
    expect([writer.isBusy(0), writer.hasWritten(1000)]).toEqual([true, false])
    syncs[0]?.resolve()
    await write
    expect([writer.isBusy(1000), writer.hasWritten(1000)]).toEqual([true, true])
  })

  test('that the disk does not answer in time is rejected, and later ones are stored when it does', async () => {
    const late = writer.write(() => void driver.exec('INSERT INTO numbers VALUES (1)'), 5000, 0)
    expect(await late.catch((error: Error) => error.message)).toMatch(/The disk .* did not answer in time/)
    const next = insert(2)
    syncs[0]?.resolve()
    await turn()
    syncs[1]?.resolve()
    await next
    expect(events.at(-1)).toBe('stored 2')
  })

  test('waits while the log has no room', async () => {
    room = Promise.withResolvers()
    const write = insert(1)
    await turn()
    expect(events).toEqual([])
    const { resolve } = room
    room = undefined
    resolve()
    await turn()
    syncs[0]?.resolve()
    await write
    expect(events).toEqual(['commit', 'sync', 'stored 1'])
  })
})

test('after a failed sync the log is written again before the next one, with the same content', async () => {
  const { file, database, otps, close } = served()
  const admit = () => otps.admit([claimOf()], 1)
  await admit()
  const failing = spyOn(fs, 'fdatasync').mockImplementationOnce(((_: number, done: (error: Error) => void) =>
    queueMicrotask(() => done(new Error('EIO')))) as typeof fs.fdatasync)
  expect(await admit().catch((error: Error) => error.message)).toBe('EIO')
  const content = () => Bun.file(`${file}-wal`).bytes()
  const before = await content()
  const writing = spyOn(fs, 'writeSync')
  const log = new WriteAheadLog(database.driver, silent)
  await log.sync()
  expect(writing).not.toHaveBeenCalled()
  await admit()
  expect(writing).toHaveBeenCalledTimes(1)
  expect((await content()).slice(0, before.length)).toEqual(before)
  failing.mockRestore()
  writing.mockRestore()
  await log.close()
  await close()
})

test('a kept answer is not found before it is on the disk', async () => {
  const { database, otps, close } = served()
  const { idempotencyKeys } = sqliteStores(database, () => 1)
  const syncs: (() => void)[] = []
  const holding = spyOn(fs, 'fdatasync').mockImplementation(((_: number, done: (error: null) => void) => {
    syncs.push(() => done(null))
  }) as typeof fs.fdatasync)
  const key = { hash: 'hash', requestId: 'request 1', bodyHash: 'body', owner: 'owner', expiresAt: 1000 }
  const events: string[] = []
  const stored = otps.admit([claimOf()], 1, [{ kind: 'key', key }]).then(() => events.push('stored'))
  const turns = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  await turns()
  const found = idempotencyKeys.find(['hash']).then((row) => events.push(`found ${row?.requestId}`))
  await turns()
  expect(events).toEqual([])
  for (let sync = syncs.shift(); sync; sync = syncs.shift()) {
    sync()
    await turns()
  }
  await Promise.all([stored, found])
  expect(events).toEqual(['stored', 'found request 1'])
  holding.mockRestore()
  await close()
})

test('a checkpoint after one that failed has the same result as if none had', async () => {
  const { file, database, close } = served()
  const { writer, driver } = database
  const grow = () =>
    writer.write(() => void driver.exec("REPLACE INTO app_brands VALUES ('a', hex(randomblob(50000)))"))
  const thread = new Worker(new URL('../../src/adapters/sqlite/checkpointer.ts', import.meta.url).href)
  const checkpoint = (path: string) =>
    new Promise<string | undefined>((resolve) => {
      thread.onmessage = ({ data }: MessageEvent<string | undefined>) => resolve(data)
      thread.postMessage(path)
    })
  await grow()
  expect(await checkpoint(join(file, 'none', 'otpost.db'))).toMatch(/directory does not exist/)
  // So few that the server starts no checkpoint itself.
  for (let write = 0; write < 3; write++) await grow()
  const reader = new Driver(file)
  reader.exec('BEGIN; SELECT * FROM app_brands')
  for (let write = 0; write < 3; write++) await grow()
  // Another checkpoint could copy the rest while pages are read and written.
  expect(await checkpoint(file)).toBe('another checkpoint or a long read is under way')
  reader.close()
  expect(await checkpoint(file)).toBe(undefined)
  // Without the log, only the file counts.
  copyFileSync(file, `${file}.copy`)
  const copy = new Driver(`${file}.copy`)
  expect(copy.pragma('integrity_check')).toEqual([{ integrity_check: 'ok' }])
  expect(copy.prepare('SELECT * FROM app_brands').all()).toEqual(
    database.driver.prepare('SELECT * FROM app_brands').all(),
  )
  copy.close()
  thread.terminate()
  await close()
})

test('requests prepare no statement twice', async () => {
  const folder = temporaryFolder()
  const app = await createTestApp({ DATABASE_URL: `file:${join(folder.path, 'otpost.db')}` })
  const requests = async () => {
    const phone = freshPhone()
    const message = { brandId: 'acme', channel: 'SMS', to: [phone], message: 'Your parcel is on its way.' }
    const answers = [
      await app.post('/otp/send', { phone }),
      await app.post('/otp/send', { phone }),
      await app.post('/otp/verify', { phone, otp: 'abcdef' }),
      await app.post('/otp/verify', { phone, otp: '000000' }),
      await app.post('/notify', message),
      await app.post('/notify', { ...message, async: true }),
    ]
    await app.app.context.eventLog.flush()
    return answers.map(({ status }) => status)
  }
  const prepare = spyOn(Driver.prototype, 'prepare')
  for (let round = 0; round < 20; round++) expect(await requests()).toEqual([200, 429, 400, 401, 200, 202])
  const texts = prepare.mock.calls.map(([text]) => text)
  prepare.mockRestore()
  await app.close()
  folder.remove()
  expect(texts.filter((text, index) => texts.indexOf(text) !== index)).toEqual([])
  // Of several rows at once, and of rows with different columns.
  expect(texts.length).toBeLessThan(60)
})
