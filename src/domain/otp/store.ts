import type { ClaimStore } from '../limits/claim-store.ts'
import type { Effect } from '../limits/effects.ts'
import type { GuessKey } from '../limits/idempotency-key.ts'
import type { Grant, Granted, Refusal, StoredClaim, Subject } from '../limits/limits.ts'
import type { ReviewUse } from '../policy/review-number.ts'
import type { VerifiedCode } from '../request/request-context.ts'

/** Wrong guesses until a code is locked (spec 3.1, design D1). */
export const maxAttempts = 3

export interface NewCode {
  readonly subject: Subject
  readonly brandSlug: string
  /** The ID of the request. */
  readonly id: string
  /** As `boundHash` returns it. */
  readonly hash: string
  readonly ttlMs: number
  /** Expected to send it. Null: none, as it is the fixed code of a review number. */
  readonly provider: string | null
  /** Whether it and the previous code may have a ladder, which ends with them. */
  readonly hasLadders?: boolean
}

/** `isGone`: the code is used, locked, replaced, revoked or has expired. */
export type AgainDecision = Granted | (Refusal & { readonly isGone?: true })

export type CodeRef = Pick<NewCode, 'subject' | 'brandSlug' | 'id' | 'hasLadders'>

export type SendDecision =
  | (Granted & {
      /** Of the previous code of the brand and recipient that may have been sent, until it expires or verifies. */
      readonly lastProvider: string | null
    })
  | Refusal

export type Verdict =
  | ({ readonly kind: 'verified' } & VerifiedCode)
  | {
      readonly kind: 'mismatch'
      /** Of the code that was sent. Undefined: it is for nothing. */
      readonly sent?: { readonly id: string; readonly partHashes: readonly string[] }
    }
  | { readonly kind: 'locked'; readonly resetsInMs: number }
  | { readonly kind: 'absent' }

export type GuessDecision = (Granted & { readonly verdict: Verdict }) | Refusal

export interface GuessAttempt {
  readonly claims: readonly StoredClaim[]
  readonly key?: GuessKey | undefined
  /** Over all brands and codes of the recipient: also one of the claims, not counted, and counted for a wrong code. Undefined: turned off. */
  readonly failureBudget: StoredClaim | undefined
  readonly subject: Subject
  readonly brandSlug: string
  /** Under each secret key, present first. */
  readonly keyedCodes: readonly string[]
  /** Set: only the code of this request is present. */
  readonly id?: string | undefined
  /** Set: the event `otp.verified` or `otp.locked` is stored with the result, under this ID. */
  readonly eventId?: string | undefined
  /** Whether the code may have a ladder, which ends if it is verified or locked. */
  readonly hasLadders?: boolean
  /** Set: stored in the audit log if the code is the fixed code of a review number and is right. */
  readonly reviewUse?: ReviewUse
}

/** The steps on codes, atomic and durable as those of `ClaimStore`. Their rules are in `state.ts`. */
export interface OtpStore extends ClaimStore {
  /** Takes all claims and replaces the code, or does neither. */
  beginSend(
    claims: readonly StoredClaim[],
    code: NewCode,
    now: number,
    effects?: readonly Effect[],
  ): Promise<SendDecision>
  /** Takes all claims for another message with the code, or none. */
  sendAgain(
    code: CodeRef,
    claims: readonly StoredClaim[],
    now: number,
    effects: readonly Effect[],
  ): Promise<AgainDecision>
  /** Unless the code was used or replaced. */
  setProvider(code: CodeRef, provider: string, providerMessageId: string | null, now: number): Promise<void>
  /**
   * Gives the grants back, and revokes this code unless it was replaced.
   * @param lastProvider for the next send's `lastProvider`
   */
  abandonSend(
    code: CodeRef,
    grants: readonly Grant[],
    lastProvider: string | null,
    now: number,
    effects?: readonly Effect[],
  ): Promise<void>
  /** Counts the attempt and consumes a matching code. A match also resets `failureBudget`. */
  guess(attempt: GuessAttempt, now: number): Promise<GuessDecision>
}
