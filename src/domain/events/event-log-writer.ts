import type { EventLog, RequestEnd, RequestTrace, SaveTrace } from './event-log.ts'
import type { RequestContext } from './request-context.ts'
import type { RequestEnded, RequestListener } from './request-ended.ts'
import { attemptStat, requestStats, type StatKey } from './stats.ts'

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

/** Only messages that name otpost's own fields are stored, since others may contain caller data. */
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

/** Rejections that no limit counts are stored up to this number per application and minute. */
const savedRefusals = 60

/** @param count receives the stats of every ended request, stored or not, and its time */
export function createEventLog(
  saveTrace: SaveTrace,
  count: (at: number, statKey: StatKey) => void,
): EventLog & { readonly ended: RequestListener } {
  const refusals = new Map<string, number>()
  let minute = 0
  const taken = new WeakMap<RequestContext, number>()

  function save(context: RequestContext, trace: RequestTrace): void {
    const { attempts } = context
    saveTrace(trace, attempts.slice(taken.get(context) ?? 0))
    if (trace.end === null) taken.set(context, attempts.length)
  }

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
      for (const statKey of requestStats(trace, context)) count(context.at, statKey)
      for (const attempt of context.attempts) count(context.at, attemptStat(attempt, trace.brand))
    },
  }
}
