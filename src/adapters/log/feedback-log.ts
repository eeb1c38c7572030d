import type { FeedbackResult } from '../../domain/delivery/conversion-feedback.ts'
import { onceAMinute } from '../../domain/ground/once-a-minute.ts'
import type { Log } from '../../domain/ground/ports.ts'
import type { Stopwatch } from '../../domain/ground/time.ts'

/** At most one line a minute for each provider, with the number of failures since the previous line. */
export function feedbackLog(log: Log, stopwatch: Stopwatch): (result: FeedbackResult) => void {
  const limited = onceAMinute(stopwatch)
  return ({ provider, outcome, reason }) => {
    if (outcome === 'accepted') return
    limited(provider, (failures) =>
      log.warn({ provider, outcome, reason, failures }, 'conversion feedback failed'),
    )
  }
}
