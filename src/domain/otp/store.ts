import type { Claim, Grant, LimitDecision, Refusal, Subject } from './limits.ts'

/** Wrong guesses after which a code is locked (spec 3.1, design D1). */
export const maxAttempts = 3

/** A code to be stored; there is one for each brand and recipient (spec 2.2). */
export interface NewCode {
  readonly subject: Subject
  readonly brandSlug: string
  /** 128 random bits in base64url. */
  readonly id: string
  /** The salted hash of the keyed code (`Secrets.saltedHash`), in base64url. */
  readonly hash: string
  readonly ttlMs: number
}

/** Names one generation of a code. */
export type CodeRef = Pick<NewCode, 'subject' | 'brandSlug' | 'id'>

/** The result of a guess (spec 3.1). */
export type Verdict =
  | { readonly kind: 'verified' }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'locked'; readonly resetsInMs: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** A submitted code, and the limits that apply to it. */
export interface GuessAttempt {
  readonly claims: readonly Claim[]
  /** Counts wrong guesses over all codes of the brand and recipient; undefined when it is turned off. */
  readonly failureBudget: Claim | undefined
  readonly subject: Subject
  readonly brandSlug: string
  /** The submitted code under the present and each previous secret key: it is right if one of them matches. */
  readonly keyedCodes: readonly string[]
}

/**
 * Codes and limits. Every method is one atomic step, also against other processes on the same database, and is durable when
 * its promise resolves. A rejected promise means that the step did not happen or, when the database was lost at the moment
 * of its commit, that it may have; never that half of it did. `now` is in epoch milliseconds; a store that several machines
 * share uses its own clock instead. The steps themselves are in `state.ts`.
 */
export interface OtpStore {
  /** Takes all claims or none. */
  admit(claims: readonly Claim[], now: number): Promise<LimitDecision>
  /** Takes all claims and replaces the code of its brand and recipient, or does neither. */
  beginSend(claims: readonly Claim[], code: NewCode, now: number): Promise<LimitDecision>
  /**
   * Lets the window of a grant expire `durationMs` from now; opens it again where it has expired. A window of a later
   * grant is never cut short.
   */
  reschedule(grant: Grant, durationMs: number, now: number): Promise<void>
  /** Removes this code, unless a newer one has replaced it, and gives the grants back to their windows. */
  abandonSend(code: CodeRef, grants: readonly Grant[], now: number): Promise<void>
  /**
   * Takes the claims; then charges the attempt, compares in constant time, and removes the code on a match. Only a wrong
   * code counts on `failureBudget`, and a match resets it; an exhausted budget refuses like any other claim.
   */
  guess(attempt: GuessAttempt, now: number): Promise<Verdict>
}
