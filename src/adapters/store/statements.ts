import { type Column, getTableColumns, type SQL, sql, type Table } from 'drizzle-orm'

// The common types of Drizzle's builders for SQLite and PostgreSQL.

type ColumnOf<Value> = Column & {
  readonly _: { readonly data: NonNullable<Value>; readonly notNull: null extends Value ? false : true }
}

export type StoreTable<Row> = Table & { readonly $inferSelect: Row } & {
  readonly [Name in keyof Row]-?: ColumnOf<Row[Name]>
}

type Nullable<Row> = { [Name in keyof Row]: null extends Row[Name] ? Name : never }[keyof Row]

/** Nullable columns and generated numbers are optional. */
type NewRow<Row> = Omit<Row, Nullable<Row> | (Row extends { id: number } ? 'id' : never)> & Partial<Row>

type Fields = Readonly<Record<string, Column | SQL<unknown>>>
type FieldsOf<Selected extends Fields> = {
  [Name in keyof Selected]: Selected[Name] extends SQL<infer Value>
    ? Value
    : Selected[Name] extends { readonly _: { readonly data: infer Value; readonly notNull: infer IsNotNull } }
      ? Value | (IsNotNull extends true ? never : null)
      : never
}

export interface Statement<Result> extends PromiseLike<Result> {
  toSQL(): { readonly sql: string; readonly params: readonly unknown[] }
  prepare(name: string): { execute(values?: Record<string, unknown>): PromiseLike<Result> }
}

interface Selection<Row> extends Statement<Row[]> {
  where(condition: SQL | undefined): Selection<Row>
  orderBy(...columns: (Column | SQL)[]): Selection<Row>
  limit(rows: number): Selection<Row>
  offset(rows: number): Selection<Row>
  groupBy(...columns: (Column | SQL)[]): Selection<Row>
}

interface Writing extends Statement<unknown> {
  where(condition: SQL | undefined): Writing
  returning<Selected extends Fields>(fields: Selected): Statement<FieldsOf<Selected>[]>
}

interface Inserting<Row> extends Statement<unknown> {
  onConflictDoNothing(): Statement<unknown>
  onConflictDoUpdate(change: {
    target: Column | Column[]
    set: { readonly [Name in keyof Row]?: Row[Name] | SQL }
    setWhere?: SQL | undefined
  }): Statement<unknown>
}

export interface Orm {
  select(): { from<Row>(table: StoreTable<Row>): Selection<Row> }
  select<Selected extends Fields>(
    fields: Selected,
  ): { from(table: Table | SQL): Selection<FieldsOf<Selected>> }
  insert<Row>(table: StoreTable<Row>): {
    values(row: NewRow<Row>): Inserting<Row>
    /** @param rows a SELECT of all columns in their order */
    select(rows: SQL): Inserting<Row>
  }
  update<Row>(table: StoreTable<Row>): {
    set(row: { readonly [Name in keyof Row]?: Row[Name] | SQL }): Writing
  }
  delete(table: Table): Writing
}

/** Statements of one transaction, as a generator yields them: `const rows = yield* run(statement)`. */
export type StatementSteps<Result> = Generator<Statement<unknown>, Result>

export function* run<Result>(statement: Statement<Result>): StatementSteps<Result> {
  // The store that runs the transaction passes in the result.
  return (yield statement) as Result
}

type Named<Each extends object> = { readonly [Name in keyof Each]: Statement<unknown> }
/** The result of each statement, by its name. */
export type ResultsOf<Each> = {
  readonly [Name in keyof Each]: Each[Name] extends Statement<infer Result> ? Result : never
}

/** In one transaction. */
export function* runAll<Each extends Named<Each>>(statements: Each): StatementSteps<ResultsOf<Each>> {
  const results: [string, unknown][] = []
  for (const [name, statement] of Object.entries<Statement<unknown>>(statements))
    results.push([name, yield* run(statement)])
  return Object.fromEntries(results) as ResultsOf<Each>
}

/** At the same time. */
export async function allOf<Each extends Named<Each>>(statements: Each): Promise<ResultsOf<Each>> {
  const results = Object.entries<Statement<unknown>>(statements).map(
    async ([name, statement]) => [name, await statement] as const,
  )
  return Object.fromEntries(await Promise.all(results)) as ResultsOf<Each>
}

/**
 * A SELECT of rows that are one JSON parameter, since Drizzle takes milliseconds for 1,000 rows of values. In the order of the
 * key, so that no two servers wait for each other. Columns must be texts and numbers.
 * @param source the elements of a JSON array as a column `value`
 */
export function givenRows<Row>(
  source: (json: string) => SQL,
  table: StoreTable<Row>,
  rows: readonly Row[],
  key: readonly Column[],
): SQL {
  const columns = Object.values(getTableColumns(table))
  const order = key.map((part) => sql.raw(String(1 + columns.indexOf(part))))
  const json = JSON.stringify(valuesOf(table, rows))
  // SQLite needs WHERE before ON CONFLICT.
  return sql`SELECT ${givenColumns(table)} FROM ${source(json)} WHERE true ORDER BY ${sql.join(order, sql`, `)}`
}

/** The columns from the JSON array `value`, which has them in their order. */
export function givenColumns(table: Table): SQL {
  const columns = Object.values(getTableColumns(table)).map((column, index) => {
    const [type] = column.getSQLType().split(' COLLATE ')
    return sql`CAST(value ->> ${sql.raw(String(index))} AS ${sql.raw(String(type))}) AS ${sql.identifier(column.name)}`
  })
  return sql.join(columns, sql`, `)
}

export function valuesOf<Row>(table: Table, rows: readonly Row[]): readonly (readonly unknown[])[] {
  const names = Object.keys(getTableColumns(table)) as (keyof Row)[]
  return rows.map((row) => names.map((name) => row[name]))
}

/** Replaces the row with the same key, for `onConflictDoUpdate`. */
export function replacing<Row>(table: StoreTable<Row>, key: Column[]) {
  const set = Object.entries(getTableColumns(table))
    .filter(([, column]) => !key.includes(column))
    .map(([name, column]) => [name, sql`excluded.${sql.identifier(column.name)}`])
  return { target: key, set: Object.fromEntries(set) as { readonly [Name in keyof Row]?: SQL } }
}
