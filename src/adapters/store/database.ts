import type { Column, SQL } from 'drizzle-orm'
import type { Clock } from '../../domain/ground/time.ts'
import type { DeliveryStatus } from '../../domain/log/log-search.ts'
import type { RowsOf } from './dialect.ts'
import type { schema } from './schema.ts'
import type { Orm, Statement, StatementSteps, StoreTable } from './statements.ts'
import type { VerifiedAt } from './verified-at.ts'

type Rows = RowsOf<typeof schema>

/** A row of a table, as code has it. */
export type Row<Name extends keyof Rows> = Rows[Name]

/** Of both stores. */
export type Tables = { readonly [Name in keyof Rows]: StoreTable<Rows[Name]> }

export interface StoreDatabase {
  readonly orm: Orm
  /** For reads of many rows. On SQLite, a server reads them on a thread, which takes longer for a single row. */
  readonly reader: Orm
  readonly tables: Tables
  readonly now: Clock
  readonly changes: StoreChanges
  /** Of what `PolicyRows` and prices contain. */
  readonly policyChanges: StoreChanges
  /** Runs statements in one transaction; resolves after the commit. */
  write(...statements: readonly Statement<unknown>[]): Promise<void>
  /** Like `write`. The numbers of rows that each statement returns. */
  writeCounted(...statements: readonly Statement<unknown>[]): Promise<readonly number[]>
  /** `steps` may run again after a rollback. */
  transaction<Result>(steps: (orm: Orm) => StatementSteps<Result>): Promise<Result>
  /** The serial transactions of all servers run one after another. */
  serialTransaction<Result>(steps: (orm: Orm) => StatementSteps<Result>): Promise<Result>
  /** Matches attempts to these recipients. */
  ofRecipient(table: Tables['requests' | 'attempts'], hashes: readonly string[]): SQL | undefined
  /**
   * Matches rows with a report of one of these statuses.
   * @param keys a SELECT of the report keys of all rows that are searched
   */
  hasReport(reportKey: Column, statuses: readonly DeliveryStatus[], keys: SQL): SQL
  /** The elements of a JSON array as a column `value`. */
  jsonElements(json: string): SQL
  /** Resolves when what was read is on the disk. */
  durable(): Promise<void> | undefined
  readonly verifiedAt: VerifiedAt
  /** A reader sees an ID only after every lower ID. */
  saveMessage(message: Omit<Row<'outbox'>, 'id'>): Promise<void>
}

export interface StoreChanges {
  /** Differs after a change. Rejects if the database does not answer. */
  token(): number | Promise<number>
  invalidate(): void
}

/** Keys come from callers, so their number and length need a limit. */
const [mostKeys, longestKey] = [1000, 256]

/** Returns a known value itself, since promises take 0.4 µs of each request. */
export function cached<Value>(
  changes: StoreChanges,
  read: (key: string) => Promise<Value>,
): (key: string) => Value | Promise<Value> {
  const known = new Map<string, { readonly value: Value } | Promise<Value>>()
  let seen = -1
  const lookUp = (key: string, token: number) => {
    if (seen !== token) known.clear()
    seen = token
    const before = known.get(key)
    if (before) return before instanceof Promise ? before : before.value
    if (known.size >= mostKeys) known.clear()
    const reading = read(key)
    known.set(key, reading)
    reading.then(
      (value) => known.get(key) === reading && known.set(key, { value }),
      () => known.get(key) === reading && known.delete(key),
    )
    return reading
  }
  return (key) => {
    if (key.length > longestKey) return read(key)
    const token = changes.token()
    return token instanceof Promise ? token.then((number) => lookUp(key, number)) : lookUp(key, token)
  }
}
