import type { Delivery, DeliveryReportState } from '../../domain/delivery/delivery-reports.ts'
import { dayMs, type EpochMs } from '../../domain/ground/time.ts'
import type { SavedRequest } from '../../domain/log/event-log.ts'
import { limitNames } from '../../domain/request/limit-names.ts'
import { type Attempt, isFlag, isReview, type LimitStatus } from '../../domain/request/request-context.ts'
import type { RequestTrace } from '../../domain/request/request-trace.ts'
import type { Row } from './database.ts'

// `requests` also has each first attempt. The delivery log is the union of both tables.

export type RequestRow = Row<'requests'>
export type AttemptRow = Row<'attempts'>

/** Columns without a value are left out, since most rows have many. */
type NewRow<Full> = {
  readonly [Name in keyof Full as null extends Full[Name] ? never : Name]: Full[Name]
} & {
  readonly [Name in keyof Full as null extends Full[Name] ? Name : never]?: Full[Name] | undefined
}

export type VerifiedNumber = Row<'verifiedNumbers'>

export interface EventLogEntry {
  /** The number whose code was verified. */
  readonly verified?: VerifiedNumber
  readonly request: NewRow<RequestRow>
  /** Only the attempts are saved. */
  readonly isJob?: boolean | undefined
  readonly attempts: readonly NewRow<AttemptRow>[]
}

/** With the attempts that are not saved yet. */
export function eventLogEntry(request: SavedRequest): EventLogEntry {
  const { requestId, app, brand, savedAttempts, end } = request
  let first: Attempt | undefined
  const further: NewRow<AttemptRow>[] = []
  for (const each of request.attempts.slice(savedAttempts)) {
    if (each.attempt === 1) first = each
    else further.push(attemptRow(request, each))
  }
  const { verified, channel, recipientHash: subject } = request
  return {
    ...(verified &&
      channel === 'SMS' &&
      subject &&
      !isReview(request) && { verified: { subject, verifiedAt: request.at } }),
    isJob: request.isJob,
    request: {
      requestId,
      at: request.at,
      operation: request.operation,
      app,
      brand,
      channel: request.channel ?? first?.channel,
      recipient: first?.recipient ?? request.recipient,
      recipients: request.recipients,
      recipientHash: first?.recipientHash ?? request.recipientHash,
      limits: limitsText(request),
      status: end?.status,
      error: end?.error ?? undefined,
      message: end?.message ?? undefined,
      durationMs: end?.durationMs,
      reference: request.reference,
      guard: request.flags?.join(' '),
      unknownFields: request.unknownFields?.join(' '),
      attemptAt: first?.at,
      provider: first?.provider,
      outcome: first?.outcome,
      attemptDurationMs: first?.durationMs,
      // Not spread: a send would take 3 µs more.
      route: first?.route ?? undefined,
      template: first?.template ?? undefined,
      position: first?.position ?? undefined,
      segments: first?.segments?.count,
      encoding: first?.segments?.encoding,
      errorClass: first?.errorClass ?? undefined,
      reason: first?.reason ?? undefined,
      providerMessageId: first?.providerMessageId ?? undefined,
      reportKey: first?.reportKey ?? undefined,
      lang: first?.lang ?? undefined,
      country: (first ? first.country : request.country) ?? undefined,
    },
    attempts: further,
  }
}

function attemptRow({ requestId, app, brand }: SavedRequest, attempt: Attempt): NewRow<AttemptRow> {
  return {
    requestId,
    attempt: attempt.attempt,
    at: attempt.at,
    app,
    brand,
    channel: attempt.channel,
    recipient: attempt.recipient,
    recipientHash: attempt.recipientHash,
    provider: attempt.provider,
    outcome: attempt.outcome,
    durationMs: attempt.durationMs,
    route: attempt.route ?? undefined,
    template: attempt.template ?? undefined,
    position: attempt.position ?? undefined,
    segments: attempt.segments?.count,
    encoding: attempt.segments?.encoding,
    errorClass: attempt.errorClass ?? undefined,
    reason: attempt.reason ?? undefined,
    providerMessageId: attempt.providerMessageId ?? undefined,
    reportKey: attempt.reportKey ?? undefined,
    country: attempt.country ?? undefined,
    lang: attempt.lang ?? undefined,
  }
}

/** Window ends relative to the request, which takes fewer digits. */
function limitsText({ at, limits }: Pick<SavedRequest, 'at' | 'limits'>): string {
  let text = ''
  for (const { limit, max, used, endsAt, refused, budget } of limits) {
    if (text !== '') text += ', '
    text += `${limit} ${used ?? '?'}/${max}`
    if (endsAt !== null) text += ` in ${endsAt - at}`
    if (refused) text += ' refused'
    if (budget) {
      text += ` of ${budget.scope}`
      if (budget.country !== undefined) text += ` in ${budget.country}`
      if (budget.of !== 'all') text += ` ${budget.of}`
      text += ` ${budget.currency}`
    }
  }
  return text
}

const limitPattern =
  /(?<limit>[a-z-]+) (?<used>\d+|\?)\/(?<max>\d+)(?: in (?<endsInMs>-?\d+))?(?<refused> refused)?(?: of (?<scope>\S+)(?: in (?<country>[A-Z]{2}))?(?: (?<of>codes|notifications))? (?<currency>\w+))?(?:, |$)/g

function limitIn(
  at: EpochMs,
  {
    limit,
    used,
    max,
    endsInMs,
    refused,
    scope,
    of,
    country,
    currency,
  }: Readonly<Record<string, string | undefined>>,
): LimitStatus {
  const status = {
    limit: limitNames.find((name) => name === limit) ?? 'app-minute',
    max: Number(max),
    used: used === '?' ? null : Number(used),
    endsAt: endsInMs === undefined ? null : at + Number(endsInMs),
    refused: refused !== undefined,
  }
  if (scope === undefined || currency === undefined) return status
  const messages = of === 'codes' || of === 'notifications' ? of : 'all'
  return { ...status, budget: { scope, of: messages, currency, ...(country && { country }) } }
}

function hasSeveralRecipients({ recipients }: Pick<RequestRow, 'recipients'>): boolean {
  return (recipients ?? 1) > 1
}

export function traceOf(row: RequestRow): RequestTrace {
  const isOfAttempt = hasSeveralRecipients(row)
  const { requestId, at, operation, app, brand, channel, recipients, limits, status } = row
  return {
    requestId,
    at,
    operation,
    app,
    brand,
    channel,
    recipient: isOfAttempt ? null : row.recipient,
    recipients,
    recipientHash: isOfAttempt ? null : row.recipientHash,
    country: isOfAttempt ? null : row.country,
    reference: row.reference,
    flags: row.guard === null ? [] : row.guard.split(' ').filter(isFlag),
    unknownFields: row.unknownFields ? row.unknownFields.split(' ') : [],
    limits: [...limits.matchAll(limitPattern)].map(({ groups = {} }) => limitIn(at, groups)),
    end:
      status === null
        ? null
        : { status, error: row.error, message: row.message, durationMs: row.durationMs ?? 0 },
  }
}

export function firstAttemptOf(row: RequestRow): AttemptRow | undefined {
  const { attemptAt: at, channel, recipient, recipientHash, provider, outcome } = row
  if (at === null || channel === null || recipient === null || recipientHash === null) return undefined
  if (provider === null || outcome === null) return undefined
  return {
    ...row,
    attempt: 1,
    at,
    channel,
    recipient,
    recipientHash,
    provider,
    outcome,
    durationMs: row.attemptDurationMs ?? 0,
  }
}

export function deliveryOf(row: AttemptRow, report: DeliveryReportState | undefined): Delivery {
  const { segments, encoding } = row
  return {
    requestId: row.requestId,
    attempt: row.attempt,
    at: row.at,
    app: row.app,
    brand: row.brand,
    channel: row.channel,
    route: row.route,
    provider: row.provider,
    template: row.template,
    lang: row.lang,
    recipient: row.recipient,
    position: row.position,
    recipientHash: row.recipientHash,
    segments: segments === null || encoding === null ? null : { count: segments, encoding },
    outcome: row.outcome,
    errorClass: row.errorClass,
    reason: row.reason,
    providerMessageId: row.providerMessageId,
    reportKey: row.reportKey,
    country: row.country,
    durationMs: row.durationMs,
    report: report ? { status: report.status, reason: report.reason, at: report.at } : null,
  }
}

/** Design D41: these numbers pass the guard a few times in a day. */
export const verifiedRetentionMs = 180 * dayMs

/** A later code within this time is not stored. */
export const verifiedRenewalMs = 3_600_000

/** The latest verification of each number. */
export function verifiedIn(entries: readonly EventLogEntry[]): readonly VerifiedNumber[] {
  const latest = new Map<string, VerifiedNumber>()
  for (const { verified } of entries) {
    const known = verified && latest.get(verified.subject)
    if (verified && !(known && known.verifiedAt > verified.verifiedAt)) latest.set(verified.subject, verified)
  }
  return [...latest.values()]
}
