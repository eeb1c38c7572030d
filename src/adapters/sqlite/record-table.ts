import type Driver from 'better-sqlite3'
import { and, eq, getTableColumns, sql } from 'drizzle-orm'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import { incremented } from '../store/record-increments.ts'
import { type RecordRow, Records } from '../store/records.ts'
import { codesAndLimits } from './schema.ts'

/** Rows written by one statement at most. */
const mostRows = 16

const columns = Object.keys(getTableColumns(codesAndLimits)) as readonly (keyof RecordRow)[]

/**
 * The codes and limits of a transaction. Its steps share `records`, which are written before the commit. The three
 * statements come from Drizzle and run on the driver, since most of the work of the database is here.
 */
export class RecordTable {
  records: Records
  private readonly select: Driver.Statement<[string], RecordRow>
  private readonly remove: Driver.Statement<[string, string]>
  /** By number of rows. */
  private readonly upserts = new Map<number, Driver.Statement<(string | number | null)[]>>()

  constructor(
    private readonly driver: Driver.Database,
    private readonly orm: BetterSQLite3Database,
  ) {
    const subject = eq(codesAndLimits.subject, sql.placeholder('subject'))
    const fields = Object.fromEntries(
      Object.entries(getTableColumns(codesAndLimits)).map(([name, column]) => [
        name,
        sql`${column}`.as(name),
      ]),
    )
    this.select = driver.prepare(orm.select(fields).from(codesAndLimits).where(subject).toSQL().sql)
    const key = and(subject, eq(codesAndLimits.name, sql.placeholder('name')))
    this.remove = driver.prepare(orm.delete(codesAndLimits).where(key).toSQL().sql)
    this.records = this.fresh()
  }

  /** Forgets what was read: another transaction begins. */
  reset(): void {
    this.records = this.fresh()
  }

  /** Writes what has changed; part of the transaction that changed it. */
  flush(): void {
    const { inserts, updates, deletes } = this.records.changes()
    const rows = [...inserts, ...updates]
    for (let start = 0; start < rows.length; start += mostRows) {
      const some = rows.slice(start, start + mostRows)
      this.upsert(some.length).run(...some.flatMap((row) => columns.map((column) => row[column])))
    }
    for (const { subject, name } of deletes) this.remove.run(subject, name)
    this.reset()
  }

  private fresh(): Records {
    return new Records((subject) => this.select.all(subject))
  }

  private upsert(rows: number): Driver.Statement<(string | number | null)[]> {
    let statement = this.upserts.get(rows)
    if (!statement) {
      const values = Array.from({ length: rows }, () => placeholders)
      const { sql: text } = this.orm
        .insert(codesAndLimits)
        .values(values)
        .onConflictDoUpdate({
          target: [codesAndLimits.subject, codesAndLimits.name],
          set: incremented(codesAndLimits),
        })
        .toSQL()
      statement = this.driver.prepare(text)
      this.upserts.set(rows, statement)
    }
    return statement
  }
}

/** A row of values that are given when the statement runs. */
const placeholders = {
  subject: sql.placeholder('subject'),
  name: sql.placeholder('name'),
  count: sql.placeholder('count'),
  codeId: sql.placeholder('codeId'),
  codeHash: sql.placeholder('codeHash'),
  attempts: sql.placeholder('attempts'),
  createdAt: sql.placeholder('createdAt'),
  expiresAt: sql.placeholder('expiresAt'),
}
