import type { Column, SQL, Table } from 'drizzle-orm'

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
  groupBy(...columns: Column[]): Selection<Row>
}

interface Writing extends Statement<unknown> {
  where(condition: SQL | undefined): Writing
  returning<Selected extends Fields>(fields: Selected): Statement<FieldsOf<Selected>[]>
}

export interface Orm {
  select(): { from<Row>(table: StoreTable<Row>): Selection<Row> }
  select<Selected extends Fields>(fields: Selected): { from(table: Table): Selection<FieldsOf<Selected>> }
  insert<Row>(table: StoreTable<Row>): {
    values(row: NewRow<Row>): Statement<unknown> & {
      onConflictDoUpdate(change: { target: Column | Column[]; set: Partial<Row> }): Statement<unknown>
    }
  }
  update<Row>(table: StoreTable<Row>): { set(row: Partial<Row>): Writing }
  delete(table: Table): Writing
}

/** Statements of one transaction, as a generator yields them: `const rows = yield* run(statement)`. */
export type Steps<Result> = Generator<Statement<unknown>, Result>

export function* run<Result>(statement: Statement<Result>): Steps<Result> {
  // The store that runs the transaction passes in the result.
  return (yield statement) as Result
}
