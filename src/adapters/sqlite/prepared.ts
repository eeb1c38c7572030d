import type Driver from 'better-sqlite3'
import { getTableColumns, is, Param, Placeholder, type SQL, sql, type Table } from 'drizzle-orm'
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { statementsOf } from './statements.ts'

/** Drizzle alone would prepare each statement again. */
export function ormOn(driver: Driver.Database) {
  const statement = statementsOf(driver)
  return {
    statement,
    orm: drizzle<Record<string, never>>(Object.create(driver, { prepare: { value: statement } })),
  }
}

/** Built by Drizzle, run by the driver in half the time. Values are passed by placeholder name. */
export function prepared<Values extends object, Row = unknown>(
  driver: Driver.Database,
  query: { toSQL(): { sql: string; params: unknown[] } },
) {
  const { sql: text, params } = query.toSQL()
  const statement = driver.prepare<unknown[], Row>(text)
  const readers = params.map((param): ((values: Values) => unknown) => {
    const given = is(param, Param) ? param.value : param
    if (!is(given, Placeholder)) return () => given
    const name = given.name as keyof Values
    if (!is(param, Param)) return (values) => values[name]
    const { encoder } = param
    return (values) => encoder.mapToDriverValue(values[name])
  })
  const bind = (values: Values) => readers.map((read) => read(values))
  return {
    run: (values: Values) => statement.run(bind(values)),
    get: (values: Values) => statement.get(bind(values)),
  }
}

export function placeholders<Given extends Table>(table: Given) {
  const names = Object.keys(getTableColumns(table))
  return Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as {
    readonly [Name in keyof Given['_']['columns']]: Placeholder
  }
}

/** As in `StoreDatabase`. */
export function jsonElements(json: string): SQL {
  return sql`json_each(${json})`
}

/** More rows save no time. */
const mostRows = 8

/**
 * Upserts only non-null columns, since binding a null takes time. Rows with the same columns share statements, since
 * each run of a statement takes time too.
 * @param change sets these columns instead of all
 */
export function preparedUpsert<Given extends SQLiteTable>(
  { orm, driver }: { readonly orm: BetterSQLite3Database; readonly driver: Driver.Database },
  table: Given,
  key: SQLiteColumn[],
  change?: Readonly<Record<string, SQL>>,
) {
  type Row = Readonly<Record<string, unknown>>
  const columns = getTableColumns(table)
  const all = Object.keys(columns)
  // One bit for each column.
  if (all.length > 32) throw new RangeError('The table has more than 32 columns.')
  const groups = new Map<number, { names: readonly string[]; statements: Driver.Statement<unknown[]>[] }>()

  function prepare(names: readonly string[], rows: number) {
    const row = Object.fromEntries(names.map((name) => [name, sql.placeholder(name)]))
    const set = Object.entries(columns)
      .filter(([name, column]) => names.includes(name) && !key.some((each) => each.name === column.name))
      .map(([name, column]) => [name, sql`excluded.${sql.identifier(column.name)}`])
    const insert = orm
      .insert(table)
      .values(Array<Given['$inferInsert']>(rows).fill(row as Given['$inferInsert']))
      .onConflictDoUpdate({ target: key, set: change ?? Object.fromEntries(set) })
    return driver.prepare<unknown[]>(insert.toSQL().sql)
  }

  function presentIn(row: Row): number {
    return all.reduce((present, name, index) => (row[name] == null ? present : present | (1 << index)), 0)
  }

  return (rows: readonly Given['$inferInsert'][]): void => {
    for (const [present, same] of Map.groupBy<number, Row>(rows, presentIn)) {
      let group = groups.get(present)
      if (!group) {
        group = { names: all.filter((_, index) => present & (1 << index)), statements: [] }
        groups.set(present, group)
      }
      const { names, statements } = group
      for (let start = 0; start < same.length; start += mostRows) {
        const some = same.slice(start, start + mostRows)
        const values: unknown[] = []
        for (const row of some) for (const name of names) values.push(row[name])
        const statement = statements[some.length] ?? prepare(names, some.length)
        statements[some.length] = statement
        statement.run(values)
      }
    }
  }
}
