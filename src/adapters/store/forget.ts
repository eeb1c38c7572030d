import {
  and,
  type Column,
  eq,
  gt,
  inArray,
  isNotNull,
  isNull,
  lte,
  or,
  type SQL,
  sql,
  type Table,
} from 'drizzle-orm'
import { email, mask, type Recipient } from '../../domain/contact.ts'
import { hashOf } from '../../domain/events/event-log.ts'
import type { Actor, AuditEntry } from '../../domain/operator/audit.ts'
import type { AttemptRow, ColumnsOf, RequestRow } from './event-log.ts'
import type { Erased, Forgotten } from './store.ts'

/** Rows changed in one step: few enough that a server beside it doesn't wait noticeably. */
const batch = 200

/** Requests looked at in one step. */
const scanBatch = 5000

/** What `forget` needs of a database. */
export interface ForgetDatabase {
  readonly requests: Table & ColumnsOf<RequestRow>
  readonly attempts: Table & ColumnsOf<AttemptRow>
  readonly deliveryReports: Table & Readonly<Record<'key', Column>>
  readonly ledgers: Table & Readonly<Record<'subject', Column>>
  readonly outbox: Table & Readonly<Record<'id' | 'identity', Column>>
  readonly integrationRequests: Table & Readonly<Record<'id' | 'contactEmail', Column>>
  /** The rows of a query, as arrays. */
  read(query: SQL): Promise<readonly (readonly unknown[])[]>
  /** Runs statements in one atomic step; resolves to how many rows each changed. */
  change(...statements: readonly SQL[]): Promise<readonly number[]>
  audit(entry: Omit<AuditEntry, 'id'>): Promise<void>
}

/**
 * Erases a person from event log and records (`Storage.forget`).
 *
 * @param subjects the keyed hashes of the recipient under every secret
 */
export async function forgetRecipient(
  database: ForgetDatabase,
  recipient: Recipient,
  subjects: readonly string[],
  { now, actor }: { readonly now: number; readonly actor: Actor },
): Promise<Omit<Forgotten, 'traces'>> {
  const hashes = subjects.map(hashOf)
  const { ledgers, outbox } = database
  const ofOutbox = sql`SELECT ${outbox.id} FROM ${outbox} WHERE ${eq(outbox.identity, recipient.identity)} LIMIT ${sql.raw(String(batch))}`
  const { requests: withoutAttempt, unclearRequests } = await eraseWithoutAttempt(database, recipient, hashes)
  const events = await eraseAttempts(database, hashes)
  const [erasedLedgers = 0] = await database.change(
    sql`DELETE FROM ${ledgers} WHERE ${inArray(ledgers.subject, [...subjects])}`,
  )
  const erased: Erased = {
    ...events,
    requests: withoutAttempt + events.requests,
    ledgers: erasedLedgers,
    messages: await untilNone(() => database.change(sql`DELETE FROM ${outbox} WHERE id IN (${ofOutbox})`)),
    integrationRequests:
      recipient.channel === 'EMAIL' ? await eraseIntegrationRequests(database, recipient) : 0,
  }
  await database.audit({
    at: now,
    actor,
    action: 'data.forgotten',
    target: 'recipient',
    details: Object.fromEntries(Object.entries(erased).map(([what, rows]) => [what, String(rows)])),
  })
  return { erased, unclearRequests }
}

/** Removes this person's requests that led to no message; there is no index of them. */
async function eraseWithoutAttempt(
  { requests, read, change }: ForgetDatabase,
  recipient: Recipient,
  hashes: readonly string[],
): Promise<{ readonly requests: number; readonly unclearRequests: number }> {
  const { requestId, recipientHash } = requests
  const isOwn = inArray(recipientHash, [...hashes])
  const isUnclear = and(isNull(recipientHash), eq(requests.recipient, mask(recipient)))
  let [erased, unclearRequests] = [0, 0]
  for (let after = ''; ; ) {
    const [[last] = []] = await read(
      sql`SELECT ${requestId} FROM ${requests} WHERE ${gt(requestId, after)} ORDER BY ${requestId} LIMIT 1 OFFSET ${sql.raw(String(scanBatch - 1))}`,
    )
    const until = typeof last === 'string' ? last : undefined
    const range = and(gt(requestId, after), until === undefined ? undefined : lte(requestId, until))
    const found = await read(
      sql`SELECT ${requestId}, ${recipientHash} FROM ${requests} WHERE ${and(range, isNull(requests.outcome), or(isOwn, isUnclear))}`,
    )
    const own = found.filter(([, hash]) => hash !== null).map(([id]) => String(id))
    unclearRequests += found.length - own.length
    for (let from = 0; from < own.length; from += batch) {
      const some = inArray(requestId, own.slice(from, from + batch))
      const [rows = 0] = await change(sql`DELETE FROM ${requests} WHERE ${some}`)
      erased += rows
    }
    if (until === undefined) return { requests: erased, unclearRequests }
    after = until
  }
}

/** Removes messages to this person, their requests and reports; a request to others as well loses its attempts alone. */
async function eraseAttempts(
  { requests, attempts, deliveryReports, read, change }: ForgetDatabase,
  hashes: readonly string[],
): Promise<Pick<Erased, 'requests' | 'deliveries' | 'deliveryReports'>> {
  const some = sql.raw(`LIMIT ${batch}`)
  const reports = (rows: readonly (readonly unknown[])[]) => {
    const keys = rows.flatMap(([, , key]) => (typeof key === 'string' ? [key] : []))
    return sql`DELETE FROM ${deliveryReports} WHERE ${inArray(deliveryReports.key, keys)}`
  }
  const sum = { requests: 0, deliveries: 0, deliveryReports: 0 }
  for (;;) {
    const rows = await read(
      sql`SELECT ${attempts.requestId}, ${attempts.attempt}, ${attempts.reportKey} FROM ${attempts}
        WHERE ${inArray(attempts.recipientHash, [...hashes])} ${some}`,
    )
    if (rows.length === 0) break
    const places = rows.map(([id, attempt]) => sql`(${id}, CAST(${attempt} AS integer))`)
    const [ofReports = 0, deliveries = 0] = await change(
      reports(rows),
      sql`DELETE FROM ${attempts} WHERE (request_id, attempt) IN (VALUES ${sql.join(places, sql`, `)})`,
    )
    sum.deliveryReports += ofReports
    sum.deliveries += deliveries
  }
  const isOwn = and(inArray(requests.recipientHash, [...hashes]), isNotNull(requests.outcome))
  for (;;) {
    const rows = await read(
      sql`SELECT ${requests.requestId}, ${requests.recipients}, ${requests.reportKey} FROM ${requests}
        WHERE ${isOwn} ${some}`,
    )
    if (rows.length === 0) return sum
    const ids = (isOf: (recipients: number) => boolean) =>
      inArray(
        requests.requestId,
        rows.filter(([, recipients]) => isOf(Number(recipients ?? 1))).map(([id]) => String(id)),
      )
    const [ofReports = 0, removed = 0, blanked = 0] = await change(
      reports(rows),
      sql`DELETE FROM ${requests} WHERE ${ids((recipients) => recipients === 1)}`,
      sql`UPDATE ${requests} SET ${blank(requests)} WHERE ${ids((recipients) => recipients > 1)}`,
    )
    sum.deliveryReports += ofReports
    sum.requests += removed
    sum.deliveries += removed + blanked
  }
}

/** The columns of a first attempt, and whose it was. */
const ofFirstAttempt = [
  'recipient',
  'recipientHash',
  'attemptAt',
  'provider',
  'outcome',
  'attemptDurationMs',
  'route',
  'template',
  'position',
  'segments',
  'encoding',
  'errorClass',
  'reason',
  'providerMessageId',
  'reportKey',
] as const satisfies readonly (keyof RequestRow)[]

function blank(requests: ColumnsOf<RequestRow>): SQL {
  const columns = ofFirstAttempt.map((name) => sql`${sql.identifier(requests[name].name)} = NULL`)
  return sql.join(columns, sql`, `)
}

async function eraseIntegrationRequests(
  { integrationRequests, read, change }: ForgetDatabase,
  recipient: Recipient,
): Promise<number> {
  const { id, contactEmail } = integrationRequests
  const all = await read(sql`SELECT ${id}, ${contactEmail} FROM ${integrationRequests}`)
  const ids = all
    .filter(([, address]) => email(address)?.identity === recipient.identity)
    .map(([own]) => String(own))
  let erased = 0
  while (ids.length > 0) {
    const [rows = 0] = await change(
      sql`DELETE FROM ${integrationRequests} WHERE ${inArray(id, ids.splice(0, batch))}`,
    )
    erased += rows
  }
  return erased
}

/** Repeats a deletion of some rows until it finds no more; resolves to how many there were. */
async function untilNone(deletion: () => Promise<readonly number[]>): Promise<number> {
  for (let erased = 0; ; ) {
    const [rows = 0] = await deletion()
    if (rows === 0) return erased
    erased += rows
  }
}
