import type { Migration } from '../../../drizzle/migration.ts'
import { type Role, roles } from '../../domain/accounts/accounts.ts'
import { type DestinationRule, destinationActions } from '../../domain/delivery/destination.ts'
import type { ClockStep } from '../../domain/ground/clock-watch.ts'
import {
  attemptsWindowMs,
  type MinuteOfAttempts,
  minutesOfAttempts,
  type Reported,
} from '../../domain/health/conditions.ts'
import type { RejectionCount } from '../../domain/log/rejections.ts'
import { wayName } from '../../domain/log/stats.ts'
import { type Budget, budgetPeriods, counterOf } from '../../domain/money/budgets.ts'
import { smsRouteNames } from '../../domain/operator/destinations.ts'
import type { ReviewNumber } from '../../domain/policy/review-number.ts'
import { variableTypes } from '../../domain/texts/brand-texts.ts'
import type { DltBrand } from '../../domain/texts/dlt.ts'
import { textsOf } from './brands.ts'
import { timeOfId } from './event-rows.ts'

export interface DatabaseFacts {
  readonly journalMode: string
  readonly damage: readonly string[]
  /** `full`: every page and index; `quick`: every page; `part`: the tables that two seconds allowed. */
  readonly checked: 'full' | 'quick' | 'part'
  readonly schema: 'current' | 'older' | 'newer' | 'unknown'
  readonly logBytes: number
  /** Empty: no server has used the database yet. */
  readonly keyFingerprints: readonly string[]
  readonly lastRequestAt: number | null
  /** The start of the last hour in which X-Forwarded-For was ignored; epoch milliseconds. */
  readonly ignoredForwardedAt: number | null
  /** Undefined: the schema is of another version. */
  readonly policy: PolicyFacts | undefined
}

export interface PolicyFacts {
  readonly destinationRules: readonly DestinationRule[]
  readonly budgets: readonly BudgetFacts[]
  /** Of the last minutes. */
  readonly attempts: readonly MinuteOfAttempts[]
  readonly apps: readonly AppFacts[]
  readonly brandCount: number
  /** The apps whose webhook is switched off. */
  readonly failedWebhooks: readonly string[]
  /** Expired ones included. */
  readonly reviewNumbers: readonly Pick<ReviewNumber, 'masked' | 'brandSlug' | 'expiresAt'>[]
  /** When the oldest job of the queue was accepted. Null: none is waiting. */
  readonly oldestJobAt: number | null
  /** The brands with DLT that are not suspended, with their SMS texts. */
  readonly dltBrands: readonly DltBrand[]
  /** Of the last 9 days. */
  readonly rejections: readonly (RejectionCount & { readonly at: number })[]
  /** The ways (`wayName`) that have accepted a message. */
  readonly accepted: readonly string[]
  readonly accounts: readonly AccountFacts[]
  /** The e-mail texts of codes with HTML of their own. */
  /** Of the clocks of servers in the last days, oldest first. `at`: the beginning of the hour. */
  readonly clockSteps: readonly ClockStep[]
}

export interface AccountFacts {
  readonly id: string
  readonly email: string
  readonly role: Role
  readonly isSetUp: boolean
  /** Null: without an authenticator app. */
  readonly totpSecret: string | null
  /** Of the link that sets the account up. Null: there is none. */
  readonly linkExpiresAt: number | null
}

export interface BudgetFacts {
  readonly budget: Budget
  readonly spentMicros: number
  /** The latest alert that it is exhausted. */
  readonly reported: Reported | undefined
}

export interface AppFacts {
  readonly appId: string
  /** Whether it has an active key. */
  readonly isIssued: boolean
  readonly hasBrands: boolean
  readonly hasPerMinute: boolean
}

export type ServerDatabaseFacts =
  | { readonly kind: 'silent'; readonly reason: string }
  | {
      readonly kind: 'answered'
      readonly version: string
      readonly schema: DatabaseFacts['schema'] | 'none'
      readonly isReadOnly: boolean
      readonly fsync: boolean
      readonly fullPageWrites: boolean
      readonly synchronousCommit: string
      readonly standbys: StandbyFacts
      readonly keyFingerprints: readonly string[]
      readonly hasTls: boolean
      readonly isLocal: boolean
      /** `max_connections`, and the open connections of all users. */
      readonly mostConnections: number
      readonly connections: number
      readonly poolSize: number
      /** The clocks of server and client at the same moment, in epoch milliseconds. */
      readonly clock: { readonly at: number; readonly localAt: number }
      readonly lastRequestAt: number | null
      readonly ignoredForwardedAt: number | null
      readonly policy: PolicyFacts | undefined
      /** Undefined: the database does not have the extension Citus. */
      readonly cluster: ClusterFacts | undefined
    }

export interface ClusterFacts {
  readonly isCoordinator: boolean
  readonly replicationFactor: number
  /** Empty until the coordinator host is set and workers are added. */
  readonly nodes: readonly ClusterNode[]
  readonly tables: readonly ClusterTable[]
}

export interface ClusterNode {
  readonly host: string
  readonly port: number
  readonly isCoordinator: boolean
  /** Active, and its metadata is current. */
  readonly isActive: boolean
  readonly hasShards: boolean
  readonly state: ClusterNodeState | { readonly problem: string }
}

export interface ClusterNodeState {
  /** Of Citus and of the extension in this database, such as `13.2.2 (13.2-1)`. */
  readonly version: string
  readonly mostPrepared: number
  /** Negative: in-doubt transactions are not recovered. */
  readonly recoveryIntervalMs: number
  /** Prepared transactions in this database that are older than a minute. */
  readonly inDoubt: number
}

/** A table that is to be distributed. */
export interface ClusterTable {
  readonly table: string
  readonly column: string
  readonly colocateWith: string | undefined
  /** `other`: by another column, not colocated, or another kind of table of Citus. */
  readonly state: 'missing' | 'local' | 'distributed' | 'other'
  /** Rows from before the distribution, which queries do not see. */
  readonly hasHiddenRows: boolean
}

export interface StandbyFacts {
  readonly awaited: number
  /** The greatest possible number if this user may not see it. */
  readonly connected: number
  readonly isHidden: boolean
}

export const ignoredForwardedQuery =
  "SELECT max(at) FROM stats WHERE kind = 'forwarded-ignored' AND step_ms = 3600000"

/** What doctor counts by hour and day. */
const dayKinds = ['attempt', 'rejected', 'late', 'report-rejected'] as const

/** SQLite has 0 and 1 for the flags of apps. */
export const policyQueries = [
  'SELECT rule, brand_slug, action, CAST(providers AS TEXT), sender, route FROM destination_rules ORDER BY rule, brand_slug',
  'SELECT scope, period, amount_micros, currency, CAST(alert_at AS TEXT), stops, lifted_until, counts_from FROM budgets ORDER BY scope',
  `SELECT ids.app_id,
    EXISTS (SELECT 1 FROM app_keys k WHERE k.app_id = ids.app_id AND k.revoked_at IS NULL) AS issued,
    EXISTS (SELECT 1 FROM app_brands b WHERE b.app_id = ids.app_id) AS has_brands,
    apps.per_minute IS NOT NULL AS has_per_minute
  FROM (SELECT app_id FROM app_keys UNION SELECT app_id FROM apps) AS ids
  LEFT JOIN apps ON apps.app_id = ids.app_id
  ORDER BY ids.app_id`,
  'SELECT count(*) FROM brands',
  'SELECT app_id FROM webhooks WHERE disabled_at IS NOT NULL ORDER BY app_id',
  "SELECT min(request_id) FROM notify_jobs WHERE state IN ('queued', 'sending')",
  'SELECT masked, brand_slug, expires_at FROM review_numbers ORDER BY created_at',
  `SELECT step_ms, at, kind, brand, provider, detail, sum(count) FROM stats
  WHERE step_ms IN (3600000, 86400000) AND kind IN (${dayKinds.map((kind) => `'${kind}'`).join()})
    AND at >= (SELECT max(at) FROM stats WHERE step_ms = 86400000) - 777600000
  GROUP BY step_ms, at, kind, brand, provider, detail`,
  `SELECT slug, display_name, CAST(notify_templates AS TEXT), login_id_enabled, domain, entity_id,
    CAST(registrations AS TEXT), lang, android_hash, CAST(dlt_allow_list AS TEXT)
  FROM brands WHERE dlt_enabled AND status <> 'suspended' ORDER BY slug`,
  "SELECT brand_slug, template_key, lang, text, version, updated_at FROM texts WHERE channel = 'SMS' ORDER BY template_key, lang",
  'SELECT brand_slug, template_key, name, type, max FROM text_variables ORDER BY position',
  "SELECT DISTINCT channel, provider FROM stats WHERE step_ms = 86400000 AND kind = 'attempt' AND detail LIKE 'accepted%'",
  `SELECT id, email, role, password_hash IS NOT NULL AND totp_secret IS NOT NULL
      OR EXISTS (SELECT 1 FROM passkeys p WHERE p.operator_id = operators.id) AS set_up,
    totp_secret, (SELECT max(expires_at) FROM console_links l WHERE l.operator_id = operators.id) AS until
  FROM operators ORDER BY email`,
  // The counters of budgets are between these subjects.
  "SELECT subject, name, count, expires_at FROM codes_and_limits WHERE subject >= 'budget:' AND subject < 'budget;'",
  `SELECT at, text FROM alerts WHERE kind IN ('budget.exhausted', 'budget.threshold')
  ORDER BY at DESC LIMIT 1000`,
  `SELECT at, provider, detail, sum(count) FROM stats
  WHERE step_ms = 60000 AND kind = 'attempt' AND at >= (SELECT max(at) FROM stats WHERE step_ms = 60000) - ${attemptsWindowMs}
  GROUP BY at, provider, detail`,
  "SELECT at, detail, sum(count) FROM stats WHERE step_ms = 3600000 AND kind = 'clock' GROUP BY at, detail ORDER BY at, detail",
]

type Row = readonly unknown[]

/** @param results of `policyQueries` */
export function policyFacts([
  rules = [],
  budgets = [],
  apps = [],
  counts = [],
  webhooks = [],
  oldest = [],
  reviewNumbers = [],
  rejections = [],
  dltBrands = [],
  texts = [],
  variables = [],
  accepted = [],
  accounts = [],
  counters = [],
  alerts = [],
  attempts = [],
  clockSteps = [],
]: readonly Row[][]): PolicyFacts {
  const reports = alerts.map(([at, text]): Reported => ({ at: Number(at), data: JSON.parse(String(text)) }))
  return {
    destinationRules: rules.map(destinationRuleOf),
    budgets: budgets.map((row) => budgetOf(row, counters, reports)),
    attempts: minutesOfAttempts(
      attempts.map(([at, provider, detail, count]) => ({
        at: Number(at),
        provider: String(provider),
        detail: String(detail),
        count: Number(count),
      })),
    ),
    apps: apps.map(appOf),
    brandCount: Number(counts[0]?.[0]),
    failedWebhooks: webhooks.map(([appId]) => String(appId)),
    oldestJobAt: oldest[0]?.[0] == null ? null : timeOfId(String(oldest[0][0])),
    reviewNumbers: reviewNumbers.map(([masked, brandSlug, expiresAt]) => ({
      masked: String(masked),
      brandSlug: String(brandSlug),
      expiresAt: Number(expiresAt),
    })),
    dltBrands: dltBrands.map((row) => {
      const isOfBrand = ([slug]: Row) => slug === row[0]
      return dltBrandOf(row, texts.filter(isOfBrand), variables.filter(isOfBrand))
    }),
    accepted: accepted.map(([channel, provider]) =>
      wayName(channel === 'SMS' ? 'SMS' : 'EMAIL', String(provider)),
    ),
    accounts: accounts.map(accountOf),
    clockSteps: clockSteps.map(([at, direction, seconds]) => ({
      at: Number(at),
      byMs: Number(seconds) * (direction === 'back' ? -1000 : 1000),
    })),
    rejections: rejections.map(([stepMs, at, kind, brand, provider, detail, count]) => ({
      stepMs: Number(stepMs),
      at: Number(at),
      kind: dayKinds.find((known) => known === kind) ?? 'attempt',
      brand: String(brand),
      provider: String(provider),
      detail: String(detail),
      count: Number(count),
    })),
  }
}

function destinationRuleOf(row: Row): DestinationRule {
  const [rule, brandSlug, action, providers, sender, route] = row
  const names: unknown = JSON.parse(String(providers))
  return {
    rule: String(rule),
    brandSlug: brandSlug === '' ? null : String(brandSlug),
    action: destinationActions.find((known) => known === action) ?? 'block',
    providers: Array.isArray(names) ? names.map(String) : [],
    sender: textOrNull(sender),
    route: smsRouteNames.find((known) => known === route) ?? null,
  }
}

/** @param reports about budgets, newest first */
function budgetOf(row: Row, counters: readonly Row[], reports: readonly Reported[]): BudgetFacts {
  const [scope, period, amount, currency, alertAt, stops, liftedUntil, countsFrom] = row
  const budget: Budget = {
    scope: String(scope),
    period: budgetPeriods.find((known) => known === period) ?? 'day',
    amountMicros: Number(amount),
    currency: String(currency),
    alertAt: JSON.parse(String(alertAt)),
    stops: Boolean(stops),
    liftedUntil: liftedUntil == null ? null : Number(liftedUntil),
    countsFrom: Number(countsFrom),
  }
  const { subject, name } = counterOf(budget)
  const counter = counters.find(([itsSubject, itsName]) => itsSubject === subject[0] && itsName === name)
  const [, , count, expiresAt] = counter ?? []
  const reported = reports.find(({ data }) => data.scope === budget.scope)
  const isReported = reported?.data.state !== 'ended' && Number(reported?.data.percent ?? 100) >= 100
  return {
    budget,
    spentMicros: Number(expiresAt) > Date.now() ? Number(count) : 0,
    reported: isReported ? reported : undefined,
  }
}

function dltBrandOf(row: Row, texts: readonly Row[], variables: readonly Row[]): DltBrand {
  const [slug, displayName, notifyTemplates, loginIdEnabled, domain, entityId] = row
  const [registrations, lang, androidHash, dltAllowList] = row.slice(6)
  return {
    slug: String(slug),
    displayName: String(displayName),
    notifyTemplates: JSON.parse(String(notifyTemplates)),
    dltEnabled: true,
    loginIdEnabled: Boolean(loginIdEnabled),
    domain: textOrNull(domain),
    entityId: textOrNull(entityId),
    registrations: JSON.parse(String(registrations)),
    lang: String(lang),
    androidHash: textOrNull(androidHash),
    dltAllowList: JSON.parse(String(dltAllowList)),
    texts: textsOf(
      texts.map(([brandSlug, templateKey, textLang, text, version, updatedAt]) => ({
        brandSlug: String(brandSlug),
        templateKey: String(templateKey),
        channel: 'SMS',
        lang: String(textLang),
        subject: null,
        text: String(text),
        html: null,
        version: Number(version),
        updatedAt: Number(updatedAt),
      })),
      variables.map(([, templateKey, name, type, max]) => ({
        templateKey: String(templateKey),
        name: String(name),
        type: variableTypes.find((known) => known === type) ?? 'text',
        max: Number(max),
      })),
    ),
  }
}

function textOrNull(value: unknown): string | null {
  return value == null ? null : String(value)
}

function appOf([appId, ...flags]: Row): AppFacts {
  const [isIssued = false, hasBrands = false, hasPerMinute = false] = flags.map(Boolean)
  return { appId: String(appId), isIssued, hasBrands, hasPerMinute }
}

function accountOf([id, email, role, isSetUp, totpSecret, linkExpiresAt]: Row): AccountFacts {
  return {
    id: String(id),
    email: String(email),
    role: roles.find((known) => known === role) ?? 'viewer',
    isSetUp: Boolean(isSetUp),
    totpSecret: textOrNull(totpSecret),
    linkExpiresAt: linkExpiresAt == null ? null : Number(linkExpiresAt),
  }
}

export function schemaState(
  applied: readonly number[],
  known: readonly Migration[],
): 'newer' | 'current' | 'older' {
  const times = known.map(({ when }) => when)
  if (applied.some((when) => !times.includes(when))) return 'newer'
  return times.every((when) => applied.includes(when)) ? 'current' : 'older'
}
