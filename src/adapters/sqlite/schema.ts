import { sql } from 'drizzle-orm'
import { check, index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { TemplateRegistration } from '../../domain/brands/brand.ts'
import type { StatKey } from '../../domain/events/stats.ts'
import type { AuditAction } from '../../domain/operator/audit.ts'
import type { StoredLimit } from '../store/event-rows.ts'

// Instants are epoch milliseconds. Recipients and network addresses appear as keyed hashes only (`subject`), but for
// the outbox, which exists to show messages to a developer.

/**
 * One row for each live code and each open window of a limit, together by whose they are: all that a request needs of a
 * recipient is side by side. There is no index by time, since it would cost every write: expired rows are removed by key.
 */
export const codesAndLimits = sqliteTable(
  'codes_and_limits',
  {
    /** A recipient's or IP address's keyed hash, or an application. */
    subject: text().notNull(),
    /** The name of a limit, or `code:` and the slug of the brand. */
    name: text().notNull(),
    /** Counted requests in the window of a limit. */
    count: integer(),
    codeId: text('code_id'),
    codeHash: text('code_hash'),
    /** Guesses charged to a code. */
    attempts: integer(),
    /** When a code was made. */
    createdAt: integer('created_at'),
    expiresAt: integer('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.subject, table.name] }),
    // A row is of a limit or of a code, and has all columns of that.
    check(
      'codes_and_limits_kind',
      sql`(${table.count} IS NULL) <> (${table.codeHash} IS NULL)
        AND (${table.codeHash} IS NULL) = (${table.codeId} IS NULL)
        AND (${table.codeHash} IS NULL) = (${table.attempts} IS NULL)
        AND (${table.codeHash} IS NULL) = (${table.createdAt} IS NULL)`,
    ),
  ],
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

/** The keys of issued applications: of each only its SHA-256, and how it ends, to tell it from others. */
export const appKeys = sqliteTable(
  'app_keys',
  {
    keySha256: text('key_sha256').primaryKey().notNull(),
    appId: text('app_id').notNull(),
    lastFour: text('last_four').notNull(),
    createdAt: integer('created_at').notNull(),
    revokedAt: integer('revoked_at'),
    /** To the minute. */
    lastUsedAt: integer('last_used_at'),
  },
  (table) => [
    index('app_keys_by_app').on(table.appId),
    check('app_keys_key', sql`length(${table.keySha256}) = 43`),
  ],
)

/** What integrators asked for, and what the operator decided. */
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
    decidedAt: integer('decided_at'),
    decidedBy: text('decided_by'),
    /** Why it was rejected. */
    reason: text(),
    /** What approval made. */
    appId: text('app_id'),
    brandSlug: text('brand_slug'),
  },
  (table) => [
    check('integration_requests_status', sql`${table.status} IN ('pending', 'approved', 'rejected')`),
    check('integration_requests_channels', sql`json_type(${table.channels}) = 'array'`),
  ],
)

// A request's id begins with its time, so the tables below grow at their end, are swept at their
// beginning, and need no index by time.

/** What the event log has of every attempt to send a message; null in a request without one. */
const attemptDetails = {
  route: text({ enum: ['plain', 'template'] }),
  template: text(),
  /** Which of the request's recipients, from 1; null: there is no other. */
  position: integer(),
  segments: integer(),
  encoding: text({ enum: ['GSM-7', 'UCS-2'] }),
  errorClass: text('error_class', { enum: ['recipient', 'content', 'account', 'retryable', 'unknown'] }),
  reason: text(),
  providerMessageId: text('provider_message_id'),
  /** The key of its delivery report. */
  reportKey: text('report_key'),
}

/**
 * Each request of an app and its first attempt to send a message. No text, no code, no recipient but as a hash and masked.
 * `recipient` and `recipient_hash` are those of the request, or of the first attempt of a request to several recipients.
 */
export const requests = sqliteTable(
  'requests',
  {
    requestId: text('request_id').primaryKey().notNull(),
    at: integer().notNull(),
    operation: text({ enum: ['send', 'resend', 'verify', 'notify'] }).notNull(),
    app: text().notNull(),
    brand: text(),
    channel: text({ enum: ['SMS', 'EMAIL'] }),
    recipient: text(),
    recipients: integer(),
    /** The beginning of the keyed hash: 132 bits. */
    recipientHash: text('recipient_hash'),
    /** The limits that were checked, as they were then. */
    limits: text({ mode: 'json' }).$type<readonly StoredLimit[]>().notNull(),
    /** Null until the request has ended. */
    status: integer(),
    error: text(),
    message: text(),
    durationMs: integer('duration_ms'),
    attemptAt: integer('attempt_at'),
    provider: text(),
    outcome: text({ enum: ['accepted', 'rejected', 'retryable', 'unknown', 'skipped'] }),
    attemptDurationMs: integer('attempt_duration_ms'),
    ...attemptDetails,
  },
  (table) => [
    // Requests without an attempt, such as verifications, are not searched by recipient.
    index('requests_by_recipient').on(table.recipientHash).where(sql`outcome IS NOT NULL`),
    check('requests_limits', sql`json_type(${table.limits}) = 'array'`),
    check('requests_operation', sql`${table.operation} IN ('send', 'resend', 'verify', 'notify')`),
    check('requests_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check(
      'requests_outcome',
      sql`${table.outcome} IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped')`,
    ),
  ],
)

/** The attempts of requests beyond the first. */
export const attempts = sqliteTable(
  'attempts',
  {
    requestId: text('request_id').notNull(),
    /** From 1; the first is in `requests`, unless that row was deleted. */
    attempt: integer().notNull(),
    at: integer().notNull(),
    app: text().notNull(),
    brand: text(),
    channel: text({ enum: ['SMS', 'EMAIL'] }).notNull(),
    recipient: text().notNull(),
    recipientHash: text('recipient_hash').notNull(),
    provider: text().notNull(),
    outcome: text({ enum: ['accepted', 'rejected', 'retryable', 'unknown', 'skipped'] }).notNull(),
    durationMs: integer('duration_ms').notNull(),
    ...attemptDetails,
  },
  (table) => [
    primaryKey({ columns: [table.requestId, table.attempt] }),
    index('attempts_by_recipient').on(table.recipientHash),
    check('attempts_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check(
      'attempts_outcome',
      sql`${table.outcome} IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped')`,
    ),
  ],
)

/** The latest delivery report of each message; it may be saved before its attempt. */
export const deliveryReports = sqliteTable(
  'delivery_reports',
  {
    key: text().primaryKey().notNull(),
    status: text({ enum: ['pending', 'failed', 'delivered'] }).notNull(),
    reason: text(),
    at: integer().notNull(),
  },
  (table) => [
    index('delivery_reports_by_time').on(table.at),
    check('delivery_reports_status', sql`${table.status} IN ('pending', 'failed', 'delivered')`),
  ],
)

/**
 * How often what happened, by minute, hour and day: what the console's overview adds up, since the event log may hold
 * millions of rows. Brands and providers are the operator's; nothing in a key comes from a caller.
 */
export const stats = sqliteTable(
  'stats',
  {
    /** The length of the step: a minute, an hour or a day. */
    stepMs: integer('step_ms').notNull(),
    /** When the step begins. */
    at: integer().notNull(),
    kind: text().$type<StatKey['kind']>().notNull(),
    channel: text().$type<StatKey['channel']>().notNull(),
    brand: text().notNull(),
    provider: text().notNull(),
    detail: text().notNull(),
    count: integer().notNull(),
  },
  (table) => [
    primaryKey({
      columns: [table.stepMs, table.at, table.kind, table.channel, table.brand, table.provider, table.detail],
    }),
  ],
)

/** Every change that an operator made: who, what, when. */
export const audit = sqliteTable(
  'audit',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    at: integer().notNull(),
    by: text({ enum: ['command', 'console'] }).notNull(),
    name: text().notNull(),
    action: text().$type<AuditAction>().notNull(),
    target: text().notNull(),
    details: text({ mode: 'json' }).$type<Readonly<Record<string, string>>>().notNull(),
  },
  (table) => [
    check('audit_by', sql`${table.by} IN ('command', 'console')`),
    check('audit_details', sql`json_type(${table.details}) = 'object'`),
  ],
)

/** Sessions of the console: of the token in the cookie its SHA-256 alone. */
export const consoleSessions = sqliteTable('console_sessions', {
  tokenSha256: text('token_sha256').primaryKey().notNull(),
  startedAt: integer('started_at').notNull(),
  lastSeenAt: integer('last_seen_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
  by: text({ enum: ['password', 'link'] }).notNull(),
})

/** By which secrets the server works with this file, as a hash of each: a command with others would find nobody's records. */
export const keyFingerprints = sqliteTable('secret_marks', {
  mark: text().primaryKey().notNull(),
})

/** Links that open the console once, until they are used or over. */
export const consoleLinks = sqliteTable('console_links', {
  tokenSha256: text('token_sha256').primaryKey().notNull(),
  expiresAt: integer('expires_at').notNull(),
})

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
