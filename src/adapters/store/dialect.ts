import { type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { EpochMs } from '../../domain/ground/time.ts'

// How a table of both stores is declared once. Each store turns the declarations into its own tables of Drizzle, in its
// file schema.ts. The name of a column in SQL is that of its property, in snake case.

export type Store = 'sqlite' | 'postgres'

/**
 * `key`: compared byte by byte, so that the order is the same on every server. `count`: up to 2^53. `small`: two bytes.
 * `id`: the next number, if a row is inserted without one.
 */
export type Kind =
  | 'key'
  | 'text'
  | 'instant'
  | 'count'
  | 'integer'
  | 'small'
  | 'real'
  | 'flag'
  | 'json'
  | 'id'

interface Properties {
  readonly kind: Kind
  readonly isNullable?: boolean
  readonly isPrimary?: boolean
  readonly isUnique?: boolean
  readonly isShifted?: boolean
  readonly isOnPostgres?: boolean
  /** Checked by the database: these texts, or JSON of this type. */
  readonly allowed?: readonly string[] | 'array' | 'object'
}

/** `In`: the stores that have it. */
export class Column<Value, In extends Store = Store> {
  declare readonly value: Value
  declare readonly in: In

  constructor(readonly properties: Properties) {}

  /** Columns are NOT NULL otherwise. */
  orNull(): Column<Value | null, In> {
    return new Column({ ...this.properties, isNullable: true })
  }

  primary(): Column<Value, In> {
    return new Column({ ...this.properties, isPrimary: true })
  }

  unique(): Column<Value, In> {
    return new Column({ ...this.properties, isUnique: true })
  }

  /** `otpost move` converts the instant to the clock of the target, since it may be in the future. */
  shifted(): Column<Value, In> {
    return new Column({ ...this.properties, isShifted: true })
  }

  onPostgres(): Column<Value, 'postgres'> {
    return new Column({ ...this.properties, isOnPostgres: true })
  }
}

export const key = <Value extends string = string>() => new Column<Value>({ kind: 'key' })
export const text = <Value extends string = string>() => new Column<Value>({ kind: 'text' })
export const instant = () => new Column<EpochMs>({ kind: 'instant' })
export const count = () => new Column<number>({ kind: 'count' })
export const integer = () => new Column<number>({ kind: 'integer' })
export const small = () => new Column<number>({ kind: 'small' })
export const real = () => new Column<number>({ kind: 'real' })
export const flag = () => new Column<boolean>({ kind: 'flag' })
export const id = () => new Column<number>({ kind: 'id', isPrimary: true })

export const oneOf = <const Value extends string>(...allowed: readonly Value[]) =>
  new Column<Value>({ kind: 'text', allowed })

/** A list or record that only operators change, or that is written once. No rule reads state from it. */
export const json = <Value extends object>(allowed: 'array' | 'object') =>
  new Column<Value>({ kind: 'json', allowed })

export type Columns = Readonly<Record<string, Column<unknown>>>
type NameIn<C extends Columns> = keyof C & string

/** The columns of a table in SQL. */
export type InSql<C extends Columns> = { readonly [Name in NameIn<C>]: SQL }

/** The present, and the instants before which rows of the event log, jobs and integration requests are deleted. */
export type Ages = Readonly<Record<'now' | 'eventLog' | 'jobs' | 'requests', EpochMs>>

/** Methods, so that a table with known columns is one of any columns. */
interface Rules<C extends Columns> {
  check(row: InSql<C>): SQL
  expired(row: InSql<C>, ages: Ages): SQL
}

interface Facts<C extends Columns> {
  /** Of the primary key, if it has several columns. */
  readonly key?: readonly NameIn<C>[]
  readonly indexes?: Readonly<Record<string, readonly NameIn<C>[]>>
  readonly postgresIndexes?: Readonly<
    Record<string, { readonly on: readonly NameIn<C>[]; readonly where?: string }>
  >
  readonly checks?: Readonly<Record<string, Rules<C>['check']>>
  /** SQLite: rows are in the order of insertion and not of the key, since they are long. */
  readonly hasRowId?: boolean
  /** `otpost move` copies the table, and calls it so. Otherwise its rows are of one server or one store. */
  readonly moved?: string
  /** A restore deletes the rows of the backup. */
  readonly isNotRestored?: boolean
  /** `otpost forget` deletes the rows whose column has the hash or the identity of the recipient, and calls them so. */
  readonly forgotten?: {
    readonly by: NameIn<C>
    readonly is: 'hash' | 'identity'
    readonly called: readonly [one: string, many: string]
  }
  /** Processes keep the rows until the number in `revision` changes. */
  readonly isCached?: boolean
  /** What the expiry cleanup deletes. Otherwise it has code for the table, or rows do not expire. */
  readonly expired?: Rules<C>['expired']
  /** Its index finds expired rows. Otherwise the primary key does. */
  readonly expiredBy?: NameIn<C>
  /**
   * A distributed database places rows by this column, which begins the primary key; other tables are on one machine.
   * `like`: an earlier table, whose rows with the same value are on the same machine. `isBatched`: one statement writes
   * many rows. It has a cost for each shard, so there is one shard for each machine.
   */
  readonly distributed?: { readonly by: NameIn<C>; readonly like?: string; readonly isBatched?: boolean }
}

export interface Declared<C extends Columns = Columns, In extends Store = Store> {
  readonly name: string
  readonly columns: C
  readonly facts: Facts<C>
  readonly stores: readonly In[]
}

export function table<C extends Columns>(name: string, columns: C, facts: Facts<C> = {}): Declared<C> {
  return { name, columns, facts, stores: ['sqlite', 'postgres'] }
}

/** Of one store. */
export function tableOf<C extends Columns, In extends Store>(
  store: In,
  name: string,
  columns: C,
  facts: Facts<C> = {},
): Declared<C, In> {
  return { name, columns, facts, stores: [store] }
}

export type AnyTable = Declared<Columns, Store>

type Declarations = Readonly<Record<string, AnyTable>>

/** The names of what a store has. */
type Has<In extends Store, Name, There> = [In] extends [There] ? Name : never

/** A row as code has it. */
export type RowOf<D extends { readonly columns: Columns }, In extends Store = Store> = {
  readonly [Name in NameIn<D['columns']> as Has<
    In,
    Name,
    D['columns'][Name]['in']
  >]: D['columns'][Name]['value']
}

/** The rows of each table of a store. */
export type RowsOf<D extends Declarations, In extends Store = Store> = {
  readonly [Name in keyof D as Has<In, Name, D[Name]['stores'][number]>]: RowOf<D[Name], In>
}

export function sqlName(property: string): string {
  return property.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** A column in the types of Drizzle. */
export interface DrizzleColumn<Name, Value> {
  name: string
  tableName: string
  dataType: 'custom'
  columnType: string
  data: NonNullable<Value>
  driverParam: unknown
  notNull: null extends Value ? false : true
  hasDefault: Name extends 'id' ? (Value extends number ? true : false) : false
  isPrimaryKey: boolean
  isAutoincrement: boolean
  hasRuntimeDefault: false
  enumValues: undefined
  generated: undefined
}

export type Builder = Readonly<Record<'notNull' | 'primaryKey' | 'unique', () => unknown>>

/** What the stores build in the same way. Columns are named by their properties. */
export function partsOf({ name: table, columns, facts }: AnyTable, store: Store) {
  const own = Object.entries(columns)
    .filter(([, { properties }]) => store === 'postgres' || !properties.isOnPostgres)
    .map(([property, { properties }]) => ({ property, name: sqlName(property), ...properties }))
  const further = Object.entries(store === 'postgres' ? (facts.postgresIndexes ?? {}) : {})
  return {
    columns: own,
    build: <Each extends Builder>(builders: Readonly<Record<Kind, (name: string) => Each>>) =>
      Object.fromEntries(
        own.map(({ property, name, kind, isNullable, isPrimary, isUnique }) => {
          const column = builders[kind](name)
          if (isNullable !== true && kind !== 'id') column.notNull()
          if (isPrimary && kind !== 'id') column.primaryKey()
          if (isUnique) column.unique()
          return [property, column]
        }),
      ),
    key: facts.key?.filter((each) => own.some(({ property }) => property === each)) ?? [],
    indexes: [
      ...Object.entries(facts.indexes ?? {}).map(([name, on]) => ({ name, on, where: undefined })),
      ...further.map(([name, { on, where }]) => ({ name, on, where })),
    ],
    /** @param row the columns, to be named in SQL */
    checks: (row: Readonly<Record<string, SQLWrapper>>): readonly (readonly [name: string, is: SQL])[] => {
      const inSql = Object.fromEntries(own.map(({ property }) => [property, sql`${row[property]}`]))
      const isIn = (property: string, values: string) => sql`${inSql[property]} IN (${sql.raw(values)})`
      const allowed = own.flatMap(({ property, name, allowed }) => {
        if (allowed === undefined) return []
        const is =
          typeof allowed === 'string'
            ? sql`${sql.raw(jsonType[store])}(${inSql[property]}) = ${sql.raw(quoted(allowed))}`
            : isIn(property, allowed.map(quoted).join(', '))
        return [[`${table}_${name}`, is] as const]
      })
      // PostgreSQL has a type for them.
      const flags = store === 'postgres' ? [] : own.filter(({ kind }) => kind === 'flag')
      const areFlags = sql.join(
        flags.map(({ property }) => isIn(property, '0, 1')),
        sql` AND `,
      )
      return [
        ...allowed,
        ...(flags.length > 0 ? [[`${table}_flags`, areFlags] as const] : []),
        ...Object.entries(facts.checks ?? {}).map(([name, check]) => [name, check(inSql)] as const),
      ]
    },
  }
}

const jsonType: Readonly<Record<Store, string>> = { sqlite: 'json_type', postgres: 'jsonb_typeof' }

function quoted(text: string): string {
  return `'${text}'`
}

/** The columns of the primary key. */
export function keyOf(declared: AnyTable, store: Store): readonly string[] {
  const { columns, key } = partsOf(declared, store)
  return key.length > 0 ? key : columns.filter(({ isPrimary }) => isPrimary).map(({ property }) => property)
}
