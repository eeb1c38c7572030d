import type { SettingInForce } from '../../config/settings.ts'
import type { Brand, BrandStatus } from '../../domain/brands/brand.ts'
import type { Delivery, RequestTrace } from '../../domain/events/event-log.ts'
import type { Limited, ProviderHealth, Statistics } from '../../domain/events/statistics.ts'
import type { IntegrationRequestRecord } from '../../domain/integration/integration.ts'
import type { Preview } from '../../domain/messages/preview.ts'
import type { AuditRecord } from '../../domain/operator/audit.ts'
import type { IssuedApp } from '../../domain/operator/operator.ts'
import type { ConsoleSession } from '../../domain/operator/sessions.ts'

// The data of the console's pages: `routes/` gathers it, `pages/` renders it.

/** What all pages of a session show. */
export interface PageContext {
  readonly version: string
  /** Sent with every form as `csrf`. */
  readonly csrfToken: string
  readonly pendingRequests: number
  readonly hasOutbox: boolean
  readonly now: number
  /** The result of the operator's last action. */
  readonly flash: Flash | null
}

export interface Flash {
  readonly tone: 'good' | 'bad'
  readonly text: string
}

export interface OverviewModel {
  readonly store: {
    readonly isUsable: boolean
    /** Requests that could not be written to the event log, so the figures lack them. */
    readonly lostRequests: number
  }
  readonly statistics: Statistics
  readonly limited: readonly Limited[]
  readonly providers: readonly ProviderHealth[]
}

export interface RequestsModel {
  /** Latest first, like `decided`. */
  readonly pending: readonly IntegrationRequestRecord[]
  readonly decided: readonly IntegrationRequestRecord[]
  /** The URL of this server for integrators, such as https://otp.example.com. */
  readonly origin: string
  readonly isLater: boolean
  /** The number of the next page; null: none. */
  readonly next: number | null
}

export interface RequestModel {
  readonly request: IntegrationRequestRecord
  /** What the operator entered before, or a suggestion. */
  readonly appId: string
  readonly brandSlug: string
  readonly reason: string
  readonly problem: string | null
}

export interface KeyModel {
  readonly appId: string
  readonly apiKey: string
  /** The brand that was created with the key; null: none. */
  readonly brandSlug: string | null
  /** Whether the app has another valid key. */
  readonly hasOther: boolean
  /** The URL of this server for apps, such as https://otp.example.com. */
  readonly origin: string
}

/** The form's fields as typed. */
export type BrandForm = Pick<
  Brand,
  'slug' | 'displayName' | 'notifyTemplates' | 'dltEnabled' | 'loginIdEnabled'
> & { readonly domain: string; readonly entityId: string }

export interface BrandModel {
  /** Null: a new brand. */
  readonly brand: Brand | null
  readonly form: BrandForm
  /** The initial values of the form, which it sends back as the field `was`. */
  readonly was: string
  readonly problems: readonly string[]
  readonly nextStatuses: readonly BrandStatus[]
  readonly previews: readonly Preview[]
  /** Providers that can have their own template ids. */
  readonly providers: readonly string[]
}

export interface AppsModel {
  readonly apps: readonly IssuedApp[]
  /** appIds in the setting APP_CREDENTIALS, which can't be changed here. */
  readonly configured: readonly string[]
  /** The entered id of a new app. */
  readonly appId: string
  readonly problem: string | null
}

export interface DeliveriesModel {
  readonly rows: readonly Delivery[]
  readonly search: {
    readonly requestId: string | null
    readonly recipient: { readonly hash: string; readonly masked: string } | null
  }
  /** Cursor of the next page; null: none. */
  readonly next: string | null
  readonly isLater: boolean
  readonly problem: string | null
}

export interface TraceModel {
  readonly trace: RequestTrace
  readonly deliveries: readonly Delivery[]
  /** The output of `otpost explain`. */
  readonly lines: readonly string[]
}

export interface SessionRow extends Omit<ConsoleSession, 'tokenSha256'> {
  /** The beginning of the session's id, which is not secret. */
  readonly id: string
  readonly isOwn: boolean
}

export interface SettingsModel {
  readonly settings: readonly SettingInForce[]
  readonly sessions: readonly SessionRow[]
  readonly databaseName: string
  readonly bun: string
}

export interface AuditModel {
  readonly records: readonly AuditRecord[]
  /** Cursor of the next page; null: none. */
  readonly next: number | null
}

export interface ProblemModel {
  readonly status: number
  readonly title: string
  readonly text: string
  /** Without a session: whether the page links to the sign-in. */
  readonly hasLogin?: boolean
}
