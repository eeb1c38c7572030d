import { createHash, timingSafeEqual } from 'node:crypto'
import { Elysia } from 'elysia'
import type { RequestContext } from '../../domain/events/request-context.ts'
import { Failure } from '../../domain/failures.ts'
import type { Clock } from '../../domain/ports.ts'
import { errorAnswer } from './errors.ts'
import { type Answered, type HttpRequest, HttpRequests, type Log, pathOf } from './http-request.ts'

/** What counts requests and tells of it. */
export interface MetricsPorts {
  /** An answered request; `route` is the pattern of its path, `error` the code of its envelope if it has one. */
  observe(answered: {
    readonly method: string
    readonly route: string
    readonly status: number
    readonly error: string | undefined
    readonly durationMs: number
    readonly context: RequestContext
  }): void
  scrape(): Promise<{ readonly contentType: string; readonly text: string }>
  /** What whoever asks has to show; undefined: nothing. */
  readonly token: string | undefined
}

const path = '/metrics'

/** Counts a finished request. */
export function countRequest(
  metrics: MetricsPorts,
  { method, route = 'unmatched', status }: Answered,
  context: HttpRequest,
): void {
  const durationMs = performance.now() - context.startedAt
  metrics.observe({ method, route, status, error: context.failure?.code, durationMs, context })
}

/** GET /metrics beside everything else, for whoever has the token. */
export function metricsRoutes(metrics: MetricsPorts) {
  return new Elysia({ strictPath: true, normalize: false }).get(path, ({ request, set }) => {
    // The server's handler of errors keeps the header.
    if (!isAllowed(metrics, request)) set.headers['www-authenticate'] = challenge
    return scraped(metrics, request)
  })
}

/**
 * GET /metrics on a port of its own, and nothing else there. Requests to it are not counted, and not in the log.
 *
 * @returns where it listens, and what ends it
 * @throws when the port is taken or not allowed
 */
export function listenForMetrics(
  metrics: MetricsPorts,
  { host: hostname, port, reusePort }: { host: string; port: number; reusePort: boolean },
  now: Clock,
  log: Log,
): { url: URL; stop: () => Promise<void> } {
  const httpRequests = new HttpRequests([], now)
  const server = Bun.serve({
    hostname,
    port,
    reusePort,
    development: false,
    fetch: async (request) => {
      const { requestId } = httpRequests.begin(request, undefined)
      const answer = await ownAnswer(metrics, request, requestId, log)
      httpRequests.end(request)
      answer.headers.set('x-request-id', requestId)
      return answer
    },
  })
  return { url: server.url, stop: () => server.stop(true) }
}

async function ownAnswer(
  metrics: MetricsPorts,
  request: Request,
  requestId: string,
  log: Log,
): Promise<Response> {
  try {
    if (pathOf(request.url) !== path) throw new Failure('route_not_found')
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new Failure('method_not_allowed', `${path} takes GET, HEAD`)
    }
    return await scraped(metrics, request)
  } catch (error) {
    const { status, headers, envelope } = errorAnswer(error, requestId)
    if (status >= 500) log.error({ requestId, err: error }, 'metrics could not be told')
    const more =
      status === 401 ? { 'www-authenticate': challenge } : status === 405 ? { allow: 'GET, HEAD' } : {}
    return Response.json(envelope, { status, headers: { ...headers, ...more } })
  }
}

/** How a client is told to show its token (RFC 6750 section 3). */
const challenge = 'Bearer'

async function scraped(metrics: MetricsPorts, request: Request): Promise<Response> {
  if (!isAllowed(metrics, request)) {
    throw new Failure('unauthorized', 'The metrics token is required: Authorization: Bearer METRICS_TOKEN')
  }
  const { contentType, text } = await metrics.scrape()
  return new Response(text, { headers: { 'content-type': contentType, 'cache-control': 'no-store' } })
}

function isAllowed({ token }: MetricsPorts, { headers }: Request): boolean {
  if (token === undefined) return true
  const [, given] = /^bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '') ?? []
  // By hashes, which are of one length: the time tells nothing of the token.
  return given !== undefined && timingSafeEqual(digest(given), digest(token))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
