import type { Clock } from '../ports.ts'
import type { Outcome } from './providers.ts'

/** Failures in a row after which a provider rests. */
const failuresToOpen = 5

/** How long it rests before it is probed: doubled with each probe that fails, up to the longest. */
const firstOpenMs = 10_000
const longestOpenMs = 300_000

/** A provider begins to rest, goes on to rest after a probe, or works again. */
export type BreakerChange =
  | { readonly provider: string; readonly state: 'rests'; readonly openMs: number; readonly failures: number }
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
  readonly openMs: number
}

interface Breaker {
  failures: number
  openMs: number
  /** Undefined: closed. */
  openUntil: number | undefined
  probing: boolean
  /** Rests because another server has found it failing. */
  isHearsay: boolean
}

/** A provider that another server has found failing. */
export interface HeardOpenCircuit {
  readonly provider: string
  readonly failures: number
  readonly openMs: number
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
  isOpen(provider: string): boolean {
    const breaker = this.breakers.get(provider)
    if (breaker?.openUntil === undefined) return false
    return breaker.probing || this.stopwatch() < breaker.openUntil
  }

  /**
   * A provider is about to be asked.
   *
   * @returns to be called with what became of that
   */
  begin(provider: string): (outcome: Outcome) => void {
    const breaker = this.breakers.get(provider)
    const isDue =
      breaker?.openUntil !== undefined && !breaker.probing && this.stopwatch() >= breaker.openUntil
    if (!isDue) return (outcome) => this.end(provider, outcome)
    breaker.probing = true
    return (outcome) => this.end(provider, outcome, breaker)
  }

  /**
   * Takes over what all servers on a database know by now: a provider that fails for one of them rests for all, and one
   * that works again for one does so for all that have it from hearsay.
   */
  hear(openCircuits: readonly HeardOpenCircuit[]): void {
    for (const [provider, breaker] of this.breakers) {
      if (breaker.isHearsay && !openCircuits.some((each) => each.provider === provider))
        this.breakers.delete(provider)
    }
    for (const { provider, failures, openMs, leftMs } of openCircuits) {
      const known = this.breakers.get(provider)
      const openUntil = this.stopwatch() + leftMs
      // What it found itself, or has heard before, may last longer.
      if (leftMs <= 0 || (known?.openUntil ?? 0) >= openUntil) continue
      const isHearsay = known?.openUntil === undefined || known.isHearsay
      // The same object as before: a probe that is under way is of that.
      const breaker = Object.assign(known ?? { probing: false }, { failures, openMs, openUntil, isHearsay })
      this.breakers.set(provider, breaker)
    }
  }

  /** Those that have failed since they worked last. Any other, which may never have been asked, works. */
  states(): readonly BreakerState[] {
    const now = this.stopwatch()
    return Array.from(this.breakers, ([provider, { failures, openUntil, probing }]) => {
      const openMs = openUntil === undefined || probing ? 0 : Math.max(0, openUntil - now)
      const state = openUntil === undefined ? 'works' : openMs > 0 ? 'rests' : 'probed'
      return { provider, state, failuresInARow: failures, openMs }
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
      if (known?.openUntil !== undefined) this.changed({ provider, state: 'works' })
      return
    }
    const breaker = known ?? {
      failures: 0,
      openMs: firstOpenMs,
      openUntil: undefined,
      probing: false,
      isHearsay: false,
    }
    this.breakers.set(provider, breaker)
    breaker.failures++
    if (isProbe) breaker.openMs = Math.min(2 * breaker.openMs, longestOpenMs)
    // Calls that were under way when it opened say nothing new.
    if (isProbe || (breaker.openUntil === undefined && breaker.failures >= failuresToOpen)) {
      const { openMs, failures } = breaker
      breaker.openUntil = this.stopwatch() + openMs
      breaker.isHearsay = false
      this.changed({ provider, state: 'rests', openMs, failures })
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
