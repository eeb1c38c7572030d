import { and, fillPlaceholders, getTableColumns, type Query, type SQL, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/pg-proxy'
import type { Subject } from '../../domain/otp/limits.ts'
import { effectStatements } from '../store/effects.ts'
import { type RecordChanges, type RecordRow, Records, type RecordUpdate } from '../store/records.ts'
import type { Orm } from '../store/statements.ts'
import { serverTime } from './clock.ts'
import { type Queryable, StatementError, type Transaction } from './pool.ts'
import * as tables from './schema.ts'
import { jsonElements } from './text.ts'

// Two round trips: BEGIN, lock and read all rows; then write and COMMIT. Rows that do not exist can't be
// locked: a transaction is retried if a row that it inserts or reads was inserted by another one after its
// locks. No deadlocks: all transactions lock and insert in one order. Deletions come last, since an insertion
// waits for a deletion of the same row.
//
// During a rotation of the secret key, nodes with [OLD, NEW] and [NEW, OLD] insert different rows for the same
// limit. So nodes with several keys first take advisory locks on the hashes of their recipients.

const { codesAndLimits } = tables

const orm = drizzle(async () => ({ rows: [] }))

function prepared<Row extends object>(name: string, query: { toSQL(): Query }) {
  const { sql: text, params } = query.toSQL()
  type Values = Readonly<Record<string, unknown>>
  return {
    query: (connection: Queryable, values: Values) =>
      connection.query<Row>({ name, text }, fillPlaceholders(params, values)),
    send: (connection: Transaction, values: Values) =>
      connection.send({ name, text }, fillPlaceholders(params, values)),
  }
}

const { subject, name } = codesAndLimits
const columns = Object.entries(getTableColumns(codesAndLimits))
const fields = columns.map(([field]) => field as keyof RecordRow)
const ofSubjects = sql`${subject} = any(${sql.placeholder('subjects')}::text[])`

/** Locks them until the transaction ends, in one order on all nodes. */
const lockHashes = prepared(
  'otpost_lock_hashes',
  orm
    .select({ lock: sql`pg_advisory_xact_lock(hash)`.as('lock') })
    .from(
      sql`(select distinct hashtextextended(hash, 0) as hash from unnest(${sql.placeholder('hashes')}::text[]) as hash order by 1) as hashes`,
    ),
)

/** Applications and budgets are locked last, since many transactions wait for them. */
const lockRows = prepared<Pick<RecordRow, 'subject' | 'name'>>(
  'otpost_lock_rows',
  orm
    .select({ subject, name })
    .from(codesAndLimits)
    .where(ofSubjects)
    .orderBy(sql`${subject} like 'app:%' or ${subject} like 'budget:%'`, subject, name)
    .for('update'),
)

/** Returns at least one row, for the time. */
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

const rowList = sql`select * from unnest(${sql.join(
  columns.map(([field, column]) => sql`${sql.placeholder(field)}::${sql.raw(arrayOf(column))}`),
  sql`, `,
)})`

/** Fails if a row exists. */
const insertRows = prepared('otpost_insert_rows', orm.insert(codesAndLimits).select(rowList))

const { count, codeId, attempts, expiresAt } = codesAndLimits

/** Adds counters of the same window or code. */
const incremented = {
  count: sql`case when ${expiresAt} = excluded.expires_at then ${count} + excluded.count else excluded.count end`,
  codeId: sql`excluded.code_id`,
  codeHash: sql`excluded.code_hash`,
  attempts: sql`case when ${codeId} = excluded.code_id then ${attempts} + excluded.attempts else excluded.attempts end`,
  createdAt: sql`excluded.created_at`,
  expiresAt: sql`excluded.expires_at`,
  provider: sql`excluded.provider`,
  providerMessageId: sql`excluded.provider_message_id`,
} satisfies Record<Exclude<keyof RecordRow, 'subject' | 'name'>, SQL>

const updateRows = prepared(
  'otpost_update_rows',
  orm
    .insert(codesAndLimits)
    .select(rowList)
    .onConflictDoUpdate({ target: [subject, name], set: incremented }),
)

const deleteRows = prepared(
  'otpost_delete_rows',
  orm
    .delete(codesAndLimits)
    .where(
      and(
        ofSubjects,
        sql`(${subject}, ${name}) in (select * from unnest(${sql.placeholder('subjects')}::text[], ${sql.placeholder('names')}::text[]))`,
      ),
    ),
)

function arrayOf(column: { getSQLType(): string }): string {
  return `${column.getSQLType().replace(' COLLATE "C"', '')}[]`
}

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
  connection: Queryable,
  ofSteps: readonly Subject[],
  setTime: (at: number) => void,
): Promise<{ records: Records; now: number }> {
  const subjects = [...new Set(ofSteps.flat())]
  const hashes = ofSteps.filter(({ length }) => length > 1).flat()
  const [, keys, rows] = await Promise.all([
    hashes.length > 0 && lockHashes.query(connection, { hashes }),
    lockRows.query(connection, { subjects }),
    readRows.query(connection, { subjects }),
  ])
  const [first] = rows
  if (!first) throw new Error('the database did not return its time')
  setTime(first.at)
  const locked = new Set(keys.map(keyOf))
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

export function sendChanges(
  connection: Transaction,
  { inserts, updates, deletes, effects }: RecordChanges,
): void {
  if (inserts.length > 0) insertRows.send(connection, arraysOf(inserts))
  if (updates.length > 0) updateRows.send(connection, arraysOf(updates.map(increment)))
  if (deletes.length > 0) {
    const subjects = deletes.map(({ subject }) => subject)
    deleteRows.send(connection, { subjects, names: deletes.map(({ name }) => name) })
  }
  for (const effect of effects) {
    for (const statement of effectStatements(orm as unknown as Orm, tables, effect, jsonElements)) {
      const { sql: text, params } = statement.toSQL()
      connection.send({ name: `otpost_effect_${Bun.hash(text).toString(36)}`, text }, params)
    }
  }
}

function arraysOf(rows: readonly RecordRow[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(fields.map((field) => [field, rows.map((row) => row[field])]))
}

function keyOf({ subject, name }: Pick<RecordRow, 'subject' | 'name'>): string {
  return `${subject} ${name}`
}

/** The row with its counters as increments, if it is of the same window or code. */
function increment({ stored, current }: RecordUpdate): RecordRow {
  if (current.count !== null && stored.count !== null && current.expiresAt === stored.expiresAt) {
    return { ...current, count: current.count - stored.count }
  }
  if (current.attempts !== null && stored.attempts !== null && current.codeId === stored.codeId) {
    return { ...current, attempts: current.attempts - stored.attempts }
  }
  return current
}
