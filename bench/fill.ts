import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync } from 'node:fs'
import Driver from 'better-sqlite3'
import { dayMs } from '../src/domain/ground/time.ts'

/** For how long the rows are live at least: longer than any measurement. */
const liveMs = 3_600_000

/** Over how long they end: rows of one page do not end together. */
const endSpreadMs = 300_000

/**
 * Fills a database with the rows of a number of sends to different recipients, all live for an hour. The schema
 * must exist, and no server may use the database. The order of insertion is that of the keys, so that ten million
 * rows take about a minute.
 */
export function fill(databaseFile: string, rows: number, now: number): void {
  const driver = new Driver(databaseFile)
  // An interruption loses nothing: the next run fills a new file.
  driver.pragma('journal_mode = MEMORY')
  driver.pragma('synchronous = OFF')
  // In the order of their names, which is that of the key.
  const insert = driver.prepare(
    `INSERT INTO codes_and_limits (subject, name, count, code_id, code_hash, attempts, created_at, expires_at)
      VALUES (@subject, 'code:acme', NULL, @id, @hash, 0, @now, @now + 300000), (@subject, 'cooldown:acme', 1, NULL, NULL, NULL, NULL, @now + 30000),
        (@subject, 'hour', 1, NULL, NULL, NULL, NULL, @endsAt), (@subject, 'minute', 1, NULL, NULL, NULL, NULL, @now + 60000)`,
  )
  driver.transaction(() => {
    for (let index = 0; index < rows; index += 1) {
      const random = randomBytes(64)
      const endsAt = now + liveMs + Math.floor((random.readUInt32LE(32) / 2 ** 32) * endSpreadMs)
      const id = random.toString('base64url', 40, 56)
      const hash = random.toString('base64url', 0, 32)
      insert.run({ subject: ascendingKey(index, rows, random), id, hash, now, endsAt })
    }
  })()
  driver.pragma('journal_mode = WAL')
  close(driver)
}

/**
 * Repeats the requests of an event log, each time a day earlier, until there are so many. No server may use the
 * database.
 */
export function fillLog(databaseFile: string, rows: number): void {
  const driver = new Driver(databaseFile)
  driver.pragma('synchronous = OFF')
  driver.exec('CREATE TEMP TABLE earlier AS SELECT * FROM requests')
  const [{ count } = { count: 0 }] = driver
    .prepare<[], { count: number }>('SELECT count(*) AS count FROM earlier')
    .all()
  const repeat = driver.transaction((limit: number) => {
    driver.exec(`UPDATE earlier SET at = at - ${dayMs}, attempt_at = attempt_at - ${dayMs}`)
    // An ID starts with its time.
    driver.exec(
      "UPDATE earlier SET request_id = printf('%08x-%04x', at >> 16, at & 65535) || substr(request_id, 14)",
    )
    driver.prepare('INSERT INTO requests SELECT * FROM earlier LIMIT ?').run(limit)
  })
  for (let missing = rows - count; missing > 0 && count > 0; missing -= count) repeat(missing)
  close(driver)
}

/** Waits for the disk. Otherwise it would still be busy during the measurement. */
function close(driver: Driver.Database): void {
  driver.close()
  const file = openSync(driver.name, 'r+')
  fsyncSync(file)
  closeSync(file)
}

/** Whether any row has expired at an instant. */
export function hasExpiredRows(databaseFile: string, now: number): boolean {
  const driver = new Driver(databaseFile, { readonly: true })
  try {
    return (
      driver.prepare('SELECT 1 FROM codes_and_limits WHERE expires_at <= ? LIMIT 1').get(now) !== undefined
    )
  } finally {
    driver.close()
  }
}

/** The characters of base64url in the order that SQLite compares them in. */
const alphabet = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'

/** How many characters of a key depend on its index; the others are random. */
const placeLength = 5

/** A key like the keyed hash of a recipient, of 22 characters, greater than those of lower indexes. */
function ascendingKey(index: number, rows: number, random: Buffer): string {
  const step = alphabet.length ** placeLength / rows
  let place = Math.floor((index + random.readUInt32LE(36) / 2 ** 32) * step)
  let key = random.toString('base64url', 0, 32).slice(placeLength, 22)
  for (let count = 0; count < placeLength; count += 1) {
    key = (alphabet[place % alphabet.length] ?? '') + key
    place = Math.floor(place / alphabet.length)
  }
  return key
}
