import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Driver from 'better-sqlite3'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import { fileStats, sqliteVersion } from '../../src/adapters/sqlite/file-stats.ts'
import { Writer } from '../../src/adapters/sqlite/writer.ts'
import type { WriterStats } from '../../src/adapters/store/store.ts'
import { temporaryFolder } from '../support/app.ts'

// The store's statistics.

let folder: ReturnType<typeof temporaryFolder>
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => folder.remove())

/** The counts of a distribution by bound, without zeros. */
function counted({ bounds, counts }: WriterStats['batchSizes']): Record<string, number> {
  return Object.fromEntries(
    counts.flatMap((count, place) => (count === 0 ? [] : [[`to ${bounds[place] ?? 'infinity'}`, count]])),
  )
}

describe('a writer', () => {
  let driver: Driver.Database
  let writer: Writer
  const insert = (value: number) => driver.prepare('INSERT INTO numbers VALUES (?)').run(value)
  const write = (value: number, lockWaitMs?: number) => writer.write(() => void insert(value), lockWaitMs)

  beforeEach(() => {
    driver = new Driver(join(folder.path, 'numbers.db'), { timeout: 0 })
    driver.pragma('journal_mode = WAL')
    driver.exec('CREATE TABLE numbers (n INTEGER NOT NULL CHECK (n >= 0)) STRICT')
    writer = new Writer(driver, () => {})
  })
  afterEach(() => void driver.close())

  test('counts the writes of each transaction, including failed ones, and the commit durations', async () => {
    expect(writer.stats()).toMatchObject({ queue: 0, lost: 0 })
    const startedAt = performance.now()
    await write(1)
    const three = [write(2), write(3).catch(() => 'failed'), write(-4).catch(() => 'failed')]
    expect(writer.stats().queue).toBe(3)
    expect(await Promise.all(three)).toEqual([undefined, undefined, 'failed'])
    await Promise.all(Array.from({ length: 600 }, (_, value) => write(value)))
    const { queue, batchSizes, commitSeconds, lost } = writer.stats()
    expect({ queue, lost }).toEqual({ queue: 0, lost: 0 })
    expect(counted(batchSizes)).toEqual({ 'to 1': 1, 'to 4': 1, 'to infinity': 1 })
    expect(batchSizes.sum).toBe(604)
    expect(commitSeconds.counts.reduce((sum, count) => sum + count, 0)).toBe(3)
    expect(commitSeconds.sum).toBeGreaterThan(0)
    expect(commitSeconds.sum).toBeLessThan((performance.now() - startedAt) / 1000)
  })

  test('counts a lost transaction, and not as a commit', async () => {
    const lost = [
      write(1),
      writer.write(() => {
        driver.exec('ROLLBACK')
        throw new Error('the disk is full')
      }),
    ]
    expect((await Promise.allSettled(lost)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(writer.stats()).toMatchObject({ lost: 1, batchSizes: { sum: 0 } })
    await write(2)
    expect(writer.stats()).toMatchObject({ lost: 1, batchSizes: { sum: 1 } })
  })

  test('counts a lock time-out, and not the waiting for a lock', async () => {
    const other = new Driver(driver.name)
    other.exec('BEGIN IMMEDIATE')
    const patient = write(1)
    expect(await write(2, 0).catch((error: { code?: string }) => error.code)).toBe('SQLITE_BUSY')
    expect(writer.stats()).toMatchObject({ queue: 1, lost: 1, batchSizes: { sum: 0 } })
    other.exec('COMMIT')
    other.close()
    await patient
    expect(writer.stats()).toMatchObject({ queue: 0, lost: 1, batchSizes: { sum: 1 } })
  })
})

describe('the files of a database', () => {
  test('are reported with their sizes and the free disk space', async () => {
    const file = join(folder.path, 'otpost.db')
    const database = openDatabase(file)
    const stats = await fileStats(database)
    expect(stats).toMatchObject({ main: statSync(file).size, wal: statSync(`${file}-wal`).size })
    expect(stats?.diskFree).toBeGreaterThan(0)
    rmSync(file)
    expect(await fileStats(database).catch((error: { code?: string }) => error.code)).toBe('ENOENT')
    await database.close()
  })

  test('are absent for a database in memory', async () => {
    const database = openDatabase(':memory:')
    expect(await fileStats(database)).toBeUndefined()
    expect(sqliteVersion(database)).toMatch(/^3\.\d+\.\d+$/)
    await database.close()
  })
})
