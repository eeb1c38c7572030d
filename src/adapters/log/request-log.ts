import type { Attempt } from '../../domain/events/request-context.ts'
import type { RequestListener } from '../../domain/events/request-ended.ts'
import type { Log } from '../../domain/ports.ts'

/** 401, 403, and 429 for too many of them. */
const refusals: ReadonlySet<number> = new Set([401, 403, 429])

/**
 * One log line for each answered request: no key, code, full recipient or text. The IP address of the client is logged where it
 * was refused without an app's credentials, and nowhere else. The cause of a 5xx is logged here with its stack, and nowhere else.
 */
export function requestLog(log: Log): RequestListener {
  return ({ context, method, route = 'unmatched', status, durationMs, failure, error }) => {
    const { requestId, traceId, app, brand, channel, recipient, recipients, attempts } = context
    const isStranger = app === undefined && refusals.has(status)
    const cause = failure?.details.cause ?? attempts.find(({ error }) => error)?.error ?? context.fault
    // Undefined fields are left out of the line.
    const line = {
      requestId,
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
      error,
      attempts: attempts.length > 0 ? attempts.map(attemptFields) : undefined,
      ...(cause === undefined ? {} : { err: cause }),
    }
    if (status >= 500) log.error(line, failure?.message ?? 'failed')
    else log.info(line, failure?.kind ?? (status < 400 ? 'ok' : 'rejected'))
  }
}

/** The rest of an attempt is in the delivery log. */
function attemptFields({ recipient, provider, route, outcome, reason, durationMs }: Attempt): object {
  return {
    recipient,
    provider,
    ...(route ? { route } : {}),
    outcome,
    durationMs,
    ...(reason === null ? {} : { reason }),
  }
}
