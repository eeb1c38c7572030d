import type { Breakers } from '../../domain/messages/breaker.ts'
import type { Clock } from '../../domain/time.ts'
import type { OpenCircuits } from './store.ts'

/** Best effort: a server that misses a change detects the failure itself. */
export function shareCircuits(openCircuits: OpenCircuits, breakers: Breakers, now: Clock): void {
  breakers.onChange((change) => {
    const { provider } = change
    const open =
      change.state === 'open'
        ? { failures: change.failures, openMs: change.openMs, openUntil: now() + change.openMs }
        : undefined
    void openCircuits.share(provider, open).catch(() => undefined)
  })
  openCircuits.listen((open) =>
    breakers.applyShared(
      // Not longer than it was opened for, also if the clock was set back.
      open.map(({ openUntil, ...circuit }) => ({
        ...circuit,
        leftMs: Math.min(circuit.openMs, openUntil - now()),
      })),
    ),
  )
}
