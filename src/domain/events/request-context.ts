import { type Channel, mask, type Recipient } from '../contact.ts'
import type { Outcome, RejectionScope, Segments, SmsRoute } from '../messages/providers.ts'
import type { LimitName } from '../otp/limits.ts'

export type Operation = 'send' | 'resend' | 'verify' | 'notify'

/** What a request has done so far, for the log line and the request trace: no key, no code, no full recipient, no text. */
export interface RequestContext {
  readonly requestId: string
  /** Epoch milliseconds at which it was received. */
  readonly at: number
  readonly clientIp: string
  /** Undefined: not traced. */
  traceId?: string
  operation?: Operation
  app?: string
  brand?: string
  channel?: Channel
  recipient?: string
  /** Keyed hash. */
  recipientSubject?: string
  recipients?: number
  /** An error that did not change the answer. */
  fault?: unknown
  readonly limits: LimitStatus[]
  attemptsBegun: number
  readonly attempts: Attempt[]
}

export type ContextOf = (request: Request) => RequestContext

export function newRequestContext(
  request: Pick<RequestContext, 'requestId' | 'at' | 'clientIp'>,
): RequestContext {
  return { ...request, limits: [], attemptsBegun: 0, attempts: [] }
}

export function noteRecipient(context: RequestContext, recipient: Recipient): void {
  context.channel = recipient.channel
  context.recipient = mask(recipient)
}

/** A limit as a request found it. */
export interface LimitStatus {
  readonly limit: LimitName
  readonly max: number
  /** Counted requests with this one; null: not known, below `max`. */
  readonly used: number | null
  /** Epoch milliseconds; null: not known. */
  readonly endsAt: number | null
  readonly refused: boolean
}

/** One provider call of a request, or a skipped one. */
export interface Attempt {
  /** From 1. */
  readonly attempt: number
  /** Epoch milliseconds. */
  readonly at: number
  readonly channel: Channel
  readonly route: SmsRoute | null
  readonly provider: string
  readonly template: string | null
  /** Masked. */
  readonly recipient: string
  /** Which of the request's recipients it is, from 1; null: the only one. */
  readonly position: number | null
  /** Keyed hash. */
  readonly recipientSubject: string
  readonly segments: Segments | null
  /** `skipped`: not called, because its circuit was open or no time was left. */
  readonly outcome: Outcome['kind'] | 'skipped'
  readonly errorClass: RejectionScope | 'retryable' | 'unknown' | null
  readonly reason: string | null
  readonly providerMessageId: string | null
  /** The key of its delivery reports; null: none is expected. */
  readonly reportKey: string | null
  readonly durationMs: number
  /** An exception of the provider, for the log line. */
  readonly error?: unknown
}
