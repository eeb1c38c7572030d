import { guardDecision, mayBeSent, type RequestContext, type RequestEnd } from '../request/request-context.ts'
import type { RequestEnded, RequestListener } from '../request/request-ended.ts'
import type { EventLog } from '../request/request-trace.ts'
import type { SavedRequest, SaveRequest } from './event-log.ts'
import {
  attemptStat,
  countryStatOf,
  guardStat,
  notifyStat,
  requestStats,
  type StatKey,
  spendStat,
} from './stats.ts'

function isSaved(context: RequestContext): context is SavedRequest {
  return context.operation !== undefined && context.app !== undefined
}

/** `unauthorized` is of a relay, whose caller is known without its proof. */
const ownKinds = new Set<string | undefined>(['validation_error', 'body_too_large', 'unauthorized'])

/** Only messages that name otpost's own fields are stored, since others may contain caller data. */
function endOf({ status, failure, error, durationMs, context }: RequestEnded): RequestEnd {
  const { channel, replayOf } = context
  const kind = failure?.kind
  const isOurs = ownKinds.has(kind) || (kind === 'missing_variable' && channel === 'SMS')
  return {
    status,
    error: error ?? null,
    message: replayOf ?? (isOurs ? (failure?.message ?? null) : null),
    durationMs: Math.round(durationMs),
  }
}

/** Rejections and replays that no limit counts are stored up to this number per application and minute. */
const savedRefusals = 60

/** Where the event log is written. */
interface EventLogSink {
  readonly add: SaveRequest
  /** Receives the stats of every ended request, stored or not, its time, and how often it counts (once). */
  count(at: number, statKey: StatKey, times?: number): void
  readonly flush: EventLog['flush']
}

export function createEventLog({ add: save, count, flush }: EventLogSink): EventLog & {
  readonly ended: RequestListener
  /** After a try of a job. */
  readonly tried: (context: RequestContext) => void
} {
  const refusals = new Map<string, number>()
  let minute = 0

  function isTooMany(request: SavedRequest, error: string | undefined): boolean {
    const { at, app, limits } = request
    const isCounted = limits.length > 0 && !limits.some(({ refused }) => refused)
    if (isCounted && guardDecision(request, error)?.verdict !== 'denied') return false
    const current = Math.floor(at / 60_000)
    // A slow request of an earlier minute must not reset the counters.
    if (current > minute) refusals.clear()
    minute = Math.max(minute, current)
    const count = (refusals.get(app) ?? 0) + 1
    refusals.set(app, count)
    return count > savedRefusals
  }

  function countAttempts({ at, operation, attempts, app = '', brand }: RequestContext): void {
    for (const attempt of attempts) {
      count(at, attemptStat(attempt, brand))
      const { cost, provider, country, channel } = attempt
      const isNotifySms = operation === 'notify' && channel === 'SMS'
      if (isNotifySms && mayBeSent(attempt)) count(at, notifyStat(country, app))
      if (cost) count(at, spendStat({ ...cost, country, app, brand: brand ?? '', provider }), cost.micros)
    }
  }

  return {
    note: (context) => {
      if (isSaved(context)) save(context)
    },
    flush,
    tried: countAttempts,
    ended: (ended) => {
      const { context } = ended
      if (!isSaved(context)) return
      const isNew = ended.status < 400 && context.replayOf === undefined
      if (isNew || !isTooMany(context, ended.error)) {
        context.end = endOf(ended)
        save(context)
      }
      for (const statKey of requestStats(context, ended.error)) count(context.at, statKey)
      countAttempts(context)
      const country = countryStatOf(context)
      if (country) count(context.at, country)
      const guarded = guardStat(context, ended.error)
      if (guarded) count(context.at, guarded)
    },
  }
}
