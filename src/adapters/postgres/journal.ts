import { and, desc, eq, getTableColumns, gte, inArray, sql } from 'drizzle-orm'
import { type Delivery, type DeliveryQuery, hashOf } from '../../domain/journal.ts'
import { receiptRanks } from '../../domain/receipts.ts'
import { type Counted, isVerified, tallySteps, verifyBins } from '../../domain/tallies.ts'
import { otpTemplateKeys } from '../../domain/templates.ts'
import {
  firstIdOf,
  type JournalBook,
  type JournalEntry,
  type StoredStory,
  storyOf,
} from '../../storage/journal-entry.ts'
import type { ReadTallies } from '../../storage/statistics.ts'
import type { Connection } from './connection.ts'
import type { Database } from './database.ts'
import { deliveries, receipts, stories } from './schema.ts'
import { asJson } from './text.ts'

const keepEntries = {
  name: 'otpost_keep_entries',
  text: 'SELECT otpost_keep_entries($1::jsonb, $2::jsonb, $3::int, $4::jsonb, $5::jsonb, $6::jsonb)',
}
const keepReceipts = {
  name: 'otpost_keep_receipts',
  text: 'SELECT otpost_keep_receipts($1::text, $2::jsonb, $3::jsonb, $4::int, $5::jsonb)',
}
const readTallies = {
  name: 'otpost_tallies',
  text: `SELECT at, kind, channel, brand, provider, detail, sum(count)::bigint AS count FROM tallies
    WHERE step_ms = $1 AND at = $2 AND ($3::text IS NULL OR kind = $3) GROUP BY 1, 2, 3, 4, 5, 6`,
}

const steps = JSON.stringify(tallySteps.map(({ stepMs }) => stepMs))

/**
 * Stories, the delivery log and receipts in PostgreSQL.
 *
 * @param part in which this process counts; others had better have others
 */
export function createJournalBook(
  { orm, pool }: Pick<Database, 'orm'> & { readonly pool: Connection },
  part: number,
): JournalBook {
  return {
    keepEntries: async (entries, counts) => {
      await pool.query(keepEntries, [
        asJson(entries.map(kept)),
        asJson(counts),
        part,
        steps,
        JSON.stringify(otpTemplateKeys),
        JSON.stringify(verifyBins),
      ])
    },
    keepReceipts: async (provider, news) => {
      const items = news.map(([key, { status, reason, at }]) => [key, status, reason, at])
      await pool.query(keepReceipts, [provider, asJson(items), JSON.stringify(receiptRanks), part, steps])
    },
    lastProviderOf: async (recipientSubjects, brandSlug) => {
      const [last] = await orm
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
      return last?.provider
    },
    story: async (requestId) => {
      const [row] = await orm.select().from(stories).where(eq(stories.requestId, requestId)).limit(1)
      return row && storyOf(row.requestId, row.story as StoredStory)
    },
    deliveries: async ({ requestId, recipientSubjects, since, before, limit }: DeliveryQuery) => {
      const rows = await orm
        .select({ ...getTableColumns(deliveries), receipt: receipts })
        .from(deliveries)
        .leftJoin(receipts, eq(receipts.key, deliveries.receiptKey))
        .where(
          and(
            requestId === undefined ? undefined : eq(deliveries.requestId, requestId),
            recipientSubjects && inArray(deliveries.recipientHash, recipientSubjects.map(hashOf)),
            since === undefined ? undefined : gte(deliveries.requestId, firstIdOf(since)),
            before &&
              sql`(${deliveries.requestId}, ${deliveries.attempt}) < (${before.requestId}, ${before.attempt}::int)`,
          ),
        )
        .orderBy(desc(deliveries.requestId), desc(deliveries.attempt))
        .limit(limit)
      return rows.map(toDelivery).reverse()
    },
  }
}

/** An entry as the function takes it: with the application it is kept under, and what counts a right code. */
function kept([requestId, stored, attempts]: JournalEntry) {
  const story = storyOf(requestId, stored)
  const { at, channel, brand, recipientSubject } = story
  const rightCode = isVerified(story) ? [at, channel ?? '', brand ?? '', recipientSubject ?? ''] : null
  return [requestId, story.app, stored, attempts, rightCode]
}

/** Reads tallies of a step of time, over the parts of all processes. */
export function tallyReader({ pool }: Pick<Database, 'pool'>): ReadTallies {
  return (stepMs, at, kind) => pool.query<Counted>(readTallies, [stepMs, at, kind ?? null])
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
