import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { statSync } from 'node:fs'
import Driver from 'better-sqlite3'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { putBrand } from '../../src/domain/operator/operator.ts'
import { tester } from '../support/operator.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { inDatabase, isWhole, place } from './scene.ts'

// What Litestream does to a database beside a server (docs/litestream.md): it never stops reading, so that the log can't
// begin anew behind its back, and folds the log back by itself.

// Processes share two cores with the tests beside these; each is there for what it answers, not for how soon.
setDefaultTimeout(120_000)

const running = new Set<TestServer>()
afterAll(() => {
  for (const server of running) server.child.kill('SIGKILL')
})

/** A reader that never stops, as it stands beside a server. */
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
    /** Folds all of the log back, lets it begin anew, and holds on to what is first in it. */
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

test('a server beside a reader that never stops answers all, and its log stays within what that reader allows', async () => {
  using here = place()
  const context = await openContext(readConfig(here.env))
  await putBrand(context.acting(tester), 'acme', { displayName: 'Acme' })
  await context.close()
  const server = await startServer({ ...here.env, SMS_PLAIN: 'discard' })
  running.add(server)
  const logMebibytes = () => statSync(`${here.file}-wal`).size / mebibyte
  const statuses = new Set<number>()
  let sends = 0
  /** So many sends of several clients, and how large the log is after them. */
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
  // What was needed once is about enough for ever: now and then a write comes between the reader's copy and the next
  // write, which then can not begin the log anew. Without that it would be three times as long in the end.
  const grown: number[] = []
  for (let round = 0; round < 8; round++) {
    reader.checkpoint()
    grown.push(await load(500))
  }
  expect(Math.max(...grown)).toBeLessThan(2 * largest)
  reader.end()
  // Once it has gone, otpost keeps its log as small as ever.
  await load(1000)
  expect(await load(500)).toBeLessThan(20)
  expect([...statuses]).toEqual([200])

  expect(await server.stop()).toBe(0)
  running.delete(server)
  expect(isWhole(here.file)).toBe(true)
  const kept = inDatabase(here.file, (driver) =>
    driver.prepare('SELECT count(*) FROM requests').pluck().get(),
  )
  expect(kept).toBe(sends)
  // What the reader made does not stand in the way of a backup, a restore or the next start.
  await here.backUp(here.at('backup.db'))
  expect(here.restore(here.at('backup.db')).droppedCodes).toBe(sends)
})
