import type { Claim, Grant, LimitDecision, Refusal, Subject } from './limits.ts'

/** Wrong guesses until a code is locked (spec 3.1, design D1). */
export const maxAttempts = 3

export interface NewCode {
  readonly subject: Subject
  readonly brandSlug: string
  readonly id: string
  readonly hash: string
  readonly ttlMs: number
}

export type CodeRef = Pick<NewCode, 'subject' | 'brandSlug' | 'id'>

export type Verdict =
  | { readonly kind: 'verified' }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'locked'; readonly resetsInMs: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

export interface GuessAttempt {
  readonly claims: readonly Claim[]
  /** Over all brands and codes of the recipient. Undefined: turned off. */
  readonly failureBudget: Claim | undefined
  readonly subject: Subject
  readonly brandSlug: string
  /** Under each secret key, present first. */
  readonly keyedCodes: readonly string[]
}

/**
 * Each method is one atomic step, durable when it resolves. See `state.ts`.
 * A rejected step did not happen or, if the connection was lost at the commit, happened completely.
 * `now` is in epoch milliseconds; a store for several machines uses its own clock.
 */
export interface OtpStore {
  admit(claims: readonly Claim[], now: number): Promise<LimitDecision>
  /** Takes all claims and replaces the code, or does neither. */
  beginSend(claims: readonly Claim[], code: NewCode, now: number): Promise<LimitDecision>
  /** Sets a grant's window to expire in `durationMs`. Never shortens the window of a later grant. */
  reschedule(grant: Grant, durationMs: number, now: number): Promise<void>
  /** Decrements the counts, unless their windows have ended. */
  giveBack(grants: readonly Grant[], now: number): Promise<void>
  /** Gives the grants back, and removes this code unless it was replaced. */
  abandonSend(code: CodeRef, grants: readonly Grant[], now: number): Promise<void>
  /** Counts the attempt and consumes a matching code. A match also resets `failureBudget`. */
  guess(attempt: GuessAttempt, now: number): Promise<Verdict>
}
