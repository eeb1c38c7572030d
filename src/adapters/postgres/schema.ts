import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  check,
  customType,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  smallint,
  text,
} from 'drizzle-orm/pg-core'
import type { EventType, PreviousSecret } from '../../domain/ground/webhook-events.ts'
import type { StatKey } from '../../domain/log/stats.ts'
import type { TemplateRegistration } from '../../domain/texts/brand.ts'
import { asJson } from './text.ts'

// See the SQLite schema. The first key column of codes_and_limits, requests and attempts distributes their
// rows over the nodes of a distributed database.

/** Compared byte by byte, so that the order is the same on every server. */
const key = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' })

const wordRecord = customType<{ data: Readonly<Record<string, string>> }>({
  dataType: () => 'jsonb',
  toDriver: asJson,
})

const instant = (name: string) => bigint(name, { mode: 'number' })

/** No index by time: updates stay in their page (HOT), and expired rows are deleted by key. */
export const codesAndLimits = pgTable(
  'codes_and_limits',
  {
    subject: key('subject').notNull(),
    name: key('name').notNull(),
    count: bigint({ mode: 'number' }),
    codeId: text('code_id'),
    codeHash: text('code_hash'),
    attempts: integer(),
    createdAt: instant('created_at'),
    expiresAt: instant('expires_at').notNull(),
    provider: text(),
    providerMessageId: text('provider_message_id'),
  },
  (table) => [
    primaryKey({ columns: [table.subject, table.name] }),
    check(
      'codes_and_limits_kind',
      sql`(${table.count} IS NULL) <> (${table.codeHash} IS NULL)
        AND (${table.codeHash} IS NULL) = (${table.codeId} IS NULL)
        AND (${table.codeHash} IS NULL) = (${table.attempts} IS NULL)
        AND (${table.codeHash} IS NULL) = (${table.createdAt} IS NULL)`,
    ),
  ],
)

/** One row; the number grows when cached rows change. */
export const revision = pgTable('revision', {
  id: smallint().primaryKey(),
  number: bigint({ mode: 'number' }).notNull(),
})

export const keyFingerprints = pgTable('key_fingerprints', {
  fingerprint: key('fingerprint').primaryKey(),
})

/** Locks for work that one node at a time does. */
export const leases = pgTable('leases', {
  name: text().primaryKey(),
  holder: text().notNull(),
  endsAt: instant('ends_at').notNull(),
})

export const openCircuitRows = pgTable('open_circuits', {
  provider: text().primaryKey(),
  failures: integer().notNull(),
  openMs: integer('open_ms').notNull(),
  openUntil: instant('open_until').notNull(),
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
    registrations: jsonb().$type<Readonly<Record<string, TemplateRegistration>>>().notNull(),
    /** BCP 47, of its texts without a language. */
    lang: text().notNull(),
    /** Of its Android app, 11 characters. */
    androidHash: text('android_hash'),
    logoUrl: text('logo_url'),
    /** `#rrggbb` */
    color: text(),
    /** URLs and phone numbers that its registered texts may contain. */
    dltAllowList: jsonb('dlt_allow_list').$type<readonly string[]>().notNull(),
  },
  (table) => [
    index('brands_by_name').on(table.nameKey),
    check('brands_status', sql`${table.status} IN ('pending', 'active', 'suspended')`),
    check('brands_notify_templates', sql`jsonb_typeof(${table.notifyTemplates}) = 'array'`),
  ],
)

/** Texts that replace built-in ones, and those of new templates. */
export const texts = pgTable(
  'texts',
  {
    brandSlug: key('brand_slug').notNull(),
    templateKey: key('template_key').notNull(),
    channel: text({ enum: ['SMS', 'EMAIL'] }).notNull(),
    lang: key('lang').notNull(),
    subject: text(),
    text: text().notNull(),
    html: text(),
    version: integer().notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.brandSlug, table.templateKey, table.channel, table.lang] }),
    check('texts_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
  ],
)

/** Declared variables of new templates. */
export const textVariables = pgTable(
  'text_variables',
  {
    brandSlug: key('brand_slug').notNull(),
    templateKey: key('template_key').notNull(),
    /** From 1. */
    position: integer().notNull(),
    name: text().notNull(),
    type: text({ enum: ['text', 'number', 'date', 'datetime', 'url'] }).notNull(),
    max: bigint({ mode: 'number' }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.brandSlug, table.templateKey, table.position] }),
    check('text_variables_type', sql`${table.type} IN ('text', 'number', 'date', 'datetime', 'url')`),
  ],
)

export const appKeys = pgTable(
  'app_keys',
  {
    keySha256: key('key_sha256').primaryKey(),
    appId: key('app_id').notNull(),
    lastFour: text('last_four').notNull(),
    createdAt: instant('created_at').notNull(),
    revokedAt: instant('revoked_at'),
    lastUsedAt: instant('last_used_at'),
  },
  (table) => [
    index('app_keys_by_app').on(table.appId),
    check('app_keys_key', sql`length(${table.keySha256}) = 43`),
  ],
)

export const apps = pgTable('apps', {
  appId: key('app_id').primaryKey(),
  allowsOtp: boolean('allows_otp').notNull(),
  allowsNotify: boolean('allows_notify').notNull(),
  perMinute: integer('per_minute'),
})

export const appBrands = pgTable(
  'app_brands',
  { appId: key('app_id').notNull(), brandSlug: key('brand_slug').notNull() },
  (table) => [primaryKey({ columns: [table.appId, table.brandSlug] })],
)

export const destinationRules = pgTable(
  'destination_rules',
  {
    rule: key('rule').notNull(),
    brandSlug: key('brand_slug').notNull(),
    action: text({ enum: ['allow', 'monitor', 'block'] }).notNull(),
    providers: jsonb().$type<readonly string[]>().notNull(),
    sender: text(),
    route: text({ enum: ['plain', 'template'] }),
  },
  (table) => [
    primaryKey({ columns: [table.rule, table.brandSlug] }),
    check('destination_rules_action', sql`${table.action} IN ('allow', 'monitor', 'block')`),
    check('destination_rules_route', sql`${table.route} IN ('plain', 'template')`),
    check('destination_rules_providers', sql`jsonb_typeof(${table.providers}) = 'array'`),
  ],
)

export const guardPrefixes = pgTable(
  'guard_prefixes',
  {
    prefix: key('prefix').notNull(),
    by: text({ enum: ['guard', 'operator'] }).notNull(),
    action: text({ enum: ['allow', 'block'] }).notNull(),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.prefix, table.by] }),
    check('guard_prefixes_by', sql`${table.by} IN ('guard', 'operator')`),
    check('guard_prefixes_action', sql`${table.action} IN ('allow', 'block')`),
  ],
)

export const guardBuckets = pgTable(
  'guard_buckets',
  {
    kind: text({
      enum: ['country-hour', 'country-day', 'prefix', 'ip-hour', 'ip-day', 'ip-country', 'flagged'],
    }).notNull(),
    key: key('key').notNull(),
    node: key('node').notNull(),
    level: doublePrecision().notNull(),
    sent: doublePrecision().notNull(),
    verified: doublePrecision().notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.kind, table.key, table.node] }),
    index('guard_buckets_by_time').on(table.updatedAt),
  ],
)

export const verifiedNumbers = pgTable('verified_numbers', {
  subject: key('subject').primaryKey(),
  verifiedAt: instant('verified_at').notNull(),
})

export const prices = pgTable(
  'prices',
  {
    generation: integer().notNull(),
    provider: key('provider').notNull(),
    prefix: key('prefix').notNull(),
    priceMicros: bigint('price_micros', { mode: 'number' }).notNull(),
    currency: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.generation, table.provider, table.prefix] })],
)

export const priceLists = pgTable('price_lists', {
  provider: key('provider').primaryKey(),
  generation: integer(),
  next: integer(),
})

export const budgets = pgTable(
  'budgets',
  {
    scope: key('scope').primaryKey(),
    period: text({ enum: ['day', 'month'] }).notNull(),
    amountMicros: bigint('amount_micros', { mode: 'number' }).notNull(),
    currency: text().notNull(),
    alertAt: jsonb('alert_at').$type<readonly number[]>().notNull(),
    stops: boolean().notNull(),
    liftedUntil: instant('lifted_until'),
    countsFrom: instant('counts_from').notNull(),
  },
  (table) => [
    check('budgets_period', sql`${table.period} IN ('day', 'month')`),
    check('budgets_alerts', sql`jsonb_typeof(${table.alertAt}) = 'array'`),
  ],
)

export const alerts = pgTable('alerts', {
  key: key('key').primaryKey(),
  at: instant('at').notNull(),
  kind: text().notNull(),
  title: text().notNull(),
  text: text().notNull(),
})

export const alertDeliveries = pgTable(
  'alert_deliveries',
  {
    key: key('key').notNull(),
    channel: text({ enum: ['email', 'webhook'] }).notNull(),
    tries: integer().notNull(),
    dueAt: instant('due_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.key, table.channel] }),
    check('alert_deliveries_channel', sql`${table.channel} IN ('email', 'webhook')`),
  ],
)

export const reviewNumbers = pgTable(
  'review_numbers',
  {
    subject: key('subject').notNull(),
    brandSlug: key('brand_slug').notNull(),
    /** The keyed hash of the fixed code. */
    keyedCode: text('keyed_code').notNull(),
    masked: text().notNull(),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.subject, table.brandSlug] })],
)

/** Where events of an app go. */
export const webhooks = pgTable(
  'webhooks',
  {
    appId: key('app_id').primaryKey(),
    url: text().notNull(),
    /** `whsec_…`, which signs. */
    secret: text().notNull(),
    /** They sign too, each until its time. */
    previousSecrets: jsonb('previous_secrets').$type<readonly PreviousSecret[]>().notNull(),
    /** Empty: all. */
    eventTypes: jsonb('event_types').$type<readonly EventType[]>().notNull(),
    createdAt: instant('created_at').notNull(),
    /** Switched off, since an event failed at its last try or the receiver answered 410. */
    disabledAt: instant('disabled_at'),
  },
  (table) => [
    check('webhooks_event_types', sql`jsonb_typeof(${table.eventTypes}) = 'array'`),
    check('webhooks_previous_secrets', sql`jsonb_typeof(${table.previousSecrets}) = 'array'`),
  ],
)

/** Written with the change itself. A state `new` has only the first columns, up to `reason`. */
export const events = pgTable(
  'events',
  {
    /** The `webhook-id`; begins with its time. */
    id: key('id').primaryKey(),
    at: instant('at').notNull(),
    type: text().$type<EventType>().notNull(),
    /** Of the send or notify. Null: known by `reportKey`. */
    requestId: key('request_id'),
    reportKey: text('report_key'),
    /** As in attempts. */
    position: integer(),
    /** Of the message. */
    status: text({ enum: ['delivered', 'failed', 'unknown'] }),
    reason: text(),
    state: text({ enum: ['new', 'waiting', 'delivered', 'failed'] }).notNull(),
    appId: key('app_id'),
    brand: text(),
    channel: text({ enum: ['SMS', 'EMAIL'] }),
    /** Masked. */
    recipient: text(),
    reference: text(),
    tries: integer().notNull(),
    /** Of the next try; while a try is in progress, when its lease ends. */
    dueAt: instant('due_at').notNull(),
    /** When the latest try began. Later than now: the clock was set back. */
    triedAt: instant('tried_at'),
    /** Of the latest try. */
    httpStatus: integer('http_status'),
    error: text(),
    endedAt: instant('ended_at'),
  },
  (table) => [
    index('events_by_state').on(table.state, table.dueAt, table.appId),
    index('events_by_app').on(table.appId, table.id),
    index('events_by_request').on(table.requestId),
    check('events_state', sql`${table.state} IN ('new', 'waiting', 'delivered', 'failed')`),
    check('events_status', sql`${table.status} IN ('delivered', 'failed', 'unknown')`),
    check('events_subject', sql`${table.requestId} IS NOT NULL OR ${table.reportKey} IS NOT NULL`),
  ],
)

/** Idempotency keys. A limit of one in `codes_and_limits` makes each unique. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    /** The keyed hash of the app, path and key; the subject of the limit. */
    hash: key('hash').primaryKey(),
    requestId: key('request_id').notNull(),
    bodyHash: text('body_hash').notNull(),
    /** The process that handles the request. */
    owner: text().notNull(),
    expiresAt: instant('expires_at').notNull(),
    /** Null: in progress. */
    status: integer(),
    /** The body of the answer as JSON. */
    answer: text(),
  },
  (table) => [index('idempotency_keys_by_expiry').on(table.expiresAt)],
)

/** What the jobs of a request send. Deleted some time after the last job ended. */
export const notifyOrders = pgTable('notify_orders', {
  requestId: key('request_id').primaryKey(),
  appId: text('app_id').notNull(),
  brandSlug: text('brand_slug'),
  channel: text({ enum: ['SMS', 'EMAIL'] }).notNull(),
  reference: text(),
  /** Encrypted: text, template and variables of an SMS, or subject, text and HTML of a mail, as JSON. */
  content: text().notNull(),
  createdAt: instant('created_at').notNull(),
  /** No try begins later. */
  expiresAt: instant('expires_at').notNull(),
})

/** One recipient of an asynchronous notification. */
export const notifyJobs = pgTable(
  'notify_jobs',
  {
    requestId: key('request_id').notNull(),
    appId: text('app_id').notNull(),
    /** Of the recipient in `to`, from 1. */
    position: integer().notNull(),
    state: text({ enum: ['queued', 'sending', 'accepted', 'failed', 'unknown', 'cancelled'] }).notNull(),
    /** Encrypted. Null once it is not needed. */
    recipient: text(),
    recipientHash: text('recipient_hash').notNull(),
    masked: text().notNull(),
    tries: integer().notNull(),
    /** Attempts at providers so far. */
    attempts: integer().notNull(),
    dueAt: instant('due_at').notNull(),
    /** The process that sends it. */
    owner: text(),
    updatedAt: instant('updated_at').notNull(),
    reason: text(),
  },
  (table) => [
    primaryKey({ columns: [table.requestId, table.position] }),
    index('notify_jobs_by_state').on(table.state, table.dueAt),
    index('notify_jobs_by_app').on(table.state, table.appId, table.dueAt),
    index('notify_jobs_by_recipient').on(table.recipientHash),
    check(
      'notify_jobs_state',
      sql`${table.state} IN ('queued', 'sending', 'accepted', 'failed', 'unknown', 'cancelled')`,
    ),
  ],
)

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
    reason: text(),
    appId: text('app_id'),
    brandSlug: text('brand_slug'),
  },
  (table) => [
    check('integration_requests_status', sql`${table.status} IN ('pending', 'approved', 'rejected')`),
    check('integration_requests_channels', sql`jsonb_typeof(${table.channels}) = 'array'`),
  ],
)

const attemptDetails = {
  route: text({ enum: ['plain', 'template'] }),
  template: text(),
  position: integer(),
  segments: integer(),
  encoding: text({ enum: ['GSM-7', 'UCS-2'] }),
  errorClass: text('error_class', { enum: ['recipient', 'content', 'account', 'retryable', 'unknown'] }),
  reason: text(),
  providerMessageId: text('provider_message_id'),
  reportKey: key('report_key'),
  country: text(),
  lang: text(),
}

export const requests = pgTable(
  'requests',
  {
    requestId: key('request_id').primaryKey(),
    at: instant('at').notNull(),
    operation: text({ enum: ['send', 'resend', 'verify', 'notify'] }).notNull(),
    app: text().notNull(),
    brand: text(),
    channel: text({ enum: ['SMS', 'EMAIL'] }),
    recipient: text(),
    recipients: integer(),
    recipientHash: key('recipient_hash'),
    limits: text().notNull(),
    status: integer(),
    error: text(),
    message: text(),
    durationMs: integer('duration_ms'),
    attemptAt: instant('attempt_at'),
    provider: text(),
    outcome: text({ enum: ['accepted', 'rejected', 'retryable', 'unknown', 'skipped'] }),
    attemptDurationMs: integer('attempt_duration_ms'),
    reference: text(),
    guard: text(),
    unknownFields: text('unknown_fields'),
    ...attemptDetails,
  },
  (table) => [
    index('requests_by_recipient').on(table.recipientHash, table.requestId).where(sql`outcome IS NOT NULL`),
    check('requests_operation', sql`${table.operation} IN ('send', 'resend', 'verify', 'notify')`),
    check('requests_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check(
      'requests_outcome',
      sql`${table.outcome} IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped')`,
    ),
  ],
)

export const attempts = pgTable(
  'attempts',
  {
    requestId: key('request_id').notNull(),
    attempt: integer().notNull(),
    at: instant('at').notNull(),
    app: text().notNull(),
    brand: text(),
    channel: text({ enum: ['SMS', 'EMAIL'] }).notNull(),
    recipient: text().notNull(),
    recipientHash: key('recipient_hash').notNull(),
    provider: text().notNull(),
    outcome: text({ enum: ['accepted', 'rejected', 'retryable', 'unknown', 'skipped'] }).notNull(),
    durationMs: integer('duration_ms').notNull(),
    ...attemptDetails,
  },
  (table) => [
    primaryKey({ columns: [table.requestId, table.attempt] }),
    index('attempts_by_recipient').on(table.recipientHash, table.requestId),
    check('attempts_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check(
      'attempts_outcome',
      sql`${table.outcome} IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped')`,
    ),
  ],
)

export const deliveryReports = pgTable(
  'delivery_reports',
  {
    key: key('key').primaryKey(),
    status: text({ enum: ['pending', 'failed', 'delivered'] }).notNull(),
    reason: text(),
    at: instant('at').notNull(),
  },
  (table) => [
    index('delivery_reports_by_time').on(table.at),
    check('delivery_reports_status', sql`${table.status} IN ('pending', 'failed', 'delivered')`),
  ],
)

/** Each process writes its own `part`; readers add the parts up. */
export const stats = pgTable(
  'stats',
  {
    part: smallint().notNull(),
    stepMs: integer('step_ms').notNull(),
    at: instant('at').notNull(),
    kind: key('kind').$type<StatKey['kind']>().notNull(),
    channel: key('channel').$type<StatKey['channel']>().notNull(),
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
    index('stats_by_time').on(table.stepMs, table.at),
  ],
)

export const audit = pgTable(
  'audit',
  {
    id: bigint({ mode: 'number' }).primaryKey().generatedByDefaultAsIdentity(),
    at: instant('at').notNull(),
    by: text({ enum: ['command', 'console'] }).notNull(),
    name: text().notNull(),
    action: text().notNull(),
    target: text().notNull(),
    details: wordRecord().notNull(),
  },
  (table) => [
    check('audit_by', sql`${table.by} IN ('command', 'console')`),
    check('audit_details', sql`jsonb_typeof(${table.details}) = 'object'`),
  ],
)

export const consoleSessions = pgTable('console_sessions', {
  tokenSha256: key('token_sha256').primaryKey(),
  startedAt: instant('started_at').notNull(),
  lastSeenAt: instant('last_seen_at').notNull(),
  expiresAt: instant('expires_at').notNull(),
  by: text({ enum: ['password', 'link', 'passkey'] }).notNull(),
  operatorId: key('operator_id'),
  confirmedAt: instant('confirmed_at').notNull(),
  clientIp: text('client_ip').notNull(),
  device: text().notNull(),
})

export const operators = pgTable(
  'operators',
  {
    id: key('id').primaryKey(),
    email: key('email').notNull().unique(),
    role: text({ enum: ['viewer', 'operator', 'owner'] }).notNull(),
    passwordHash: text('password_hash'),
    totpSecret: text('totp_secret'),
    totpStep: bigint('totp_step', { mode: 'number' }).notNull(),
    createdAt: instant('created_at').notNull(),
    signedInAt: instant('signed_in_at'),
    failedSignIns: integer('failed_sign_ins').notNull(),
  },
  (table) => [check('operators_role', sql`${table.role} IN ('viewer', 'operator', 'owner')`)],
)

export const passkeys = pgTable('passkeys', {
  credentialId: key('credential_id').primaryKey(),
  operatorId: key('operator_id').notNull(),
  name: text().notNull(),
  publicKey: text('public_key').notNull(),
  signCount: bigint('sign_count', { mode: 'number' }).notNull(),
  transports: text().notNull(),
  createdAt: instant('created_at').notNull(),
  usedAt: instant('used_at').notNull(),
})

export const recoveryCodes = pgTable(
  'recovery_codes',
  { operatorId: key('operator_id').notNull(), codeSha256: key('code_sha256').notNull() },
  (table) => [primaryKey({ columns: [table.operatorId, table.codeSha256] })],
)

export const consoleLinks = pgTable('console_links', {
  tokenSha256: key('token_sha256').primaryKey(),
  expiresAt: instant('expires_at').notNull(),
  operatorId: key('operator_id'),
})

export const outbox = pgTable(
  'outbox',
  {
    id: bigint({ mode: 'number' }).primaryKey().generatedByDefaultAsIdentity(),
    createdAt: instant('created_at').notNull(),
    channel: text({ enum: ['SMS', 'EMAIL'] }).notNull(),
    recipient: text().notNull(),
    identity: text().notNull(),
    route: text({ enum: ['plain', 'template'] }),
    brandSlug: text('brand_slug'),
    brandName: text('brand_name'),
    subject: text(),
    text: text().notNull(),
    html: text(),
    templateKey: text('template_key'),
    variables: wordRecord(),
    requestId: text('request_id').notNull(),
  },
  (table) => [
    index('outbox_by_identity').on(table.identity, table.id),
    index('outbox_by_creation').on(table.createdAt),
    check('outbox_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check('outbox_route', sql`${table.route} IN ('plain', 'template')`),
  ],
)
