import {
  check,
  index,
  integer,
  primaryKey,
  real,
  type SQLiteColumn,
  type SQLiteColumnBuilderBase,
  type SQLiteTableWithColumns,
  sqliteTable,
  text,
} from 'drizzle-orm/sqlite-core'
import {
  type AnyTable,
  type Builder,
  type DrizzleColumn,
  type Kind,
  partsOf,
  type RowsOf,
} from '../store/dialect.ts'
import { schema } from '../store/schema.ts'

type Rows = RowsOf<typeof schema, 'sqlite'>

type TableOf<Row> = SQLiteTableWithColumns<{
  name: string
  schema: undefined
  dialect: 'sqlite'
  columns: { [Name in keyof Row]: SQLiteColumn<DrizzleColumn<Name, Row[Name]>> }
}>

const builders: Readonly<Record<Kind, (name: string) => SQLiteColumnBuilderBase & Builder>> = {
  key: text,
  text,
  instant: integer,
  count: integer,
  integer,
  small: integer,
  real,
  flag: (name) => integer(name, { mode: 'boolean' }),
  json: (name) => text(name, { mode: 'json' }),
  id: (name) => integer(name).primaryKey({ autoIncrement: true }),
}

function built(declaration: AnyTable) {
  const { build, key, indexes, checks } = partsOf(declaration, 'sqlite')
  return sqliteTable(declaration.name, build(builders), (row) => {
    const at = (properties: readonly string[]) =>
      properties.map((property) => row[property]) as unknown as [SQLiteColumn, ...SQLiteColumn[]]
    return [
      ...(key.length > 0 ? [primaryKey({ columns: at(key) })] : []),
      ...indexes.map(({ name, on }) => index(name).on(...at(on))),
      ...checks(row).map(([name, is]) => check(name, is)),
    ]
  })
}

/** The migrations add that tables are STRICT. */
export const tables = Object.fromEntries(
  Object.entries<AnyTable>(schema)
    .filter(([, { stores }]) => stores.includes('sqlite'))
    .map(([name, declaration]) => [name, built(declaration)]),
) as unknown as { readonly [Name in keyof Rows]: TableOf<Rows[Name]> }
