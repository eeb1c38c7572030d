import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import Driver from 'better-sqlite3'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { tester } from '../support/operator.ts'
import { startServer } from '../support/server.ts'
import { inDatabase, isWhole, place } from './scene.ts'

// The effect of Litestream (docs/litestream.md) on a database beside a server: it holds a read transaction at all
// times, so that only its own checkpoints can restart the write-ahead log.

/** A reader that never stops, like Litestream. */
function replicator(file: string) {
  const driver = new Driver(file, { timeout: 30_000 })
  driver.exec(
    'CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); CREATE TABLE _litestream_lock (id INTEGER)',
  )
  const read = () => {
    driver.exec('BEGIN')
    driver.prepare('SELECT count(*) FROM _litestream_seq').get()
  }
  read()
  return {
    /** Checkpoints the whole log, restarts it, and reads its first frame to keep it. */
    checkpoint(): void {
      driver.exec('ROLLBACK')
      driver.pragma('wal_checkpoint(RESTART)')
      driver.exec('INSERT INTO _litestream_seq VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1')
      read()
    },
    end(): void {
      driver.exec('ROLLBACK')
      driver.close()
    },
  }
}

const mebibyte = 2 ** 20

test('a server beside a permanent reader answers every request, and its log stays within the limit of that reader', async () => {
  using here = place()
  const context = await openContext(readConfig(here.env))
  await putBrand(context.acting(tester), 'acme', { displayName: 'Acme' })
  await context.close()
  const server = await startServer({ ...here.env, SMS_PLAIN: 'discard' })
  const logMebibytes = () => statSync(`${here.file}-wal`).size / mebibyte
  const statuses = new Set<number>()
  let sends = 0
  /** Sends from several clients. Resolves to the size of the log afterwards. */
  const load = async (count: number): Promise<number> => {
    const until = sends + count
    const client = async () => {
      while (sends < until) {
        sends += 1
        statuses.add(
          (await server.post('/otp/send', { phone: `1202${String(sends).padStart(7, '0')}` })).status,
        )
      }
    }
    await Promise.all(Array.from({ length: 16 }, client))
    return logMebibytes()
  }

  const reader = replicator(here.file)
  let largest = 0
  while (largest < 20) largest = await load(500)
  // The log keeps about its first size: now and then a write between the reader's copy and the next write keeps the log
  // from restarting. Without restarts it would be three times as large in the end.
  const grown: number[] = []
  for (let round = 0; round < 8; round++) {
    reader.checkpoint()
    grown.push(await load(500))
  }
  expect(Math.max(...grown)).toBeLessThan(2 * largest)
  reader.end()
  // Without the reader, otpost keeps its log as small as ever.
  await load(1000)
  expect(await load(500)).toBeLessThan(20)
  expect([...statuses]).toEqual([200])

  expect(await server.stop()).toBe(0)
  expect(isWhole(here.file)).toBe(true)
  const kept = inDatabase(here.file, (driver) =>
    driver.prepare('SELECT count(*) FROM requests').pluck().get(),
  )
  expect(kept).toBe(sends)
  // The reader's tables do not prevent a backup, a restore or the next start.
  await here.backUp(here.at('backup.db'))
  expect(here.restore(here.at('backup.db')).droppedCodes).toBe(sends)
})
