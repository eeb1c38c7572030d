import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../../domain/ports.ts'
import type { SweepStep } from './store.ts'

/** Pause after a round, and between steps that found little. */
const restMs = { round: 5000, step: 20 } as const

/** Deletes expired rows step by step until the signal aborts. */
export async function runExpiryCleanup(
  sweep: () => Promise<SweepStep>,
  signal: AbortSignal,
  log: Log,
): Promise<void> {
  while (!signal.aborted) {
    let waitMs: number = restMs.round
    try {
      const { isRound, isBusy } = await sweep()
      if (!isRound) waitMs = isBusy ? 0 : restMs.step
    } catch (error) {
      log.error({ err: error }, 'expired rows could not be removed; it is tried again')
    }
    await pause(waitMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
}
