import { type Channel, mask, type Recipient } from '../ground/contact.ts'
import type { Outcome, PhoneRoute, RejectionScope, Segments } from '../ground/providers.ts'
import type { EpochMs } from '../ground/time.ts'
import { type GuardReason, guardReasons } from '../guard/guard.ts'
import { type SurgeFlag, surgeFlags } from '../guard/notify-watch.ts'
import type { BudgetName, LimitName } from './limit-names.ts'

/** The app of test messages by operators. It has a colon, so it is no app's and no brand's. */
export const testAppId = 'otpost:test'

export type Operation = 'send' | 'resend' | 'verify' | 'notify' | 'relay'

/** An `Authorization` header. */
export type Authorization =
  | { readonly scheme: 'bearer'; readonly token: string }
  | { readonly scheme: 'basic'; readonly user: string; readonly password: string }

/** For the log line and the request trace: no API key, code, full recipient or text. */
export interface RequestContext {
  readonly requestId: string
  readonly at: EpochMs
  readonly clientIp: string
  /** A try of a job of an asynchronous notification. Only its attempts are saved. */
  isJob?: boolean
  traceId?: string
  /** The X-Request-Id of a trusted proxy. The answer has it if the proxy gets none from this server. */
  proxyRequestId?: string
  operation?: Operation
  app?: string
  brand?: string
  channel?: Channel
  recipient?: string
  recipientHash?: string
  recipients?: number
  /** Of several recipients: each, masked, with its number in `to` from 1. */
  addressees?: readonly { readonly position: number; readonly masked: string }[]
  /** Of the only recipient. */
  country?: string
  /** The caller's. */
  reference?: string | undefined
  /** Credentials in a header of a protected call. `authenticate` removes them (design D49). */
  authorization?: Authorization | 'malformed' | undefined
  /** The value of the Idempotency-Key header. */
  idempotencyKey?: string
  /** The ID of the request whose answer this one gets again (design D43). */
  replayOf?: string
  /** A replay; or why the request was rejected, or would have been if the guard or a rule did more than record. */
  flags?: readonly Flag[]
  /** Names of fields of the body that the endpoint does not have, as `unknownFieldsOf` returns them. */
  unknownFields?: readonly string[] | undefined
  /** The code that a verify consumed. */
  verified?: VerifiedCode
  /** Of a relay whose caller does not report which codes are verified. */
  isUnreported?: boolean
  fault?: unknown
  readonly limits: LimitStatus[]
  attemptsBegun: number
  readonly attempts: Attempt[]
  /** How many of them the event log has written or lost. */
  savedAttempts: number
  /** Undefined: in progress, or not saved. */
  end?: RequestEnd
}

/**
 * `destination`: blocked, or of a rule with `monitor` (design D40). `replayed`: the only flag of a repeated request (design D43).
 * `review`: the code was that of a review number, and no provider was called (design D48).
 * `notify-country`, `notify-range`: notifications unlike the history of the app. The others are the guard's (design D41).
 */
export type Flag = OtherFlag | SurgeFlag | GuardReason

type OtherFlag = 'destination' | 'replayed' | 'review' | PartFlag

/** A code was verified with another value of this part than it was sent with (design D55). */
export const partFlags = ['other-purpose', 'other-amount', 'other-currency', 'other-payee'] as const
export type PartFlag = (typeof partFlags)[number]

/** Neither of the guard nor about notifications. */
export const otherFlags: readonly OtherFlag[] = ['destination', 'replayed', 'review', ...partFlags]

const flags: readonly string[] = [...otherFlags, ...surgeFlags, ...guardReasons]

export function isOfGuard(flag: Flag): flag is GuardReason {
  return guardReasons.some((reason) => reason === flag)
}

export function isSurge(flag: Flag): flag is SurgeFlag {
  return surgeFlags.some((surge) => surge === flag)
}

export function isPartFlag(flag: Flag): flag is PartFlag {
  return partFlags.some((part) => part === flag)
}

export function isFlag(text: string): text is Flag {
  return flags.includes(text)
}

export interface RequestEnd {
  readonly status: number
  readonly error: string | null
  readonly message: string | null
  readonly durationMs: number
}

export type ContextOf = (request: Request) => RequestContext

export function isRequestId(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}

export function newRequestContext(
  request: Pick<RequestContext, 'requestId' | 'at' | 'clientIp'>,
): RequestContext {
  return { ...request, limits: [], attemptsBegun: 0, attempts: [], savedAttempts: 0 }
}

export function noteRecipient(context: RequestContext, recipient: Recipient): void {
  context.channel = recipient.channel
  context.recipient = mask(recipient)
}

export function isReview({ flags }: Pick<RequestContext, 'flags'>): boolean {
  return flags?.includes('review') ?? false
}

/** By a destination rule, or because of the kind of number. */
export function isBlocked(
  { flags }: { readonly flags?: readonly Flag[] | undefined },
  error: string | null | undefined,
): boolean {
  return (flags?.includes('destination') ?? false) && error === 'validation_error'
}

export function noteFlag(context: RequestContext, flag: Flag): void {
  if (!context.flags?.includes(flag)) context.flags = [...(context.flags ?? []), flag]
}

/** What the guard did with a code (design D41). */
interface GuardDecision {
  readonly bucket: GuardReason
  /** `recorded`: sent, since the guard only records. `budget`: a budget rejected it. */
  readonly verdict: 'denied' | 'recorded' | 'budget'
}

/** Undefined: nothing, or another limit than a budget rejected the request. */
export function guardDecision(
  { flags = [], limits }: { readonly flags?: readonly Flag[]; readonly limits: readonly LimitStatus[] },
  error: string | null | undefined,
): GuardDecision | undefined {
  const bucket = flags.find(isOfGuard)
  const limit = limits.find(({ refused }) => refused)
  if (bucket === undefined || (limit && !limit.budget)) return undefined
  if (error !== 'rate_limited') return { bucket, verdict: 'recorded' }
  return { bucket, verdict: limit ? 'budget' : 'denied' }
}

export interface LimitStatus {
  readonly limit: LimitName
  readonly max: number
  /** Counted requests including this one. Null: unknown, but below `max`. */
  readonly used: number | null
  readonly endsAt: EpochMs | null
  readonly refused: boolean
  /** `max` and `used` are then millionths of the currency. */
  readonly budget?: BudgetName | undefined
  /** Of a budget that refused the request: what was claimed of it. */
  readonly refusedMicros?: number | undefined
}

export interface Cost {
  /** Millionths of the currency. */
  readonly micros: number
  readonly currency: string
}

export interface Attempt {
  readonly attempt: number
  readonly at: EpochMs
  readonly channel: Channel
  readonly route: PhoneRoute | null
  readonly provider: string
  readonly template: string | null
  /** Of the text, as BCP 47. Null: text of the caller. */
  readonly lang: string | null
  readonly recipient: string
  /** The recipient's number within the request, from 1. Null: the only recipient. */
  readonly position: number | null
  readonly recipientHash: string
  readonly segments: Segments | null
  /** ISO 3166-1. Null: e-mail, or a number of no country. */
  readonly country: string | null
  /** Null: certainly not sent, or e-mail. */
  readonly cost: Cost | null
  /** `skipped`: not called, because the circuit was open, operators had paused the provider, too little time was left, a limit or budget was exhausted, its way is closed to the number, or there is none. */
  readonly outcome: Outcome['kind'] | 'skipped'
  readonly errorClass: RejectionScope | 'retryable' | 'unknown' | null
  readonly reason: string | null
  readonly providerMessageId: string | null
  /** The key of its delivery reports. Null: none is expected. */
  readonly reportKey: string | null
  readonly durationMs: number
  readonly error?: unknown
}

export function mayBeSent({ outcome }: Pick<Attempt, 'outcome'>): boolean {
  return outcome === 'accepted' || outcome === 'unknown'
}

export interface VerifiedCode {
  /** Null: the fixed code of a review number. Empty: of a relay. */
  readonly provider: string | null
  /** Known only for a provider that gets conversion feedback. */
  readonly providerMessageId: string | null
  /** Null: of a relay, whose caller has verified it. */
  readonly ageMs: number | null
  /** False: another code of the number was verified on the same day, so that it does not count for its country in the guard. */
  readonly isCredited?: boolean
}
