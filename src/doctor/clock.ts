import { type Finding, fail, ok, warn } from '../domain/health/problem.ts'
import { inSeconds } from './units.ts'

export interface ClockSample {
  readonly from: string
  /** Negative: this clock is behind. */
  readonly aheadMs: number
  readonly isThisMachine: boolean
}

/** Beyond `fail`, providers reject signed requests. */
export const clockLimitsMs = { warn: 30_000, fail: 240_000 } as const

/**
 * @param lastRequestAt the latest time in the database, epoch milliseconds
 */
export function clockFindings(
  samples: readonly ClockSample[],
  lastRequestAt: number | null,
  now: number,
): readonly Finding[] {
  const remedy = 'Synchronize the clock over the network: run `timedatectl set-ntp true`, or install chrony.'
  const worst = samples.toSorted((a, b) => Math.abs(b.aheadMs) - Math.abs(a.aheadMs))[0]
  const findings: Finding[] = []
  if (worst && Math.abs(worst.aheadMs) > clockLimitsMs.warn) {
    const direction = worst.aheadMs > 0 ? 'ahead of' : 'behind'
    const message = `The clock of this machine is ${inSeconds(Math.abs(worst.aheadMs))} ${direction} the clock of ${worst.from}.`
    findings.push(
      Math.abs(worst.aheadMs) > clockLimitsMs.fail
        ? fail('clock', `${message} Providers reject requests signed with this time.`, remedy)
        : warn('clock', message, remedy),
    )
  }
  const inFutureMs = lastRequestAt === null ? 0 : lastRequestAt - now
  if (inFutureMs > clockLimitsMs.warn) {
    findings.push(
      warn(
        'clock',
        `The latest request in the database is ${inSeconds(inFutureMs)} in the future. This clock is behind, or was ahead then.`,
        `${remedy} Codes sent while the clock was ahead do not verify. If the clock is correct now, do nothing: limits, blocks and retries last at most their own length.`,
      ),
    )
  }
  if (findings.length > 0) return findings
  const others = samples.filter(({ isThisMachine }) => !isThisMachine)
  return [
    others.length > 0
      ? ok('clock', `The same as ${others.map(({ from }) => from).join(', ')}.`)
      : ok('clock', 'Not compared: no other machine gave its time.'),
  ]
}
