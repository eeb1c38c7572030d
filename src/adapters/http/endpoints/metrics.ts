import { Elysia } from 'elysia'
import { Failure, failureMessages } from '../../../domain/ground/failures.ts'
import type { Log } from '../../../domain/ground/ports.ts'
import type { Clock } from '../../../domain/ground/time.ts'
import { showsToken } from '../../pages/bearer.ts'
import { anyCall, type EndpointOperation } from '../endpoint.ts'
import { answerHeaders, errorAnswer } from '../errors.ts'
import { HttpRequests, pathOf } from '../http-request.ts'
import { hostOf, type IsKnownHost, refuseSecondHost } from '../known-hosts.ts'
import { portError } from '../port-error.ts'

export interface MetricsPorts {
  scrape(): Promise<{ readonly contentType: string; readonly text: string }>
  /** Undefined: no bearer token is required. */
  readonly token: string | undefined
}

const path = '/metrics'

export const getMetrics: EndpointOperation = {
  method: 'GET',
  path,
  tag: 'Operation',
  id: 'getMetrics',
  summary: 'Metrics in the Prometheus text format',
  description:
    'Served on this port if METRICS_TOKEN is set. With METRICS_PORT, that port serves the same metrics, and requires the token only if METRICS_TOKEN is set.',
  security: [{ metricsToken: [] }],
  answers: {
    200: {
      text: 'text/plain',
      description: 'The metrics.',
      example: '# HELP otpost_build_info The running version.\n',
    },
  },
  failures: {
    unauthorized: 'The request does not have METRICS_TOKEN as Authorization: Bearer.',
    route_not_found: 'METRICS_TOKEN is not set, so this port serves no metrics.',
    ...anyCall,
  },
}

export function metricsRoutes(metrics: MetricsPorts) {
  return new Elysia({ strictPath: true, normalize: false }).get(path, ({ request }) =>
    scraped(metrics, request),
  )
}

/** GET /metrics on a port of its own. Requests to it are neither counted nor logged. */
export class MetricsListener {
  private server: Bun.Server<undefined> | undefined

  constructor(
    private readonly metrics: MetricsPorts,
    private readonly address: { readonly host: string; readonly port: number },
    private readonly isKnownHost: IsKnownHost,
    private readonly now: Clock,
    private readonly log: Log,
  ) {}

  /** @throws when the port is in use or not permitted */
  listen(reusePort: boolean): void {
    const { host: hostname, port } = this.address
    const httpRequests = new HttpRequests([], this.now)
    try {
      this.server = Bun.serve({
        hostname,
        port,
        reusePort,
        development: false,
        fetch: async (request) => {
          const httpRequest = httpRequests.begin(request, undefined)
          const answer = await this.answer(request, httpRequest.requestId)
          httpRequests.end(httpRequest)
          answer.headers.set('x-request-id', httpRequest.requestId)
          return answer
        },
      })
    } catch (error) {
      throw portError(error, 'METRICS_', this.address)
    }
    this.log.info({ url: String(this.server.url) }, 'serving metrics')
  }

  async stop(): Promise<void> {
    await this.server?.stop(true)
  }

  private async answer(request: Request, requestId: string): Promise<Response> {
    try {
      refuseSecondHost(request)
      if (pathOf(request.url) !== path)
        throw new Failure('route_not_found', `No such path. This port serves only ${path}.`)
      if (this.metrics.token === undefined && !this.isKnownHost(hostOf(request))) {
        throw new Failure(
          'route_not_found',
          'No metrics for this Host name. Use an IP address, the name of METRICS_HOST, HOST or PUBLIC_URL, or set METRICS_TOKEN.',
        )
      }
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw new Failure(
          'method_not_allowed',
          `${failureMessages.method_not_allowed} ${path} accepts GET, HEAD.`,
        )
      }
      return await scraped(this.metrics, request)
    } catch (error) {
      const { status, headers, envelope } = errorAnswer(error, requestId)
      if (status >= 500) this.log.error({ requestId, err: error }, 'the metrics could not be read')
      const more = status === 405 ? { allow: 'GET, HEAD' } : {}
      return Response.json(envelope, { status, headers: { ...answerHeaders, ...headers, ...more } })
    }
  }
}

async function scraped(metrics: MetricsPorts, request: Request): Promise<Response> {
  if (!isAllowed(metrics, request)) {
    throw new Failure(
      'unauthorized',
      'The metrics token is required. Send the header Authorization: Bearer METRICS_TOKEN.',
    )
  }
  const { contentType, text } = await metrics.scrape()
  return new Response(text, { headers: { 'content-type': contentType, 'cache-control': 'no-store' } })
}

function isAllowed({ token }: MetricsPorts, request: Request): boolean {
  return token === undefined || showsToken(request, token)
}
