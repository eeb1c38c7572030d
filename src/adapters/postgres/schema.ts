import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  check,
  customType,
  doublePrecision,
  index,
  integer,
  type PgColumn,
  type PgColumnBuilderBase,
  type PgTableWithColumns,
  pgTable,
  primaryKey,
  smallint,
  text,
} from 'drizzle-orm/pg-core'
import {
  type AnyTable,
  type Builder,
  type DrizzleColumn,
  type Kind,
  partsOf,
  type RowsOf,
} from '../store/dialect.ts'
import { schema } from '../store/schema.ts'
import { asJson } from './text.ts'

type Rows = RowsOf<typeof schema, 'postgres'>

type TableOf<Row> = PgTableWithColumns<{
  name: string
  schema: undefined
  dialect: 'pg'
  columns: { [Name in keyof Row]: PgColumn<DrizzleColumn<Name, Row[Name]>> }
}>

const key = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' })
const json = customType<{ data: object }>({ dataType: () => 'jsonb', toDriver: asJson })
const count = (name: string) => bigint(name, { mode: 'number' })

const builders: Readonly<Record<Kind, (name: string) => PgColumnBuilderBase & Builder>> = {
  key,
  text,
  instant: count,
  count,
  integer,
  small: smallint,
  real: doublePrecision,
  flag: boolean,
  json,
  id: (name) => count(name).primaryKey().generatedByDefaultAsIdentity(),
}

function built(declaration: AnyTable) {
  const { build, key, indexes, checks } = partsOf(declaration, 'postgres')
  return pgTable(declaration.name, build(builders), (row) => {
    const at = (properties: readonly string[]) =>
      properties.map((property) => row[property]) as unknown as [PgColumn, ...PgColumn[]]
    return [
      ...(key.length > 0 ? [primaryKey({ columns: at(key) })] : []),
      ...indexes.map(({ name, on, where }) => {
        const built = index(name).on(...at(on))
        return where === undefined ? built : built.where(sql.raw(where))
      }),
      ...checks(row).map(([name, is]) => check(name, is)),
    ]
  })
}

export const tables = Object.fromEntries(
  Object.entries<AnyTable>(schema)
    .filter(([, { stores }]) => stores.includes('postgres'))
    .map(([name, declaration]) => [name, built(declaration)]),
) as unknown as { readonly [Name in keyof Rows]: TableOf<Rows[Name]> }
