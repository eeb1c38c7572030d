import { HttpRequests } from '../adapters/http/http-request.ts'
import { feedbackLog } from '../adapters/log/feedback-log.ts'
import { requestLog } from '../adapters/log/request-log.ts'
import type { Metrics } from '../adapters/metrics/ports.ts'
import type { Tracing } from '../adapters/tracing/tracing.ts'
import type { Context } from '../context.ts'
import { ConversionFeedback } from '../domain/delivery/conversion-feedback.ts'
import { ClockWatch } from '../domain/ground/clock-watch.ts'
import type { Alerts } from '../domain/health/alerts.ts'
import { ActiveLimits } from '../domain/log/active-limits.ts'
import { clockStat, ignoredForwardedStat, unnamedProofStat } from '../domain/log/stats.ts'
import type { RequestContext } from '../domain/request/request-context.ts'
import type { RequestEnded } from '../domain/request/request-ended.ts'
import type { Shared } from './shared.ts'

/** What happens after each request, and after each try that is not part of a request. */
export function createObservers(
  { log, stopwatch, eventLog, databaseFailed, providers, providerTimeoutMs, usesConversionFeedback }: Shared,
  {
    alerts,
    metrics,
    tracing,
  }: { alerts: Alerts; metrics?: Metrics | undefined; tracing?: Tracing | undefined },
) {
  const limited = new ActiveLimits()
  const listeners = [requestLog(log), limited.ended, databaseFailed, eventLog.ended, alerts.ended]
  if (metrics) listeners.push(metrics.ended)
  if (tracing) listeners.push(tracing.ended)
  const logFeedback = feedbackLog(log, stopwatch)
  const conversionFeedback = usesConversionFeedback
    ? new ConversionFeedback(providers, providerTimeoutMs, (result) => {
        logFeedback(result)
        metrics?.feedbackReported(result)
      })
    : undefined
  if (conversionFeedback) listeners.push(conversionFeedback.ended)
  const tried = (context: RequestContext): void => {
    alerts.charged(context)
    metrics?.tried(context)
  }
  return {
    limited,
    listeners,
    conversionFeedback,
    jobTried(context: RequestContext): void {
      eventLog.tried(context)
      tried(context)
    },
    testEnded(ended: RequestEnded): void {
      eventLog.ended(ended)
      tried(ended.context)
    },
  }
}

export function createHttpRequests(
  { eventLog }: Context,
  { trustedProxies, now, log }: Shared,
): HttpRequests {
  return new HttpRequests(trustedProxies, now, (network) => {
    log.warn(
      { network },
      'X-Forwarded-For was ignored, because its sender is not in TRUSTED_PROXIES; the sender counts as the client',
    )
    eventLog.count(now(), ignoredForwardedStat)
  })
}

/** Of proofs (design D55). */
export function createProofIssuer({ eventLog }: Context, { publicUrl, now, log }: Shared): () => string {
  if (publicUrl !== undefined) return () => publicUrl
  let isLogged = false
  return () => {
    if (!isLogged)
      log.warn({ setting: 'PUBLIC_URL' }, 'proofs have the issuer otpost, since PUBLIC_URL is not set')
    isLogged = true
    eventLog.count(now(), unnamedProofStat)
    return 'otpost'
  }
}

export function createClockWatch({ eventLog }: Context, { now, stopwatch, log }: Shared): ClockWatch {
  return new ClockWatch(now, stopwatch, ({ at, byMs }) => {
    log.warn({ bySeconds: Math.round(byMs / 1000) }, `the clock was set ${byMs < 0 ? 'back' : 'forward'}`)
    eventLog.count(at, clockStat(byMs), Math.round(Math.abs(byMs) / 1000))
  })
}
