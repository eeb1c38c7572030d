import { clockLimitsMs, clockProblems, clockRemedy } from '../domain/health/clock.ts'
import { type Finding, fail, ok, warn } from '../domain/health/problem.ts'
import { inSeconds } from './units.ts'

export interface ClockSample {
  readonly from: string
  /** Negative: this clock is behind. */
  readonly aheadMs: number
  readonly isThisMachine: boolean
}

/**
 * @param lastRequestAt the latest time in the database, epoch milliseconds
 */
export function clockFindings(
  samples: readonly ClockSample[],
  lastRequestAt: number | null,
  now: number,
): readonly Finding[] {
  const worst = samples.toSorted((a, b) => Math.abs(b.aheadMs) - Math.abs(a.aheadMs))[0]
  const findings: Finding[] = []
  if (worst && Math.abs(worst.aheadMs) > clockLimitsMs.warn) {
    const direction = worst.aheadMs > 0 ? 'ahead of' : 'behind'
    const message = `The clock of this machine is ${inSeconds(Math.abs(worst.aheadMs))} ${direction} the clock of ${worst.from}.`
    findings.push(
      Math.abs(worst.aheadMs) > clockLimitsMs.fail
        ? fail('clock', `${message} Providers reject requests signed with this time.`, clockRemedy)
        : warn('clock', message, clockRemedy),
    )
  }
  findings.push(...clockProblems({ lastRequestAt, databaseAheadMs: undefined }, now))
  if (findings.length > 0) return findings
  const others = samples.filter(({ isThisMachine }) => !isThisMachine)
  return [
    others.length > 0
      ? ok('clock', `The same as ${others.map(({ from }) => from).join(', ')}.`)
      : ok('clock', 'Not compared: no other machine gave its time.'),
  ]
}
