import type { Clock } from './ports.ts'
import type { Outcome } from './providers.ts'

/** Failures in a row after which a provider rests. */
const failuresToOpen = 5

/** How long it rests before it is probed: doubled with each probe that fails, up to the longest. */
const firstRestMs = 10_000
const longestRestMs = 300_000

/** How the breaker of a provider stands. */
export interface BreakerState {
  readonly provider: string
  readonly state: 'closed' | 'open' | 'probing'
  /** Failures in a row. */
  readonly failures: number
  /** Monotonic milliseconds until which it rests; null: it doesn't. */
  readonly restsUntil: number | null
}

interface Breaker {
  failures: number
  restMs: number
  /** Undefined: closed. */
  restsUntil: number | undefined
  probing: boolean
}

/**
 * The circuit breakers of the providers, by name. One that has failed five times in a row rests; then one message probes
 * it, and what becomes of that closes the breaker or lets it rest for twice as long. Who is asked while one rests is
 * decided by `delivery.ts`: a breaker prefers, it does not forbid, since a resting provider is better than none.
 */
export class Breakers {
  private readonly breakers = new Map<string, Breaker>()

  /** @param stopwatch monotonic milliseconds */
  constructor(private readonly stopwatch: Clock) {}

  /** Whether a provider should be passed over where there is another. */
  rests(provider: string): boolean {
    const breaker = this.breakers.get(provider)
    if (breaker?.restsUntil === undefined) return false
    return breaker.probing || this.stopwatch() < breaker.restsUntil
  }

  /** A provider is about to be asked. */
  begin(provider: string): void {
    const breaker = this.breakers.get(provider)
    if (breaker?.restsUntil !== undefined && this.stopwatch() >= breaker.restsUntil) breaker.probing = true
  }

  /** What became of that. */
  end(provider: string, outcome: Outcome): void {
    if (!isFailing(outcome)) {
      this.breakers.delete(provider)
      return
    }
    const breaker = this.breakers.get(provider) ?? {
      failures: 0,
      restMs: firstRestMs,
      restsUntil: undefined,
      probing: false,
    }
    this.breakers.set(provider, breaker)
    breaker.failures++
    const isProbe = breaker.probing
    breaker.probing = false
    if (isProbe) breaker.restMs = Math.min(2 * breaker.restMs, longestRestMs)
    // Calls that were under way when it opened say nothing new.
    if (isProbe || (breaker.restsUntil === undefined && breaker.failures >= failuresToOpen)) {
      breaker.restsUntil = this.stopwatch() + breaker.restMs
    }
  }

  /** Those that have failed since they last worked. */
  get states(): readonly BreakerState[] {
    return Array.from(this.breakers, ([provider, { failures, restsUntil, probing }]) => ({
      provider,
      state: probing ? 'probing' : restsUntil === undefined ? 'closed' : 'open',
      failures,
      restsUntil: restsUntil ?? null,
    }))
  }
}

/** Whether an outcome speaks against the provider rather than against this message. */
function isFailing(outcome: Outcome): boolean {
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
