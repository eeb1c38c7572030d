import type { Effect } from './effects.ts'
import type { Grant, LimitDecision, StoredClaim } from './limits.ts'

/**
 * Each method is one atomic step, durable when it resolves.
 * A rejected step did not happen or, if the connection was lost at the commit, happened completely.
 * `effects` are written in the same transaction, but not if a limit rejects the request.
 * `now` is in epoch milliseconds; a store for several machines uses its own clock.
 */
export interface ClaimStore {
  /** Takes all claims or none. */
  admit(claims: readonly StoredClaim[], now: number, effects?: readonly Effect[]): Promise<LimitDecision>
  /** Decrements the counts, unless their windows have ended. */
  giveBack(grants: readonly Grant[], now: number, effects?: readonly Effect[]): Promise<void>
  /** Sets a grant's window to expire in `durationMs`. Never shortens the window of a later grant. */
  reschedule(grant: Grant, durationMs: number, now: number): Promise<void>
}
