import { sql } from 'drizzle-orm'
import { check, index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { EventType, PreviousSecret } from '../../domain/ground/webhook-events.ts'
import type { StatKey } from '../../domain/log/stats.ts'
import type { TemplateRegistration } from '../../domain/texts/brand.ts'

// Instants are epoch milliseconds. `subject` is a keyed hash. Only the outbox has readable recipients.

/** Clustered by subject. No index by time, since every write would update it. */
export const codesAndLimits = sqliteTable(
  'codes_and_limits',
  {
    /** The keyed hash of a recipient or IP address, or an application. */
    subject: text().notNull(),
    /** A limit's name, or `code:` and the brand's slug. */
    name: text().notNull(),
    count: integer(),
    codeId: text('code_id'),
    codeHash: text('code_hash'),
    attempts: integer(),
    createdAt: integer('created_at'),
    expiresAt: integer('expires_at').notNull(),
    /** That a code was sent with. */
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
    registrations: text({ mode: 'json' }).$type<Readonly<Record<string, TemplateRegistration>>>().notNull(),
    /** BCP 47, of its texts without a language. */
    lang: text().notNull(),
    /** Of its Android app, 11 characters. */
    androidHash: text('android_hash'),
    logoUrl: text('logo_url'),
    /** `#rrggbb` */
    color: text(),
    /** URLs and phone numbers that its registered texts may contain. */
    dltAllowList: text('dlt_allow_list', { mode: 'json' }).$type<readonly string[]>().notNull(),
  },
  (table) => [
    index('brands_by_name').on(table.nameKey),
    check('brands_status', sql`${table.status} IN ('pending', 'active', 'suspended')`),
    check('brands_flags', sql`${table.dltEnabled} IN (0, 1) AND ${table.loginIdEnabled} IN (0, 1)`),
    check('brands_notify_templates', sql`json_type(${table.notifyTemplates}) = 'array'`),
  ],
)

/** Texts that replace built-in ones, and those of new templates. */
export const texts = sqliteTable(
  'texts',
  {
    brandSlug: text('brand_slug').notNull(),
    templateKey: text('template_key').notNull(),
    channel: text({ enum: ['SMS', 'EMAIL'] }).notNull(),
    lang: text().notNull(),
    subject: text(),
    text: text().notNull(),
    html: text(),
    version: integer().notNull(),
    updatedAt: integer('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.brandSlug, table.templateKey, table.channel, table.lang] }),
    check('texts_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
  ],
)

/** Declared variables of new templates. */
export const textVariables = sqliteTable(
  'text_variables',
  {
    brandSlug: text('brand_slug').notNull(),
    templateKey: text('template_key').notNull(),
    /** From 1. */
    position: integer().notNull(),
    name: text().notNull(),
    type: text({ enum: ['text', 'number', 'date', 'datetime', 'url'] }).notNull(),
    max: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.brandSlug, table.templateKey, table.position] }),
    check('text_variables_type', sql`${table.type} IN ('text', 'number', 'date', 'datetime', 'url')`),
  ],
)

export const appKeys = sqliteTable(
  'app_keys',
  {
    keySha256: text('key_sha256').primaryKey().notNull(),
    appId: text('app_id').notNull(),
    lastFour: text('last_four').notNull(),
    createdAt: integer('created_at').notNull(),
    revokedAt: integer('revoked_at'),
    lastUsedAt: integer('last_used_at'),
  },
  (table) => [
    index('app_keys_by_app').on(table.appId),
    check('app_keys_key', sql`length(${table.keySha256}) = 43`),
  ],
)

/** The scope of each app that has one. */
export const apps = sqliteTable(
  'apps',
  {
    appId: text('app_id').primaryKey().notNull(),
    allowsOtp: integer('allows_otp', { mode: 'boolean' }).notNull(),
    allowsNotify: integer('allows_notify', { mode: 'boolean' }).notNull(),
    /** Null: GLOBAL_LIMIT_PER_MINUTE. */
    perMinute: integer('per_minute'),
  },
  (table) => [check('apps_flags', sql`${table.allowsOtp} IN (0, 1) AND ${table.allowsNotify} IN (0, 1)`)],
)

/** An app without rows may use every brand. */
export const appBrands = sqliteTable(
  'app_brands',
  { appId: text('app_id').notNull(), brandSlug: text('brand_slug').notNull() },
  (table) => [primaryKey({ columns: [table.appId, table.brandSlug] })],
)

export const destinationRules = sqliteTable(
  'destination_rules',
  {
    /** A country such as `GB`, a prefix such as `+4479`, or `*`. */
    rule: text().notNull(),
    /** Empty: every brand. */
    brandSlug: text('brand_slug').notNull(),
    action: text({ enum: ['allow', 'monitor', 'block'] }).notNull(),
    /** Empty: all of the route. */
    providers: text({ mode: 'json' }).$type<readonly string[]>().notNull(),
    sender: text(),
    route: text({ enum: ['plain', 'template'] }),
  },
  (table) => [
    primaryKey({ columns: [table.rule, table.brandSlug] }),
    check('destination_rules_action', sql`${table.action} IN ('allow', 'monitor', 'block')`),
    check('destination_rules_route', sql`${table.route} IN ('plain', 'template')`),
    check('destination_rules_providers', sql`json_type(${table.providers}) = 'array'`),
  ],
)

/** Digits without the last four of a number, or fewer. */
export const guardPrefixes = sqliteTable(
  'guard_prefixes',
  {
    prefix: text().notNull(),
    by: text({ enum: ['guard', 'operator'] }).notNull(),
    action: text({ enum: ['allow', 'block'] }).notNull(),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.prefix, table.by] }),
    check('guard_prefixes_by', sql`${table.by} IN ('guard', 'operator')`),
    check('guard_prefixes_action', sql`${table.action} IN ('allow', 'block')`),
  ],
)

/** Each process writes its own rows. */
export const guardBuckets = sqliteTable(
  'guard_buckets',
  {
    kind: text({
      enum: ['country-hour', 'country-day', 'prefix', 'ip-hour', 'ip-day', 'ip-country', 'flagged'],
    }).notNull(),
    /** A country, a prefix, or the keyed hash of an IP address. */
    key: text().notNull(),
    node: text().notNull(),
    level: real().notNull(),
    sent: real().notNull(),
    verified: real().notNull(),
    updatedAt: integer('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.kind, table.key, table.node] }),
    index('guard_buckets_by_time').on(table.updatedAt),
  ],
)

/** When a recipient last verified a code. */
export const verifiedNumbers = sqliteTable('verified_numbers', {
  subject: text().primaryKey().notNull(),
  verifiedAt: integer('verified_at').notNull(),
})

export const prices = sqliteTable(
  'prices',
  {
    /** An import writes a new generation. */
    generation: integer().notNull(),
    /** Empty: every provider. */
    provider: text().notNull(),
    prefix: text().notNull(),
    /** Per segment, in millionths of the currency. */
    priceMicros: integer('price_micros').notNull(),
    currency: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.generation, table.provider, table.prefix] })],
)

/** The generation of each provider's prices in force. */
export const priceLists = sqliteTable('price_lists', {
  provider: text().primaryKey().notNull(),
  generation: integer(),
  next: integer(),
})

export const budgets = sqliteTable(
  'budgets',
  {
    /** `server`, `brand:SLUG`, `app:APPID` or `country:CC`. */
    scope: text().primaryKey().notNull(),
    period: text({ enum: ['day', 'month'] }).notNull(),
    amountMicros: integer('amount_micros').notNull(),
    /** ISO 4217, or `units`. */
    currency: text().notNull(),
    /** In percent. */
    alertAt: text('alert_at', { mode: 'json' }).$type<readonly number[]>().notNull(),
    stops: integer({ mode: 'boolean' }).notNull(),
    /** Until then, the budget does not stop messages. */
    liftedUntil: integer('lifted_until'),
    countsFrom: integer('counts_from').notNull(),
  },
  (table) => [
    check('budgets_period', sql`${table.period} IN ('day', 'month')`),
    check('budgets_flags', sql`${table.stops} IN (0, 1)`),
    check('budgets_alerts', sql`json_type(${table.alertAt}) = 'array'`),
  ],
)

export const alerts = sqliteTable('alerts', {
  /** Unique for what it is about, so that each alert is written once. */
  key: text().primaryKey().notNull(),
  at: integer().notNull(),
  kind: text().notNull(),
  title: text().notNull(),
  text: text().notNull(),
})

/** Deleted after a success and after the last try. */
export const alertDeliveries = sqliteTable(
  'alert_deliveries',
  {
    key: text().notNull(),
    channel: text({ enum: ['email', 'webhook'] }).notNull(),
    tries: integer().notNull(),
    dueAt: integer('due_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.key, table.channel] }),
    check('alert_deliveries_channel', sql`${table.channel} IN ('email', 'webhook')`),
  ],
)

/** One row; the number grows when a policy changes. */
export const revision = sqliteTable(
  'revision',
  { id: integer().primaryKey().notNull(), number: integer().notNull() },
  (table) => [check('revision_one_row', sql`${table.id} = 1`)],
)

/** Numbers whose codes of a brand are one fixed code that is not sent. */
export const reviewNumbers = sqliteTable(
  'review_numbers',
  {
    subject: text().notNull(),
    brandSlug: text('brand_slug').notNull(),
    /** The keyed hash of the fixed code. */
    keyedCode: text('keyed_code').notNull(),
    masked: text().notNull(),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.subject, table.brandSlug] })],
)

/** Where events of an app go. */
export const webhooks = sqliteTable(
  'webhooks',
  {
    appId: text('app_id').primaryKey().notNull(),
    url: text().notNull(),
    /** `whsec_…`, which signs. */
    secret: text().notNull(),
    /** They sign too, each until its time. */
    previousSecrets: text('previous_secrets', { mode: 'json' }).$type<readonly PreviousSecret[]>().notNull(),
    /** Empty: all. */
    eventTypes: text('event_types', { mode: 'json' }).$type<readonly EventType[]>().notNull(),
    createdAt: integer('created_at').notNull(),
    /** Switched off, since an event failed at its last try or the receiver answered 410. */
    disabledAt: integer('disabled_at'),
  },
  (table) => [
    check('webhooks_event_types', sql`json_type(${table.eventTypes}) = 'array'`),
    check('webhooks_previous_secrets', sql`json_type(${table.previousSecrets}) = 'array'`),
  ],
)

/** Written with the change itself. A state `new` has only the first columns, up to `reason`. */
export const events = sqliteTable(
  'events',
  {
    /** The `webhook-id`; begins with its time. */
    id: text().primaryKey().notNull(),
    at: integer().notNull(),
    type: text().$type<EventType>().notNull(),
    /** Of the send or notify. Null: known by `reportKey`. */
    requestId: text('request_id'),
    reportKey: text('report_key'),
    /** As in attempts. */
    position: integer(),
    /** Of the message. */
    status: text({ enum: ['delivered', 'failed', 'unknown'] }),
    reason: text(),
    state: text({ enum: ['new', 'waiting', 'delivered', 'failed'] }).notNull(),
    appId: text('app_id'),
    brand: text(),
    channel: text({ enum: ['SMS', 'EMAIL'] }),
    /** Masked. */
    recipient: text(),
    reference: text(),
    tries: integer().notNull(),
    /** Of the next try; while a try is in progress, when its lease ends. */
    dueAt: integer('due_at').notNull(),
    /** When the latest try began. Later than now: the clock was set back. */
    triedAt: integer('tried_at'),
    /** Of the latest try. */
    httpStatus: integer('http_status'),
    error: text(),
    endedAt: integer('ended_at'),
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
export const idempotencyKeys = sqliteTable(
  'idempotency_keys',
  {
    /** The keyed hash of the app, path and key; the subject of the limit. */
    hash: text().primaryKey().notNull(),
    requestId: text('request_id').notNull(),
    bodyHash: text('body_hash').notNull(),
    /** The process that handles the request. */
    owner: text().notNull(),
    expiresAt: integer('expires_at').notNull(),
    /** Null: in progress. */
    status: integer(),
    /** The body of the answer as JSON. */
    answer: text(),
  },
  (table) => [index('idempotency_keys_by_expiry').on(table.expiresAt)],
)

/** What the jobs of a request send. Deleted some time after the last job ended. */
export const notifyOrders = sqliteTable('notify_orders', {
  requestId: text('request_id').primaryKey().notNull(),
  appId: text('app_id').notNull(),
  brandSlug: text('brand_slug'),
  channel: text({ enum: ['SMS', 'EMAIL'] }).notNull(),
  reference: text(),
  /** Encrypted: text, template and variables of an SMS, or subject, text and HTML of a mail, as JSON. */
  content: text().notNull(),
  createdAt: integer('created_at').notNull(),
  /** No try begins later. */
  expiresAt: integer('expires_at').notNull(),
})

/** One recipient of an asynchronous notification. */
export const notifyJobs = sqliteTable(
  'notify_jobs',
  {
    requestId: text('request_id').notNull(),
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
    dueAt: integer('due_at').notNull(),
    /** The process that sends it. */
    owner: text(),
    updatedAt: integer('updated_at').notNull(),
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
    reason: text(),
    appId: text('app_id'),
    brandSlug: text('brand_slug'),
  },
  (table) => [
    check('integration_requests_status', sql`${table.status} IN ('pending', 'approved', 'rejected')`),
    check('integration_requests_channels', sql`json_type(${table.channels}) = 'array'`),
  ],
)

// A request ID begins with its time, so requests need no index by time.

const attemptDetails = {
  route: text({ enum: ['plain', 'template'] }),
  template: text(),
  /** The recipient's number within the request, from 1. Null: the only recipient. */
  position: integer(),
  segments: integer(),
  encoding: text({ enum: ['GSM-7', 'UCS-2'] }),
  errorClass: text('error_class', { enum: ['recipient', 'content', 'account', 'retryable', 'unknown'] }),
  reason: text(),
  providerMessageId: text('provider_message_id'),
  reportKey: text('report_key'),
  /** ISO 3166-1, of a phone number. */
  country: text(),
  /** BCP 47, of the text. Null: the caller wrote the message. */
  lang: text(),
}

/** A request of an app and its first attempt. No text and no code; the recipient is hashed and masked. */
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
    recipientHash: text('recipient_hash'),
    limits: text().notNull(),
    status: integer(),
    error: text(),
    message: text(),
    durationMs: integer('duration_ms'),
    attemptAt: integer('attempt_at'),
    provider: text(),
    outcome: text({ enum: ['accepted', 'rejected', 'retryable', 'unknown', 'skipped'] }),
    attemptDurationMs: integer('attempt_duration_ms'),
    /** The caller's. */
    reference: text(),
    /** Why the guard would have rejected it, such as `prefix`. */
    guard: text(),
    /** Names, such as `clientIP colour`. */
    unknownFields: text('unknown_fields'),
    ...attemptDetails,
  },
  (table) => [
    check('requests_operation', sql`${table.operation} IN ('send', 'resend', 'verify', 'notify')`),
    check('requests_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check(
      'requests_outcome',
      sql`${table.outcome} IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped')`,
    ),
  ],
)

export const attempts = sqliteTable(
  'attempts',
  {
    requestId: text('request_id').notNull(),
    /** From 1. The first is in `requests`, unless that row was deleted. */
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
    check('attempts_channel', sql`${table.channel} IN ('SMS', 'EMAIL')`),
    check(
      'attempts_outcome',
      sql`${table.outcome} IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped')`,
    ),
  ],
)

/** Request IDs by the recipients of their attempts; recipient-index.ts says how it is filled. */
export const recipientIndex = sqliteTable(
  'recipient_index',
  {
    indexedBefore: integer('indexed_before').notNull(),
    recipientHash: text('recipient_hash').notNull(),
    requestId: text('request_id').notNull(),
  },
  (table) => [primaryKey({ columns: [table.indexedBefore, table.recipientHash, table.requestId] })],
)

/** The latest report of each message; it may arrive before its attempt is saved. */
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

/** Counters by minute, hour and day. No part of a key comes from a caller. */
export const stats = sqliteTable(
  'stats',
  {
    stepMs: integer('step_ms').notNull(),
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

export const audit = sqliteTable(
  'audit',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    at: integer().notNull(),
    by: text({ enum: ['command', 'console'] }).notNull(),
    name: text().notNull(),
    action: text().notNull(),
    target: text().notNull(),
    details: text({ mode: 'json' }).$type<Readonly<Record<string, string>>>().notNull(),
  },
  (table) => [
    check('audit_by', sql`${table.by} IN ('command', 'console')`),
    check('audit_details', sql`json_type(${table.details}) = 'object'`),
  ],
)

export const consoleSessions = sqliteTable('console_sessions', {
  tokenSha256: text('token_sha256').primaryKey().notNull(),
  startedAt: integer('started_at').notNull(),
  lastSeenAt: integer('last_seen_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
  by: text({ enum: ['password', 'link', 'passkey'] }).notNull(),
  /** Null: `otpost admin link`. */
  operatorId: text('operator_id'),
  /** Of the last password, code, passkey or link. */
  confirmedAt: integer('confirmed_at').notNull(),
  clientIp: text('client_ip').notNull(),
  /** Such as `Firefox on Linux`. */
  device: text().notNull(),
})

export const operators = sqliteTable(
  'operators',
  {
    id: text().primaryKey().notNull(),
    email: text().notNull().unique(),
    role: text({ enum: ['viewer', 'operator', 'owner'] }).notNull(),
    passwordHash: text('password_hash'),
    /** Encrypted with the secret key. */
    totpSecret: text('totp_secret'),
    /** RFC 6238: the time step of the last accepted code. */
    totpStep: integer('totp_step').notNull(),
    createdAt: integer('created_at').notNull(),
    signedInAt: integer('signed_in_at'),
    /** Since the last sign-in. */
    failedSignIns: integer('failed_sign_ins').notNull(),
  },
  (table) => [check('operators_role', sql`${table.role} IN ('viewer', 'operator', 'owner')`)],
)

export const passkeys = sqliteTable('passkeys', {
  credentialId: text('credential_id').primaryKey().notNull(),
  operatorId: text('operator_id').notNull(),
  name: text().notNull(),
  publicKey: text('public_key').notNull(),
  signCount: integer('sign_count').notNull(),
  /** Comma-separated. */
  transports: text().notNull(),
  createdAt: integer('created_at').notNull(),
  /** A challenge that is not newer cannot be used. */
  usedAt: integer('used_at').notNull(),
})

export const recoveryCodes = sqliteTable(
  'recovery_codes',
  { operatorId: text('operator_id').notNull(), codeSha256: text('code_sha256').notNull() },
  (table) => [primaryKey({ columns: [table.operatorId, table.codeSha256] })],
)

export const keyFingerprints = sqliteTable('key_fingerprints', {
  fingerprint: text().primaryKey().notNull(),
})

export const consoleLinks = sqliteTable('console_links', {
  tokenSha256: text('token_sha256').primaryKey().notNull(),
  expiresAt: integer('expires_at').notNull(),
  /** Of an invitation. */
  operatorId: text('operator_id'),
})

export const outbox = sqliteTable(
  'outbox',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    createdAt: integer('created_at').notNull(),
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
