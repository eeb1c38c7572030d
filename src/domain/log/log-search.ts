import type { Channel } from '../ground/contact.ts'
import { type EpochMs, minuteMs } from '../ground/time.ts'
import { type Attempt, isRequestId, type Operation } from '../request/request-context.ts'

/** The names that people see, what they mean, and their tone in the console. JSON and the database have the keys. */
export const deliveryStatuses = {
  delivered: { name: 'delivered', tone: 'good', meaning: 'A delivery report confirms delivery.' },
  accepted: {
    name: 'accepted',
    tone: 'sent',
    meaning: 'The provider accepted it. No delivery report says yet whether it arrived.',
  },
  failed: {
    name: 'not delivered',
    tone: 'lost',
    meaning: 'The provider accepted it, and a delivery report says that it did not arrive.',
  },
  rejected: {
    name: 'rejected',
    tone: 'bad',
    meaning: 'The provider rejected the recipient, the message or your account.',
  },
  retryable: {
    name: 'temporary failure',
    tone: 'later',
    meaning: 'The provider could not accept it at that time.',
  },
  unknown: {
    name: 'unknown',
    tone: 'warn',
    meaning: 'The message may or may not have been sent, for example after a timeout.',
  },
  skipped: { name: 'skipped', tone: 'quiet', meaning: 'otpost did not call the provider.' },
} as const

export type DeliveryStatus = keyof typeof deliveryStatuses

/** As options and URLs have it. */
export function wordOf(status: DeliveryStatus): string {
  return deliveryStatuses[status].name.replaceAll(' ', '-')
}

export const statusKeys = Object.keys(deliveryStatuses) as DeliveryStatus[]

export function statusesIn(words: readonly string[]): DeliveryStatus[] {
  return statusKeys.filter((status) => words.includes(wordOf(status)))
}

export type ErrorClass = NonNullable<Attempt['errorClass']>

export const errorClasses: Readonly<Record<ErrorClass, string>> = {
  recipient: 'recipient rejected',
  content: 'message rejected',
  account: 'account rejected: check the credentials, balance and sender',
  retryable: deliveryStatuses.retryable.name,
  unknown: 'unknown, for example timed out',
}

export const calls = {
  code: ['send', 'resend', 'relay'],
  verify: ['verify'],
  notify: ['notify'],
} as const satisfies Record<string, readonly Operation[]>

/** Error codes by what the caller of the API got. */
export const callResults = {
  success: { name: 'success', errors: [] },
  failed: { name: 'not sent', errors: ['sms_failed', 'notification_failed', 'internal_error'] },
  'wrong-code': { name: 'wrong code', errors: ['mismatch', 'max_attempts'] },
  limited: { name: 'rate-limited', errors: ['rate_limited', 'cooldown_active'] },
  /** Of those, by a budget. */
  budget: { name: 'rejected by a budget', errors: ['rate_limited'] },
  brand: {
    name: 'rejected because of the brand',
    errors: ['brand_not_approved', 'brand_suspended', 'template_not_allowed'],
  },
  /** As `isBlocked` says. */
  destination: { name: 'rejected because of the destination', errors: ['validation_error'] },
} as const satisfies Record<string, { readonly name: string; readonly errors: readonly string[] }>

export interface LogFilter {
  readonly since?: EpochMs | undefined
  /** Exclusive. */
  readonly until?: EpochMs | undefined
  readonly app?: string | undefined
  readonly brand?: string | undefined
  readonly channel?: Channel | undefined
  /** ISO 3166-1. */
  readonly country?: string | undefined
  /** Of a request: of one of its attempts. */
  readonly provider?: string | undefined
  readonly recipientHashes?: readonly string[] | undefined
}

export interface DeliveryFilter extends LogFilter {
  readonly requestId?: string | undefined
  readonly statuses?: readonly DeliveryStatus[] | undefined
  readonly template?: string | undefined
  /** Of the text, as BCP 47. */
  readonly lang?: string | undefined
  readonly errorClass?: ErrorClass | undefined
}

export interface CallFilter extends LogFilter {
  readonly call?: keyof typeof calls | undefined
  readonly result?: keyof typeof callResults | undefined
}

/** Attempts, or requests with their attempts. */
export type LogList = 'deliveries' | 'calls'

/** A list leaves out the filters of the other. */
export type LogFilters = DeliveryFilter & CallFilter

/** Of these rows at most. */
export const mostCounted = 10_000

export interface LogCount {
  readonly rows: number
  readonly requests: number
  /** Different ones. Of a call to several recipients the first. */
  readonly recipients: number
  /** Further rows match, or were not searched. */
  readonly isMore: boolean
}

export interface LogPosition extends Pick<Attempt, 'attempt'> {
  readonly requestId: string
}

/** As URLs and pages of the API have it. */
export function positionText({ requestId, attempt }: LogPosition): string {
  return `${requestId}.${attempt}`
}

export function positionIn(text: string): LogPosition | undefined {
  const [, requestId, attempt] = /^([0-9a-f-]{36})\.(\d{1,7})$/.exec(text) ?? []
  return requestId !== undefined && isRequestId(requestId)
    ? { requestId, attempt: Number(attempt) }
    : undefined
}

export interface PageOfLog {
  readonly before?: LogPosition | undefined
  readonly limit: number
}

export interface Found<Row> {
  /** Newest first. */
  readonly rows: readonly Row[]
  /**
   * Where the next search continues, with the time of that request. One search reads a limited part of the log, so it may find
   * fewer rows than the limit. Null: the log has no further rows.
   */
  readonly next: (LogPosition & { readonly at: EpochMs }) | null
}

/** The rows of each figure. The log has no other figures. */
export const figureRows = {
  sends: { call: 'code', result: 'success' },
  sendsFailed: { call: 'code', result: 'failed' },
  notified: { call: 'notify', result: 'success' },
  notifyFailed: { call: 'notify', result: 'failed' },
  notSent: { result: 'failed' },
  verified: { call: 'verify', result: 'success' },
  wrongCodes: { call: 'verify', result: 'wrong-code' },
  limited: { result: 'limited' },
  refused: { result: 'brand' },
  blocked: { result: 'destination' },
  // As the provider answered. Its delivery report may have come since.
  accepted: { statuses: ['accepted', 'delivered', 'failed'] },
  failed: { statuses: ['rejected', 'retryable'] },
  unknown: { statuses: ['unknown'] },
  failedOrUnknown: { statuses: ['rejected', 'retryable', 'unknown'] },
  delivered: { statuses: ['delivered'] },
  undelivered: { statuses: ['failed'] },
} as const satisfies Readonly<Record<string, CallFilter | { readonly statuses: readonly DeliveryStatus[] }>>

export interface Span {
  readonly from: EpochMs
  readonly until: EpochMs
}

/** To the minute, as the fields of the log. */
export function spanOf({ from, until }: Span): Pick<DeliveryFilter, 'since' | 'until'> {
  return { since: from, until: Math.ceil((until + 1) / minuteMs) * minuteMs }
}
