import {
  and,
  type Column,
  count,
  eq,
  getTableColumns,
  gt,
  inArray,
  isNull,
  lte,
  type SQL,
  sql,
  type Table,
} from 'drizzle-orm'
import type { Actor } from '../../domain/ground/audit.ts'
import { mask, type Recipient } from '../../domain/ground/contact.ts'
import { auditRow } from './audit.ts'
import type { StoreDatabase, Tables } from './database.ts'
import { type AnyTable, keyOf } from './dialect.ts'
import type { RequestRow } from './event-rows.ts'
import { schema } from './schema.ts'
import { type Orm, run, type StatementSteps } from './statements.ts'

/** The numbers of rows; those of the tables in `forgottenTables` by their names in code. */
export interface Erased {
  readonly requests: number
  readonly deliveries: number
  readonly deliveryReports: number
  /** Of asynchronous notifications. Queued ones are not sent. */
  readonly jobs: number
  readonly [table: string]: number
}

export const forgottenTables = Object.entries<AnyTable>(schema).flatMap(([name, declared]) => {
  const { forgotten, isCached = false } = declared.facts
  const [key = ''] = keyOf(declared, 'sqlite')
  return forgotten ? [{ name, key, isCached, ...forgotten }] : []
})

export interface Forgotten {
  readonly erased: Erased
  /** Requests that may be of this person or of others with the same masked recipient. */
  readonly possibleRequests: number
  /**
   * `gaps`: the files may contain data overwritten earlier; `log`: also the data erased now, since another
   * process has the database open. `server`: the files belong to a database server.
   */
  readonly traces: 'nothing' | 'gaps' | 'log' | 'server'
}

/** A larger number would delay the requests of a running server. */
export const batch = 200

const scanBatch = 5000

export async function forgetRecipient(
  database: StoreDatabase,
  recipient: Recipient,
  subjects: readonly string[],
  { now, actor }: { readonly now: number; readonly actor: Actor },
): Promise<Omit<Forgotten, 'traces'>> {
  const { audit } = database.tables
  const { possibleRequests, ...events } = await eraseEvents(database, recipient, subjects)
  const jobs = await eraseJobs(database, recipient, subjects)
  const others = await ofEachTable(database.tables, recipient, subjects, (own) => deleteRows(database, own))
  const erased = { ...events, jobs, ...others }
  const entry = auditRow({
    at: now,
    actor,
    action: 'data.forgotten',
    target: 'recipient',
    details: Object.fromEntries(Object.entries(erased).map(([what, rows]) => [what, String(rows)])),
  })
  await database.write(database.orm.insert(audit).values(entry))
  return { erased, possibleRequests }
}

/** What `forgetRecipient` would erase. */
export function createRecipientCounter({ orm, tables }: Pick<StoreDatabase, 'orm' | 'tables'>) {
  const { attempts, deliveryReports, notifyJobs, requests } = tables
  const { outcome, reportKey } = requests
  const rows = async (table: Table, isWanted: SQL | undefined) => {
    const [counted] = await orm.select({ rows: count() }).from(table).where(isWanted)
    return counted?.rows ?? 0
  }
  return async (recipient: Recipient, subjects: readonly string[]): Promise<Omit<Forgotten, 'traces'>> => {
    const hashes = [...subjects]
    const [first, further] = await Promise.all([
      orm
        .select({ recipients: requests.recipients, outcome, reportKey })
        .from(requests)
        .where(inArray(requests.recipientHash, hashes)),
      orm
        .select({ reportKey: attempts.reportKey })
        .from(attempts)
        .where(inArray(attempts.recipientHash, hashes)),
    ])
    const sent = first.filter((row) => row.outcome !== null)
    const keys = [...sent, ...further].map((row) => row.reportKey).filter((key) => key !== null)
    return {
      erased: {
        requests: first.length - sent.filter((row) => (row.recipients ?? 1) > 1).length,
        deliveries: sent.length + further.length,
        deliveryReports: await rows(deliveryReports, inArray(deliveryReports.key, keys)),
        jobs: await rows(notifyJobs, inArray(notifyJobs.recipientHash, hashes)),
        ...(await ofEachTable(tables, recipient, subjects, ({ table, isOwn }) => rows(table, isOwn))),
      },
      possibleRequests: await rows(requests, isPossibly(tables, recipient)),
    }
  }
}

/** The rows of a recipient in one table. */
interface OwnRows {
  readonly table: Table
  readonly key: Column
  readonly isOwn: SQL
  readonly isCached: boolean
}

async function ofEachTable(
  tables: Tables,
  { to }: Recipient,
  subjects: readonly string[],
  act: (own: OwnRows) => Promise<number>,
): Promise<Readonly<Record<string, number>>> {
  const done: Record<string, number> = {}
  for (const { name, key: keyName, by, is, isCached } of forgottenTables) {
    const table = Object.entries<Table>(tables).find(([each]) => each === name)?.[1]
    const { [by]: column, [keyName]: key } = table ? getTableColumns(table) : {}
    if (!table || !column || !key) throw new Error(`the table ${name} is not in this store`)
    const isOwn = is === 'hash' ? inArray(column, [...subjects]) : eq(column, to)
    done[name] = await act({ table, key, isOwn, isCached })
  }
  return done
}

/** Requests that may be of this person, or of others with the same masked recipient. */
function isPossibly({ requests }: Pick<Tables, 'requests'>, recipient: Recipient): SQL | undefined {
  return and(
    isNull(requests.recipientHash),
    eq(requests.recipient, mask(recipient)),
    isNull(requests.outcome),
  )
}

type Events = Tables['requests' | 'attempts']
type ErasedEvents = Pick<Erased, 'requests' | 'deliveries' | 'deliveryReports'>

/**
 * Reads all requests, since those without an attempt have no index by recipient. A request to several recipients
 * loses only its attempts to this person.
 */
async function eraseEvents(
  { orm, tables, transaction }: StoreDatabase,
  recipient: Recipient,
  hashes: readonly string[],
): Promise<ErasedEvents & { readonly possibleRequests: number }> {
  const { requests, attempts, deliveryReports } = tables
  const masked = mask(recipient)
  const isPossible = isPossibly(tables, recipient)
  const erased = { requests: 0, deliveries: 0, deliveryReports: 0, possibleRequests: 0 }
  for (let after = ''; ; ) {
    const [last] = await orm
      .select({ requestId: requests.requestId })
      .from(requests)
      .where(gt(requests.requestId, after))
      .orderBy(requests.requestId)
      .limit(1)
      .offset(scanBatch - 1)
    const isIn = ({ requestId }: Events) => and(gt(requestId, after), last && lte(requestId, last.requestId))
    const isOwn = (table: Events) => and(isIn(table), inArray(table.recipientHash, [...hashes]))
    const possible = and(isIn(requests), isPossible)
    const [counted] = await orm.select({ rows: count() }).from(requests).where(possible)
    erased.possibleRequests += counted?.rows ?? 0
    for (const [table, step] of [
      [attempts, furtherAttempts],
      [requests, ownRequests],
    ] as const) {
      for (;;) {
        // Found before the transaction, for which requests wait.
        const { requestId } = table
        const found = await orm.select({ requestId }).from(table).where(isOwn(table)).limit(batch)
        if (found.length === 0) break
        const ids = found.map((row) => row.requestId)
        const rows = await transaction(step(and(inArray(requestId, ids), isOwn(table)), ids))
        erased.requests += rows.requests
        erased.deliveries += rows.deliveries
        erased.deliveryReports += rows.deliveryReports
      }
    }
    if (last === undefined) return erased
    after = last.requestId
  }

  function furtherAttempts(isOwn: SQL | undefined, ids: readonly string[]) {
    const { reportKey } = attempts
    return function* (orm: Orm): StatementSteps<ErasedEvents> {
      const removed = yield* run(orm.delete(attempts).where(isOwn).returning({ reportKey }))
      yield* eraseWebhookEvents(orm, tables, ids, masked)
      return { requests: 0, deliveries: removed.length, deliveryReports: yield* reportsOf(orm, removed) }
    }
  }

  function ownRequests(isOwn: SQL | undefined) {
    const { requestId, recipients, outcome, reportKey } = requests
    const columns = { requestId, recipients, outcome, reportKey }
    return function* (orm: Orm): StatementSteps<ErasedEvents> {
      const some = yield* run(orm.select(columns).from(requests).where(isOwn))
      const sent = some.filter((row) => row.outcome !== null)
      const shared = sent.filter((row) => (row.recipients ?? 1) > 1).map((row) => row.requestId)
      const own = some.map((row) => row.requestId).filter((id) => !shared.includes(id))
      yield* run(orm.delete(requests).where(inArray(requestId, own)))
      yield* run(orm.update(requests).set(noAttempt).where(inArray(requestId, shared)))
      yield* eraseWebhookEvents(orm, tables, [...own, ...shared], masked)
      return {
        requests: own.length,
        deliveries: sent.length,
        deliveryReports: yield* reportsOf(orm, sent),
      }
    }
  }

  function* reportsOf(
    orm: Orm,
    rows: readonly { readonly reportKey: string | null }[],
  ): StatementSteps<number> {
    const { key } = deliveryReports
    const keys = rows.map(({ reportKey }) => reportKey).filter((each) => each !== null)
    const removed = yield* run(orm.delete(deliveryReports).where(inArray(key, keys)).returning({ key }))
    return removed.length
  }
}

const noAttempt = {
  recipient: null,
  recipientHash: null,
  attemptAt: null,
  provider: null,
  outcome: null,
  attemptDurationMs: null,
  route: null,
  template: null,
  position: null,
  segments: null,
  encoding: null,
  errorClass: null,
  reason: null,
  providerMessageId: null,
  reportKey: null,
  country: null,
  lang: null,
} as const satisfies Partial<RequestRow>

/** The events of these requests about recipients with the same masked form. */
function eraseWebhookEvents(
  orm: Orm,
  { events }: Pick<Tables, 'events'>,
  requestIds: readonly string[],
  masked: string,
): StatementSteps<unknown> {
  const isOwn = and(inArray(events.requestId, [...requestIds]), eq(events.recipient, masked))
  return run(orm.delete(events).where(isOwn))
}

/** With the content of orders that have no other recipient. */
async function eraseJobs(
  { tables, transaction }: StoreDatabase,
  recipient: Recipient,
  hashes: readonly string[],
): Promise<number> {
  const { notifyJobs: jobs, notifyOrders: orders } = tables
  const isOwn = inArray(jobs.recipientHash, [...hashes])
  const { requestId } = jobs
  for (let erased = 0; ; ) {
    const rows = await transaction(function* (orm) {
      const some = yield* run(orm.select({ requestId }).from(jobs).where(isOwn).limit(batch))
      const ids = some.map((row) => row.requestId)
      const removed = yield* run(
        orm
          .delete(jobs)
          .where(and(inArray(requestId, ids), isOwn))
          .returning({ requestId }),
      )
      yield* eraseWebhookEvents(orm, tables, ids, mask(recipient))
      const isOther = sql`SELECT 1 FROM ${jobs} WHERE ${requestId} = ${orders.requestId} AND ${jobs.recipient} IS NOT NULL`
      yield* run(
        orm
          .update(orders)
          .set({ content: '' })
          .where(and(inArray(orders.requestId, ids), sql`NOT EXISTS (${isOther})`)),
      )
      return removed.length
    })
    if (rows === 0) return erased
    erased += rows
  }
}

/** In batches. A running server sees it at its next request. */
async function deleteRows(
  { orm, transaction, serialTransaction }: StoreDatabase,
  { table, key, isOwn, isCached }: OwnRows,
): Promise<number> {
  const [some] = await orm.select({ key }).from(table).where(isOwn).limit(1)
  if (!some) return 0
  const inTransaction = isCached ? serialTransaction : transaction
  for (let erased = 0; ; ) {
    const rows = await inTransaction(function* (inside) {
      const found = yield* run(inside.select({ key }).from(table).where(isOwn).limit(batch))
      const isOne = and(
        inArray(
          key,
          found.map((row) => row.key),
        ),
        isOwn,
      )
      return (yield* run(inside.delete(table).where(isOne).returning({ key }))).length
    })
    if (rows === 0) return erased
    erased += rows
  }
}
