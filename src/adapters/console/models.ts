import type { SettingInForce } from '../../config/settings.ts'
import type { Account, Role } from '../../domain/accounts/accounts.ts'
import type { ConsoleSession } from '../../domain/accounts/sessions.ts'
import type { Delivery } from '../../domain/delivery/delivery-reports.ts'
import type { AuthoredRule } from '../../domain/delivery/destination.ts'
import type { Alert } from '../../domain/ground/alert.ts'
import type { Actor, AuditFilters, AuditRecord } from '../../domain/ground/audit.ts'
import type { ClockStep } from '../../domain/ground/clock-watch.ts'
import type { Channel } from '../../domain/ground/contact.ts'
import type { StoredEvent, Webhook } from '../../domain/ground/webhook-events.ts'
import type { CountryCodes } from '../../domain/guard/counts.ts'
import type { GuardStatus } from '../../domain/guard/status.ts'
import type { FailingAlerts } from '../../domain/health/alerts.ts'
import type { FailingEvents } from '../../domain/integration/event-store.ts'
import type { IntegrationRequestRecord } from '../../domain/integration/integration.ts'
import type { AppScope } from '../../domain/limits/scope.ts'
import type { Found, LogCount, LogFilters } from '../../domain/log/log-search.ts'
import type { RejectionRate } from '../../domain/log/rejections.ts'
import type { ActiveLimit, LastFailures, ProviderHealth, Statistics } from '../../domain/log/statistics.ts'
import type { BudgetStatus } from '../../domain/money/budgets.ts'
import type { DaySpend, SpendingPeriod, spendingSpan } from '../../domain/money/spending.ts'
import type { QueueStatus } from '../../domain/notify/queue.ts'
import type { IssuedApp } from '../../domain/operator/changes.ts'
import type { CheckedDestination } from '../../domain/operator/destinations.ts'
import type { GuardWarnings } from '../../domain/operator/guard.ts'
import type { BudgetRequest } from '../../domain/operator/money.ts'
import type { RequestMail } from '../../domain/operator/request-mail.ts'
import type { ReviewNumber } from '../../domain/policy/review-number.ts'
import type { RequestTrace } from '../../domain/request/request-trace.ts'
import type { Brand, BrandStatus, BrandWithTexts } from '../../domain/texts/brand.ts'
import type { BrandText, TextTarget } from '../../domain/texts/brand-texts.ts'
import type { DraftPreview, TextParts } from '../../domain/texts/drafts.ts'
import type { Preview } from '../../domain/texts/preview.ts'

// `routes/` builds these models, `pages/` renders them.

export interface PageContext {
  readonly version: string
  readonly csrfToken: string
  /** Who is signed in. Without an account the e-mail address is null. */
  readonly person: { readonly email: string | null; readonly role: Role; readonly isSetUp: boolean }
  readonly pendingRequests: number
  readonly hasOutbox: boolean
  /** Active ones. */
  readonly reviewNumbers: number
  readonly now: number
  readonly flash: Flash | null
}

export interface LoginModel {
  /** Whether someone can sign in with an e-mail address. */
  readonly hasAccounts: boolean
  readonly hasShared: boolean
  /** The options of the browser's call, in JSON. */
  readonly passkey: string | null
  readonly email: string
  readonly problem: string | null
}

export interface CodeModel {
  /** The proof of the first step. */
  readonly next: string
  readonly problem: string | null
}

export interface ConfirmModel {
  readonly action: string
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly by: 'code' | 'password' | 'link' | null
  /** The options of the browser's call, in JSON. */
  readonly passkey: string | null
  readonly problem: string | null
}

export interface Flash {
  readonly tone: 'good' | 'bad'
  readonly text: string
}

export interface OverviewModel {
  readonly store: {
    readonly isUsable: boolean
    /** Not in the event log and the figures. */
    readonly lostRequests: number
    /** Of the disk of the database. Undefined: the database has no files here. */
    readonly freeBytes: number | undefined
  }
  readonly statistics: Statistics
  /** What is not in it has had no failure for 10 minutes. */
  readonly lastFailures: LastFailures
  readonly limited: readonly ActiveLimit[]
  readonly budgets: readonly BudgetStatus[]
  readonly providers: readonly ProviderHealth[]
  readonly guard: GuardWarnings
  readonly rejections: readonly RejectionRate[]
  readonly providerTimeoutMs: number
  readonly queue: QueueStatus & { readonly failed: number }
  readonly webhooks: readonly (Pick<Webhook, 'appId' | 'disabledAt'> & {
    readonly failing: FailingEvents | undefined
  })[]
  readonly failingAlerts: readonly FailingAlerts[]
  /** Active ones. */
  readonly reviewNumbers: number
  /** Undefined: none since the server started. */
  readonly clockStep: ClockStep | undefined
}

export interface GuardModel {
  readonly status: GuardStatus
  /** Requests that were denied or recorded, newest first. */
  readonly requests: readonly RequestTrace[]
  /** Who allowed and blocked prefixes, newest first. */
  readonly changes: readonly AuditRecord[]
  readonly form: GuardForm
  readonly problem: string | null
  readonly formatPrefix: (digits: string) => string
}

export interface GuardForm {
  readonly prefix: string
  readonly action: string
  readonly duration: string
}

export interface RequestsModel {
  readonly pending: readonly IntegrationRequestRecord[]
  readonly decided: readonly IntegrationRequestRecord[]
  readonly origin: string
  readonly isLater: boolean
  readonly next: number | null
}

export interface RequestModel {
  readonly request: IntegrationRequestRecord
  readonly appId: string
  readonly brandSlug: string
  readonly reason: string
  /** Of each form. */
  readonly mails: Readonly<Record<'approved' | 'rejected', ChosenMail>>
  readonly mailerName: string
  readonly problem: string | null
  /** Null: the request is pending. */
  readonly mail: RequestMailModel | null
}

export interface ChosenMail extends RequestMail {
  readonly isChosen: boolean
}

/** Of a decided request. */
export interface RequestMailModel extends RequestMail {
  readonly request: IntegrationRequestRecord
  readonly mailerName: string
  readonly last: AuditRecord | null
  readonly problem: string | null
}

export interface KeyModel {
  readonly appId: string
  readonly apiKey: string
  /** Created with the key; null: none. */
  readonly brandSlug: string | null
  /** The only brand of the app. */
  readonly brandId: string | null
  readonly hasOther: boolean
  readonly origin: string
  /** An e-mail that was not sent. */
  readonly mail: RequestMailModel | null
}

export type BrandForm = Pick<
  Brand,
  'slug' | 'displayName' | 'notifyTemplates' | 'dltEnabled' | 'loginIdEnabled' | 'lang'
> &
  // `dltAllowList` has one entry per line.
  Readonly<Record<'domain' | 'entityId' | 'androidHash' | 'logoUrl' | 'color' | 'dltAllowList', string>>

export interface BrandModel {
  /** Null: a new brand. */
  readonly brand: BrandWithTexts | null
  readonly form: BrandForm
  /** The form's initial values as JSON, which it sends back. */
  readonly was: string
  readonly problems: readonly string[]
  readonly nextStatuses: readonly BrandStatus[]
  readonly previews: readonly Preview[]
  readonly providers: readonly string[]
}

export interface ScopeForm {
  readonly anyBrand: boolean
  readonly brands: readonly string[]
  readonly operations: readonly string[]
  /** Empty: GLOBAL_LIMIT_PER_MINUTE. */
  readonly perMinute: string
}

export interface ScopeModel {
  readonly form: ScopeForm
  /** The form's initial values as JSON, which it sends back. */
  readonly was: string
  readonly brands: readonly Brand[]
}

export interface AppsModel {
  readonly apps: readonly IssuedApp[]
  readonly configured: readonly string[]
  readonly scopeOf: (appId: string) => AppScope
  readonly webhookOf: (appId: string) => Webhook | undefined
  /** Who revoked all its keys. Undefined: not among the latest entries of the audit log. */
  readonly revokerOf: (appId: string) => string | undefined
  /** Of the form for a new app. */
  readonly appId: string
  readonly scope: ScopeModel
  readonly problem: string | null
}

export interface AppScopeModel {
  readonly appId: string
  readonly scope: ScopeModel
  readonly problem: string | null
}

export interface WebhookModel {
  readonly appId: string
  readonly webhook: Webhook | null
  readonly form: { readonly url: string; readonly eventTypes: readonly string[] }
  /** Newest first. */
  readonly events: readonly StoredEvent[]
  readonly problem: string | null
}

export interface WebhookSecretModel {
  readonly appId: string
  readonly secret: string
}

export interface DestinationForm {
  readonly rule: string
  readonly action: string
  /** A slug. Empty: all brands. */
  readonly brand: string
  readonly providers: readonly string[]
  readonly sender: string
  /** Empty: as OTP_SMS_MODE says. */
  readonly route: string
  readonly isGroup: boolean
}

export interface MoneyModel {
  readonly budgets: readonly BudgetStatus[]
  /** Of the prices. */
  readonly currency: string
  readonly isBuiltIn: boolean
  readonly period: SpendingPeriod
  readonly span: ReturnType<typeof spendingSpan>
  /** In that time. */
  readonly spending: readonly DaySpend[]
  /** Newest first. */
  readonly alerts: readonly Alert[]
  readonly form: BudgetRequest
  readonly problem: string | null
}

export interface DestinationsModel {
  readonly rules: readonly AuthoredRule[]
  readonly countries: readonly CountryCodes[]
  /** Slugs. */
  readonly brands: readonly string[]
  /** Names of the server's providers. */
  readonly providers: readonly string[]
  readonly hasTemplateRoute: boolean
  readonly form: DestinationForm
  readonly problems: readonly string[]
  readonly check: {
    /** As entered. */
    readonly number: string
    readonly brand: string
    readonly result:
      | (CheckedDestination & {
          readonly formatted: string
          /** What its entry for the number does. */
          readonly guard: string | null
        })
      | null
    readonly problem: string | null
  }
}

export interface LogModel<Row> {
  readonly filters: LogFilters
  /** Parts of the URL that are no filters, such as `result=lost`. */
  readonly unknown: readonly string[]
  /** Of all pages. Null: there is no filter, or this is not the first page. */
  readonly total: LogCount | null
  /** The recipient that was searched for. */
  readonly masked: string | null
  readonly isLater: boolean
  readonly found: Found<Row>
  /** A search that ended before the page was full: the time that it reached. */
  readonly searchedTo: number | null
  /** The values that the filters offer. */
  readonly known: Readonly<
    Record<'provider' | 'app' | 'brand' | 'template' | 'lang' | 'country', readonly string[]>
  >
}

export interface TraceModel {
  readonly trace: RequestTrace
  readonly deliveries: readonly Delivery[]
  /** The output of `otpost explain`. */
  readonly lines: readonly string[]
  /** Those that block such a number now, by their place on the page Destinations. */
  readonly blockers: readonly number[]
  /** Blocked now in the country of the number, with `+`. Empty also if the guard did not object. */
  readonly blockedPrefixes: readonly string[]
}

export interface OperatorsModel {
  readonly accounts: readonly Account[]
  readonly email: string
  readonly role: string
  readonly problem: string | null
}

export interface InvitationModel {
  readonly email: string
  /** Shown once. */
  readonly link: string
}

export interface OwnAccountModel {
  readonly account: Account
  /** A new secret: encrypted, and as an app reads it. `isTried`: with a code that was rejected. */
  readonly app: { readonly secret: string; readonly uri: string; readonly isTried: boolean }
  /** The options of the browser's call, in JSON. */
  readonly passkey: string
  readonly problem: string | null
}

export type AccountModel = OwnAccountModel | { readonly account: null }

export interface SessionRow extends Omit<ConsoleSession, 'tokenSha256'> {
  readonly id: string
  /** The person's e-mail address. */
  readonly person: string | null
  readonly mayEnd: boolean
  readonly isOwn: boolean
}

export interface SettingsModel {
  readonly settings: readonly SettingInForce[]
  readonly sessions: readonly SessionRow[]
  readonly databaseName: string
  readonly bun: string
}

export interface AuditModel {
  readonly filters: AuditFilters
  /** E-mail addresses of accounts. */
  readonly people: readonly string[]
  readonly records: readonly AuditRecord[]
  /** Ids. Null: there are no newer or older entries. */
  readonly newer: number | null
  readonly next: number | null
}

export interface ProblemModel {
  readonly status: number
  readonly title: string
  readonly text: string
  readonly hasLogin?: boolean
}

export interface SearchModel {
  /** As entered. Empty: none. */
  readonly query: string
  readonly hits: readonly {
    readonly title: string
    readonly detail: string
    readonly href: string
    /** Of a request. */
    readonly at?: number
  }[]
  /** Earlier requests were not searched by reference and message ID. Null: all were. */
  readonly since: number | null
}

export interface ReviewNumberForm {
  readonly phone: string
  readonly brand: string
  readonly until: string
}

export interface ReviewNumbersModel {
  /** Active ones. */
  readonly numbers: readonly ReviewNumber[]
  /** Slugs. */
  readonly brands: readonly string[]
  readonly form: ReviewNumberForm
  /** Of the number that was added. */
  readonly code: { readonly code: string; readonly number: ReviewNumber } | null
  readonly problem: string | null
}

/** A text that the brand sends. */
export interface TextRow extends TextTarget {
  readonly text: string
  /** Null: built in. */
  readonly own: BrandText | null
  /** Who set it. Null: not among the latest audit entries. */
  readonly actor: Actor | null
}

export interface TextsModel {
  readonly brand: BrandWithTexts
  readonly rows: readonly TextRow[]
  /** Of a text in another language. `template` is a key and a channel. */
  readonly form: { readonly template: string; readonly lang: string }
  readonly problem: string | null
}

/** As the form has it. */
export interface TextForm extends Omit<TextTarget, 'channel'>, TextParts {
  readonly channel: Channel
  /** `name:type:max`, one per line. */
  readonly variables: string
}

export interface TextModel {
  readonly brand: BrandWithTexts
  /** The key and the language can be entered. */
  readonly isNewTemplate: boolean
  readonly form: TextForm
  /** Null: none is stored. */
  readonly own: BrandText | null
  /** Null: the template is the brand's own. */
  readonly builtIn: TextParts | null
  readonly placeholders: readonly string[]
  readonly preview: DraftPreview
  /** Newest first. */
  readonly history: readonly AuditRecord[]
  readonly providers: readonly string[]
  readonly problems: readonly string[]
}

export interface TestModel {
  readonly form: Readonly<Record<'to' | 'provider' | 'brand' | 'template' | 'lang', string>>
  readonly providers: readonly Pick<ProviderHealth, 'name' | 'channel'>[]
  readonly brands: readonly Pick<Brand, 'slug' | 'displayName'>[]
  readonly templates: readonly string[]
  readonly problem: string | null
}
