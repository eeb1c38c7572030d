import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import { startThread } from '../../src/adapters/sqlite/thread.ts'
import { temporaryFolder } from '../support/app.ts'
import { claimOf } from '../support/calls.ts'
import { testOtpStore } from './contract.ts'

const entry = new URL('../../src/adapters/sqlite/thread-main.ts', import.meta.url).href

/** A database with a writer thread, as in a server. */
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
    empty: () => work.write([{ sql: 'DELETE FROM codes_and_limits', params: [] }]),
    answered: () => answered,
    /** Errors of threads that ended unexpectedly. */
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

  const claim = claimOf()

  test('is started once, by the first call', async () => {
    expect(scene.threads).toHaveLength(0)
    await Promise.all(Array.from({ length: 100 }, () => scene.work.admit([claim], 1)))
    await scene.work.admit([claim], 1)
    expect(scene.threads).toHaveLength(1)
    expect(scene.answered()).toBeGreaterThan(0)
  })

  test('gets no null for a last argument that is undefined', async () => {
    expect((await scene.work.admit([claim], 1, undefined)).allowed).toBe(true)
  })

  test('rejects with the message and the code of the original error', async () => {
    const write = { sql: 'INSERT INTO brands (slug) VALUES (?)', params: ['acme'] }
    const error = await scene.work.write([write]).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name: 'SqliteError', code: expect.stringMatching(/^SQLITE_CONSTRAINT/) })
  })

  test('rejects its calls when it fails, and the next call starts another', async () => {
    await scene.work.admit([{ ...claim, max: 1 }], 1)
    const asked = scene.work.admit([claim], 1)
    scene.threads[0]?.dispatchEvent(new ErrorEvent('error', { message: 'out of memory' }))
    expect(await asked.catch((error: Error) => error.message)).toMatch(/database thread.*out of memory/)
    expect(scene.problems).toEqual(['out of memory'])
    // The second thread sees what the first one had committed.
    expect((await scene.work.admit([{ ...claim, max: 1 }], 1)).allowed).toBe(false)
    expect(scene.threads).toHaveLength(2)
  })

  test('does not create a missing file again', async () => {
    await scene.work.admit([claim], 1)
    rmSync(scene.file)
    expect(await scene.work.admit([claim], 1).catch((error: Error) => error.message)).toMatch(/was removed/)
    expect(await scene.work.checkDatabase().catch((error: Error) => error.message)).toMatch(/was removed/)
  })

  test('rejects its calls when it exits', async () => {
    await scene.work.admit([claim], 1)
    const asked = scene.work.admit([claim], 1)
    scene.threads[0]?.terminate()
    expect(await asked.catch((error: Error) => error.message)).toMatch(/ended unexpectedly/)
    expect((await scene.work.admit([claim], 1)).allowed).toBe(true)
    expect(scene.threads).toHaveLength(2)
  })

  test('rejects only the call whose arguments cannot be cloned', async () => {
    const endless: { self?: unknown } = {}
    endless.self = endless
    const [bad, good] = await Promise.allSettled([
      (async () => scene.work.write([{ sql: '', params: [endless] }]))(),
      scene.work.admit([claim], 1),
    ])
    expect([bad.status, good.status]).toEqual(['rejected', 'fulfilled'])
  })

  test('opens the same file after a restart, or none', async () => {
    await scene.work.admit([claim], 1)
    renameSync(scene.file, `${scene.file}.away`)
    const asked = scene.work.admit([claim], 1)
    scene.threads[0]?.dispatchEvent(new ErrorEvent('error', { message: 'broken' }))
    await asked.catch(() => undefined)
    expect(await scene.work.admit([claim], 1).catch((error: Error) => error.message)).toMatch(/was removed/)
    expect(existsSync(scene.file)).toBe(false)
    renameSync(`${scene.file}.away`, scene.file)
    expect((await scene.work.admit([claim], 1)).allowed).toBe(true)
  })

  test('stops writing if the WAL file is missing, because the writes would be lost', async () => {
    await scene.work.admit([claim], 1)
    rmSync(`${scene.file}-wal`)
    expect(await scene.work.admit([claim], 1).catch((error: Error) => error.message)).toMatch(
      /-wal file was removed/,
    )
    expect(await scene.work.checkDatabase().catch((error: Error) => error.message)).toMatch(
      /-wal file was removed/,
    )
  })

  test('finishes its calls on close', async () => {
    const last = scene.work.admit([claim], 1)
    await scene.close()
    expect((await last).allowed).toBe(true)
    scene = threaded()
  })
})
