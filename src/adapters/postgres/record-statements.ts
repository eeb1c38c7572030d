import { and, eq, fillPlaceholders, getTableColumns, type Query, type SQL, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/pg-proxy'
import type { RecordRow } from '../store/records.ts'
import { isShared } from './claim-leases.ts'
import type { Queryable, Transaction } from './pool.ts'
import { tables } from './schema.ts'

const { codesAndLimits } = tables

export type RowKey = Pick<RecordRow, 'subject' | 'name'>

/** Statements on the rows of some subjects, in a transaction. Rows to write are in the order of their keys. */
export interface RecordStatements {
  /** Locks the rows until the transaction ends, those of apps and budgets last, since many transactions wait for them. */
  lock(connection: Queryable, subjects: readonly string[]): Promise<readonly RowKey[]>
  read(connection: Queryable, subjects: readonly string[]): Promise<readonly RecordRow[]>
  /** Fails if a row exists. */
  insert(connection: Transaction, rows: readonly RecordRow[]): void
  /** Adds counters of the same window or code. */
  update(connection: Transaction, rows: readonly RecordRow[]): void
  delete(connection: Transaction, keys: readonly RowKey[]): void
}

export const orm = drizzle(async () => ({ rows: [] }))

type Values = Readonly<Record<string, unknown>>

export function prepared<Row extends object>(name: string, query: { toSQL(): Query }) {
  const { sql: text, params } = query.toSQL()
  return {
    query: (connection: Queryable, values: Values) =>
      connection.query<Row>({ name, text }, fillPlaceholders(params, values)),
    send: (connection: Transaction, values: Values) =>
      connection.send({ name, text }, fillPlaceholders(params, values)),
  }
}

const { subject, name, count, codeId, attempts, expiresAt } = codesAndLimits

/** `isShared` of a row. */
export const isSharedRow = sql`(${subject} like 'app:%' or ${subject} like 'budget:%')`

const columns = Object.entries(getTableColumns(codesAndLimits))
const fields = columns.map(([field]) => field as keyof RecordRow)
const selected = Object.fromEntries(columns.map(([field, column]) => [field, sql`${column}`.as(field)]))

const incremented = {
  target: [subject, name],
  set: {
    count: sql`case when ${expiresAt} = excluded.expires_at then ${count} + excluded.count else excluded.count end`,
    codeId: sql`excluded.code_id`,
    codeHash: sql`excluded.code_hash`,
    attempts: sql`case when ${codeId} = excluded.code_id then ${attempts} + excluded.attempts else excluded.attempts end`,
    createdAt: sql`excluded.created_at`,
    expiresAt: sql`excluded.expires_at`,
    provider: sql`excluded.provider`,
    providerMessageId: sql`excluded.provider_message_id`,
  } satisfies Record<Exclude<keyof RecordRow, keyof RowKey>, SQL>,
}

/** One statement for all rows. A distributed database would need all their machines for it. */
export const ofSeveralKeys: RecordStatements = (() => {
  const isIn = sql`${subject} = any(${sql.placeholder('subjects')}::text[])`
  const locking = prepared<RowKey>(
    'otpost_lock_rows',
    orm
      .select({ subject, name })
      .from(codesAndLimits)
      .where(isIn)
      .orderBy(isSharedRow, subject, name)
      .for('update'),
  )
  const reading = prepared<RecordRow>(
    'otpost_read_rows',
    orm.select(selected).from(codesAndLimits).where(isIn),
  )
  const rowList = sql`select * from unnest(${sql.join(
    columns.map(([field, column]) => sql`${sql.placeholder(field)}::${sql.raw(arrayOf(column))}`),
    sql`, `,
  )})`
  const insertion = orm.insert(codesAndLimits).select(rowList)
  const inserting = prepared('otpost_insert_rows', insertion)
  const updating = prepared('otpost_update_rows', insertion.onConflictDoUpdate(incremented))
  const isOne = sql`(${subject}, ${name}) in (select * from unnest(${sql.placeholder('subjects')}::text[], ${sql.placeholder('names')}::text[]))`
  const deleting = prepared('otpost_delete_rows', orm.delete(codesAndLimits).where(and(isIn, isOne)))

  const arraysOf = (rows: readonly RecordRow[]) =>
    Object.fromEntries(fields.map((field) => [field, rows.map((row) => row[field])]))
  return {
    lock: (connection, subjects) => locking.query(connection, { subjects }),
    read: (connection, subjects) => reading.query(connection, { subjects }),
    insert: (connection, rows) => inserting.send(connection, arraysOf(rows)),
    update: (connection, rows) => updating.send(connection, arraysOf(rows)),
    delete: (connection, keys) =>
      deleting.send(connection, {
        subjects: keys.map((key) => key.subject),
        names: keys.map((key) => key.name),
      }),
  }
})()

/** Statements for each subject, which a distributed database runs on one machine. */
export const ofOneKey: RecordStatements = (() => {
  const isIt = eq(subject, sql.placeholder('subject'))
  const locking = prepared<RowKey>(
    'otpost_lock_key',
    orm.select({ subject, name }).from(codesAndLimits).where(isIt).orderBy(name).for('update'),
  )
  const reading = prepared<RecordRow>(
    'otpost_read_key',
    orm.select(selected).from(codesAndLimits).where(isIt),
  )
  const deleting = prepared(
    'otpost_delete_row',
    orm.delete(codesAndLimits).where(and(isIt, eq(name, sql.placeholder('name')))),
  )

  const writing = new Map<number, Record<'insert' | 'update', ReturnType<typeof prepared>>>()
  /** Of so many rows: a step changes few. */
  const writingOf = (rows: number) => {
    let statements = writing.get(rows)
    if (!statements) {
      const values = Array.from({ length: rows }, (_, row) =>
        Object.fromEntries(fields.map((field) => [field, sql.placeholder(`${field} ${row}`)])),
      )
      const insertion = orm.insert(codesAndLimits).values(values as never)
      statements = {
        insert: prepared(`otpost_insert_${rows}`, insertion),
        update: prepared(`otpost_update_${rows}`, insertion.onConflictDoUpdate(incremented)),
      }
      writing.set(rows, statements)
    }
    return statements
  }
  const write = (kind: 'insert' | 'update', connection: Transaction, rows: readonly RecordRow[]) => {
    for (const own of Map.groupBy(rows, (row) => row.subject).values()) {
      const values = own.flatMap((row, index) => fields.map((field) => [`${field} ${index}`, row[field]]))
      writingOf(own.length)[kind].send(connection, Object.fromEntries(values))
    }
  }
  return {
    lock: (connection, subjects) => {
      const ordered = subjects.toSorted(bySharing)
      return Promise.all(ordered.map((each) => locking.query(connection, { subject: each }))).then(flat)
    },
    read: (connection, subjects) =>
      Promise.all(subjects.map((each) => reading.query(connection, { subject: each }))).then(flat),
    insert: (connection, rows) => write('insert', connection, rows),
    update: (connection, rows) => write('update', connection, rows),
    delete: (connection, keys) => {
      for (const { subject, name } of keys) deleting.send(connection, { subject, name })
    },
  }
})()

function flat<Row>(lists: readonly (readonly Row[])[]): readonly Row[] {
  return lists.flat()
}

function bySharing(one: string, other: string): number {
  return Number(isShared(one)) - Number(isShared(other)) || (one < other ? -1 : 1)
}

function arrayOf(column: { getSQLType(): string }): string {
  return `${column.getSQLType().replace(' COLLATE "C"', '')}[]`
}
