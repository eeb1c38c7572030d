import { sql } from 'drizzle-orm'
import type { ConsoleSession } from '../../domain/accounts/sessions.ts'
import type { Channel } from '../../domain/ground/contact.ts'
import type { Role } from '../../domain/ground/role.ts'
import { dayMs } from '../../domain/ground/time.ts'
import type { EventType, PreviousSecret } from '../../domain/ground/webhook-events.ts'
import type { BucketRow } from '../../domain/guard/bucket.ts'
import type { StatKey } from '../../domain/log/stats.ts'
import type { RelayKindName } from '../../domain/policy/relay.ts'
import type { Attempt } from '../../domain/request/request-context.ts'
import type { TemplateRegistration } from '../../domain/texts/brand.ts'
import type { DeclaredVariable } from '../../domain/texts/brand-texts.ts'
import {
  count,
  flag,
  id,
  instant,
  integer,
  json,
  key,
  oneOf,
  real,
  small,
  table,
  tableOf,
  text,
} from './dialect.ts'
import { firstIdOf } from './request-ids.ts'

// Instants are epoch milliseconds. `subject` is a keyed hash. Only the outbox has readable recipients.
// A request ID begins with its time, so requests need no index by time.

/** All null in a request without attempts. */
const attemptDetails = {
  route: text<NonNullable<Attempt['route']>>().orNull(),
  template: text().orNull(),
  /** The recipient's number within the request, from 1. Null: the only recipient. */
  position: integer().orNull(),
  segments: integer().orNull(),
  encoding: text<'GSM-7' | 'UCS-2'>().orNull(),
  errorClass: text<NonNullable<Attempt['errorClass']>>().orNull(),
  reason: text().orNull(),
  providerMessageId: text().orNull(),
  reportKey: key().orNull(),
  /** ISO 3166-1, of a phone number. */
  country: text().orNull(),
  /** BCP 47, of the text. Null: the caller wrote the message. */
  lang: text().orNull(),
}

/** In an order in which a table comes after those that it names. */
export const schema = {
  /** Clustered by subject. No index by time: every write would update it, and PostgreSQL keeps updates in their page (HOT). */
  codesAndLimits: table(
    'codes_and_limits',
    {
      /** The keyed hash of a recipient or IP address, or an application. */
      subject: key(),
      /** A limit's name, or `code:` and the brand's slug. */
      name: key(),
      /** Of a limit. A code has the other columns. */
      count: count().orNull(),
      codeId: text().orNull(),
      codeHash: text().orNull(),
      attempts: integer().orNull(),
      createdAt: instant().orNull().shifted(),
      expiresAt: instant().shifted(),
      /** That a code was sent with. */
      provider: text().orNull(),
      providerMessageId: text().orNull(),
    },
    {
      key: ['subject', 'name'],
      checks: {
        codes_and_limits_kind: ({ count, codeHash, codeId, attempts, createdAt }) =>
          sql`(${count} IS NULL) <> (${codeHash} IS NULL)
        AND (${codeHash} IS NULL) = (${codeId} IS NULL)
        AND (${codeHash} IS NULL) = (${attempts} IS NULL)
        AND (${codeHash} IS NULL) = (${createdAt} IS NULL)`,
      },
      moved: 'limits and codes',
      forgotten: {
        by: 'subject',
        is: 'hash',
        called: ['record of limits and codes', 'records of limits and codes'],
      },
      distributed: { by: 'subject' },
    },
  ),

  /** Idempotency keys. A limit of one in `codes_and_limits` makes each unique. */
  idempotencyKeys: table(
    'idempotency_keys',
    {
      /** The keyed hash of the app, path and key; the subject of the limit. */
      hash: key().primary(),
      requestId: key(),
      bodyHash: text(),
      /** The process that handles the request. */
      owner: text(),
      expiresAt: instant(),
      /** Null: in progress. */
      status: integer().orNull(),
      /** The body of the answer as JSON. */
      answer: text().orNull(),
    },
    {
      indexes: { idempotency_keys_by_expiry: ['expiresAt'] },
      moved: 'idempotency keys',
      expired: ({ expiresAt }, { now }) => sql`${expiresAt} <= ${now}`,
      expiredBy: 'expiresAt',
      distributed: { by: 'hash', like: 'codes_and_limits' },
    },
  ),

  /** A request of an app and its first attempt. No text and no code; the recipient is hashed and masked. */
  requests: table(
    'requests',
    {
      requestId: key().primary(),
      at: instant(),
      operation: oneOf('send', 'resend', 'verify', 'notify', 'relay'),
      app: text(),
      brand: text().orNull(),
      channel: oneOf('SMS', 'EMAIL').orNull(),
      /** The first attempt's recipient if there are several, as is the hash. */
      recipient: text().orNull(),
      recipients: integer().orNull(),
      recipientHash: key().orNull(),
      /** Such as `cooldown 1/1 in 30000, app-minute 10/10 in 12000 refused`. */
      limits: text(),
      status: integer().orNull(),
      error: text().orNull(),
      message: text().orNull(),
      durationMs: integer().orNull(),
      attemptAt: instant().orNull(),
      provider: text().orNull(),
      outcome: oneOf('accepted', 'rejected', 'retryable', 'unknown', 'skipped').orNull(),
      attemptDurationMs: integer().orNull(),
      /** The caller's. */
      reference: text().orNull(),
      /** Flags, such as `prefix` or `destination country-hour`: why the guard would have rejected it; or `other-amount`. */
      guard: text().orNull(),
      /** Names, such as `clientIP colour`. */
      unknownFields: text().orNull(),
      ...attemptDetails,
    },
    {
      postgresIndexes: {
        requests_by_recipient: { on: ['recipientHash', 'requestId'], where: 'outcome IS NOT NULL' },
      },
      moved: 'requests',
      expired: ({ requestId }, { eventLog }) => sql`${requestId} < ${firstIdOf(eventLog)}`,
      distributed: { by: 'requestId', isBatched: true },
    },
  ),

  attempts: table(
    'attempts',
    {
      requestId: key(),
      /** From 1. The first is in `requests`, unless that row was deleted. */
      attempt: integer(),
      at: instant(),
      app: text(),
      brand: text().orNull(),
      channel: oneOf('SMS', 'EMAIL'),
      recipient: text(),
      recipientHash: key(),
      provider: text(),
      outcome: oneOf('accepted', 'rejected', 'retryable', 'unknown', 'skipped'),
      durationMs: integer(),
      ...attemptDetails,
    },
    {
      key: ['requestId', 'attempt'],
      postgresIndexes: { attempts_by_recipient: { on: ['recipientHash', 'requestId'] } },
      moved: 'further attempts',
      expired: ({ requestId }, { eventLog }) => sql`${requestId} < ${firstIdOf(eventLog)}`,
      distributed: { by: 'requestId', like: 'requests' },
    },
  ),

  /** Request IDs by the recipients of their attempts; recipient-index.ts says how it is filled. */
  recipientIndex: tableOf(
    'sqlite',
    'recipient_index',
    { indexedBefore: instant(), recipientHash: key(), requestId: key() },
    {
      key: ['indexedBefore', 'recipientHash', 'requestId'],
      // All requests of a run are older than its `indexed_before`.
      expired: ({ indexedBefore }, { eventLog }) => sql`${indexedBefore} <= ${eventLog}`,
    },
  ),

  /** The latest report of each message; it may arrive before its attempt is saved. */
  deliveryReports: table(
    'delivery_reports',
    {
      key: key().primary(),
      status: oneOf('pending', 'failed', 'delivered'),
      reason: text().orNull(),
      at: instant(),
    },
    {
      indexes: { delivery_reports_by_time: ['at'] },
      moved: 'delivery reports',
      expired: ({ at }, { eventLog }) => sql`${at} < ${eventLog}`,
      expiredBy: 'at',
      distributed: { by: 'key' },
    },
  ),

  /** Counters by minute, hour and day. No part of a key comes from a caller. */
  stats: table(
    'stats',
    {
      /** Each process writes its own; readers add the parts up. */
      part: small().onPostgres(),
      stepMs: integer(),
      at: instant(),
      kind: key<StatKey['kind']>(),
      channel: key<StatKey['channel']>(),
      brand: key(),
      provider: key(),
      detail: key(),
      /** Empty: not counted by app. */
      app: key(),
      count: count(),
    },
    {
      key: ['part', 'stepMs', 'at', 'kind', 'channel', 'brand', 'provider', 'detail', 'app'],
      postgresIndexes: { stats_by_time: { on: ['stepMs', 'at'] } },
      moved: 'statistics',
      distributed: { by: 'part' },
    },
  ),

  /** What the jobs of a request send. Deleted some time after the last job ended. */
  notifyOrders: table(
    'notify_orders',
    {
      requestId: key().primary(),
      appId: text(),
      brandSlug: text().orNull(),
      channel: text<Channel>(),
      reference: text().orNull(),
      /** Encrypted: text, template and variables of an SMS, or subject, text and HTML of a mail, as JSON. */
      content: text(),
      createdAt: instant(),
      /** No try begins later. */
      expiresAt: instant().shifted(),
    },
    {
      hasRowId: true,
      moved: 'queued notifications',
      expired: ({ requestId }, { jobs }) => sql`${requestId} < ${firstIdOf(jobs)}`,
      distributed: { by: 'requestId', like: 'requests' },
    },
  ),

  /** One recipient of an asynchronous notification. */
  notifyJobs: table(
    'notify_jobs',
    {
      requestId: key(),
      appId: text(),
      /** Of the recipient in `to`, from 1. */
      position: integer(),
      state: oneOf('queued', 'sending', 'accepted', 'failed', 'unknown', 'cancelled'),
      /** Encrypted. Null once it is not needed. */
      recipient: text().orNull(),
      recipientHash: text(),
      masked: text(),
      tries: integer(),
      /** Attempts at providers so far. */
      attempts: integer(),
      dueAt: instant().shifted(),
      /** The process that sends it. */
      owner: text().orNull(),
      updatedAt: instant(),
      reason: text().orNull(),
    },
    {
      key: ['requestId', 'position'],
      indexes: {
        notify_jobs_by_state: ['state', 'dueAt'],
        notify_jobs_by_app: ['state', 'appId', 'dueAt'],
        notify_jobs_by_recipient: ['recipientHash'],
      },
      moved: 'jobs of notifications',
      expired: ({ requestId }, { jobs }) => sql`${requestId} < ${firstIdOf(jobs)}`,
      distributed: { by: 'requestId', like: 'requests' },
    },
  ),

  /** The further ways of codes, and why others have none: `LadderRow` describes the columns. */
  ladders: table(
    'ladders',
    {
      requestId: key().primary(),
      subject: key(),
      sealed: text(),
      ways: text(),
      reportKey: key().orNull(),
      reportKeys: text(),
      causes: text(),
      sentAt: instant().orNull().shifted(),
      attempts: integer(),
      dueAt: instant().orNull().shifted(),
      ended: text().orNull(),
      expiresAt: instant().shifted(),
    },
    {
      indexes: {
        ladders_by_due: ['dueAt'],
        ladders_by_report: ['reportKey'],
        ladders_by_subject: ['subject'],
      },
      checks: { ladders_ended: ({ ended, dueAt }) => sql`(${ended} IS NULL) = (${dueAt} IS NOT NULL)` },
      hasRowId: true,
      moved: 'ladders of codes',
      isNotRestored: true,
      forgotten: { by: 'subject', is: 'hash', called: ['ladder of a code', 'ladders of codes'] },
      expired: ({ requestId }, { eventLog }) => sql`${requestId} < ${firstIdOf(eventLog)}`,
      distributed: { by: 'requestId', like: 'requests' },
    },
  ),

  /** Written with the change itself. A state `new` has only the first columns, up to `reason`. */
  events: table(
    'events',
    {
      /** The `webhook-id`; begins with its time. */
      id: key().primary(),
      at: instant(),
      type: text<EventType>(),
      /** Of the send or notify. Null: known by `reportKey`. */
      requestId: key().orNull(),
      reportKey: text().orNull(),
      /** As in attempts. */
      position: integer().orNull(),
      /** Of the message. */
      status: oneOf('delivered', 'failed', 'unknown').orNull(),
      reason: text().orNull(),
      state: oneOf('new', 'waiting', 'delivered', 'failed'),
      appId: key().orNull(),
      brand: text().orNull(),
      channel: text<Channel>().orNull(),
      /** Masked. */
      recipient: text().orNull(),
      reference: text().orNull(),
      tries: integer(),
      /** Of the next try; while a try is in progress, when its lease ends. */
      dueAt: instant(),
      /** When the latest try began. Later than now: the clock was set back. */
      triedAt: instant().orNull(),
      /** Of the latest try. */
      httpStatus: integer().orNull(),
      error: text().orNull(),
      /** The body, if the receiver did not accept the event: short, and without secrets. */
      answer: text().orNull(),
      endedAt: instant().orNull(),
    },
    {
      indexes: {
        events_by_state: ['state', 'dueAt', 'appId'],
        events_by_app: ['appId', 'id'],
        events_by_request: ['requestId'],
      },
      checks: {
        events_subject: ({ requestId, reportKey }) =>
          sql`${requestId} IS NOT NULL OR ${reportKey} IS NOT NULL`,
      },
      hasRowId: true,
      moved: 'events',
      expired: ({ id }, { now }) => sql`${id} < ${firstIdOf(now - 7 * dayMs)}`,
    },
  ),

  /** Where events of an app go. */
  webhooks: table(
    'webhooks',
    {
      appId: key().primary(),
      url: text(),
      /** `whsec_…`, which signs. */
      secret: text(),
      /** They sign too, each until its time. */
      previousSecrets: json<readonly PreviousSecret[]>('array'),
      /** Empty: all. */
      eventTypes: json<readonly EventType[]>('array'),
      createdAt: instant(),
      /** Switched off, since an event failed at its last try or the receiver answered 410. */
      disabledAt: instant().orNull(),
    },
    { moved: 'webhooks' },
  ),

  brands: table(
    'brands',
    {
      slug: key().primary(),
      displayName: text(),
      nameKey: key(),
      status: oneOf('pending', 'active', 'suspended'),
      notifyTemplates: json<readonly string[]>('array'),
      dltEnabled: flag(),
      loginIdEnabled: flag(),
      domain: text().orNull(),
      entityId: text().orNull(),
      registrations: json<Readonly<Record<string, TemplateRegistration>>>('object'),
      /** BCP 47, of its texts without a language. */
      lang: text(),
      /** Of its Android app, 11 characters. */
      androidHash: text().orNull(),
      logoUrl: text().orNull(),
      linkUrl: text().orNull(),
      /** `#rrggbb` */
      color: text().orNull(),
      /** URLs and phone numbers that its registered texts may contain. */
      dltAllowList: json<readonly string[]>('array'),
    },
    { indexes: { brands_by_name: ['nameKey'] }, moved: 'brands' },
  ),

  /** Texts that replace built-in ones, those of new templates, and drafts. */
  texts: table(
    'texts',
    {
      brandSlug: key(),
      templateKey: key(),
      channel: oneOf('SMS', 'EMAIL'),
      lang: key(),
      isDraft: flag(),
      subject: text().orNull(),
      text: text(),
      html: text().orNull(),
      version: integer(),
      updatedAt: instant(),
      /** Of a draft of a new template. */
      variables: json<readonly DeclaredVariable[]>('array').orNull(),
    },
    { key: ['brandSlug', 'templateKey', 'channel', 'lang', 'isDraft'], moved: 'texts' },
  ),

  /** Declared variables of new templates. */
  textVariables: table(
    'text_variables',
    {
      brandSlug: key(),
      templateKey: key(),
      /** From 1. */
      position: integer(),
      name: text(),
      type: oneOf('text', 'number', 'date', 'datetime', 'url'),
      max: count(),
    },
    { key: ['brandSlug', 'templateKey', 'position'], moved: 'variables of texts' },
  ),

  appKeys: table(
    'app_keys',
    {
      keySha256: key().primary(),
      appId: key(),
      lastFour: text(),
      createdAt: instant(),
      revokedAt: instant().orNull(),
      lastUsedAt: instant().orNull(),
      /** The network of the IP address: a /24 or /48. */
      lastUsedFrom: text().orNull(),
    },
    {
      indexes: { app_keys_by_app: ['appId'] },
      checks: { app_keys_key: ({ keySha256 }) => sql`length(${keySha256}) = 43` },
      moved: 'API keys',
    },
  ),

  /** The scope of each app that has one. */
  apps: table(
    'apps',
    {
      appId: key().primary(),
      allowsOtp: flag(),
      allowsNotify: flag(),
      /** Null: GLOBAL_LIMIT_PER_MINUTE. */
      perMinute: integer().orNull(),
      /** Null: no limit. */
      newCountrySmsPerDay: integer().orNull(),
    },
    { moved: 'scopes of apps' },
  ),

  /** An app without rows may use every brand. */
  appBrands: table(
    'app_brands',
    { appId: key(), brandSlug: key() },
    { key: ['appId', 'brandSlug'], moved: 'brands of scopes' },
  ),

  destinationRules: table(
    'destination_rules',
    {
      /** A country such as `GB`, a prefix such as `+4479`, or `*`. */
      rule: key(),
      /** Empty: every brand. */
      brandSlug: key(),
      action: oneOf('allow', 'monitor', 'block'),
      /** Empty: all of the route. */
      providers: json<readonly string[]>('array'),
      sender: text().orNull(),
      route: oneOf('plain', 'template').orNull(),
    },
    { key: ['rule', 'brandSlug'], moved: 'destination rules' },
  ),

  /** Digits without the last four of a number, or fewer. */
  guardPrefixes: table(
    'guard_prefixes',
    {
      prefix: key(),
      by: oneOf('guard', 'operator'),
      action: oneOf('allow', 'block'),
      createdAt: instant(),
      expiresAt: instant().shifted(),
    },
    {
      key: ['prefix', 'by'],
      moved: 'prefixes of the guard',
      expired: ({ expiresAt }, { now }) => sql`${expiresAt} <= ${now - 7 * dayMs}`,
    },
  ),

  /** One row. None: no server has started. */
  guardMode: table(
    'guard_mode',
    {
      id: small().primary(),
      mode: oneOf('off', 'record', 'deny'),
      /** In place of `mode` until it ends. */
      temporaryMode: oneOf('off', 'record', 'deny').orNull(),
      since: instant().shifted().orNull(),
      until: instant().shifted().orNull(),
    },
    {
      checks: { guard_mode_one_row: ({ id }) => sql`${id} = 1` },
      hasRowId: true,
      moved: 'mode of the guard',
    },
  ),

  /** Each process writes its own rows. */
  guardBuckets: table(
    'guard_buckets',
    {
      kind: text<BucketRow['kind']>(),
      /** A country, a prefix, or the keyed hash of an IP address. */
      key: key(),
      node: key(),
      level: real(),
      sent: real(),
      verified: real(),
      updatedAt: instant(),
    },
    {
      key: ['kind', 'key', 'node'],
      indexes: { guard_buckets_by_time: ['updatedAt'] },
      expired: ({ updatedAt }, { now }) => sql`${updatedAt} < ${now - 2 * dayMs}`,
      expiredBy: 'updatedAt',
    },
  ),

  /** When a recipient last verified a code. */
  verifiedNumbers: table(
    'verified_numbers',
    { subject: key().primary(), verifiedAt: instant() },
    {
      moved: 'verified numbers',
      forgotten: { by: 'subject', is: 'hash', called: ['verified number', 'verified numbers'] },
    },
  ),

  /** Numbers whose codes of a brand are one fixed code that is not sent. */
  reviewNumbers: table(
    'review_numbers',
    {
      subject: key(),
      brandSlug: key(),
      /** The keyed hash of the fixed code. */
      keyedCode: text(),
      masked: text(),
      createdAt: instant(),
      expiresAt: instant(),
    },
    {
      key: ['subject', 'brandSlug'],
      moved: 'review numbers',
      isCached: true,
      forgotten: { by: 'subject', is: 'hash', called: ['review number', 'review numbers'] },
    },
  ),

  /** Endpoints that identity systems call to have their codes delivered. */
  relays: table(
    'relays',
    {
      name: key().primary(),
      kind: text<RelayKindName>(),
      brandSlug: key(),
      /** Null: the relay has a limit of its own. */
      appId: key().orNull(),
      /** Encrypted under the secret key. */
      sealedSecret: text(),
      user: text(),
      minutes: small(),
      reportsVerified: flag(),
      createdAt: instant(),
    },
    { moved: 'relays' },
  ),

  /** Of the management API. */
  manageTokens: table(
    'manage_tokens',
    {
      name: key().primary(),
      /** The hash of the token, which only its owner has. */
      sha256: text(),
      role: text<Role>(),
      createdAt: instant(),
      expiresAt: instant().orNull(),
    },
    { moved: 'management tokens' },
  ),

  prices: table(
    'prices',
    {
      /** An import writes a new generation. */
      generation: integer(),
      /** Empty: every provider. */
      provider: key(),
      prefix: key(),
      /** Per segment, in millionths of the currency. */
      priceMicros: count(),
      currency: text(),
    },
    { key: ['generation', 'provider', 'prefix'], moved: 'prices' },
  ),

  /** The generation of each provider's prices in force. */
  priceLists: table(
    'price_lists',
    {
      /** Empty: every provider. */
      provider: key().primary(),
      /** Null: none is in force yet. */
      generation: integer().orNull(),
      /** Announced: it will be in force soon. */
      next: integer().orNull(),
    },
    { moved: 'price lists' },
  ),

  /** An expired one has no effect. */
  providerPauses: table(
    'provider_pauses',
    { provider: key().primary(), until: instant().shifted() },
    { moved: 'pauses of providers', expired: ({ until }, { now }) => sql`${until} <= ${now}` },
  ),

  /** One row. None: the defaults. */
  incidentThresholds: table(
    'incident_thresholds',
    { id: small().primary(), failedPercent: small(), silentMinutes: small() },
    {
      checks: { incident_thresholds_one_row: ({ id }) => sql`${id} = 1` },
      hasRowId: true,
      moved: 'thresholds of incidents',
    },
  ),

  /** Of incidents, each in force until it ends. */
  acknowledgements: table(
    'acknowledgements',
    { about: key().primary(), at: instant(), by: text() },
    { moved: 'acknowledgements' },
  ),

  budgets: table(
    'budgets',
    {
      /** `server`, `brand:SLUG`, `app:APPID`, `country:CC` or `country:*`. */
      scope: key(),
      of: oneOf('all', 'codes', 'notifications'),
      period: oneOf('day', 'month'),
      amountMicros: count(),
      /** ISO 4217, or `units`. */
      currency: text(),
      /** In percent. */
      alertAt: json<readonly number[]>('array'),
      stops: flag(),
      /** Until then, the budget does not stop messages. */
      liftedUntil: instant().orNull().shifted(),
      countsFrom: instant(),
    },
    { key: ['scope', 'of'], moved: 'budgets' },
  ),

  alerts: table(
    'alerts',
    {
      /** Unique for what it is about, so that each alert is written once. */
      key: key().primary(),
      at: instant(),
      kind: text(),
      title: text(),
      text: text(),
    },
    { moved: 'alerts', expired: ({ at }, { now }) => sql`${at} < ${now - 90 * dayMs}` },
  ),

  /** Deleted after a success and after the last try. */
  alertDeliveries: table(
    'alert_deliveries',
    { key: key(), channel: oneOf('email', 'webhook'), tries: integer(), dueAt: instant().shifted() },
    {
      key: ['key', 'channel'],
      moved: 'waiting alerts',
      isNotRestored: true,
      expired: ({ dueAt }, { now }) => sql`${dueAt} < ${now - 90 * dayMs}`,
    },
  ),

  integrationRequests: table(
    'integration_requests',
    {
      id: key().primary(),
      createdAt: instant(),
      status: oneOf('pending', 'approved', 'rejected'),
      companyName: text(),
      contactName: text(),
      contactEmail: text(),
      brandName: text(),
      channels: json<readonly Channel[]>('array'),
      website: text().orNull(),
      useCase: text().orNull(),
      decidedAt: instant().orNull(),
      decidedBy: text().orNull(),
      reason: text().orNull(),
      appId: text().orNull(),
      brandSlug: text().orNull(),
    },
    {
      moved: 'integration requests',
      forgotten: {
        by: 'contactEmail',
        is: 'identity',
        called: ['integration request', 'integration requests'],
      },
      expired: ({ decidedAt, createdAt }, { requests }) =>
        sql`coalesce(${decidedAt}, ${createdAt}) < ${requests}`,
    },
  ),

  audit: table(
    'audit',
    {
      id: id(),
      at: instant(),
      by: oneOf('command', 'console', 'token'),
      name: text(),
      action: text(),
      target: text(),
      details: json<Readonly<Record<string, string>>>('object'),
    },
    { moved: 'audit log' },
  ),

  operators: table(
    'operators',
    {
      id: key().primary(),
      email: key().unique(),
      role: oneOf('viewer', 'operator', 'owner'),
      passwordHash: text().orNull(),
      /** Encrypted with the secret key. */
      totpSecret: text().orNull(),
      /** RFC 6238: the time step of the last accepted code. */
      totpStep: count(),
      createdAt: instant(),
      signedInAt: instant().orNull(),
      /** Since the last sign-in. */
      failedSignIns: integer(),
    },
    { moved: 'operators' },
  ),

  passkeys: table(
    'passkeys',
    {
      credentialId: key().primary(),
      operatorId: key(),
      name: text(),
      publicKey: text(),
      signCount: count(),
      /** Comma-separated. */
      transports: text(),
      createdAt: instant(),
      /** A challenge that is not newer cannot be used. */
      usedAt: instant().shifted(),
    },
    { moved: 'passkeys' },
  ),

  recoveryCodes: table(
    'recovery_codes',
    { operatorId: key(), codeSha256: key() },
    { key: ['operatorId', 'codeSha256'], moved: 'recovery codes' },
  ),

  consoleSessions: table(
    'console_sessions',
    {
      tokenSha256: key().primary(),
      startedAt: instant().shifted(),
      lastSeenAt: instant().shifted(),
      expiresAt: instant().shifted(),
      by: text<ConsoleSession['by']>(),
      /** Null: `otpost admin link`. */
      operatorId: key().orNull(),
      /** Of the last password, code, passkey or link. */
      confirmedAt: instant().shifted(),
      clientIp: text(),
      /** Such as `Firefox on Linux`. */
      device: text(),
    },
    {
      moved: 'console sessions',
      isNotRestored: true,
      expired: ({ expiresAt }, { now }) => sql`${expiresAt} <= ${now}`,
    },
  ),

  consoleLinks: table(
    'console_links',
    {
      tokenSha256: key().primary(),
      expiresAt: instant().shifted(),
      /** Of an invitation. */
      operatorId: key().orNull(),
    },
    {
      moved: 'console links',
      isNotRestored: true,
      expired: ({ expiresAt }, { now }) => sql`${expiresAt} <= ${now}`,
    },
  ),

  /** `identity` is the normalized recipient. */
  outbox: table(
    'outbox',
    {
      id: id(),
      createdAt: instant(),
      channel: oneOf('SMS', 'EMAIL'),
      recipient: text(),
      identity: text(),
      route: oneOf('plain', 'template').orNull(),
      brandSlug: text().orNull(),
      brandName: text().orNull(),
      subject: text().orNull(),
      text: text(),
      html: text().orNull(),
      templateKey: text().orNull(),
      variables: json<Readonly<Record<string, string>>>('object').orNull(),
      requestId: text(),
    },
    {
      indexes: { outbox_by_identity: ['identity', 'id'], outbox_by_creation: ['createdAt'] },
      moved: 'outbox',
      forgotten: { by: 'identity', is: 'identity', called: ['outbox message', 'outbox messages'] },
      expired: ({ createdAt }, { now }) => sql`${createdAt} <= ${now - dayMs}`,
      expiredBy: 'createdAt',
    },
  ),

  /** One row; the number grows when a policy changes. */
  revision: table(
    'revision',
    { id: small().primary(), number: count() },
    { checks: { revision_one_row: ({ id }) => sql`${id} = 1` }, hasRowId: true },
  ),

  /** Of the servers' secret keys. */
  keyFingerprints: table('key_fingerprints', { fingerprint: key().primary() }),

  /** Locks for work that one node at a time does. */
  leases: tableOf('postgres', 'leases', {
    name: text().primary(),
    holder: text(),
    endsAt: instant(),
  }),

  openCircuits: tableOf('postgres', 'open_circuits', {
    provider: text().primary(),
    failures: integer(),
    openMs: integer(),
    openUntil: instant(),
  }),
}
