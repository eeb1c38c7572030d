import { fillPlaceholders, getTableColumns, type Query, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/pg-proxy'
import { incremented } from '../store/record-increments.ts'
import { type RecordChanges, type RecordRow, Records } from '../store/records.ts'
import { serverTime } from './clock.ts'
import type { Queryable } from './pool.ts'
import { codesAndLimits } from './schema.ts'

// The codes and limits of a transaction: it locks the rows of all its subjects, reads them, and writes what has changed.
//
// Rows that exist are locked before they are read. Rows that do not exist can not be locked: two transactions that count on
// the same limit for the first time both insert its row, and the one that comes second fails with `Overtaken` and starts
// again. So does one that finds a row that appeared after it took its locks. A step that reads an absent row and does not
// write it happened before that row was inserted.
//
// No two transactions wait for each other. All take locks in one order. Once a transaction has its locks it waits only to
// insert, where another has inserted the same row, and all insert in one order. Deletions come last, since an insertion
// waits for a deletion of the same row too. The expiry cleanup skips locked rows.

/** Writes SQL; it runs on the connection of a transaction. */
const orm = drizzle(async () => ({ rows: [] }))

/** A statement that is prepared once, whose values are given by name. */
function prepared<Row extends object>(name: string, query: { toSQL(): Query }) {
  const { sql: text, params } = query.toSQL()
  return (connection: Queryable, values: Readonly<Record<string, unknown>>): Promise<readonly Row[]> =>
    connection.query<Row>({ name, text }, fillPlaceholders(params, values))
}

const { subject, name } = codesAndLimits
const columns = Object.entries(getTableColumns(codesAndLimits))
const ofSubjects = sql`${subject} = any(${sql.placeholder('subjects')}::text[])`

/** Applications come last, since many transactions wait for them. */
const lockRows = prepared<Pick<RecordRow, 'subject' | 'name'>>(
  'otpost_lock_rows',
  orm
    .select({ subject, name })
    .from(codesAndLimits)
    .where(ofSubjects)
    .orderBy(sql`${subject} like 'app:%'`, subject, name)
    .for('update'),
)

/** At least one row, for the time. */
const readRows = prepared<{ readonly at: number } & (RecordRow | { readonly subject: null })>(
  'otpost_read_rows',
  orm
    .select({
      at: sql`clock.at`.as('at'),
      ...Object.fromEntries(columns.map(([field, column]) => [field, sql`${column}`.as(field)])),
    })
    .from(sql`(select ${serverTime} as at) as clock`)
    .leftJoin(codesAndLimits, ofSubjects),
)

const keyList = sql`(select * from unnest(${sql.placeholder('subjects')}::text[], ${sql.placeholder('names')}::text[]))`

/** Returns one row for each that was written: a row that was to be new, and is not, stays as it is. */
const writeRows = prepared<object>(
  'otpost_write_rows',
  orm
    .insert(codesAndLimits)
    .select(
      sql`select * from unnest(${sql.join(
        columns.map(([field, column]) => sql`${sql.placeholder(field)}::${sql.raw(arrayOf(column))}`),
        sql`, `,
      )})`,
    )
    .onConflictDoUpdate({
      target: [subject, name],
      set: incremented(codesAndLimits),
      setWhere: sql`(${subject}, ${name}) in ${keyList}`,
    })
    .returning({ written: sql`1` }),
)

const deleteRows = prepared<object>(
  'otpost_delete_rows',
  orm.delete(codesAndLimits).where(sql`(${subject}, ${name}) in ${keyList}`),
)

function arrayOf(column: { getSQLType(): string }): string {
  return `${column.getSQLType().replace(' COLLATE "C"', '')}[]`
}

/** Another transaction inserted a row meanwhile: this one is to be rolled back and tried again. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken'

  constructor() {
    super('another transaction has written the same codes and limits first')
  }
}

/**
 * Locks the records of subjects, and reads them.
 *
 * @param hearing is called right before the server is asked for its time; what it returns is told the answer
 * @throws Overtaken
 */
export async function openRecords(
  connection: Queryable,
  subjects: readonly string[],
  hearing: () => (at: number) => void,
): Promise<{ records: Records; now: number }> {
  const locked = new Set((await lockRows(connection, { subjects })).map(keyOf))
  const hear = hearing()
  const rows = await readRows(connection, { subjects })
  const [first] = rows
  if (!first) throw new Error('the database did not tell its time')
  hear(first.at)
  const bySubject = new Map<string, RecordRow[]>(subjects.map((each) => [each, []]))
  for (const row of rows) {
    if (row.subject === null) continue
    if (!locked.has(keyOf(row))) throw new Overtaken()
    bySubject.get(row.subject)?.push(row)
  }
  const load = (each: string) => {
    const own = bySubject.get(each)
    if (!own) throw new Error('a step has not named all its subjects')
    return own
  }
  return { records: new Records(load), now: first.at }
}

/** Writes what has changed. @throws Overtaken */
export async function writeRecords(
  connection: Queryable,
  { inserts, updates, deletes }: RecordChanges,
): Promise<void> {
  const rows = [...inserts, ...updates]
  if (rows.length > 0) {
    const values = Object.fromEntries(
      columns.map(([field]) => [field, rows.map((row) => row[field as keyof RecordRow])]),
    )
    const written = await writeRows(connection, { ...values, ...keysOf(updates) })
    if (written.length < rows.length) throw new Overtaken()
  }
  if (deletes.length > 0) await deleteRows(connection, keysOf(deletes))
}

type Key = Pick<RecordRow, 'subject' | 'name'>

function keyOf({ subject, name }: Key): string {
  return `${subject} ${name}`
}

function keysOf(rows: readonly Key[]) {
  return { subjects: rows.map(({ subject }) => subject), names: rows.map(({ name }) => name) }
}
