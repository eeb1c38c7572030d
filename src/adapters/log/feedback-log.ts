import type { FeedbackResult } from '../../domain/messages/conversion-feedback.ts'
import { onceAMinute } from '../../domain/once-a-minute.ts'
import type { Log } from '../../domain/ports.ts'
import type { Stopwatch } from '../../domain/time.ts'

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
