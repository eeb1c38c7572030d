import type Driver from 'better-sqlite3'
import { getTableColumns, is, Param, Placeholder, sql, type Table } from 'drizzle-orm'

/**
 * A statement that Drizzle wrote, prepared once and run without Drizzle, which would take twice as long. Its placeholders
 * get the values of their names.
 */
export function prepared<Values extends object, Row = unknown>(
  driver: Driver.Database,
  query: { toSQL(): { sql: string; params: unknown[] } },
) {
  const { sql: text, params } = query.toSQL()
  const statement = driver.prepare<unknown[], Row>(text)
  const readers = params.map((param): ((values: Values) => unknown) => {
    const placeholder = is(param, Param) ? param.value : param
    if (!is(placeholder, Placeholder)) return () => placeholder
    const name = placeholder.name as keyof Values
    if (!is(param, Param)) return (values) => values[name]
    const { encoder } = param
    return (values) => encoder.mapToDriverValue(values[name])
  })
  const bind = (values: Values) => readers.map((read) => read(values))
  return {
    run: (values: Values) => statement.run(...bind(values)),
    get: (values: Values) => statement.get(...bind(values)),
    all: (values: Values) => statement.all(...bind(values)),
  }
}

/** A placeholder for each column of a table, by the name of its property. */
export function placeholders<Given extends Table>(table: Given) {
  const names = Object.keys(getTableColumns(table))
  return Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as {
    readonly [Name in keyof Given['_']['columns']]: Placeholder
  }
}
