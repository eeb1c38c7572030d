import { setTimeout as pause } from 'node:timers/promises'
import { and, eq, inArray, type SQL, sql } from 'drizzle-orm'
import { email, mask, type Recipient } from '../../domain/contact.ts'
import { hashOf } from '../../domain/events/event-log.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import { auditRow } from '../store/audit.ts'
import type { Erased, Forgotten } from '../store/store.ts'
import type { Database } from './database.ts'
import { audit, deliveries, deliveryReports, integrationRequests, ledgers, outbox, traces } from './schema.ts'

/** Rows removed, and pages given back, in one step: few enough that a server beside it doesn't wait noticeably. */
const batch = 200

/** Stories looked at in one go. */
const scanBatch = 5000

/** How long a moment is waited for in which nobody reads the log. */
const patienceMs = 3000

/**
 * Erases a person from log and records, beside a server that goes on. What is removed is overwritten. May be repeated,
 * also after it was interrupted: then it finds what is left.
 *
 * @param subjects the keyed hashes of the recipient under every secret
 */
export async function forget(
  database: Database,
  recipient: Recipient,
  subjects: readonly string[],
  { now, actor }: { readonly now: number; readonly actor: Actor },
): Promise<Forgotten> {
  const { orm, driver, writer, changes } = database
  driver.pragma('secure_delete = ON')
  const hashes = subjects.map(hashOf)

  const { requests, unclearRequests } = await eraseRequestTraces(database, recipient, hashes)
  const [erasedDeliveries, erasedReports] = await eraseDeliveries(database, hashes)
  const erasedLedgers = await writer.write(() => {
    changes.tell()
    return orm
      .delete(ledgers)
      .where(inArray(ledgers.subject, [...subjects]))
      .run().changes
  })
  const erased: Erased = {
    requests,
    deliveries: erasedDeliveries,
    deliveryReports: erasedReports,
    ledgers: erasedLedgers,
    messages: await eraseSome(
      database,
      sql`DELETE FROM ${outbox} WHERE id IN (SELECT id FROM ${outbox} WHERE ${eq(outbox.identity, recipient.identity)} LIMIT ${batch})`,
    ),
    integrationRequests:
      recipient.channel === 'EMAIL' ? await eraseIntegrationRequests(database, recipient) : 0,
  }
  await writer.write(() => {
    const entry = auditRow({
      at: now,
      actor,
      action: 'data.forgotten',
      target: 'recipient',
      details: Object.fromEntries(Object.entries(erased).map(([what, rows]) => [what, String(rows)])),
    })
    orm.insert(audit).values(entry).run()
  })
  return { erased, unclearRequests, traces: await eraseTraces(database) }
}

/** Removes stories that are of this person: first those that only the delivery log tells of, while it still does. */
async function eraseRequestTraces(
  { orm, writer }: Database,
  recipient: Recipient,
  hashes: readonly string[],
): Promise<{ requests: number; unclearRequests: number }> {
  let requests = 0
  const erase = async (ids: readonly string[]) => {
    for (let from = 0; from < ids.length; from += batch) {
      const some = inArray(traces.requestId, ids.slice(from, from + batch))
      requests += await writer.write(() => orm.delete(traces).where(some).run().changes)
    }
  }
  const own = inArray(deliveries.recipientHash, [...hashes])
  const ofDeliveries = orm
    .selectDistinct({ id: traces.requestId })
    .from(traces)
    .innerJoin(deliveries, eq(deliveries.requestId, traces.requestId))
    // One of several recipients is in the delivery log alone: the story has their number.
    .where(sql`${own} AND ${traces.trace} ->> '$[5]' IS NOT NULL`)
    .all()
  await erase(ofDeliveries.map(({ id }) => id))

  let unclearRequests = 0
  const masked = JSON.stringify(mask(recipient))
  const isOwn = sql.join(
    hashes.map((hash) => sql`instr(story, ${hash}) > 0`),
    sql` OR `,
  )
  for (let after = ''; ; ) {
    const [last] = orm.all<{ id: string }>(
      sql`SELECT request_id AS id FROM stories WHERE request_id > ${after} ORDER BY request_id LIMIT 1 OFFSET ${scanBatch - 1}`,
    )
    const range = last ? sql`request_id > ${after} AND request_id <= ${last.id}` : sql`request_id > ${after}`
    const found = orm.all<{ id: string; own: number; hash: string | null }>(
      sql`SELECT request_id AS id, ${isOwn} AS own, story ->> '$[9]' AS hash FROM stories
        WHERE ${range} AND (${isOwn} OR instr(story, ${masked}) > 0)`,
    )
    await erase(found.filter((trace) => trace.own === 1).map(({ id }) => id))
    unclearRequests += found.filter((trace) => trace.own === 0 && trace.hash === null).length
    if (!last) return { requests, unclearRequests }
    after = last.id
  }
}

/** Removes deliveries and what their receipts said; returns how many of each. */
async function eraseDeliveries(
  { orm, writer }: Database,
  hashes: readonly string[],
): Promise<readonly [deliveries: number, deliveryReports: number]> {
  for (let [erased, erasedReports] = [0, 0]; ; ) {
    const step = await writer.write(() => {
      const some = orm
        .select({ id: deliveries.requestId, attempt: deliveries.attempt, key: deliveries.reportKey })
        .from(deliveries)
        .where(inArray(deliveries.recipientHash, [...hashes]))
        .limit(batch)
        .all()
      const keys = some.flatMap(({ key }) => key ?? [])
      return {
        deliveryReports: orm.delete(deliveryReports).where(inArray(deliveryReports.key, keys)).run().changes,
        deliveries: some.reduce((sum, { id, attempt }) => {
          const own = and(eq(deliveries.requestId, id), eq(deliveries.attempt, attempt))
          return sum + orm.delete(deliveries).where(own).run().changes
        }, 0),
      }
    })
    if (step.deliveries === 0) return [erased, erasedReports]
    erased += step.deliveries
    erasedReports += step.deliveryReports
  }
}

async function eraseIntegrationRequests({ orm, writer }: Database, recipient: Recipient): Promise<number> {
  const ids = orm
    .select({ id: integrationRequests.id, contactEmail: integrationRequests.contactEmail })
    .from(integrationRequests)
    .all()
    .filter(({ contactEmail }) => email(contactEmail)?.identity === recipient.identity)
    .map(({ id }) => id)
  let erased = 0
  for (let from = 0; from < ids.length; from += batch) {
    const some = inArray(integrationRequests.id, ids.slice(from, from + batch))
    erased += await writer.write(() => orm.delete(integrationRequests).where(some).run().changes)
  }
  return erased
}

/** Runs a deletion of some rows until it finds no more; returns how many there were. */
async function eraseSome({ orm, writer }: Database, deletion: SQL): Promise<number> {
  for (let erased = 0; ; ) {
    const rows = await writer.write(() => orm.run(deletion).changes)
    if (rows === 0) return erased
    erased += rows
  }
}

/** Removes what was erased from where nothing refers to it any more: unused pages, and the log. */
async function eraseTraces({ driver, writer }: Database): Promise<Forgotten['traces']> {
  const unusedPages = () => Number(driver.pragma('freelist_count', { simple: true }))
  for (let [before, left] = [Number.POSITIVE_INFINITY, unusedPages()]; left > 0 && left < before; ) {
    before = left
    // Not by a prepared statement: of those the driver takes the first step only, which is one page.
    left = await writer.write(() => {
      driver.exec(`PRAGMA incremental_vacuum(${batch})`)
      return unusedPages()
    })
  }
  // The bulk of it while nobody has to wait.
  driver.pragma('wal_checkpoint(PASSIVE)')
  if (writeAnew(driver)) return 'nothing'
  const giveUpAt = performance.now() + patienceMs
  while (performance.now() < giveUpAt) {
    if (isLogEmptied(driver)) return 'gaps'
    await pause(20)
  }
  return 'log'
}

/** Where no other process has the database open: writes all of its file anew, since earlier changes left traces too. */
function writeAnew(driver: Database['driver']): boolean {
  try {
    // Succeeds only for a process that is alone.
    driver.pragma('journal_mode = DELETE')
  } catch {
    return false
  }
  try {
    driver.exec('VACUUM')
    return true
  } catch {
    // On a full disk, for one; what was to be erased is.
    return false
  } finally {
    driver.pragma('journal_mode = WAL')
  }
}

/** Folds the log back and cuts it to nothing, where nobody reads or writes it at this moment. */
function isLogEmptied(driver: Database['driver']): boolean {
  try {
    const [result] = driver.pragma('wal_checkpoint(TRUNCATE)') as readonly { busy: number }[]
    return result?.busy === 0
  } catch {
    return false
  }
}
