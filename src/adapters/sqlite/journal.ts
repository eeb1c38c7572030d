import { and, desc, eq, getTableColumns, gte, inArray, sql } from 'drizzle-orm'
import type {
  Delivery,
  DeliveryQuery,
  JournalReader,
  JournalStore,
  Operation,
  Story,
} from '../../domain/journal.ts'
import type { Attempt, Standing } from '../../domain/ports.ts'
import { type ReceiptBook, receiptRanks } from '../../domain/receipts.ts'
import { otpTemplateKeys } from '../../domain/templates.ts'
import type { Database } from './database.ts'
import { deliveries, receipts, stories } from './schema.ts'

/** The journal as this adapter writes and reads it; to keep a story is one atomic step, and replaces an earlier one. */
export type JournalBook = JournalStore & JournalReader & ReceiptBook

/** How much of a keyed hash is kept: 132 bits, since the index over them is the one thing here that is not in order. */
const hashLength = 22

/** Stories, the delivery log and receipts in SQLite. */
export function createJournalBook({ orm, driver, writer }: Database): JournalBook {
  const write = prepareWrites({ orm, driver })
  const lastProvider = orm
    .select({ provider: deliveries.provider })
    .from(deliveries)
    .where(
      and(
        eq(deliveries.recipientHash, sql.placeholder('hash')),
        eq(deliveries.brand, sql.placeholder('brand')),
        eq(deliveries.channel, 'SMS'),
        eq(deliveries.outcome, 'accepted'),
        inArray(deliveries.template, [...otpTemplateKeys]),
      ),
    )
    .orderBy(desc(deliveries.requestId))
    .limit(1)
    .prepare()

  return {
    keepStory: (story, attempts) =>
      writer.write(() => {
        write.story.run(story.requestId, encode(story))
        for (const attempt of attempts) write.delivery.run(rowOf(story, attempt))
      }),
    keepReceipt: (key, { status, reason, at }) =>
      writer.write(() => {
        const known = orm.select().from(receipts).where(eq(receipts.key, key)).get()
        if (known && receiptRanks[known.status] >= receiptRanks[status]) return
        const news = { status, reason, at }
        orm
          .insert(receipts)
          .values({ key, ...news })
          .onConflictDoUpdate({ target: receipts.key, set: news })
          .run()
      }),
    lastProviderOf: async (recipientSubject, brandSlug) =>
      lastProvider.get({ hash: recipientSubject.slice(0, hashLength), brand: brandSlug })?.provider,
    story: async (requestId) => {
      const row = orm.select().from(stories).where(eq(stories.requestId, requestId)).get()
      return row && decode(row.requestId, row.story)
    },
    deliveries: async ({ requestId, recipientSubjects, since, limit }: DeliveryQuery) =>
      orm
        .select({ ...getTableColumns(deliveries), receipt: receipts })
        .from(deliveries)
        .leftJoin(receipts, eq(receipts.key, deliveries.receiptKey))
        .where(
          and(
            requestId === undefined ? undefined : eq(deliveries.requestId, requestId),
            recipientSubjects &&
              inArray(
                deliveries.recipientHash,
                recipientSubjects.map((subject) => subject.slice(0, hashLength)),
              ),
            since === undefined ? undefined : gte(deliveries.requestId, firstIdOf(since)),
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

/** Made by Drizzle, run without it: one of each goes with every message. */
function prepareWrites({ orm, driver }: Pick<Database, 'orm' | 'driver'>) {
  const insertStory = orm
    .insert(stories)
    .values({ requestId: '', story: '' })
    .onConflictDoUpdate({ target: stories.requestId, set: { story: sql`excluded.story` } })
    .toSQL()
  const columns = Object.values(getTableColumns(deliveries)).map((column) => column.name)
  const insertDelivery = `INSERT OR REPLACE INTO deliveries (${columns.join()}) VALUES (${columns.map((name) => `@${name}`).join()})`
  return {
    story: driver.prepare<[string, string]>(insertStory.sql),
    delivery: driver.prepare<[Record<string, string | number | null>]>(insertDelivery),
  }
}

function rowOf({ requestId, app, brand }: Story, attempt: Attempt): Record<string, string | number | null> {
  return {
    request_id: requestId,
    attempt: attempt.attempt,
    at: attempt.at,
    app,
    brand,
    channel: attempt.channel,
    route: attempt.route,
    provider: attempt.provider,
    template: attempt.template,
    recipient_hash: attempt.recipientSubject.slice(0, hashLength),
    recipient: attempt.recipient,
    segments: attempt.segments?.count ?? null,
    encoding: attempt.segments?.encoding ?? null,
    outcome: attempt.outcome,
    error_class: attempt.errorClass,
    reason: attempt.reason,
    vendor_id: attempt.vendorId,
    receipt_key: attempt.receiptKey,
    duration_ms: attempt.durationMs,
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

/** A story as JSON, by position: there is one of each request. */
type Stored = readonly [
  at: number,
  operation: Operation,
  app: string,
  brand: string | null,
  channel: Story['channel'],
  recipient: string | null,
  recipients: number | null,
  limits: readonly (readonly [
    limit: string,
    max: number,
    used: number | null,
    endsAt: number | null,
    0 | 1,
  ])[],
  end: readonly [status: number, error: string | null, message: string | null, durationMs: number] | null,
]

function encode({ at, operation, app, brand, channel, recipient, recipients, limits, end }: Story): string {
  const stored: Stored = [
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
  ]
  return JSON.stringify(stored)
}

function decode(requestId: string, json: string): Story {
  const [at, operation, app, brand, channel, recipient, recipients, limits, end]: Stored = JSON.parse(json)
  return {
    requestId,
    at,
    operation,
    app,
    brand,
    channel,
    recipient,
    recipients,
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
