import type { Column, SQL } from 'drizzle-orm'
import type { AccountRow, Passkey } from '../../domain/accounts/accounts.ts'
import type { ConsoleLink, ConsoleSession } from '../../domain/accounts/sessions.ts'
import type { MessageReport } from '../../domain/delivery/delivery-reports.ts'
import type { DestinationRule } from '../../domain/delivery/destination.ts'
import type { Alert, AlertChannel } from '../../domain/ground/alert.ts'
import type { Actor, AuditRecord } from '../../domain/ground/audit.ts'
import type { NotifyJob, NotifyOrder } from '../../domain/ground/notify-job.ts'
import type { OutboxEntry } from '../../domain/ground/ports.ts'
import type { Clock } from '../../domain/ground/time.ts'
import type { StoredEvent, Webhook } from '../../domain/ground/webhook-events.ts'
import type { BucketRow } from '../../domain/guard/bucket.ts'
import type { GuardPrefix } from '../../domain/guard/store.ts'
import type { IntegrationRequestRecord } from '../../domain/integration/integration.ts'
import type { StoredKey } from '../../domain/limits/idempotency-store.ts'
import type { AppScope } from '../../domain/limits/scope.ts'
import type { DeliveryStatus } from '../../domain/log/log-search.ts'
import type { Budget } from '../../domain/money/budgets.ts'
import type { PriceRow } from '../../domain/money/prices.ts'
import type { AppKey } from '../../domain/operator/changes.ts'
import type { ReviewNumber } from '../../domain/policy/review-number.ts'
import type { Brand } from '../../domain/texts/brand.ts'
import type { BrandText, DeclaredVariable } from '../../domain/texts/brand-texts.ts'
import type { AttemptRow, RequestRow, VerifiedNumber } from './event-rows.ts'
import type { RecordRow } from './records.ts'
import type { StatRow } from './stat-buffer.ts'
import type { Orm, Statement, Steps, StoreTable } from './statements.ts'

export type BrandRow = Brand & { readonly nameKey: string }

export type TextRow = BrandText & { readonly brandSlug: string }

export type TextVariableRow = DeclaredVariable & {
  readonly brandSlug: string
  readonly templateKey: string
  readonly position: number
}

export type KeyRow = AppKey & { readonly keySha256: string; readonly appId: string }

export type RuleRow = Omit<DestinationRule, 'brandSlug'> & { readonly brandSlug: string }

export interface PriceTableRow extends Omit<PriceRow, 'provider'> {
  readonly generation: number
  /** Empty: every provider. */
  readonly provider: string
}

export interface PriceListRow extends Pick<PriceTableRow, 'provider'> {
  /** Null: none is in force yet. */
  readonly generation: number | null
  /** Announced: it will be in force soon. */
  readonly next: number | null
}

export type ScopeRow = Omit<AppScope, 'brands'>

export interface ScopeBrandRow {
  readonly appId: string
  readonly brandSlug: string
}

export type AuditRow = Omit<AuditRecord, 'actor'> & Actor

/** `identity` is the normalized recipient. */
export type MessageRow = Omit<OutboxEntry, 'to' | 'brandId' | 'createdAt'> & {
  readonly createdAt: number
  readonly recipient: string
  readonly identity: string
  readonly brandSlug: string | null
}

export interface AlertDeliveryRow {
  readonly key: string
  readonly channel: AlertChannel
  readonly tries: number
  readonly dueAt: number
}

export interface RecoveryCodeRow {
  readonly operatorId: string
  readonly codeSha256: string
}

export interface Tables {
  readonly brands: StoreTable<BrandRow>
  readonly texts: StoreTable<TextRow>
  readonly textVariables: StoreTable<TextVariableRow>
  readonly appKeys: StoreTable<KeyRow>
  readonly apps: StoreTable<ScopeRow>
  readonly appBrands: StoreTable<ScopeBrandRow>
  readonly destinationRules: StoreTable<RuleRow>
  readonly guardPrefixes: StoreTable<GuardPrefix>
  readonly guardBuckets: StoreTable<BucketRow>
  readonly verifiedNumbers: StoreTable<VerifiedNumber>
  readonly prices: StoreTable<PriceTableRow>
  readonly priceLists: StoreTable<PriceListRow>
  readonly budgets: StoreTable<Budget>
  readonly alerts: StoreTable<Alert>
  readonly alertDeliveries: StoreTable<AlertDeliveryRow>
  readonly webhooks: StoreTable<Webhook>
  readonly reviewNumbers: StoreTable<ReviewNumber>
  readonly events: StoreTable<StoredEvent>
  readonly idempotencyKeys: StoreTable<StoredKey>
  readonly notifyOrders: StoreTable<NotifyOrder>
  readonly notifyJobs: StoreTable<NotifyJob>
  readonly integrationRequests: StoreTable<IntegrationRequestRecord>
  readonly audit: StoreTable<AuditRow>
  readonly consoleSessions: StoreTable<ConsoleSession>
  readonly consoleLinks: StoreTable<ConsoleLink>
  readonly operators: StoreTable<AccountRow>
  readonly passkeys: StoreTable<Passkey>
  readonly recoveryCodes: StoreTable<RecoveryCodeRow>
  readonly outbox: StoreTable<MessageRow>
  readonly requests: StoreTable<RequestRow>
  readonly attempts: StoreTable<AttemptRow>
  readonly deliveryReports: StoreTable<MessageReport>
  readonly codesAndLimits: StoreTable<RecordRow>
  readonly stats: StoreTable<StatRow>
}

export interface StoreDatabase {
  readonly orm: Orm
  readonly tables: Tables
  readonly now: Clock
  readonly changes: Changes
  /** Of what `PolicyRows` and prices contain. */
  readonly policyChanges: Changes
  /** Runs statements in one transaction; resolves after the commit. */
  write(...statements: readonly Statement<unknown>[]): Promise<void>
  /** Like `write`. The numbers of rows that each statement returns. */
  writeCounted(...statements: readonly Statement<unknown>[]): Promise<readonly number[]>
  /** `steps` may run again after a rollback. */
  transaction<Result>(steps: (orm: Orm) => Steps<Result>): Promise<Result>
  /** The serial transactions of all servers run one after another. */
  serialTransaction<Result>(steps: (orm: Orm) => Steps<Result>): Promise<Result>
  /** Matches attempts to these recipients. */
  ofRecipient(table: Tables['requests' | 'attempts'], hashes: readonly string[]): SQL | undefined
  /**
   * Matches rows with a report of one of these statuses.
   * @param keys a SELECT of the report keys of all rows that are searched
   */
  hasReport(reportKey: Column, statuses: readonly DeliveryStatus[], keys: SQL): SQL
  /** The elements of a JSON array as a column `value`. */
  jsonElements(json: string): SQL
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
