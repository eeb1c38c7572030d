import { sql } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import type { Subject } from '../../domain/limits/limits.ts'
import { effectStatements } from '../store/effects.ts'
import {
  incrementOf,
  type RecordChanges,
  type RecordRow,
  Records,
  type RecordUpdate,
} from '../store/records.ts'
import type { Orm } from '../store/statements.ts'
import { serverTime } from './clock.ts'
import { type Queryable, StatementError, type Transaction } from './pool.ts'
import { orm, prepared, type RecordStatements, type RowKey } from './record-statements.ts'
import { tables } from './schema.ts'
import { jsonElements } from './text.ts'

// Two round trips: BEGIN, lock and read all rows; then write and COMMIT. Rows that do not exist can't be
// locked: a transaction is retried if a row that it inserts or reads was inserted by another one after its
// locks. No deadlocks: all transactions lock and insert in one order. Deletions come last, since an insertion
// waits for a deletion of the same row.
//
// During a rotation of the secret key, nodes with [OLD, NEW] and [NEW, OLD] insert different rows for the same
// limit. So nodes with several keys first take advisory locks on the hashes of their recipients.

/** Locks them until the transaction ends, in one order on all nodes. */
const lockHashes = prepared(
  'otpost_lock_hashes',
  orm
    .select({ lock: sql`pg_advisory_xact_lock(hash)`.as('lock') })
    .from(
      sql`(select distinct hashtextextended(hash, 0) as hash from unnest(${sql.placeholder('hashes')}::text[]) as hash order by 1) as hashes`,
    ),
)

/** Not with the rows: a distributed database would read the clock of the machine that has them. */
const readTime = prepared<{ readonly at: number }>('otpost_read_time', {
  toSQL: () => new PgDialect().sqlToQuery(sql`select ${serverTime} as at`),
})

class Overtaken extends Error {
  override readonly name = 'Overtaken'

  constructor() {
    super('another transaction has written the same codes and limits first')
  }
}

export function isOvertaken(error: unknown): boolean {
  return error instanceof Overtaken || (error instanceof StatementError && error.code === uniqueViolation)
}

const uniqueViolation = '23505'

/** `setTime` receives the server's time. */
export async function openRecords(
  { lock, read }: RecordStatements,
  connection: Queryable,
  ofSteps: readonly Subject[],
  setTime: (at: number) => void,
): Promise<{ records: Records; now: number }> {
  const subjects = [...new Set(ofSteps.flat())]
  const hashes = ofSteps.filter(({ length }) => length > 1).flat()
  const [, keys, rows, [time]] = await Promise.all([
    hashes.length > 0 && lockHashes.query(connection, { hashes }),
    lock(connection, subjects),
    read(connection, subjects),
    readTime.query(connection, {}),
  ])
  if (!time) throw new Error('the database did not return its time')
  setTime(time.at)
  const locked = new Set(keys.map(keyOf))
  const bySubject = new Map<string, RecordRow[]>(subjects.map((each) => [each, []]))
  for (const row of rows) {
    if (!locked.has(keyOf(row))) throw new Overtaken()
    bySubject.get(row.subject)?.push(row)
  }
  const load = (each: string) => {
    const own = bySubject.get(each)
    if (!own) throw new Error('a step has not named all its subjects')
    return own
  }
  return { records: new Records(load), now: time.at }
}

export function sendChanges(
  write: RecordStatements,
  connection: Transaction,
  { inserts, updates, deletes, effects }: RecordChanges,
): void {
  if (inserts.length > 0) write.insert(connection, inserts)
  if (updates.length > 0) write.update(connection, updates.map(withIncrement))
  if (deletes.length > 0) write.delete(connection, deletes)
  for (const effect of effects) {
    for (const statement of effectStatements(orm as unknown as Orm, tables, effect, jsonElements)) {
      const { sql: text, params } = statement.toSQL()
      connection.send({ name: `otpost_effect_${Bun.hash(text).toString(36)}`, text }, params)
    }
  }
}

function keyOf({ subject, name }: RowKey): string {
  return `${subject} ${name}`
}

/** The row with its counter as an increment, if it is of the same window or code. */
function withIncrement(update: RecordUpdate): RecordRow {
  const increment = incrementOf(update)
  return increment ? { ...update.current, [increment.counter]: increment.by } : update.current
}
