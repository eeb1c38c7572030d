import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  check,
  customType,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  smallint,
  text,
} from 'drizzle-orm/pg-core'
import type { TemplateRegistration } from '../../domain/brands/brand.ts'
import type { AuditAction } from '../../domain/operator/audit.ts'
import { asJson } from './text.ts'

// The tables of SQLite's schema, in PostgreSQL's words. Instants are epoch milliseconds, since that is what the domain
// reckons in. What is written with every request (ledgers, stories, deliveries) has in its primary key what it is spread
// by over the nodes of a distributed database: the keyed hash of a recipient, or the application. Its statements name
// that key. Only what an operator or a developer reads is numbered by a sequence.

/** Compared byte by byte: keys and hashes have no language, and their order is the same on every server. */
const key = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' })

/** An object of texts that may contain any character. */
const texts = customType<{ data: Readonly<Record<string, string>> }>({
  dataType: () => 'jsonb',
  toDriver: asJson,
})

const instant = (name: string) => bigint(name, { mode: 'number' })

/**
 * What is kept of each recipient, application and network address: open windows and live codes, as the functions of the
 * migrations write them. Spread by `subject`. There is no index by time: so a row is changed in its page (HOT), and the
 * sweep goes by the key.
 */
export const ledgers = pgTable('ledgers', {
  subject: key('subject').primaryKey(),
  /** From this instant on nothing in it matters. */
  endsAt: instant('ends_at').notNull(),
  /** `{"w": {name: [count, endsAt]}, "c": {brandSlug: [id, hash, attempts, createdAt, expiresAt]}}` */
  state: jsonb().notNull(),
})

/** One row: its number grows with whatever a node may remember, so that each learns that it has to read again. */
export const revision = pgTable('revision', {
  id: smallint().primaryKey(),
  number: bigint({ mode: 'number' }).notNull(),
})

/**
 * At most one row: the secret of the server that began last, as a hash, since when. Who does not know it would find nobody's
 * codes.
 */
export const keyFingerprints = pgTable('secret_marks', {
  mark: key('mark').primaryKey(),
  since: instant('since').notNull(),
})

/** Work that one node at a time does. */
export const leases = pgTable('leases', {
  name: text().primaryKey(),
  holder: text().notNull(),
  endsAt: instant('ends_at').notNull(),
})

/** Providers that keep failing, as the node that found it tells the others. */
export const openCircuitRows = pgTable('resting_providers', {
  provider: text().primaryKey(),
  failures: integer().notNull(),
  openMs: integer('rest_ms').notNull(),
  openUntil: instant('rests_until').notNull(),
})

export const brands = pgTable(
  'brands',
  {
    slug: key('slug').primaryKey(),
    displayName: text('display_name').notNull(),
    nameKey: key('name_key').notNull(),
    status: text({ enum: ['pending', 'active', 'suspended'] }).notNull(),
    notifyTemplates: jsonb('notify_templates').$type<readonly string[]>().notNull(),
    dltEnabled: boolean('dlt_enabled').notNull(),
    loginIdEnabled: boolean('login_id_enabled').notNull(),
    domain: text(),
    entityId: text('entity_id'),
    registrations: jsonb().$type<Readonly<Record<string, TemplateRegistration>>>().notNull().default({}),
  },
  (table) => [
    index('brands_by_name').on(table.nameKey),
    check('brands_status', sql`${table.status} IN ('pending', 'active', 'suspended')`),
    check('brands_notify_templates', sql`jsonb_typeof(${table.notifyTemplates}) = 'array'`),
  ],
)

/** The keys of issued applications: of each only its SHA-256, and how it ends, to tell it from others. */
export const appKeys = pgTable(
  'app_keys',
  {
    keySha256: key('key_sha256').primaryKey(),
    appId: key('app_id').notNull(),
    lastFour: text('last_four').notNull(),
    createdAt: instant('created_at').notNull(),
    revokedAt: instant('revoked_at'),
    /** To the minute. */
    lastUsedAt: instant('last_used_at'),
  },
  (table) => [
    index('app_keys_by_app').on(table.appId),
    check('app_keys_key', sql`length(${table.keySha256}) = 43`),
  ],
)

/** What integrators asked for, and what the operator decided. */
export const integrationRequests = pgTable(
  'integration_requests',
  {
    id: key('id').primaryKey(),
    createdAt: instant('created_at').notNull(),
    status: text({ enum: ['pending', 'approved', 'rejected'] }).notNull(),
    companyName: text('company_name').notNull(),
    contactName: text('contact_name').notNull(),
    contactEmail: text('contact_email').notNull(),
    brandName: text('brand_name').notNull(),
    channels: jsonb().$type<readonly ('SMS' | 'EMAIL')[]>().notNull(),
    website: text(),
    useCase: text('use_case'),
    decidedAt: instant('decided_at'),
    decidedBy: text('decided_by'),
    /** Why it was rejected. */
    reason: text(),
    /** What approval made. */
    appId: text('app_id'),
    brandSlug: text('brand_slug'),
  },
  (table) => [
    check('integration_requests_status', sql`${table.status} IN ('pending', 'approved', 'rejected')`),
    check('integration_requests_channels', sql`jsonb_typeof(${table.channels}) = 'array'`),
  ],
)

/** What became of each request of an application. Spread by `app`. */
export const traces = pgTable(
  'stories',
  {
    app: key('app').notNull(),
    requestId: key('request_id').notNull(),
    trace: jsonb('story').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.app, table.requestId] }),
    // A request's id begins with its time: this is read by id, and swept from its beginning.
    index('stories_by_request').on(table.requestId),
    check('stories_story', sql`jsonb_typeof(${table.trace}) = 'array'`),
  ],
)

/**
 * The delivery log: every attempt to hand a message over. No text, no code, no recipient but as a hash and masked. Spread
 * by `recipientHash`.
 */
export const deliveries = pgTable(
  'deliveries',
  {
    requestId: key('request_id').notNull(),
    /** Counts those of the request. */
    attempt: integer().notNull(),
    at: instant('at').notNull(),
    app: text().notNull(),
    brand: text(),
    channel: text({ enum: ['SMS', 'EMAIL'] }).notNull(),
    route: text({ enum: ['plain', 'template'] }),
    provider: text().notNull(),
    template: text(),
    /** The beginning of the keyed hash: 132 bits. */
    recipientHash: key('recipient_hash').notNull(),
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
    providerMessageId: text('vendor_id'),
    /** What receipts name it by. */
    reportKey: key('receipt_key'),
    durationMs: integer('duration_ms').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.recipientHash, table.requestId, table.attempt] }),
    index('deliveries_by_request').on(table.requestId, table.attempt),
    check('deliveries_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check(
      'deliveries_outcome',
      sql`${table.outcome} IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped')`,
    ),
  ],
)

/** The last word of the receipts of each message; it may be here before its attempt is. Spread by `key`. */
export const deliveryReports = pgTable(
  'receipts',
  {
    key: key('key').primaryKey(),
    status: text({ enum: ['pending', 'failed', 'delivered'] }).notNull(),
    reason: text(),
    at: instant('at').notNull(),
  },
  (table) => [
    index('receipts_by_time').on(table.at),
    check('receipts_status', sql`${table.status} IN ('pending', 'failed', 'delivered')`),
  ],
)

/**
 * How often what happened, by minute and by hour. Each process counts in a part of its own, so that they don't wait for
 * each other; who reads adds the parts up. Spread by `part`.
 */
export const statCounts = pgTable(
  'tallies',
  {
    part: smallint().notNull(),
    /** How long the step is that it counts: a minute or an hour. */
    stepMs: integer('step_ms').notNull(),
    /** When the step begins. */
    at: instant('at').notNull(),
    kind: key('kind').notNull(),
    channel: key('channel').notNull(),
    brand: key('brand').notNull(),
    provider: key('provider').notNull(),
    detail: key('detail').notNull(),
    count: bigint({ mode: 'number' }).notNull(),
  },
  (table) => [
    primaryKey({
      columns: [
        table.part,
        table.stepMs,
        table.at,
        table.kind,
        table.channel,
        table.brand,
        table.provider,
        table.detail,
      ],
    }),
    index('tallies_by_time').on(table.stepMs, table.at),
  ],
)

/** Every change that an operator made: who, what, when. */
export const audit = pgTable(
  'audit',
  {
    id: bigint({ mode: 'number' }).primaryKey().generatedByDefaultAsIdentity(),
    at: instant('at').notNull(),
    by: text({ enum: ['command', 'console'] }).notNull(),
    name: text().notNull(),
    action: text().$type<AuditAction>().notNull(),
    target: text().notNull(),
    details: texts().notNull(),
  },
  (table) => [
    check('audit_by', sql`${table.by} IN ('command', 'console')`),
    check('audit_details', sql`jsonb_typeof(${table.details}) = 'object'`),
  ],
)

/** Sessions of the console: of the token in the cookie its SHA-256 alone. */
export const consoleSessions = pgTable('console_sessions', {
  tokenSha256: key('token_sha256').primaryKey(),
  startedAt: instant('started_at').notNull(),
  lastSeenAt: instant('last_seen_at').notNull(),
  expiresAt: instant('expires_at').notNull(),
  by: text({ enum: ['password', 'link'] }).notNull(),
})

/** Links that open the console once, until they are used or over. */
export const consoleLinks = pgTable('console_links', {
  tokenSha256: key('token_sha256').primaryKey(),
  expiresAt: instant('expires_at').notNull(),
})

/** Messages of the provider `outbox`, kept for a day for whoever develops against this server. */
export const outbox = pgTable(
  'outbox',
  {
    id: bigint({ mode: 'number' }).primaryKey().generatedByDefaultAsIdentity(),
    createdAt: instant('created_at').notNull(),
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
    variables: texts(),
    requestId: text('request_id').notNull(),
  },
  (table) => [
    index('outbox_by_identity').on(table.identity, table.id),
    index('outbox_by_creation').on(table.createdAt),
    check('outbox_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check('outbox_route', sql`${table.route} IN ('plain', 'template')`),
  ],
)
