import { and, type Column, inArray, type SQL, sql, type Table } from 'drizzle-orm'
import type { EventLogEntry } from '../store/event-rows.ts'
import { firstIdOf, timeOfId } from '../store/request-ids.ts'
import type { Database } from './database.ts'

// An index by recipient on `requests` would change a random page for each request, which costs more than the row.
// Instead the expiry cleanup appends sorted runs to the table `recipient_index`. All requests that began before the
// newest run's `indexed_before` are in a run. A search scans the later ones.

/** Small, so that concurrent requests do not wait noticeably. */
const runRows = 1000

/** Most requests are complete after this time. */
const settledMs = 10_000

const checkMs = 5000

const runs = sql.raw(`WITH RECURSIVE run (before) AS (
  SELECT max(indexed_before) FROM recipient_index
  UNION ALL
  SELECT (SELECT max(indexed_before) FROM recipient_index WHERE indexed_before < before) FROM run
  WHERE before IS NOT NULL
)`)

/** The same as `firstIdOf` for the newest run. */
const firstLater = sql.raw(
  "(SELECT printf('%08x-%04x-', max(indexed_before) >> 16, max(indexed_before) & 65535) FROM recipient_index)",
)

export function ofRecipient(
  table: Table & Readonly<Record<'requestId' | 'recipientHash', Column>>,
  hashes: readonly string[],
): SQL | undefined {
  const isOwn = inArray(sql`recipient_hash`, [...hashes])
  return and(
    inArray(table.recipientHash, [...hashes]),
    sql`${table.requestId} IN (${runs}
      SELECT request_id FROM run CROSS JOIN recipient_index ON indexed_before = before AND ${isOwn}
      UNION ALL SELECT request_id FROM ${table} WHERE request_id >= ${firstLater} AND ${isOwn})`,
  )
}

export function createRecipientIndex({ driver, writer }: Pick<Database, 'driver' | 'writer'>) {
  const newest = driver.prepare<[], number | null>('SELECT max(indexed_before) FROM recipient_index').pluck()
  const isIn = 'request_id >= @from AND request_id < @to'
  const lastOf = driver
    .prepare<[{ from: string; to: string }], string>(
      `SELECT request_id FROM requests WHERE ${isIn} UNION ALL SELECT request_id FROM attempts WHERE ${isIn}
      ORDER BY request_id LIMIT 1 OFFSET ${runRows - 1}`,
    )
    .pluck()
  // The row without a recipient is for runs that have no other.
  const addAll = driver.prepare<[{ before: number; from: string; to: string }]>(
    `INSERT INTO recipient_index
      SELECT @before, recipient_hash, request_id FROM requests
      WHERE ${isIn} AND recipient_hash IS NOT NULL AND outcome IS NOT NULL
      UNION SELECT @before, recipient_hash, request_id FROM attempts WHERE ${isIn}
      UNION SELECT @before, '', ''
      ORDER BY recipient_hash, request_id`,
  )
  const addOne = driver.prepare<[number, string, string]>(
    'INSERT OR IGNORE INTO recipient_index VALUES (?, ?, ?)',
  )
  let checkedAt = Number.NEGATIVE_INFINITY

  return {
    /** Within the transaction that saves the entries. */
    addLate(entries: readonly EventLogEntry[]): void {
      const before = newest.get() ?? 0
      const firstLater = firstIdOf(before)
      for (const { request, attempts } of entries) {
        if (request.requestId >= firstLater) continue
        for (const { recipientHash } of request.outcome ? [request, ...attempts] : attempts) {
          if (recipientHash) addOne.run(before, recipientHash, request.requestId)
        }
      }
    },
    /** Returns false if there are too few requests for a run. */
    async addRun(now: number): Promise<boolean> {
      if (Math.abs(now - checkedAt) < checkMs) return false
      const isAdded = await writer.write(() => {
        const from = firstIdOf(newest.get() ?? 0)
        const last = lastOf.get({ from, to: firstIdOf(now - settledMs) })
        if (last === undefined) return false
        const before = timeOfId(last) + 1
        addAll.run({ before, from, to: firstIdOf(before) })
        return true
      })
      if (!isAdded) checkedAt = now
      return isAdded
    },
  }
}

/** In steps of this many rows. */
export async function eraseFromIndex(
  { orm, writer }: Pick<Database, 'orm' | 'writer'>,
  hashes: readonly string[],
  batch: number,
): Promise<void> {
  const isOwn = inArray(sql`recipient_hash`, [...hashes])
  const some = sql`DELETE FROM recipient_index WHERE (indexed_before, recipient_hash, request_id) IN (${runs}
    SELECT indexed_before, recipient_hash, request_id
    FROM run CROSS JOIN recipient_index ON indexed_before = before AND ${isOwn} LIMIT ${batch})`
  while ((await writer.write(() => orm.run(some).changes)) > 0);
}
