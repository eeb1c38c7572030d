import type { Clock } from '../ports.ts'
import type { Outcome } from './providers.ts'

/** The circuit opens after so many failures in a row. */
const failuresToOpen = 5

/** How long it is open before one message tries the provider: doubled after each that fails, up to the longest. */
const firstOpenMs = 10_000
const longestOpenMs = 300_000

/** The circuit of a provider opens, stays open after a failed probe, or closes. */
export type BreakerChange =
  | { readonly provider: string; readonly state: 'open'; readonly openMs: number; readonly failures: number }
  | { readonly provider: string; readonly state: 'closed' }

/** The circuit of a provider. */
export interface BreakerState {
  readonly provider: string
  /**
   * `closed`: used in its turn. `open`: skipped where there is another provider. `half-open`: the outcome of one message
   * decides, which is under way or comes next.
   */
  readonly state: 'closed' | 'open' | 'half-open'
  /** 0 after a success. */
  readonly failuresInARow: number
  /** Milliseconds until it is half-open; 0 unless it is open. */
  readonly openMs: number
}

interface Breaker {
  failures: number
  openMs: number
  /** Undefined: closed. */
  openUntil: number | undefined
  probing: boolean
  /** Open because another server has found it failing. */
  isHearsay: boolean
}

/** A provider that another server has found failing. */
export interface HeardOpenCircuit {
  readonly provider: string
  readonly failures: number
  readonly openMs: number
  /** Milliseconds until it is half-open; may be negative. */
  readonly leftMs: number
}

/**
 * The circuit breakers of the providers, by name. Five failures in a row open a circuit; later one message tries the
 * provider, and its outcome closes the circuit or opens it for twice as long. `delivery.ts` skips providers with an open
 * circuit only where there is another.
 */
export class Breakers {
  private readonly breakers = new Map<string, Breaker>()

  private readonly listeners: ((change: BreakerChange) => void)[] = []

  /** @param stopwatch monotonic milliseconds */
  constructor(private readonly stopwatch: Clock) {}

  /** Adds a listener that receives each change that this server has found itself. */
  onChange(listener: (change: BreakerChange) => void): void {
    this.listeners.push(listener)
  }

  /** Whether a provider should be skipped where there is another. */
  isOpen(provider: string): boolean {
    const breaker = this.breakers.get(provider)
    if (breaker?.openUntil === undefined) return false
    return breaker.probing || this.stopwatch() < breaker.openUntil
  }

  /** A provider is about to be called. Call the result with the outcome. */
  begin(provider: string): (outcome: Outcome) => void {
    const breaker = this.breakers.get(provider)
    const isDue =
      breaker?.openUntil !== undefined && !breaker.probing && this.stopwatch() >= breaker.openUntil
    if (!isDue) return (outcome) => this.end(provider, outcome)
    breaker.probing = true
    return (outcome) => this.end(provider, outcome, breaker)
  }

  /**
   * Takes over what the servers on a database share: a circuit that one of them opens is open for all, and one that it
   * closes is closed for all that have it from others.
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

  /** Those that have failed since their last success. Every other is closed. */
  states(): readonly BreakerState[] {
    const now = this.stopwatch()
    return Array.from(this.breakers, ([provider, { failures, openUntil, probing }]) => {
      const openMs = openUntil === undefined || probing ? 0 : Math.max(0, openUntil - now)
      const state = openUntil === undefined ? 'closed' : openMs > 0 ? 'open' : 'half-open'
      return { provider, state, failuresInARow: failures, openMs }
    })
  }

  private changed(change: BreakerChange): void {
    for (const listener of this.listeners) listener(change)
  }

  /** @param probed the breaker that this message was to decide on, unless another has closed it meanwhile */
  private end(provider: string, outcome: Outcome, probed?: Breaker): void {
    const known = this.breakers.get(provider)
    const isProbe = known !== undefined && known === probed
    if (isProbe) known.probing = false
    if ('unasked' in outcome) return
    if (!isFailing(outcome)) {
      this.breakers.delete(provider)
      if (known?.openUntil !== undefined) this.changed({ provider, state: 'closed' })
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
      this.changed({ provider, state: 'open', openMs, failures })
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
