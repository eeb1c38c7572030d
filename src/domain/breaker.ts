import type { Clock } from './ports.ts'
import type { Outcome } from './providers.ts'

/** Failures in a row after which a provider rests. */
const failuresToOpen = 5

/** How long it rests before it is probed: doubled with each probe that fails, up to the longest. */
const firstRestMs = 10_000
const longestRestMs = 300_000

/** A provider begins to rest, goes on to rest after a probe, or works again. */
export type BreakerChange =
  | { readonly provider: string; readonly state: 'rests'; readonly restMs: number; readonly failures: number }
  | { readonly provider: string; readonly state: 'works' }

/** How a provider stands at the moment. */
export interface BreakerState {
  readonly provider: string
  /**
   * `works`: it is asked in its turn. `rests`: it is passed over where there is another. `probed`: its rest is over, and
   * what becomes of one message decides, which is under way or comes next.
   */
  readonly state: 'works' | 'rests' | 'probed'
  /** 0 as soon as it has worked. */
  readonly failuresInARow: number
  /** Milliseconds until its rest is over; 0 unless it rests. */
  readonly restMs: number
}

interface Breaker {
  failures: number
  restMs: number
  /** Undefined: closed. */
  restsUntil: number | undefined
  probing: boolean
  /** Rests because another server has found it failing. */
  isHearsay: boolean
}

/** A provider that another server has found failing. */
export interface HeardRest {
  readonly provider: string
  readonly failures: number
  readonly restMs: number
  /** Milliseconds until its rest is over; may be over. */
  readonly leftMs: number
}

/**
 * The circuit breakers of the providers, by name. One that has failed five times in a row rests; then one message probes
 * it, and what becomes of that closes the breaker or lets it rest for twice as long. Who is asked while one rests is
 * decided by `delivery.ts`: a breaker prefers, it does not forbid, since a resting provider is better than none.
 */
export class Breakers {
  private readonly breakers = new Map<string, Breaker>()

  /**
   * @param stopwatch monotonic milliseconds
   * @param changed is told when a provider begins or ends to rest
   */
  constructor(
    private readonly stopwatch: Clock,
    private readonly changed: (change: BreakerChange) => void = () => {},
  ) {}

  /** Whether a provider should be passed over where there is another. */
  rests(provider: string): boolean {
    const breaker = this.breakers.get(provider)
    if (breaker?.restsUntil === undefined) return false
    return breaker.probing || this.stopwatch() < breaker.restsUntil
  }

  /**
   * A provider is about to be asked.
   *
   * @returns to be called with what became of that
   */
  begin(provider: string): (outcome: Outcome) => void {
    const breaker = this.breakers.get(provider)
    const isDue =
      breaker?.restsUntil !== undefined && !breaker.probing && this.stopwatch() >= breaker.restsUntil
    if (!isDue) return (outcome) => this.end(provider, outcome)
    breaker.probing = true
    return (outcome) => this.end(provider, outcome, breaker)
  }

  /**
   * Takes over what all servers on a database know by now: a provider that fails for one of them rests for all, and one
   * that works again for one does so for all that have it from hearsay.
   */
  hear(resting: readonly HeardRest[]): void {
    for (const [provider, breaker] of this.breakers) {
      if (breaker.isHearsay && !resting.some((each) => each.provider === provider))
        this.breakers.delete(provider)
    }
    for (const { provider, failures, restMs, leftMs } of resting) {
      const known = this.breakers.get(provider)
      const restsUntil = this.stopwatch() + leftMs
      // What it found itself, or has heard before, may last longer.
      if (leftMs <= 0 || (known?.restsUntil ?? 0) >= restsUntil) continue
      const isHearsay = known?.restsUntil === undefined || known.isHearsay
      // The same object as before: a probe that is under way is of that.
      const breaker = Object.assign(known ?? { probing: false }, { failures, restMs, restsUntil, isHearsay })
      this.breakers.set(provider, breaker)
    }
  }

  /** Those that have failed since they worked last. Any other, which may never have been asked, works. */
  states(): readonly BreakerState[] {
    const now = this.stopwatch()
    return Array.from(this.breakers, ([provider, { failures, restsUntil, probing }]) => {
      const restMs = restsUntil === undefined || probing ? 0 : Math.max(0, restsUntil - now)
      const state = restsUntil === undefined ? 'works' : restMs > 0 ? 'rests' : 'probed'
      return { provider, state, failuresInARow: failures, restMs }
    })
  }

  /** @param probed the breaker that this message was to decide on, unless another has closed it meanwhile */
  private end(provider: string, outcome: Outcome, probed?: Breaker): void {
    const known = this.breakers.get(provider)
    const isProbe = known !== undefined && known === probed
    if (isProbe) known.probing = false
    if ('unasked' in outcome) return
    if (!isFailing(outcome)) {
      this.breakers.delete(provider)
      if (known?.restsUntil !== undefined) this.changed({ provider, state: 'works' })
      return
    }
    const breaker = known ?? {
      failures: 0,
      restMs: firstRestMs,
      restsUntil: undefined,
      probing: false,
      isHearsay: false,
    }
    this.breakers.set(provider, breaker)
    breaker.failures++
    if (isProbe) breaker.restMs = Math.min(2 * breaker.restMs, longestRestMs)
    // Calls that were under way when it opened say nothing new.
    if (isProbe || (breaker.restsUntil === undefined && breaker.failures >= failuresToOpen)) {
      const { restMs, failures } = breaker
      breaker.restsUntil = this.stopwatch() + restMs
      breaker.isHearsay = false
      this.changed({ provider, state: 'rests', restMs, failures })
    }
  }
}

/** Whether an outcome speaks against the provider rather than against this message. */
export function isFailing(outcome: Outcome): boolean {
  switch (outcome.kind) {
    case 'accepted':
      return false
    case 'rejected':
      return outcome.scope === 'account'
    case 'retryable':
    case 'unknown':
      return true
  }
}
