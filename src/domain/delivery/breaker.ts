import type { Outcome } from '../ground/providers.ts'
import type { Stopwatch } from '../ground/time.ts'

/** In a row. */
export const failuresToOpen = 5

const firstOpenMs = 10_000
const longestOpenMs = 300_000

export type BreakerChange =
  | { readonly provider: string; readonly state: 'open'; readonly openMs: number; readonly failures: number }
  | { readonly provider: string; readonly state: 'closed' }

export interface BreakerState {
  readonly provider: string
  /** `closed`: in use. `open`: skipped if another provider exists. `half-open`: one probe decides. */
  readonly state: 'closed' | 'open' | 'half-open'
  readonly failuresInARow: number
  /** Until half-open; 0 unless open. */
  readonly openMs: number
}

interface Breaker {
  failures: number
  openMs: number
  openUntil: number | undefined
  probing: boolean
  /** Opened on the report of another server. */
  isRemote: boolean
}

export interface SharedOpenCircuit {
  readonly provider: string
  readonly failures: number
  readonly openMs: number
  /** Until half-open; may be negative. */
  readonly leftMs: number
}

/** Five failures in a row open a circuit; then one probe closes it, or opens it for twice as long. */
export class Breakers {
  private readonly breakers = new Map<string, Breaker>()

  private readonly listeners: ((change: BreakerChange) => void)[] = []

  constructor(private readonly stopwatch: Stopwatch) {}

  onChange(listener: (change: BreakerChange) => void): void {
    this.listeners.push(listener)
  }

  isOpen(provider: string): boolean {
    const breaker = this.breakers.get(provider)
    if (breaker?.openUntil === undefined) return false
    return breaker.probing || this.stopwatch() < breaker.openUntil
  }

  /** Returns a function to call with the outcome. */
  begin(provider: string): (outcome: Outcome) => void {
    const breaker = this.breakers.get(provider)
    const isDue =
      breaker?.openUntil !== undefined && !breaker.probing && this.stopwatch() >= breaker.openUntil
    if (!isDue) return (outcome) => this.end(provider, outcome)
    breaker.probing = true
    return (outcome) => this.end(provider, outcome, breaker)
  }

  /** Applies the open circuits of all servers. Others close, unless this server opened them. */
  applyShared(openCircuits: readonly SharedOpenCircuit[]): void {
    for (const [provider, breaker] of this.breakers) {
      if (breaker.isRemote && !openCircuits.some((each) => each.provider === provider))
        this.breakers.delete(provider)
    }
    for (const { provider, failures, openMs, leftMs } of openCircuits) {
      const known = this.breakers.get(provider)
      const openUntil = this.stopwatch() + leftMs
      if (leftMs <= 0 || (known?.openUntil ?? 0) >= openUntil) continue
      const isRemote = known?.openUntil === undefined || known.isRemote
      // Keep the object: a probe in progress compares it.
      const breaker = Object.assign(known ?? { probing: false }, { failures, openMs, openUntil, isRemote })
      this.breakers.set(provider, breaker)
    }
  }

  states(): readonly BreakerState[] {
    const now = this.stopwatch()
    return Array.from(this.breakers, ([provider, { failures, openUntil, probing }]) => {
      const openMs = openUntil === undefined || probing ? 0 : Math.max(0, openUntil - now)
      const state = openUntil === undefined ? 'closed' : openMs > 0 ? 'open' : 'half-open'
      return { provider, state, failuresInARow: failures, openMs }
    })
  }

  /** Names of providers, half-open ones included. */
  openCircuits(): ReadonlySet<string> {
    return new Set(this.states().flatMap(({ provider, state }) => (state === 'closed' ? [] : provider)))
  }

  private changed(change: BreakerChange): void {
    for (const listener of this.listeners) listener(change)
  }

  private end(provider: string, outcome: Outcome, probedBreaker?: Breaker): void {
    const known = this.breakers.get(provider)
    const isProbe = known !== undefined && known === probedBreaker
    if (isProbe) known.probing = false
    if ('notCalled' in outcome) return
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
      isRemote: false,
    }
    this.breakers.set(provider, breaker)
    breaker.failures++
    if (isProbe) breaker.openMs = Math.min(2 * breaker.openMs, longestOpenMs)
    // Calls started before it opened do not count.
    if (isProbe || (breaker.openUntil === undefined && breaker.failures >= failuresToOpen)) {
      const { openMs, failures } = breaker
      breaker.openUntil = this.stopwatch() + openMs
      breaker.isRemote = false
      this.changed({ provider, state: 'open', openMs, failures })
    }
  }
}

export function isFailing(outcome: Outcome): boolean {
  return outcome.kind === 'rejected' ? outcome.scope === 'account' : outcome.kind !== 'accepted'
}
