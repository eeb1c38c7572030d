import type Driver from 'better-sqlite3'
import { and, eq, getTableColumns, sql } from 'drizzle-orm'
import { otpSteps } from '../../domain/otp/state.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import { type RecordRow, Records } from '../store/records.ts'
import type { Database } from './database.ts'
import { placeholders, prepared } from './prepared.ts'
import { codesAndLimits } from './schema.ts'
import type { Unit } from './writer.ts'

/** @param isHashOf compares in constant time */
export function createOtpStore(
  database: Pick<Database, 'orm' | 'driver' | 'writer'>,
  isHashOf: Parameters<typeof otpSteps>[0],
): OtpStore {
  const { writer } = database
  const steps = otpSteps(isHashOf)
  const table = new RecordTable(database)
  writer.attach(table)
  return {
    admit: (...input) => writer.write(() => steps.admit(table.records, ...input)),
    beginSend: (...input) => writer.write(() => steps.beginSend(table.records, ...input)),
    setProvider: (...input) => writer.write(() => steps.setProvider(table.records, ...input)),
    reschedule: (...input) => writer.write(() => steps.reschedule(table.records, ...input)),
    giveBack: (...input) => writer.write(() => steps.giveBack(table.records, ...input)),
    abandonSend: (...input) => writer.write(() => steps.abandonSend(table.records, ...input)),
    guess: (...input) => writer.write(() => steps.guess(table.records, ...input)),
  }
}

const mostRows = 16

const columns = Object.keys(getTableColumns(codesAndLimits)) as readonly (keyof RecordRow)[]

/** Shared by the steps of a transaction, and written before its commit. */
class RecordTable implements Unit {
  records: Records
  private readonly select: Driver.Statement<[string], RecordRow>
  private readonly remove: Driver.Statement<[string, string]>
  private readonly update: ReturnType<typeof prepared<RecordRow>>
  private readonly inserts = new Map<number, Driver.Statement<(string | number | null)[]>>()

  constructor(private readonly database: Pick<Database, 'orm' | 'driver'>) {
    const { orm, driver } = database
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
    const values = columns
      .filter((column) => column !== 'subject' && column !== 'name')
      .map((column) => [column, sql`${sql.placeholder(column)}`])
    this.update = prepared(driver, orm.update(codesAndLimits).set(Object.fromEntries(values)).where(key))
    this.records = this.fresh()
  }

  reset(): void {
    this.records = this.fresh()
  }

  flush(): void {
    const { inserts, updates, deletes } = this.records.changes()
    // A step of the cleanup may have deleted an expired row since it was read.
    const missing = updates.filter(({ current }) => this.update.run(current).changes === 0)
    const added = [...inserts, ...missing.map(({ current }) => current)]
    for (let start = 0; start < added.length; start += mostRows) {
      const rows = added.slice(start, start + mostRows)
      this.insert(rows.length).run(...rows.flatMap((row) => columns.map((column) => row[column])))
    }
    for (const { subject, name } of deletes) this.remove.run(subject, name)
    this.reset()
  }

  private fresh(): Records {
    return new Records((subject) => this.select.all(subject))
  }

  private insert(rows: number): Driver.Statement<(string | number | null)[]> {
    let statement = this.inserts.get(rows)
    if (!statement) {
      const values = Array.from({ length: rows }, () => placeholders(codesAndLimits))
      const { sql: text } = this.database.orm.insert(codesAndLimits).values(values).toSQL()
      // Without FAIL, SQLite copies each page that a statement changes, to undo that statement alone.
      statement = this.database.driver.prepare(text.replace('insert', 'insert or fail'))
      this.inserts.set(rows, statement)
    }
    return statement
  }
}
