import { sql } from 'drizzle-orm'
import { check, index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

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
