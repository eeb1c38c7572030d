import { type Column, getTableColumns, getTableName, is, Table } from 'drizzle-orm'
import type { Clock } from '../../domain/ports.ts'

// What one database hands to another when all that is kept moves: plain rows, which know of neither.

/** The tables that move as they are, by their names in both databases, but for what is said of a row. */
export const movedTables = [
  'brands',
  'app_keys',
  'integration_requests',
  'audit',
  'console_sessions',
  'console_links',
  'outbox',
  'stats',
  'delivery_reports',
  'attempts',
  'requests',
  'codes_and_limits',
] as const

export type MovedTable = (typeof movedTables)[number]

/** Finds the columns of a table by its name in a schema. */
export function columnsByTable(schema: readonly unknown[]): (table: MovedTable) => readonly Column[] {
  const tables = schema.filter((each) => is(each, Table))
  const byName = new Map(tables.map((table) => [getTableName(table), Object.values(getTableColumns(table))]))
  return (table) => byName.get(table) ?? []
}

/** Those whose rows are numbered, and go on to be. */
export const numberedTables = ['audit', 'outbox'] as const

export type NumberedTable = (typeof numberedTables)[number]

/** Those whose keys are compared one by one, and not only counted: what a caller may do hangs on each row. */
export const comparedKeys = { brands: 'slug', app_keys: 'key_sha256' } as const

export type ComparedTable = keyof typeof comparedKeys

/** A row by the names of its columns: instants in epoch milliseconds, flags as booleans, JSON as what it stands for. */
export type PlainRow = Readonly<Record<string, unknown>>

/** A database that all is read from. Nobody else writes it meanwhile, and it may be read again from the start. */
export interface TransferSource {
  /** The clock that its instants go by, epoch milliseconds. */
  readonly now: Clock
  /** Brings its schema up to date. Throws where it is no whole database of this program. */
  prepare(): void
  /** How many rows a table has. */
  count(table: MovedTable): number
  /** All rows of a table, one after another, expired ones included. */
  rows(table: MovedTable): Iterable<PlainRow>
  /** The keys of a table. */
  keys(table: ComparedTable): readonly string[]
  /** The highest number that a row of the table ever had; 0: there was none. */
  lastNumber(table: NumberedTable): number
}

/** What has moved of a table, in rows. */
export interface Transferred {
  readonly table: MovedTable
  readonly rows: number
  /** Expired rows. */
  readonly leftOut: number
}
