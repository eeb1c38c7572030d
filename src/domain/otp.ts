import type { Admission, Claim, Refusal, Taking } from './limits.ts'

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
  readonly id: string
  readonly salt: string
  /** HMAC-SHA-256 over id, scope, salt and code, in base64url. */
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

/** A guess against one stored record: the hash that the submitted code has under that record's salt. */
export interface Guess {
  readonly recordId: string
  readonly hash: string
}

/**
 * Codes and the limits around them. Every method is one atomic step, also against other processes on the same store,
 * and is durable when its promise resolves. A rejected promise means that the step has not happened, or (when the store
 * was lost at the moment of its commit) that it may have; it never means that half of it did.
 */
export interface OtpStore {
  /** Takes all claims or none. */
  admit(claims: readonly Claim[], now: number): Promise<Admission>
  /** Whether a claim would be refused now; takes nothing. */
  check(claim: Claim, now: number): Promise<Admission>
  /** Takes all claims and makes this record the only one of its scope, so that an older code is dead; or neither. */
  beginSend(claims: readonly Claim[], record: OtpRecord, now: number): Promise<Admission>
  /** Lets the window of a taking end at another instant: the lease of a cooldown becomes the cooldown. */
  moveEnd(taking: Taking, endsAt: number): Promise<void>
  /** Removes this record, unless a newer one has taken its place, and gives its takings back to their windows. */
  abandonSend(record: Pick<OtpRecord, 'id' | keyof OtpScope>, takings: readonly Taking[]): Promise<void>
  /** The live record of a scope, of which a guess needs the id and the salt. */
  find(scope: OtpScope, now: number): Promise<Pick<OtpRecord, 'id' | 'salt'> | undefined>
  /**
   * Judges a guess: takes the claims, then charges the attempt, compares in constant time, and removes the record on a
   * match. `failureBudget` is taken only by a guess that was compared and wrong, and is forgotten on a match; when it is
   * used up the guess is refused like by any other claim. A guess of undefined, or one for a record that has been
   * replaced or is over, finds nothing.
   */
  guess(attempt: GuessAttempt, now: number): Promise<Verdict>
}

export interface GuessAttempt {
  readonly claims: readonly Claim[]
  readonly failureBudget: Claim | undefined
  readonly scope: OtpScope
  readonly guess: Guess | undefined
}
