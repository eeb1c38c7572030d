import { type Column, getTableColumns, getTableName, is, Table } from 'drizzle-orm'
import type { Clock } from '../../domain/ground/time.ts'

export const movedTables = [
  'brands',
  'texts',
  'text_variables',
  'app_keys',
  'apps',
  'app_brands',
  'destination_rules',
  'guard_prefixes',
  'verified_numbers',
  'prices',
  'price_lists',
  'budgets',
  'alerts',
  'alert_deliveries',
  'webhooks',
  'review_numbers',
  'events',
  'idempotency_keys',
  'notify_orders',
  'notify_jobs',
  'integration_requests',
  'audit',
  'operators',
  'passkeys',
  'recovery_codes',
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

export function columnsByTable(schema: readonly unknown[]): (table: MovedTable) => readonly Column[] {
  const tables = schema.filter((each) => is(each, Table))
  const byName = new Map(tables.map((table) => [getTableName(table), Object.values(getTableColumns(table))]))
  return (table) => byName.get(table) ?? []
}

export const numberedTables = ['audit', 'outbox'] as const

export type NumberedTable = (typeof numberedTables)[number]

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
  count(table: MovedTable): number
  rows(table: MovedTable): Iterable<PlainRow>
  keys(table: ComparedTable): readonly string[]
  /** The highest ID ever used; 0: none. */
  lastNumber(table: NumberedTable): number
}

export interface Transferred {
  readonly table: MovedTable
  readonly rows: number
  readonly leftOut: number
}
