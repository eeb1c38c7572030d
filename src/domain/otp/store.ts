import type { Claim, Grant, LimitDecision, Refusal } from './limits.ts'

/** Wrong guesses after which a code is locked (spec 3.1, design D1). */
export const maxAttempts = 3

/** Where a code belongs: one per brand and recipient (spec 2.2). */
export interface OtpScope {
  readonly brandSlug: string
  /** Keyed hash of the recipient; the recipient itself is not stored. */
  readonly subject: string
}

/** A code as it is stored: its keyed hash, never itself. Each send makes a new one, with an id of its own. */
export interface OtpRecord extends OtpScope {
  /** 128 random bits in base64url: the record's name, and the salt of its hash. */
  readonly id: string
  /** The salted hash of the keyed code (`Secrets.saltedHash`), in base64url. */
  readonly hash: string
  /** Epoch milliseconds. */
  readonly createdAt: number
  /** Epoch milliseconds; from this instant on the record counts as absent. */
  readonly expiresAt: number
}

/** What became of a guess (spec 3.1). */
export type Verdict =
  | { readonly kind: 'verified' }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'locked'; readonly expiresAt: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** A submitted code, and the limits that judge it. */
export interface GuessAttempt {
  readonly claims: readonly Claim[]
  /** Counts wrong guesses over all codes of the scope; undefined when it is turned off. */
  readonly failureBudget: Claim | undefined
  readonly scope: OtpScope
  /** The submitted code under each key that may have made the record: it is right if one of them is. */
  readonly keyedCodes: readonly string[]
}

/**
 * Codes and the limits around them. Every method is one atomic step, also against other processes on the same store,
 * and is durable when its promise resolves. A rejected promise means that the step has not happened, or (when the store
 * was lost at the moment of its commit) that it may have; it never means that half of it did. What each step does is
 * written in `ledger.ts`.
 */
export interface OtpStore {
  /** Takes all claims or none. */
  admit(claims: readonly Claim[], now: number): Promise<LimitDecision>
  /** Whether a claim would be refused now; takes nothing. */
  check(claim: Claim, now: number): Promise<LimitDecision>
  /** Takes all claims and makes this record the only one of its scope, so that an older code is dead; or neither. */
  beginSend(claims: readonly Claim[], record: OtpRecord, now: number): Promise<LimitDecision>
  /**
   * Lets the window of a taking end at another instant: a lease becomes a cooldown, also where it is over by then. One
   * that is open in its place is not cut short, but lasts until then where it would have ended before.
   */
  reschedule(grant: Grant, endsAt: number, now: number): Promise<void>
  /** Removes this record, unless a newer one has taken its place, and gives its takings back to their windows. */
  abandonSend(
    record: Pick<OtpRecord, 'id' | keyof OtpScope>,
    grants: readonly Grant[],
    now: number,
  ): Promise<void>
  /**
   * Judges a guess: takes the claims, then charges the attempt, compares in constant time, and removes the record on a
   * match. `failureBudget` is taken only by a guess that was compared and wrong, and is forgotten on a match; when it is
   * used up the guess is refused like by any other claim.
   */
  guess(attempt: GuessAttempt, now: number): Promise<Verdict>
  /** Moves what is kept of former names of a subject (hashes under former keys) to its present one. */
  rekey(subject: string, former: readonly string[], now: number): Promise<void>
}
