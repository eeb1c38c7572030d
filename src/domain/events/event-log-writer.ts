import type { EventLog, RequestEnd, RequestTrace, SaveTrace } from './event-log.ts'
import type { RequestContext } from './request-context.ts'
import type { RequestEnded, RequestListener } from './request-ended.ts'
import { attemptStat, requestStats, type StatKey } from './stats.ts'

/** What is known of a request; undefined where it is none of an application. */
function traceOf(context: RequestContext, end: RequestEnd | null): RequestTrace | undefined {
  const { requestId, at, operation, app, brand = null, channel = null, recipient = null } = context
  const { recipients = null, recipientSubject = null, limits } = context
  if (operation === undefined || app === undefined) return undefined
  return {
    requestId,
    at,
    operation,
    app,
    brand,
    channel,
    recipient,
    recipients,
    recipientSubject,
    limits,
    end,
  }
}

/** How a request ended, without what the caller wrote: only messages that name our own fields are stored. */
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

/** Rejected requests of one app that are saved in a minute although no limit counted them. */
const savedRefusals = 60

/**
 * The event log of a server. Requests without valid credentials are not saved, and of those that an application may make
 * without end (refused by a limit or for their brand, and so not counted) no more than some a minute: nobody can fill the
 * disk.
 *
 * @param count is told what is counted of every request that has ended, saved or not, and when it came
 */
export function createEventLog(
  saveTrace: SaveTrace,
  count: (at: number, statKey: StatKey) => void,
): EventLog & { readonly ended: RequestListener } {
  const refusals = new Map<string, number>()
  let minute = 0
  /** How many attempts of a request under way have been taken. */
  const taken = new WeakMap<RequestContext, number>()

  function save(context: RequestContext, trace: RequestTrace): void {
    const { attempts } = context
    saveTrace(trace, attempts.slice(taken.get(context) ?? 0))
    if (trace.end === null) taken.set(context, attempts.length)
  }

  /** Whether an application has had as many uncounted requests refused within this minute as are saved. */
  function isTooMany({ at, app = '', limits }: RequestContext): boolean {
    const isCounted = limits.length > 0 && !limits.some(({ refused }) => refused)
    if (isCounted) return false
    const current = Math.floor(at / 60_000)
    // Only a later one: a request that took its time must not open the minute anew.
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
