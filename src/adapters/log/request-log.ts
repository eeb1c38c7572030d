import type { Log } from '../../domain/ground/ports.ts'
import type { Attempt } from '../../domain/request/request-context.ts'
import type { RequestListener } from '../../domain/request/request-ended.ts'

const refusals: ReadonlySet<number> = new Set([401, 403, 429])

/** No key, code, full recipient or text. The client's IP address only for rejected credentials. */
export function requestLog(log: Log): RequestListener {
  return ({ context, method, route = 'unmatched', status, durationMs, failure, error }) => {
    const { requestId, proxyRequestId, traceId, app, brand, channel } = context
    const { recipient, recipients, country, flags, unknownFields, attempts } = context
    const isStranger = app === undefined && refusals.has(status)
    const cause = failure?.details.cause ?? attempts.find(({ error }) => error)?.error ?? context.fault
    const line = {
      requestId,
      proxyRequestId,
      traceId,
      method,
      route,
      status,
      durationMs: Math.round(durationMs * 10) / 10,
      app,
      clientIp: isStranger ? context.clientIp : undefined,
      brand,
      channel,
      recipient,
      recipients,
      country,
      flags,
      unknownFields,
      replayOf: context.replayOf,
      error,
      attempts: attempts.length > 0 ? attempts.map(attemptFields) : undefined,
      err: cause,
    }
    if (context.replayOf !== undefined) log.info(line, 'replayed')
    else if (status >= 500) log.error(line, failure?.message ?? 'failed')
    else log.info(line, failure?.kind ?? (status < 400 ? 'ok' : 'rejected'))
  }
}

/** Other fields of an attempt are in the delivery log. Undefined fields are not in the line. */
function attemptFields({ recipient, provider, route, outcome, reason, durationMs }: Attempt): object {
  return {
    recipient,
    provider,
    route: route ?? undefined,
    outcome,
    durationMs,
    reason: reason ?? undefined,
  }
}
