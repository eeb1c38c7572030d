import type Driver from 'better-sqlite3'
import { and, eq, getTableColumns, sql } from 'drizzle-orm'
import { otpSteps, type Steps } from '../../domain/otp/state.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import { incrementOf, type RecordRow, Records, type RecordUpdate } from '../store/records.ts'
import type { Database } from './database.ts'
import { writeEffect } from './effects.ts'
import { prepared } from './prepared.ts'
import { tables } from './schema.ts'
import type { Sync, Unit } from './writer.ts'

const { codesAndLimits } = tables

/** @param isHashOf compares in constant time */
export function createOtpStore(
  database: Pick<Database, 'orm' | 'driver' | 'statement' | 'writer'>,
  isHashOf: Parameters<typeof otpSteps>[0],
): OtpStore {
  const { writer } = database
  const steps = otpSteps(isHashOf)
  const table = new RecordTable(database)
  writer.attach(table)
  return {
    admit: step('admit'),
    beginSend: step('beginSend'),
    sendAgain: step('sendAgain'),
    setProvider: step('setProvider'),
    reschedule: step('reschedule'),
    giveBack: step('giveBack'),
    abandonSend: step('abandonSend'),
    guess: step('guess'),
  }

  function step<Name extends keyof OtpStore>(name: Name) {
    type Result = ReturnType<Steps[Name]>
    return (...input: Parameters<OtpStore[Name]>): Promise<Result> =>
      writer.write<Result>(() => steps[name](table.records, ...input) as Sync<Result>)
  }
}

const mostRows = 16

const columns = Object.keys(getTableColumns(codesAndLimits)) as readonly (keyof RecordRow)[]
const columnsOfLimits = ['subject', 'name', 'count', 'expiresAt'] as const satisfies typeof columns
const columnsOfCodes = columns.filter((name) => name !== 'count')

/**
 * Shared by the steps of a transaction, and written before its commit. The transaction has the write lock since it read the
 * rows, so an increment of a stored counter gives the number that the step decided from.
 */
class RecordTable implements Unit {
  records: Records
  private readonly select: Driver.Statement<[string], RecordRow>
  private readonly remove: Driver.Statement<[string, string]>
  private readonly update: ReturnType<typeof prepared<RecordRow>>
  /** `count = count + n`, of units of a limit and of attempts at a code. */
  private readonly increments: Readonly<
    Record<'count' | 'attempts', Driver.Statement<[by: number, subject: string, name: string]>>
  >
  private readonly inserts = new Map<string, Driver.Statement<unknown[]>>()

  constructor(private readonly database: Pick<Database, 'orm' | 'driver' | 'statement'>) {
    const { orm, driver } = database
    const fields = Object.fromEntries(
      Object.entries(getTableColumns(codesAndLimits)).map(([name, column]) => [
        name,
        sql`${column}`.as(name),
      ]),
    )
    const subject = eq(codesAndLimits.subject, sql.placeholder('subject'))
    this.select = driver.prepare(orm.select(fields).from(codesAndLimits).where(subject).toSQL().sql)
    const key = and(subject, eq(codesAndLimits.name, sql.placeholder('name')))
    this.remove = driver.prepare(orm.delete(codesAndLimits).where(key).toSQL().sql)
    const values = columns
      .filter((column) => column !== 'subject' && column !== 'name')
      .map((column) => [column, sql`${sql.placeholder(column)}`])
    this.update = prepared(driver, orm.update(codesAndLimits).set(Object.fromEntries(values)).where(key))
    const incremented = (counter: 'count' | 'attempts') => {
      const set = { [counter]: sql`${codesAndLimits[counter]} + ${sql.placeholder('by')}` }
      return driver.prepare<[number, string, string]>(
        orm.update(codesAndLimits).set(set).where(key).toSQL().sql,
      )
    }
    this.increments = { count: incremented('count'), attempts: incremented('attempts') }
    this.records = this.fresh()
  }

  reset(): void {
    this.records = this.fresh()
  }

  flush(): void {
    const { inserts, updates, deletes, effects } = this.records.changes()
    // A step of the cleanup may have deleted an expired row since it was read.
    const missing = updates.filter((update) => this.write(update).changes === 0)
    this.insert([...inserts, ...missing.map(({ current }) => current)])
    for (const { subject, name } of deletes) this.remove.run(subject, name)
    for (const effect of effects) writeEffect(this.database, effect)
    this.reset()
  }

  private write(update: RecordUpdate): Driver.RunResult {
    const { stored, current } = update
    const increment = incrementOf(update)
    const isAlone = columns.every((name) => name === increment?.counter || stored[name] === current[name])
    if (!increment || !isAlone) return this.update.run(current)
    return this.increments[increment.counter].run(increment.by, current.subject, current.name)
  }

  private fresh(): Records {
    return new Records((subject) => this.select.all(subject))
  }

  /** Of limits and of codes apart, since binding a null takes time. */
  private insert(rows: readonly RecordRow[]): void {
    const limits = rows.filter(({ codeId }) => codeId === null)
    const codes = rows.filter(({ codeId }) => codeId !== null)
    for (const [names, all] of [
      [columnsOfLimits, limits],
      [columnsOfCodes, codes],
    ] as const) {
      for (let start = 0; start < all.length; start += mostRows) {
        const some = all.slice(start, start + mostRows)
        const values: (string | number | null)[] = []
        for (const row of some) for (const name of names) values.push(row[name])
        this.insertion(names, some.length).run(values)
      }
    }
  }

  private insertion(names: readonly (keyof RecordRow)[], rows: number): Driver.Statement<unknown[]> {
    const key = `${names.length} ${rows}`
    let statement = this.inserts.get(key)
    if (!statement) {
      const row = Object.fromEntries(names.map((name) => [name, sql.placeholder(name)]))
      const values = Array<typeof codesAndLimits.$inferInsert>(rows).fill(row as never)
      const { sql: text } = this.database.orm.insert(codesAndLimits).values(values).toSQL()
      // Without FAIL, SQLite copies each page that a statement changes, to undo that statement alone.
      statement = this.database.driver.prepare(text.replace('insert', 'insert or fail'))
      this.inserts.set(key, statement)
    }
    return statement
  }
}
