import type { SettingInForce } from '../../config/settings.ts'
import type { Brand, BrandStatus } from '../../domain/brands/brand.ts'
import type { Delivery, RequestTrace } from '../../domain/events/event-log.ts'
import type { Limited, ProviderHealth, Statistics } from '../../domain/events/statistics.ts'
import type { IntegrationRequestRecord } from '../../domain/integration/integration.ts'
import type { Preview } from '../../domain/messages/preview.ts'
import type { AuditRecord } from '../../domain/operator/audit.ts'
import type { IssuedApp } from '../../domain/operator/operator.ts'

// What the pages of the console show, as plain data: `pages/` turns it into HTML, `routes.ts` gathers it.

/** What every page of a session shows around its content. */
export interface PageContext {
  readonly version: string
  /** Goes into every form as the field `csrf`. */
  readonly csrfToken: string
  readonly pendingRequests: number
  /** Whether this server keeps messages in the outbox, so that /outbox exists. */
  readonly hasOutbox: boolean
  readonly now: number
  /** What the operator has just done, or what was wrong with it. */
  readonly flash: Flash | null
}

export interface Flash {
  readonly tone: 'good' | 'bad'
  readonly text: string
}

export interface OverviewModel {
  readonly store: {
    readonly isUsable: boolean
    /** Requests that are missing from the event log, and so from the figures, because it could not be written. */
    readonly lostRequests: number
  }
  readonly statistics: Statistics
  readonly limited: readonly Limited[]
  readonly providers: readonly ProviderHealth[]
}

export interface RequestsModel {
  /** The latest first, as the decided ones. */
  readonly pending: readonly IntegrationRequestRecord[]
  readonly decided: readonly IntegrationRequestRecord[]
  /** The address at which integrators reach this server, such as https://otp.example.com. */
  readonly origin: string
  /** Whether this is a later page than the first. */
  readonly isLater: boolean
  /** The number of the next page, with earlier requests of either kind; null: there is none. */
  readonly next: number | null
}

export interface RequestModel {
  readonly request: IntegrationRequestRecord
  /** What the form of approval is filled in with: what was entered before, or what suggests itself. */
  readonly appId: string
  readonly brandSlug: string
  readonly reason: string
  readonly problem: string | null
}

/** The one time that a key is shown. */
export interface KeyModel {
  readonly appId: string
  readonly apiKey: string
  /** The brand that was made with it; null: none was. */
  readonly brandSlug: string | null
  /** Whether the app has another key that goes on working. */
  readonly hasOther: boolean
  /** The address at which applications reach this server, such as https://otp.example.com. */
  readonly origin: string
}

export interface BrandsModel {
  readonly brands: readonly Brand[]
}

/** A brand as the form has it: text as it was typed. */
export interface BrandForm {
  readonly slug: string
  readonly displayName: string
  readonly notifyTemplates: readonly string[]
  readonly dltEnabled: boolean
  readonly loginIdEnabled: boolean
  readonly domain: string
  readonly entityId: string
}

export interface BrandModel {
  /** Null: a new one is being made. */
  readonly brand: Brand | null
  readonly form: BrandForm
  /** What the form was first filled in with; it goes back with it as the field `was`. */
  readonly was: string
  readonly problems: readonly string[]
  /** What its status may become. */
  readonly nextStatuses: readonly BrandStatus[]
  readonly previews: readonly Preview[]
  /** Names of the providers that can have a template id of their own. */
  readonly providers: readonly string[]
}

export interface AppsModel {
  readonly apps: readonly IssuedApp[]
  /** appIds of the setting APP_CREDENTIALS, which are changed there. */
  readonly configured: readonly string[]
  /** What was entered as the id of a new app. */
  readonly appId: string
  readonly problem: string | null
}

export interface DeliveriesModel {
  readonly rows: readonly Delivery[]
  readonly search: {
    readonly requestId: string | null
    /** The keyed hash of a recipient that was searched for, and its mask. */
    readonly recipient: { readonly hash: string; readonly masked: string } | null
  }
  /** Where the next page begins; null: there is none. */
  readonly next: string | null
  /** Whether this is a later page than the first. */
  readonly isLater: boolean
  readonly problem: string | null
}

export interface TraceModel {
  readonly trace: RequestTrace
  readonly deliveries: readonly Delivery[]
  /** As `otpost explain` tells it, line by line. */
  readonly lines: readonly string[]
}

/** A session of the console. */
export interface SessionRow {
  /** The beginning of its id, which is no secret. */
  readonly id: string
  readonly startedAt: number
  readonly lastSeenAt: number
  readonly expiresAt: number
  readonly by: 'password' | 'link'
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
  /** Where the next page begins; null: there is none. */
  readonly next: number | null
}

export interface ProblemModel {
  readonly status: number
  readonly title: string
  readonly text: string
  /** Without a session: whether there is a password to sign in with, so that the page can lead there. */
  readonly hasLogin?: boolean
}
