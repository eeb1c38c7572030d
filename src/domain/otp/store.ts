import type { Claim, Grant, LimitDecision, Refusal, Subject } from './limits.ts'

/** Wrong guesses until a code is locked (spec 3.1, design D1). */
export const maxAttempts = 3

/** There is one code for each brand and recipient (spec 2.2). */
export interface NewCode {
  readonly subject: Subject
  readonly brandSlug: string
  /** 128 random bits in base64url. */
  readonly id: string
  /** `Secrets.saltedHash`, in base64url. */
  readonly hash: string
  readonly ttlMs: number
}

/** One generation of a code. */
export type CodeRef = Pick<NewCode, 'subject' | 'brandSlug' | 'id'>

/** Spec 3.1. */
export type Verdict =
  | { readonly kind: 'verified' }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'locked'; readonly resetsInMs: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

export interface GuessAttempt {
  readonly claims: readonly Claim[]
  /** Over all brands and codes of the recipient; undefined when turned off. */
  readonly failureBudget: Claim | undefined
  readonly subject: Subject
  readonly brandSlug: string
  /** Under the present and each previous secret key. */
  readonly keyedCodes: readonly string[]
}

/**
 * Codes and limits. Every method is one atomic step, also against other processes, and durable when its promise resolves. When it
 * rejects, the step did not happen or, if the database was lost at the commit, may have happened as a whole. `now` is in epoch
 * milliseconds; a store of several machines uses its own clock. The steps are in `state.ts`.
 */
export interface OtpStore {
  admit(claims: readonly Claim[], now: number): Promise<LimitDecision>
  /** Takes all claims and replaces the code, or does neither. */
  beginSend(claims: readonly Claim[], code: NewCode, now: number): Promise<LimitDecision>
  /**
   * Lets the window of a grant expire `durationMs` from now; opens it again where it has expired. A window of a later grant is
   * never shortened.
   */
  reschedule(grant: Grant, durationMs: number, now: number): Promise<void>
  /** Removes this code unless a newer one has replaced it, and gives the grants back. */
  abandonSend(code: CodeRef, grants: readonly Grant[], now: number): Promise<void>
  /**
   * Takes the claims, charges the attempt, compares in constant time, and removes the code on a match. Only a wrong code counts
   * on `failureBudget`; a match resets it.
   */
  guess(attempt: GuessAttempt, now: number): Promise<Verdict>
}
