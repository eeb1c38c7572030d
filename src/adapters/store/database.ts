import type { Column, SQL, Table } from 'drizzle-orm'
import type { Brand } from '../../domain/brands/brand.ts'
import type { IntegrationRequestRecord } from '../../domain/integration/integration.ts'
import type { MessageReport } from '../../domain/messages/delivery-reports.ts'
import type { Actor, AuditRecord } from '../../domain/operator/audit.ts'
import type { AppKey } from '../../domain/operator/operator.ts'
import type { ConsoleSession } from '../../domain/operator/sessions.ts'
import type { OutboxEntry } from '../../domain/ports.ts'
import type { Clock } from '../../domain/time.ts'
import type { AttemptRow, RequestRow } from './event-rows.ts'
import type { StatRow } from './stat-buffer.ts'
import type { Orm, Statement, Steps, StoreTable } from './statements.ts'

export type BrandRow = Brand & { readonly nameKey: string }

export type KeyRow = AppKey & { readonly keySha256: string; readonly appId: string }

export type AuditRow = Omit<AuditRecord, 'actor'> & Actor

/** `identity` is the normalized recipient. */
export type MessageRow = Omit<OutboxEntry, 'to' | 'brandId' | 'createdAt'> & {
  readonly createdAt: number
  readonly recipient: string
  readonly identity: string
  readonly brandSlug: string | null
}

export interface Tables {
  readonly brands: StoreTable<BrandRow>
  readonly appKeys: StoreTable<KeyRow>
  readonly integrationRequests: StoreTable<IntegrationRequestRecord>
  readonly audit: StoreTable<AuditRow>
  readonly consoleSessions: StoreTable<ConsoleSession>
  readonly consoleLinks: StoreTable<{ readonly tokenSha256: string; readonly expiresAt: number }>
  readonly outbox: StoreTable<MessageRow>
  readonly requests: StoreTable<RequestRow>
  readonly attempts: StoreTable<AttemptRow>
  readonly deliveryReports: StoreTable<MessageReport>
  readonly codesAndLimits: Table & { readonly subject: Column }
  readonly stats: StoreTable<StatRow>
}

export interface StoreDatabase {
  readonly orm: Orm
  readonly tables: Tables
  readonly now: Clock
  readonly changes: Changes
  /** Runs statements in one transaction; resolves after the commit. */
  write(...statements: readonly Statement<unknown>[]): Promise<void>
  /** `steps` may run again after a rollback. */
  transaction<Result>(steps: (orm: Orm) => Steps<Result>): Promise<Result>
  /** The serial transactions of all servers run one after another. */
  serialTransaction<Result>(steps: (orm: Orm) => Steps<Result>): Promise<Result>
  /** Matches attempts to these recipients. */
  ofRecipient(table: Tables['requests' | 'attempts'], hashes: readonly string[]): SQL | undefined
  /** A reader sees an ID only after every lower ID. */
  saveMessage(message: Omit<MessageRow, 'id'>): Promise<void>
}

export interface Changes {
  /** Differs after a change. Rejects if the database does not answer. */
  token(): number | Promise<number>
  invalidate(): void
}

/** Keys come from callers, so their number and length need a limit. */
const [mostKeys, longestKey] = [1000, 256]

/** Returns a known value itself, since promises take 0.4 µs of each request. */
export function cached<Value>(
  changes: Changes,
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
