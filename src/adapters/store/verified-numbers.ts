import { dayMs } from '../../domain/ground/time.ts'
import type { EventLogEntry, VerifiedNumber } from './event-rows.ts'

/** Design D41: these numbers always pass the guard. */
export const verifiedRetentionMs = 180 * dayMs

/** A later code within this time is not stored. */
export const verifiedRenewalMs = 3_600_000

/** The latest verification of each number. */
export function verifiedIn(entries: readonly EventLogEntry[]): readonly VerifiedNumber[] {
  const latest = new Map<string, VerifiedNumber>()
  for (const { verified } of entries) {
    const known = verified && latest.get(verified.subject)
    if (verified && !(known && known.verifiedAt > verified.verifiedAt)) latest.set(verified.subject, verified)
  }
  return [...latest.values()]
}
