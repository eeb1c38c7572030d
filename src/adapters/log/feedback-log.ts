import type { FeedbackResult } from '../../domain/messages/conversion-feedback.ts'
import type { Log } from '../../domain/ports.ts'
import type { Stopwatch } from '../../domain/time.ts'

/** At most one line a minute for each provider, with the number of failures since the previous line. */
export function feedbackLog(log: Log, stopwatch: Stopwatch): (result: FeedbackResult) => void {
  const providers = new Map<string, { failures: number; quietUntil: number }>()
  return ({ provider, outcome, reason }) => {
    if (outcome === 'accepted') return
    const state = providers.get(provider) ?? { failures: 0, quietUntil: Number.NEGATIVE_INFINITY }
    providers.set(provider, state)
    state.failures++
    if (stopwatch() < state.quietUntil) return
    log.warn({ provider, outcome, reason, failures: state.failures }, 'conversion feedback failed')
    state.failures = 0
    state.quietUntil = stopwatch() + 60_000
  }
}
