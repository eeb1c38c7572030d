import { clockToleranceMs } from './ports.ts'
import type { Clock, EpochMs, Stopwatch } from './time.ts'

export interface ClockStep {
  /** By the clock, after the step. */
  readonly at: EpochMs
  /** Negative: the clock was set back. */
  readonly byMs: number
}

/** Compares the clock with a stopwatch, which cannot be set. NTP corrects small differences slowly, so these are no steps. */
export class ClockWatch {
  private offsetMs: number

  constructor(
    private readonly now: Clock,
    private readonly stopwatch: Stopwatch,
    private readonly stepped: (step: ClockStep) => void,
  ) {
    this.offsetMs = now() - stopwatch()
  }

  /** Call it every second. */
  readonly tick = (): void => {
    const at = this.now()
    const offsetMs = at - this.stopwatch()
    const byMs = Math.round(offsetMs - this.offsetMs)
    this.offsetMs = offsetMs
    if (Math.abs(byMs) <= clockToleranceMs) return
    this.stepped({ at, byMs })
  }
}
