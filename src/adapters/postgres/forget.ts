import { and, eq, inArray, type SQL, sql } from 'drizzle-orm'
import { email, mask, type Recipient } from '../../domain/contact.ts'
import { hashOf } from '../../domain/events/event-log.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import { auditRow } from '../store/audit.ts'
import type { Erased, Forgotten } from '../store/store.ts'
import { type Database, ormOn } from './database.ts'
import { audit, deliveries, deliveryReports, integrationRequests } from './schema.ts'
import { deletedBy } from './sweep.ts'

/** Rows removed in one statement: few enough that a server beside it doesn't wait noticeably. */
const batch = 200

/** Stories looked at in one go. */
const scanBatch = 5000

/** Erases a person from log and records, beside servers that go on (`Storage.forget`). */
export async function forget(
  database: Pick<Database, 'orm' | 'pool'>,
  recipient: Recipient,
  subjects: readonly string[],
  { now, actor }: { readonly now: number; readonly actor: Actor },
): Promise<Forgotten> {
  const { orm } = database
  const hashes = subjects.map(hashOf)
  const { requests, unclearRequests } = await eraseRequestTraces(database, recipient, hashes)
  const [erasedDeliveries, erasedReports] = await eraseDeliveries(database, hashes)
  let ledgers = 0
  for (const subject of subjects)
    ledgers += await deletedBy(orm, sql`DELETE FROM ledgers WHERE subject = ${subject}`)
  const erased: Erased = {
    requests,
    deliveries: erasedDeliveries,
    deliveryReports: erasedReports,
    ledgers,
    messages: await eraseSome(
      orm,
      sql`DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE identity = ${recipient.identity} LIMIT ${sql.raw(String(batch))})`,
    ),
    integrationRequests: recipient.channel === 'EMAIL' ? await eraseIntegrationRequests(orm, recipient) : 0,
  }
  const entry = auditRow({
    at: now,
    actor,
    action: 'data.forgotten',
    target: 'recipient',
    details: Object.fromEntries(Object.entries(erased).map(([what, rows]) => [what, String(rows)])),
  })
  await orm.insert(audit).values(entry)
  return { erased, unclearRequests, traces: 'server' }
}

/** Removes stories that are of this person: first those that only the delivery log tells of, while it still does. */
async function eraseRequestTraces(
  { orm, pool }: Pick<Database, 'orm' | 'pool'>,
  recipient: Recipient,
  hashes: readonly string[],
): Promise<{ requests: number; unclearRequests: number }> {
  let requests = 0
  const erase = async (ids: readonly (readonly [app: string, requestId: string])[]) => {
    for (const [app, id] of ids) {
      requests += await deletedBy(orm, sql`DELETE FROM stories WHERE app = ${app} AND request_id = ${id}`)
    }
  }
  const ofDeliveries = await pool.rows(
    // One of several recipients is in the delivery log alone: the story has their number.
    `SELECT DISTINCT stories.app, stories.request_id FROM stories JOIN deliveries USING (request_id)
      WHERE deliveries.recipient_hash = ANY ($1::text[]) AND stories.story ->> 5 IS NOT NULL`,
    [hashes],
  )
  await erase(ofDeliveries.map(([app, id]) => [String(app), String(id)]))

  let unclearRequests = 0
  const masked = mask(recipient)
  for (let after = ''; ; ) {
    const found = await pool.rows(
      `SELECT request_id, app, story ->> 9 = ANY ($2::text[]), story ->> 9 IS NULL AND story ->> 5 = $3 FROM stories
        WHERE request_id > $1 ORDER BY request_id LIMIT ${scanBatch}`,
      [after, hashes, masked],
    )
    await erase(found.filter(([, , isOwn]) => isOwn === true).map(([id, app]) => [String(app), String(id)]))
    unclearRequests += found.filter(([, , , isUnclear]) => isUnclear === true).length
    const last = found.at(-1)
    if (!last || found.length < scanBatch) return { requests, unclearRequests }
    after = String(last[0])
  }
}

/** Removes deliveries and what their receipts said; resolves to how many of each. */
async function eraseDeliveries(
  { pool }: Pick<Database, 'pool'>,
  hashes: readonly string[],
): Promise<readonly [deliveries: number, deliveryReports: number]> {
  for (let [erased, erasedReports] = [0, 0]; ; ) {
    const step = await pool.transaction(async (connection) => {
      const inside = ormOn(connection)
      const some = await inside
        .select({
          hash: deliveries.recipientHash,
          id: deliveries.requestId,
          attempt: deliveries.attempt,
          key: deliveries.reportKey,
        })
        .from(deliveries)
        .where(inArray(deliveries.recipientHash, [...hashes]))
        .limit(batch)
      const keys = some.flatMap(({ key }) => key ?? [])
      const gone =
        keys.length === 0
          ? []
          : await inside
              .delete(deliveryReports)
              .where(inArray(deliveryReports.key, keys))
              .returning({ key: deliveryReports.key })
      for (const { hash, id, attempt } of some) {
        await inside
          .delete(deliveries)
          .where(
            and(
              eq(deliveries.recipientHash, hash),
              eq(deliveries.requestId, id),
              eq(deliveries.attempt, attempt),
            ),
          )
      }
      return { deliveries: some.length, deliveryReports: gone.length }
    })
    if (step.deliveries === 0) return [erased, erasedReports]
    erased += step.deliveries
    erasedReports += step.deliveryReports
  }
}

async function eraseIntegrationRequests(orm: Database['orm'], recipient: Recipient): Promise<number> {
  const all = await orm
    .select({ id: integrationRequests.id, contactEmail: integrationRequests.contactEmail })
    .from(integrationRequests)
  let erased = 0
  for (const { id, contactEmail } of all) {
    if (email(contactEmail)?.identity !== recipient.identity) continue
    erased += await deletedBy(orm, sql`DELETE FROM integration_requests WHERE id = ${id}`)
  }
  return erased
}

/** Runs a deletion of some rows until it finds no more; resolves to how many there were. */
async function eraseSome(orm: Database['orm'], deletion: SQL): Promise<number> {
  for (let erased = 0; ; ) {
    const rows = await deletedBy(orm, deletion)
    if (rows === 0) return erased
    erased += rows
  }
}
