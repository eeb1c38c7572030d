import { utc } from '../ground/format.ts'
import { isFromBeforeStep } from '../ground/ports.ts'
import type { EpochMs } from '../ground/time.ts'
import type { GuardMode } from './guard.ts'

/** As operators have set it. The first server on a database stores GUARD (design D41). */
export interface StoredMode {
  readonly mode: GuardMode
  /** In place of `mode` until it ends. */
  readonly temporary: TemporaryMode | null
}

interface TemporaryMode {
  readonly mode: GuardMode
  readonly since: EpochMs
  /** Exclusive. */
  readonly until: EpochMs
}

export interface ModeInForce {
  readonly mode: GuardMode
  /** When `next` follows. Both are null for a mode without an end. */
  readonly until: EpochMs | null
  readonly next: GuardMode | null
}

export const modeWords: Readonly<Record<GuardMode, string>> = {
  off: 'the guard counts nothing, and blocked prefixes have no effect.',
  record: 'codes that the guard would deny are sent and recorded.',
  deny: 'codes that the guard denies are not sent.',
}

/** @param first GUARD, until a server has stored it */
export function modeInForce(stored: StoredMode | null, first: GuardMode, now: EpochMs): ModeInForce {
  const { mode, temporary } = stored ?? { mode: first, temporary: null }
  // One that began after now is from before the clock was set back, so its end is unknown.
  if (temporary === null || temporary.until <= now || isFromBeforeStep(temporary.since, now))
    return { mode, until: null, next: null }
  return { mode: temporary.mode, until: temporary.until, next: mode }
}

/** Empty for a mode without an end. */
export function endWords({ until, next }: Omit<ModeInForce, 'mode'>): string {
  return until === null ? '' : ` until ${utc(until)}, then ${next}`
}
