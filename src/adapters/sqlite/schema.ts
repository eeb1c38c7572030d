import { sql } from 'drizzle-orm'
import { check, index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { TemplateRegistration } from '../../domain/brand.ts'

// Instants are epoch milliseconds. Recipients and network addresses appear as keyed hashes only (`subject`), but for
// the outbox, which exists to show messages to a developer.

/**
 * What is kept of each recipient, application and network address: open windows and live codes, as `ledgers.ts` writes
 * them. One row each, since a row under a random key costs a page of the log. There is no index by time: the sweep goes
 * by the key, so that rows that are side by side are removed with one change of their page.
 */
export const ledgers = sqliteTable(
  'ledgers',
  {
    subject: text().primaryKey().notNull(),
    /** From this instant on nothing in it matters. */
    endsAt: integer('ends_at').notNull(),
    state: text().notNull(),
  },
  (table) => [check('ledgers_state', sql`json_type(${table.state}) = 'object'`)],
)

export const brands = sqliteTable(
  'brands',
  {
    slug: text().primaryKey().notNull(),
    displayName: text('display_name').notNull(),
    nameKey: text('name_key').notNull(),
    status: text({ enum: ['pending', 'active', 'suspended'] }).notNull(),
    notifyTemplates: text('notify_templates', { mode: 'json' }).$type<readonly string[]>().notNull(),
    dltEnabled: integer('dlt_enabled', { mode: 'boolean' }).notNull(),
    loginIdEnabled: integer('login_id_enabled', { mode: 'boolean' }).notNull(),
    domain: text(),
    entityId: text('entity_id'),
    registrations: text({ mode: 'json' })
      .$type<Readonly<Record<string, TemplateRegistration>>>()
      .notNull()
      .default({}),
  },
  (table) => [
    index('brands_by_name').on(table.nameKey),
    check('brands_status', sql`${table.status} IN ('pending', 'active', 'suspended')`),
    check('brands_flags', sql`${table.dltEnabled} IN (0, 1) AND ${table.loginIdEnabled} IN (0, 1)`),
    check('brands_notify_templates', sql`json_type(${table.notifyTemplates}) = 'array'`),
  ],
)

/** Issued applications; of a key only its SHA-256 is kept. */
export const apps = sqliteTable(
  'apps',
  {
    appId: text('app_id').primaryKey().notNull(),
    keySha256: text('key_sha256').notNull(),
    createdAt: integer('created_at').notNull(),
    revokedAt: integer('revoked_at'),
  },
  (table) => [check('apps_key', sql`length(${table.keySha256}) = 43`)],
)

/** What integrators asked for, until the operator decides. */
export const integrationRequests = sqliteTable(
  'integration_requests',
  {
    id: text().primaryKey().notNull(),
    createdAt: integer('created_at').notNull(),
    status: text({ enum: ['pending', 'approved', 'rejected'] }).notNull(),
    companyName: text('company_name').notNull(),
    contactName: text('contact_name').notNull(),
    contactEmail: text('contact_email').notNull(),
    brandName: text('brand_name').notNull(),
    channels: text({ mode: 'json' }).$type<readonly ('SMS' | 'EMAIL')[]>().notNull(),
    website: text(),
    useCase: text('use_case'),
  },
  (table) => [
    check('integration_requests_status', sql`${table.status} IN ('pending', 'approved', 'rejected')`),
    check('integration_requests_channels', sql`json_type(${table.channels}) = 'array'`),
  ],
)

// A request's id begins with its time, so the tables below grow at their end, are swept at their
// beginning, and need no index by time.

/** What became of each request of an application, as `journal.ts` writes it. */
export const stories = sqliteTable(
  'stories',
  {
    requestId: text('request_id').primaryKey().notNull(),
    story: text().notNull(),
  },
  (table) => [check('stories_story', sql`json_type(${table.story}) = 'array'`)],
)

/** The delivery log: every attempt to hand a message over. No text, no code, no recipient but as a hash and masked. */
export const deliveries = sqliteTable(
  'deliveries',
  {
    requestId: text('request_id').notNull(),
    /** Counts those of the request. */
    attempt: integer().notNull(),
    at: integer().notNull(),
    app: text().notNull(),
    brand: text(),
    channel: text({ enum: ['SMS', 'EMAIL'] }).notNull(),
    route: text({ enum: ['plain', 'template'] }),
    provider: text().notNull(),
    template: text(),
    /** The beginning of the keyed hash: 132 bits. */
    recipientHash: text('recipient_hash').notNull(),
    recipient: text().notNull(),
    /** Which of the request's recipients, from 1; null: there is no other. */
    position: integer(),
    segments: integer(),
    encoding: text({ enum: ['GSM-7', 'UCS-2'] }),
    outcome: text({ enum: ['accepted', 'rejected', 'retryable', 'unknown', 'skipped'] }).notNull(),
    errorClass: text('error_class', {
      enum: ['recipient', 'content', 'account', 'retryable', 'unknown'],
    }),
    reason: text(),
    vendorId: text('vendor_id'),
    /** What receipts name it by. */
    receiptKey: text('receipt_key'),
    durationMs: integer('duration_ms').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.requestId, table.attempt] }),
    index('deliveries_by_recipient').on(table.recipientHash),
    check('deliveries_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check(
      'deliveries_outcome',
      sql`${table.outcome} IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped')`,
    ),
  ],
)

/** The last word of the receipts of each message; it may be here before its attempt is. */
export const receipts = sqliteTable(
  'receipts',
  {
    key: text().primaryKey().notNull(),
    status: text({ enum: ['pending', 'failed', 'delivered'] }).notNull(),
    reason: text(),
    at: integer().notNull(),
  },
  (table) => [
    index('receipts_by_time').on(table.at),
    check('receipts_status', sql`${table.status} IN ('pending', 'failed', 'delivered')`),
  ],
)

/** Messages of the provider `outbox`, kept for a day for whoever develops against this server. */
export const outbox = sqliteTable(
  'outbox',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    createdAt: integer('created_at').notNull(),
    channel: text({ enum: ['SMS', 'EMAIL'] }).notNull(),
    recipient: text().notNull(),
    /** The recipient as it is compared: digits, or the address in lower case. */
    identity: text().notNull(),
    route: text({ enum: ['plain', 'template'] }),
    brandSlug: text('brand_slug'),
    brandName: text('brand_name'),
    subject: text(),
    text: text().notNull(),
    html: text(),
    templateKey: text('template_key'),
    variables: text({ mode: 'json' }).$type<Readonly<Record<string, string>>>(),
    requestId: text('request_id').notNull(),
  },
  (table) => [
    index('outbox_by_identity').on(table.identity, table.id),
    index('outbox_by_creation').on(table.createdAt),
    check('outbox_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check('outbox_route', sql`${table.route} IN ('plain', 'template')`),
  ],
)
