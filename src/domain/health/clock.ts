import { duration } from '../ground/format.ts'
import type { EpochMs } from '../ground/time.ts'
import { found, type Problem, warn } from './problem.ts'

/** Beyond `fail`, providers reject signed requests. */
export const clockLimitsMs = { warn: 30_000, fail: 240_000 } as const

export const clockRemedy =
  'Synchronize the clock over the network: run `timedatectl set-ntp true`, or install chrony.'

/** What a server knows of its clock without asking others. */
export interface ClockFacts {
  readonly lastRequestAt: EpochMs | null
  /** Negative: the clock of the database is behind. Undefined: the database has the clock of this machine. */
  readonly databaseAheadMs: number | undefined
}

export function clockProblems({ lastRequestAt, databaseAheadMs = 0 }: ClockFacts, now: EpochMs): Problem[] {
  const inFutureMs = lastRequestAt === null ? 0 : lastRequestAt - now
  return found(
    inFutureMs > clockLimitsMs.warn &&
      warn(
        'clock',
        `The latest request in the database is ${duration(inFutureMs)} in the future. This clock is behind, or was ahead then.`,
        `${clockRemedy} Codes sent while the clock was ahead do not verify. If the clock is correct now, do nothing: limits, blocks and retries last at most their own length.`,
      ),
    Math.abs(databaseAheadMs) > clockLimitsMs.warn &&
      warn(
        'database clock',
        `The database clock is ${duration(Math.round(Math.abs(databaseAheadMs) / 1000) * 1000)} ${databaseAheadMs > 0 ? 'ahead of' : 'behind'} the clock of this machine. Codes and limits use the database clock, signatures the clock of this machine.`,
        'Synchronize both clocks over the network.',
      ),
  )
}
