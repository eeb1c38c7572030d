import { type Channel, mask, type Recipient } from '../contact.ts'
import type { Outcome, RejectionScope, Segments, SmsRoute } from '../messages/providers.ts'
import type { LimitName } from '../otp/limits.ts'

/** What a request asked for. */
export type Operation = 'send' | 'resend' | 'verify' | 'notify'

/**
 * One request on its way through the domain. It collects what the log line and the request trace may contain: no key, no
 * code, no full recipient, no text.
 */
export interface RequestContext {
  readonly requestId: string
  /** When it was received, epoch milliseconds. */
  readonly at: number
  readonly clientIp: string
  /** Of its OpenTelemetry trace; undefined: requests are not traced. */
  traceId?: string
  operation?: Operation
  app?: string
  brand?: string
  channel?: Channel
  recipient?: string
  /** Its keyed hash. */
  recipientSubject?: string
  recipients?: number
  /** What went wrong and did not change the answer. */
  fault?: unknown
  /** The limits that were checked, as they were then. */
  readonly limits: LimitStatus[]
  /** How many attempts have begun. */
  attemptsBegun: number
  readonly attempts: Attempt[]
}

/** Finds the context of a request under way. */
export type ContextOf = (request: Request) => RequestContext

/** The context of a request that has just been received. */
export function newRequestContext(
  request: Pick<RequestContext, 'requestId' | 'at' | 'clientIp'>,
): RequestContext {
  return { ...request, limits: [], attemptsBegun: 0, attempts: [] }
}

/** Adds whom a request is for. */
export function noteRecipient(context: RequestContext, recipient: Recipient): void {
  context.channel = recipient.channel
  context.recipient = mask(recipient)
}

/** Where a limit stood when it judged a request. */
export interface LimitStatus {
  readonly limit: LimitName
  readonly max: number
  /** Counted requests, this one included; null: there was room, and how much is not known. */
  readonly used: number | null
  /** Epoch milliseconds at which its window ends; null: not known. */
  readonly endsAt: number | null
  /** Whether it is what refused the request. */
  readonly refused: boolean
}

/** One provider call of a request, or one that was not made; a row of the delivery log. */
export interface Attempt {
  /** Counts those of the request, from 1. */
  readonly attempt: number
  /** When it began, epoch milliseconds. */
  readonly at: number
  readonly channel: Channel
  readonly route: SmsRoute | null
  readonly provider: string
  /** Key of the template. */
  readonly template: string | null
  /** Masked. */
  readonly recipient: string
  /** Which of the request's recipients it is, from 1, since masks may be alike; null: there is no other. */
  readonly position: number | null
  /** Keyed hash. */
  readonly recipientSubject: string
  readonly segments: Segments | null
  /** `skipped`: it was not asked, because its circuit breaker was open or no time was left. */
  readonly outcome: Outcome['kind'] | 'skipped'
  readonly errorClass: RejectionScope | 'retryable' | 'unknown' | null
  readonly reason: string | null
  readonly providerMessageId: string | null
  /** What a delivery report names it by; null: none is expected. */
  readonly reportKey: string | null
  readonly durationMs: number
  /** What a provider threw that should have answered; for the log line. */
  readonly error?: unknown
}
