import { and, desc, eq, getTableColumns, gte, inArray, sql } from 'drizzle-orm'
import { type Delivery, type DeliveryQuery, hashOf } from '../../domain/journal.ts'
import { type ReceiptState, receiptRanks } from '../../domain/receipts.ts'
import { isVerified, receiptTally, verifiedTallies } from '../../domain/tallies.ts'
import { otpTemplateKeys } from '../../domain/templates.ts'
import { attemptColumns, firstIdOf, type JournalBook, storyOf } from '../../storage/journal-entry.ts'
import { Tallies } from '../../storage/tallies.ts'
import type { Database } from './database.ts'
import { deliveries, receipts, stories } from './schema.ts'
import { tallyTable } from './tallies.ts'

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

/** Made by Drizzle, run without it: one of each goes with every message. */
function prepareWrites({ orm, driver }: Pick<Database, 'orm' | 'driver'>) {
  const insertStory = orm
    .insert(stories)
    .values({ requestId: '', story: '' })
    .onConflictDoUpdate({ target: stories.requestId, set: { story: sql`excluded.story` } })
    .toSQL()
  const insertDelivery = `INSERT OR REPLACE INTO deliveries (${attemptColumns.join()}) VALUES (${attemptColumns.map(() => '?').join()})`
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

type Row = typeof deliveries.$inferSelect & { receipt: typeof receipts.$inferSelect | null }

function toDelivery({ recipientHash, segments, encoding, receipt, ...row }: Row): Delivery {
  return {
    ...row,
    recipientSubject: recipientHash,
    segments: segments === null || encoding === null ? null : { count: segments, encoding },
    receipt: receipt && { status: receipt.status, reason: receipt.reason, at: receipt.at },
  }
}
