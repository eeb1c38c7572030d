import { type Column, getTableColumns, getTableName, type Table } from 'drizzle-orm'
import type { Clock } from '../../domain/ground/time.ts'
import { type AnyTable, sqlName } from './dialect.ts'
import { schema } from './schema.ts'

export interface MovedTable {
  readonly name: string
  /** For people. */
  readonly called: string
  /** Columns of instants that may be in the future. */
  readonly shifted: readonly string[]
  /** Whether the column `id` numbers the rows. */
  readonly isNumbered: boolean
}

export const movedTables: readonly MovedTable[] = Object.values<AnyTable>(schema).flatMap(
  ({ name, columns, facts: { moved } }) => {
    if (moved === undefined) return []
    const shifted = Object.keys(columns).filter((property) => columns[property]?.properties.isShifted)
    const isNumbered = columns.id?.properties.kind === 'id'
    return [{ name, called: moved, shifted: shifted.map(sqlName), isNumbered }]
  },
)

export function columnsByTable(tables: readonly Table[]): (table: string) => readonly Column[] {
  const byName = new Map(tables.map((table) => [getTableName(table), Object.values(getTableColumns(table))]))
  return (table) => byName.get(table) ?? []
}

/** Tables whose keys are compared one by one after the move. */
export const comparedKeys = { brands: 'slug', app_keys: 'key_sha256' } as const

export type ComparedTable = keyof typeof comparedKeys

/** By column name: instants in epoch milliseconds, flags as booleans, JSON parsed. */
export type PlainRow = Readonly<Record<string, unknown>>

/** No other process writes it. It may be read repeatedly. */
export interface TransferSource {
  readonly now: Clock
  /** Migrates the schema. Throws if it is not an intact database of this program. */
  prepare(): void
  count(table: string): number
  rows(table: string): Iterable<PlainRow>
  keys(table: ComparedTable): readonly string[]
  /** The highest ID ever used; 0: none. */
  lastNumber(table: string): number
}

export interface Transferred extends Pick<MovedTable, 'name' | 'called'> {
  readonly rows: number
  readonly leftOut: number
}
