import { and, desc, eq, getTableColumns, gte, inArray, sql } from 'drizzle-orm'
import type { Attempt, Standing } from '../../domain/call.ts'
import {
  type Delivery,
  type DeliveryQuery,
  hashOf,
  type JournalReader,
  type Operation,
  type Story,
} from '../../domain/journal.ts'
import { type ReceiptBook, type ReceiptState, receiptRanks } from '../../domain/receipts.ts'
import { isVerified, receiptTally, verifiedTallies } from '../../domain/tallies.ts'
import { otpTemplateKeys } from '../../domain/templates.ts'
import type { Database } from './database.ts'
import { deliveries, receipts, stories } from './schema.ts'
import { Tallies, type TallyCount, tallyTable } from './tallies.ts'

/** What the journal keeps of a request, as plain data that is written as it is: by position, since there are many. */
export type JournalEntry = readonly [
  requestId: string,
  story: StoredStory,
  attempts: readonly (readonly (string | number | null)[])[],
]

/** The journal as a database keeps it. */
export interface JournalBook extends JournalReader, ReceiptBook {
  /**
   * Keeps these requests, or replaces what was kept of them, adds their attempts, and counts what happened; one atomic
   * step. A right code is counted here, with the message that it came by.
   */
  keepEntries(entries: readonly JournalEntry[], counts: readonly TallyCount[]): Promise<void>
}

/** Stories, the delivery log and receipts in SQLite. */
export function createJournalBook({ orm, driver, writer }: Database): JournalBook {
  const write = prepareWrites({ orm, driver })
  const tallies = tallyTable({ driver })
  return {
    keepEntries: (entries, counts) =>
      writer.write(() => {
        const counted = new Tallies()
        for (const [requestId, stored, attempts] of entries) {
          write.story.run(requestId, JSON.stringify(stored))
          for (const attempt of attempts) write.delivery.run(...attempt)
          if (stored[1] !== 'verify') continue
          const story = storyOf(requestId, stored)
          if (!isVerified(story)) continue
          const sent = write.lastCode.get(story.recipientSubject ?? '', story.brand ?? '')
          for (const tally of verifiedTallies(story, sent)) counted.add(story.at, tally)
        }
        tallies.add([...counts, ...counted.take()])
      }),
    keepReceipts: (provider, news) =>
      writer.write(() => {
        const counted = new Tallies()
        for (const [key, { status, reason, at }] of news) {
          const before = write.receiptBefore.get(key)
          const { changes } = write.receipt.run(key, status, reason, at)
          // A vendor may say the same again and again, and take back that a message failed.
          if (changes === 0) continue
          const [was, is] = [before && receiptTally(provider, before.status), receiptTally(provider, status)]
          if (before && was) counted.add(before.at, was, -1)
          if (is) counted.add(at, is)
        }
        tallies.add(counted.take())
      }),
    lastProviderOf: async (recipientSubjects, brandSlug) =>
      orm
        .select({ provider: deliveries.provider })
        .from(deliveries)
        .where(
          and(
            inArray(deliveries.recipientHash, recipientSubjects.map(hashOf)),
            eq(deliveries.brand, brandSlug),
            eq(deliveries.channel, 'SMS'),
            inArray(deliveries.outcome, ['accepted', 'unknown']),
            inArray(deliveries.template, [...otpTemplateKeys]),
          ),
        )
        .orderBy(desc(deliveries.requestId), desc(deliveries.attempt))
        .limit(1)
        .get()?.provider,
    story: async (requestId) => {
      const row = orm.select().from(stories).where(eq(stories.requestId, requestId)).get()
      return row && storyOf(row.requestId, JSON.parse(row.story))
    },
    deliveries: async ({ requestId, recipientSubjects, since, before, limit }: DeliveryQuery) =>
      orm
        .select({ ...getTableColumns(deliveries), receipt: receipts })
        .from(deliveries)
        .leftJoin(receipts, eq(receipts.key, deliveries.receiptKey))
        .where(
          and(
            requestId === undefined ? undefined : eq(deliveries.requestId, requestId),
            recipientSubjects && inArray(deliveries.recipientHash, recipientSubjects.map(hashOf)),
            since === undefined ? undefined : gte(deliveries.requestId, firstIdOf(since)),
            before &&
              sql`(${deliveries.requestId}, ${deliveries.attempt}) < (${before.requestId}, ${before.attempt})`,
          ),
        )
        .orderBy(desc(deliveries.requestId), desc(deliveries.attempt))
        .limit(limit)
        .all()
        .map(toDelivery)
        .reverse(),
  }
}

/** The least id that a request of this instant may have: the 48 bits of its time, and nothing else. */
export function firstIdOf(epochMs: number): string {
  const hex = Math.max(0, Math.floor(epochMs)).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-`
}

/** When a request came, by its id: epoch milliseconds. */
export function timeOfId(requestId: string): number {
  return Number.parseInt(requestId.replace('-', '').slice(0, 12), 16)
}

/** Made by Drizzle, run without it: one of each goes with every message. */
function prepareWrites({ orm, driver }: Pick<Database, 'orm' | 'driver'>) {
  const insertStory = orm
    .insert(stories)
    .values({ requestId: '', story: '' })
    .onConflictDoUpdate({ target: stories.requestId, set: { story: sql`excluded.story` } })
    .toSQL()
  const columns = deliveryColumns.map((column) => column.name)
  const insertDelivery = `INSERT OR REPLACE INTO deliveries (${columns.join()}) VALUES (${columns.map(() => '?').join()})`
  const rank = (column: string) =>
    `CASE ${column} ${Object.entries(receiptRanks)
      .map(([status, value]) => `WHEN '${status}' THEN ${value}`)
      .join(' ')} END`
  const insertReceipt = `INSERT INTO receipts (key, status, reason, at) VALUES (?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET status = excluded.status, reason = excluded.reason, at = excluded.at
    WHERE ${rank('excluded.status')} > ${rank('receipts.status')}`
  return {
    lastCode: driver.prepare<[string, string], { provider: string; at: number }>(
      `SELECT provider, at FROM deliveries WHERE recipient_hash = ? AND brand = ? AND outcome IN ('accepted', 'unknown')
       AND template IN (${otpTemplateKeys.map((key) => `'${key}'`).join()}) ORDER BY request_id DESC, attempt DESC LIMIT 1`,
    ),
    receiptBefore: driver.prepare<[string], Pick<ReceiptState, 'status' | 'at'>>(
      'SELECT status, at FROM receipts WHERE key = ?',
    ),
    receipt: driver.prepare<[string, string, string | null, number]>(insertReceipt),
    story: driver.prepare<[string, string]>(insertStory.sql),
    delivery: driver.prepare<(string | number | null)[]>(insertDelivery),
  }
}

/** The columns of an attempt, in the order in which `journalEntry` gives them. */
const deliveryColumns = [
  deliveries.requestId,
  deliveries.attempt,
  deliveries.at,
  deliveries.app,
  deliveries.brand,
  deliveries.channel,
  deliveries.route,
  deliveries.provider,
  deliveries.template,
  deliveries.recipientHash,
  deliveries.recipient,
  deliveries.position,
  deliveries.segments,
  deliveries.encoding,
  deliveries.outcome,
  deliveries.errorClass,
  deliveries.reason,
  deliveries.vendorId,
  deliveries.receiptKey,
  deliveries.durationMs,
]

/** A request as the journal keeps it. */
export function journalEntry(story: Story, attempts: readonly Attempt[]): JournalEntry {
  const { requestId, app, brand } = story
  const rows = attempts.map((attempt) => [
    requestId,
    attempt.attempt,
    attempt.at,
    app,
    brand,
    attempt.channel,
    attempt.route,
    attempt.provider,
    attempt.template,
    hashOf(attempt.recipientSubject),
    attempt.recipient,
    attempt.position,
    attempt.segments?.count ?? null,
    attempt.segments?.encoding ?? null,
    attempt.outcome,
    attempt.errorClass,
    attempt.reason,
    attempt.vendorId,
    attempt.receiptKey,
    attempt.durationMs,
  ])
  return [requestId, encode(story), rows]
}

type Row = typeof deliveries.$inferSelect & { receipt: typeof receipts.$inferSelect | null }

function toDelivery({ recipientHash, segments, encoding, receipt, ...row }: Row): Delivery {
  return {
    ...row,
    recipientSubject: recipientHash,
    segments: segments === null || encoding === null ? null : { count: segments, encoding },
    receipt: receipt && { status: receipt.status, reason: receipt.reason, at: receipt.at },
  }
}

/** A story by position, as it is stored as JSON. */
type StoredStory = readonly [
  at: number,
  operation: Operation,
  app: string,
  brand: string | null,
  channel: Story['channel'],
  recipient: string | null,
  recipients: number | null,
  limits: readonly (readonly [
    limit: Standing['limit'],
    max: number,
    used: number | null,
    endsAt: number | null,
    0 | 1,
  ])[],
  end: readonly [status: number, error: string | null, message: string | null, durationMs: number] | null,
  /** Missing in those from before it was kept. */
  recipientHash?: string | null,
]

function encode({
  at,
  operation,
  app,
  brand,
  channel,
  recipient,
  recipients,
  recipientSubject,
  limits,
  end,
}: Story): StoredStory {
  return [
    at,
    operation,
    app,
    brand,
    channel,
    recipient,
    recipients,
    limits.map(
      ({ limit, max, used, endsAt, refused }) => [limit, max, used, endsAt, refused ? 1 : 0] as const,
    ),
    end && [end.status, end.error, end.message, end.durationMs],
    recipientSubject && hashOf(recipientSubject),
  ]
}

function storyOf(
  requestId: string,
  [at, operation, app, brand, channel, recipient, recipients, limits, end, recipientHash]: StoredStory,
): Story {
  return {
    requestId,
    at,
    operation,
    app,
    brand,
    channel,
    recipient,
    recipients,
    recipientSubject: recipientHash ?? null,
    limits: limits.map(
      ([limit, max, used, endsAt, refused]): Standing => ({
        limit,
        max,
        used,
        endsAt,
        refused: refused === 1,
      }),
    ),
    end: end && { status: end[0], error: end[1], message: end[2], durationMs: end[3] },
  }
}
