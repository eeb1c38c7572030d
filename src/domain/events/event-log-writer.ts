import type { EventLog, RequestEnd, RequestTrace, SaveTrace } from './event-log.ts'
import type { RequestContext } from './request-context.ts'
import type { RequestEnded, RequestListener } from './request-ended.ts'
import { attemptStat, requestStats, type StatKey } from './stats.ts'

/** Undefined where the request is not of an application. */
function traceOf(context: RequestContext, end: RequestEnd | null): RequestTrace | undefined {
  const { requestId, at, operation, app, brand = null, channel = null, recipient = null } = context
  const { recipients = null, recipientSubject = null, limits } = context
  if (operation === undefined || app === undefined) return undefined
  const about = { requestId, at, operation, app, brand, channel }
  return { ...about, recipient, recipients, recipientSubject, limits, end }
}

/** Only messages that name our own fields are stored, without the caller's text. */
function endOf({ status, failure, error, durationMs, context: { channel } }: RequestEnded): RequestEnd {
  const kind = failure?.kind
  const isOurs = kind === 'validation_error' || (kind === 'missing_variable' && channel === 'SMS')
  return {
    status,
    error: error ?? null,
    message: isOurs ? (failure?.message ?? null) : null,
    durationMs: Math.round(durationMs),
  }
}

/** Uncounted rejected requests of one application a minute that are stored. */
const savedRefusals = 60

/**
 * The event log of a server. Requests without valid credentials are not stored, and few of those that no limit counts, so
 * that nobody can fill the disk.
 *
 * @param count receives the stats of every ended request, stored or not, and the time of the request
 */
export function createEventLog(
  saveTrace: SaveTrace,
  count: (at: number, statKey: StatKey) => void,
): EventLog & { readonly ended: RequestListener } {
  const refusals = new Map<string, number>()
  let minute = 0
  /** Attempts that are saved already, by request under way. */
  const taken = new WeakMap<RequestContext, number>()

  function save(context: RequestContext, trace: RequestTrace): void {
    const { attempts } = context
    saveTrace(trace, attempts.slice(taken.get(context) ?? 0))
    if (trace.end === null) taken.set(context, attempts.length)
  }

  /** Whether too many uncounted requests of an application were rejected in this minute. */
  function isTooMany({ at, app = '', limits }: RequestContext): boolean {
    const isCounted = limits.length > 0 && !limits.some(({ refused }) => refused)
    if (isCounted) return false
    const current = Math.floor(at / 60_000)
    // A slow request of an earlier minute must not reset the counters.
    if (current > minute) refusals.clear()
    minute = Math.max(minute, current)
    const count = (refusals.get(app) ?? 0) + 1
    refusals.set(app, count)
    return count > savedRefusals
  }

  return {
    note: (context) => {
      const trace = traceOf(context, null)
      if (trace) save(context, trace)
    },
    ended: (ended) => {
      const { context } = ended
      const trace = traceOf(context, endOf(ended))
      if (!trace) return
      if (ended.status < 400 || !isTooMany(context)) save(context, trace)
      const { attempts } = context
      for (const statKey of requestStats(trace, attempts)) count(context.at, statKey)
      for (const attempt of attempts) count(context.at, attemptStat(attempt, trace.brand))
    },
  }
}
