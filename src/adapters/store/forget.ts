import {
  and,
  type Column,
  count,
  gt,
  inArray,
  isNotNull,
  isNull,
  lte,
  type SQL,
  type Table,
} from 'drizzle-orm'
import { mask, type Recipient } from '../../domain/contact.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import { auditRow } from './audit.ts'
import type { StoreDatabase } from './database.ts'
import type { RequestRow } from './event-rows.ts'
import { type Orm, run, type Steps } from './statements.ts'
import type { Erased, Forgotten } from './store.ts'

/** A larger number would delay the requests of a running server. */
const batch = 200

const scanBatch = 5000

export async function forgetRecipient(
  database: StoreDatabase,
  recipients: readonly Recipient[],
  subjects: readonly string[],
  { now, actor }: { readonly now: number; readonly actor: Actor },
): Promise<Omit<Forgotten, 'traces'>> {
  const { audit, codesAndLimits, outbox } = database.tables
  const { subject } = codesAndLimits
  const identities = recipients.map(({ identity }) => identity)
  const { requests: withoutAttempt, possibleRequests } = await eraseWithoutAttempt(
    database,
    recipients,
    subjects,
  )
  const events = await eraseAttempts(database, subjects)
  const erased: Erased = {
    ...events,
    requests: withoutAttempt + events.requests,
    codesAndLimits: await deleteWhere(database, codesAndLimits, subject, inArray(subject, [...subjects])),
    messages: await deleteWhere(database, outbox, outbox.id, inArray(outbox.identity, identities)),
    integrationRequests: await eraseIntegrationRequests(database, identities),
  }
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

/** Requests have no index by recipient, so all are read. */
async function eraseWithoutAttempt(
  database: StoreDatabase,
  recipients: readonly Recipient[],
  hashes: readonly string[],
): Promise<{ readonly requests: number; readonly possibleRequests: number }> {
  const { orm, tables } = database
  const { requests } = tables
  const { requestId, recipientHash } = requests
  const isPossible = and(isNull(recipientHash), inArray(requests.recipient, recipients.map(mask)))
  let [erased, possibleRequests] = [0, 0]
  for (let after = ''; ; ) {
    const [last] = await orm
      .select({ requestId })
      .from(requests)
      .where(gt(requestId, after))
      .orderBy(requestId)
      .limit(1)
      .offset(scanBatch - 1)
    const isIn = and(gt(requestId, after), last && lte(requestId, last.requestId), isNull(requests.outcome))
    const [possible] = await orm.select({ rows: count() }).from(requests).where(and(isIn, isPossible))
    possibleRequests += possible?.rows ?? 0
    const isOwn = and(isIn, inArray(recipientHash, [...hashes]))
    erased += await deleteWhere(database, requests, requestId, isOwn)
    if (last === undefined) return { requests: erased, possibleRequests }
    after = last.requestId
  }
}

type ErasedEvents = Pick<Erased, 'requests' | 'deliveries' | 'deliveryReports'>

/** A request to several recipients loses only its attempts to this person. */
async function eraseAttempts(
  { tables, transaction }: StoreDatabase,
  hashes: readonly string[],
): Promise<ErasedEvents> {
  const { requests, attempts, deliveryReports } = tables
  const isOwnAttempt = inArray(attempts.recipientHash, [...hashes])
  const isOwnRequest = and(inArray(requests.recipientHash, [...hashes]), isNotNull(requests.outcome))
  let erased: ErasedEvents = { requests: 0, deliveries: 0, deliveryReports: 0 }
  for (const step of [furtherAttempts, firstAttempts]) {
    for (;;) {
      const rows = await transaction(step)
      if (rows.deliveries === 0) break
      erased = {
        requests: erased.requests + rows.requests,
        deliveries: erased.deliveries + rows.deliveries,
        deliveryReports: erased.deliveryReports + rows.deliveryReports,
      }
    }
  }
  return erased

  function* furtherAttempts(orm: Orm): Steps<ErasedEvents> {
    const { requestId, reportKey } = attempts
    const some = yield* run(orm.select({ requestId }).from(attempts).where(isOwnAttempt).limit(batch))
    const ids = some.map((row) => row.requestId)
    const isOne = and(inArray(requestId, ids), isOwnAttempt)
    const removed = yield* run(orm.delete(attempts).where(isOne).returning({ reportKey }))
    return { requests: 0, deliveries: removed.length, deliveryReports: yield* reportsOf(orm, removed) }
  }

  function* firstAttempts(orm: Orm): Steps<ErasedEvents> {
    const { requestId, recipients, reportKey } = requests
    const columns = { requestId, recipients, reportKey }
    const some = yield* run(orm.select(columns).from(requests).where(isOwnRequest).limit(batch))
    const shared = some.filter((row) => (row.recipients ?? 1) > 1).map((row) => row.requestId)
    const own = some.map((row) => row.requestId).filter((id) => !shared.includes(id))
    yield* run(orm.delete(requests).where(inArray(requestId, own)))
    yield* run(orm.update(requests).set(noAttempt).where(inArray(requestId, shared)))
    return {
      requests: own.length,
      deliveries: some.length,
      deliveryReports: yield* reportsOf(orm, some),
    }
  }

  function* reportsOf(orm: Orm, rows: readonly { readonly reportKey: string | null }[]): Steps<number> {
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
} as const satisfies Partial<RequestRow>

async function eraseIntegrationRequests(
  database: StoreDatabase,
  identities: readonly string[],
): Promise<number> {
  const { integrationRequests } = database.tables
  const { id, contactEmail } = integrationRequests
  const all = await database.orm.select({ id, contactEmail }).from(integrationRequests)
  // Earlier versions stored e-mail addresses as written.
  const own = all.filter((request) => identities.includes(request.contactEmail.toLowerCase()))
  const ids = own.map((request) => request.id)
  return deleteWhere(database, integrationRequests, id, inArray(id, ids))
}

async function deleteWhere(
  { transaction }: StoreDatabase,
  table: Table,
  key: Column,
  isWanted: SQL | undefined,
): Promise<number> {
  for (let erased = 0; ; ) {
    const rows = await transaction(function* (orm) {
      const some = yield* run(orm.select({ key }).from(table).where(isWanted).limit(batch))
      const keys = some.map((row) => row.key)
      const removed = yield* run(
        orm
          .delete(table)
          .where(and(inArray(key, keys), isWanted))
          .returning({ key }),
      )
      return removed.length
    })
    if (rows === 0) return erased
    erased += rows
  }
}
