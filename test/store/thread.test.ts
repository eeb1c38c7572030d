import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import { startThread } from '../../src/adapters/sqlite/thread.ts'
import type { Claim } from '../../src/domain/otp/limits.ts'
import { temporaryFolder } from '../support/app.ts'
import { testOtpStore } from './contract.ts'

const entry = new URL('../../src/adapters/sqlite/thread-main.ts', import.meta.url).href

/** A database of its own, written by a thread as a server's is. */
function threaded() {
  const folder = temporaryFolder()
  const file = join(folder.path, 'otpost.db')
  const database = openDatabase(file)
  const threads: Worker[] = []
  let answered = 0
  const start = () => {
    const thread = new Worker(entry)
    threads.push(thread)
    return thread
  }
  const problems: string[] = []
  const { work, close } = startThread(
    { file, identity: database.identity },
    start,
    () => answered++,
    (problem) => problems.push(problem),
  )
  return {
    file,
    database,
    threads,
    work,
    otps: work,
    answered: () => answered,
    /** What ended threads that were not asked to. */
    problems,
    close: async () => {
      await close()
      await database.close()
      folder.remove()
    },
  }
}

testOtpStore('SQLite, written by a thread', threaded)

describe('the thread of a database', () => {
  let scene: ReturnType<typeof threaded>
  beforeEach(() => {
    scene = threaded()
  })
  afterEach(() => scene.close())

  const claim: Claim = {
    limit: 'app-minute',
    subject: ['someone'],
    name: 'minute',
    max: 3,
    windowMs: 60_000,
    counted: true,
    failure: 'rate_limited',
    scope: 'per minute',
  }

  test('is started by the first call, once', async () => {
    expect(scene.threads).toHaveLength(0)
    await Promise.all(Array.from({ length: 100 }, () => scene.work.admit([claim], 1)))
    await scene.work.admit([claim], 1)
    expect(scene.threads).toHaveLength(1)
    expect(scene.answered()).toBeGreaterThan(0)
  })

  test('what it rejects with has the message and the code of what was thrown there', async () => {
    const write = { sql: 'INSERT INTO brands (slug) VALUES (?)', params: ['acme'] }
    const error = await scene.work.write([write]).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name: 'SqliteError', code: expect.stringMatching(/^SQLITE_CONSTRAINT/) })
  })

  test('one that fails fails what it was asked, and the next call starts another', async () => {
    await scene.work.admit([{ ...claim, max: 1 }], 1)
    const asked = scene.work.admit([claim], 1)
    scene.threads[0]?.dispatchEvent(new ErrorEvent('error', { message: 'out of memory' }))
    expect(await asked.catch((error: Error) => error.message)).toMatch(
      /thread of the database.*out of memory/,
    )
    expect(scene.problems).toEqual(['out of memory'])
    // What the first one had committed is known to the second.
    expect((await scene.work.admit([{ ...claim, max: 1 }], 1)).allowed).toBe(false)
    expect(scene.threads).toHaveLength(2)
  })

  test('a file that is gone is not written anew', async () => {
    await scene.work.admit([claim], 1)
    rmSync(scene.file)
    expect(await scene.work.admit([claim], 1).catch((error: Error) => error.message)).toMatch(/is gone/)
    expect(await scene.work.checkDatabase().catch((error: Error) => error.message)).toMatch(/is gone/)
  })

  test('one that ends by itself fails what it was asked too', async () => {
    await scene.work.admit([claim], 1)
    const asked = scene.work.admit([claim], 1)
    scene.threads[0]?.terminate()
    expect(await asked.catch((error: Error) => error.message)).toMatch(/has ended by itself/)
    expect((await scene.work.admit([claim], 1)).allowed).toBe(true)
    expect(scene.threads).toHaveLength(2)
  })

  test('a call that can not cross is rejected alone', async () => {
    const endless: { self?: unknown } = {}
    endless.self = endless
    const [bad, good] = await Promise.allSettled([
      (async () => scene.work.write([{ sql: '', params: [endless] }]))(),
      scene.work.admit([claim], 1),
    ])
    expect([bad.status, good.status]).toEqual(['rejected', 'fulfilled'])
  })

  test('another thread opens the same file or none', async () => {
    await scene.work.admit([claim], 1)
    renameSync(scene.file, `${scene.file}.away`)
    const asked = scene.work.admit([claim], 1)
    scene.threads[0]?.dispatchEvent(new ErrorEvent('error', { message: 'broken' }))
    await asked.catch(() => undefined)
    expect(await scene.work.admit([claim], 1).catch((error: Error) => error.message)).toMatch(/is gone/)
    expect(existsSync(scene.file)).toBe(false)
    renameSync(`${scene.file}.away`, scene.file)
    expect((await scene.work.admit([claim], 1)).allowed).toBe(true)
  })

  test('a log that is gone stops the writing: what is written to it would be lost', async () => {
    await scene.work.admit([claim], 1)
    rmSync(`${scene.file}-wal`)
    expect(await scene.work.admit([claim], 1).catch((error: Error) => error.message)).toMatch(/log is gone/)
    expect(await scene.work.checkDatabase().catch((error: Error) => error.message)).toMatch(/log is gone/)
  })

  test('closing waits for what was asked', async () => {
    const last = scene.work.admit([claim], 1)
    await scene.close()
    expect((await last).allowed).toBe(true)
    scene = threaded()
  })
})
