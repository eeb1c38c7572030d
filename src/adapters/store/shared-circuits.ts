import type { Breakers } from '../../domain/delivery/breaker.ts'
import type { Clock } from '../../domain/ground/time.ts'
import type { OpenCircuits } from './store.ts'

/** Best effort: a server that misses a change detects the failure itself. */
export function shareCircuits(openCircuits: OpenCircuits, breakers: Breakers, now: Clock): void {
  let writing = 0
  breakers.onChange((change) => {
    const { provider } = change
    const open =
      change.state === 'open'
        ? { failures: change.failures, openMs: change.openMs, openUntil: now() + change.openMs }
        : undefined
    writing++
    void openCircuits
      .share(provider, open)
      .catch(() => undefined)
      .finally(() => writing--)
  })
  openCircuits.listen((open) => {
    // Read before this server's own change was stored, which another call follows.
    if (writing > 0) return
    breakers.applyShared(
      // Not longer than it was opened for, also if the clock was set back.
      open.map(({ openUntil, ...circuit }) => ({
        ...circuit,
        leftMs: Math.min(circuit.openMs, openUntil - now()),
      })),
    )
  })
}
