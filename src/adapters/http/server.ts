import { Elysia } from 'elysia'
import type { Body } from '../../domain/body.ts'
import type { Brand } from '../../domain/brands/brand.ts'
import { Failure } from '../../domain/failures.ts'
import { catalog, type IntegrationPorts, requestIntegration } from '../../domain/integration/integration.ts'
import type { CallbackPorts } from '../../domain/messages/delivery-reports.ts'
import { type NotifyPorts, notify } from '../../domain/messages/notify.ts'
import { type SendOtpPorts, sendOtp } from '../../domain/otp/send.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import { type VerifyOtpPorts, verifyOtp } from '../../domain/otp/verify.ts'
import type { Secrets } from '../../domain/ports.ts'
import type { ConsoleRoutePorts, ConsoleSettings } from '../console/page-handler.ts'
import { consoleRoutes, isConsole, isConsoleOpen } from '../console/routes.ts'
import { type OutboxPorts, outboxRoutes } from '../outbox/routes.ts'
import { rootRoutes } from '../pages/root.tsx'
import { readBody, readForm } from './body.ts'
import { callbackRoutes, callbackWatch, isCallback, readCallback } from './callbacks.ts'
import type { Network } from './client-ip.ts'
import { docsRoutes } from './docs.ts'
import { errorAnswer, failureOf } from './errors.ts'
import {
  endOf,
  endSpan,
  type HttpRequest,
  HttpRequests,
  type Log,
  logRequest,
  pathOf,
  type RequestTracing,
} from './http-request.ts'
import { countRequest, type MetricsPorts, metricsRoutes } from './metrics.ts'

export interface HttpPorts
  extends SendOtpPorts,
    VerifyOtpPorts,
    NotifyPorts,
    IntegrationPorts,
    CallbackPorts {
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly brands: SendOtpPorts['brands'] & { list(): Promise<readonly Brand[]> }
  /** Rejects when the database can't be read or written. */
  readonly checkDatabase: () => Promise<void>
}

export interface HttpSettings {
  readonly version: string
  /** Where vendors reach this server; undefined: nowhere. */
  readonly publicUrl: string | undefined
  readonly trustedProxies: readonly Network[]
  readonly log: Log
  /** Undefined: there is no console. */
  readonly console: { readonly ports: ConsoleRoutePorts; readonly settings: ConsoleSettings } | undefined
  /** Undefined where no message is kept: then its page and JSON do not exist. */
  readonly outbox: OutboxPorts | undefined
  /** Undefined where nothing is counted. Its path exists where there is a token. */
  readonly metrics: MetricsPorts | undefined
  /** Undefined where requests are not traced. */
  readonly tracing: RequestTracing | undefined
  /** Whether a stop has begun, so that requests had better go elsewhere. */
  readonly isStopping: () => boolean
}

/**
 * The HTTP interface (spec 4, design 5). A route reads the body, calls its use case and wraps what that resolves to;
 * everything thrown, by whatever layer, ends in the one error handler.
 */
export function createHttp(
  ports: HttpPorts,
  { version, publicUrl, trustedProxies, log, console, outbox, metrics, tracing, isStopping }: HttpSettings,
) {
  const httpRequests = new HttpRequests(trustedProxies, ports.now)
  const watch = callbackWatch(ports, log)

  const app = new Elysia({ strictPath: true, normalize: false })
    .onRequest(({ request, server, set }) => {
      const httpRequest = httpRequests.begin(request, server?.requestIP(request)?.address)
      if (tracing) httpRequest.span = tracing.begin(request)
      set.headers['x-request-id'] = httpRequest.requestId
    })
    .onParse({ as: 'global' }, async ({ request, server }) => {
      const body = await bodyOf(request).finally(() => httpRequests.received(request))
      // From here on our own deadlines bound the request; an idle socket must not cut an answer that is on its way.
      server?.timeout(request, 0)
      return body
    })
    .onError({ as: 'global' }, ({ code, error, request, set }) => {
      const httpRequest = httpRequests.of(request)
      const failure = failureOf(code === 'NOT_FOUND' ? unrouted(request, set.headers) : error)
      const { status, headers, envelope } = errorAnswer(failure, httpRequest.requestId)
      httpRequest.failure = { code: envelope.error, failure }
      set.status = status
      Object.assign(set.headers, headers)
      return envelope
    })
    .onAfterResponse({ as: 'global' }, ({ request, route, responseValue, set }) => {
      const answered = {
        method: request.method,
        route: route ?? routeOf(pathOf(request.url))?.path,
        // Pages and files are answers as a whole, and have a status of their own.
        status: responseValue instanceof Response ? responseValue.status : Number(set.status ?? 200),
      }
      const httpRequest = httpRequests.of(request)
      logRequest(log, answered, httpRequest)
      endSpan(answered, httpRequest)
      if (metrics) countRequest(metrics, answered, httpRequest)
      ports.eventLog.end(httpRequest, endOf(httpRequest, answered.status))
      httpRequests.end(request)
    })

    .post('/otp/send', async ({ request, body }) => {
      const call = httpRequests.of(request)
      const { expiresIn } = await sendOtp(portsOf(call), call, body as Body, { isResend: false })
      return { success: true, message: 'OTP sent successfully', expiresIn, requestId: call.requestId }
    })
    .post('/otp/resend', async ({ request, body }) => {
      const call = httpRequests.of(request)
      const { expiresIn } = await sendOtp(portsOf(call), call, body as Body, { isResend: true })
      return { success: true, message: 'OTP resent successfully', expiresIn, requestId: call.requestId }
    })
    .post('/otp/verify', async ({ request, body }) => {
      const call = httpRequests.of(request)
      await verifyOtp(portsOf(call), call, body as Body)
      return { success: true, message: 'OTP verified successfully', requestId: call.requestId }
    })
    .post('/notify', async ({ request, body }) => {
      const call = httpRequests.of(request)
      const notified = await notify(portsOf(call), call, body as Body)
      return {
        success: true,
        message: 'Notification sent successfully',
        ...notified,
        requestId: call.requestId,
      }
    })

    .get('/health', async ({ request, set }) => {
      const database = await databaseState(portsOf(httpRequests.of(request)), log)
      if (database !== 'ok') set.status = 503
      const status = database === 'ok' ? 'ok' : 'unavailable'
      return { status, version, checks: { database }, requestId: httpRequests.of(request).requestId }
    })
    .get('/health/live', ({ request }) => ({ status: 'ok', requestId: httpRequests.of(request).requestId }))
    .get('/health/ready', async ({ request, set }) => {
      const status = isStopping()
        ? 'draining'
        : (await databaseState(portsOf(httpRequests.of(request)), log)) === 'ok'
          ? 'ready'
          : 'unavailable'
      if (status !== 'ready') set.status = 503
      return { status, requestId: httpRequests.of(request).requestId }
    })
    .get('/integrations/catalog', ({ request }) => ({
      success: true,
      ...catalog(ports.limits, ports.otpTtlSeconds),
      requestId: httpRequests.of(request).requestId,
    }))
    .post('/integrations/requests', async ({ request, body, set }) => {
      const call = httpRequests.of(request)
      const integrationRequestId = await requestIntegration(portsOf(call), call, body as Body)
      set.status = 201
      return {
        success: true,
        message: 'Integration request received',
        integrationRequestId,
        status: 'pending',
        requestId: call.requestId,
      }
    })
    .get('/platform/brands', async ({ request }) => {
      const active = (await ports.brands.list()).filter((brand) => brand.status === 'active')
      const brands = active.map(({ slug, displayName }) => ({ brandId: slug, displayName }))
      return { success: true, brands, requestId: httpRequests.of(request).requestId }
    })
    .use(docsRoutes(version, outbox !== undefined))
    .use(
      rootRoutes({
        version,
        hasOutbox: outbox !== undefined,
        isConsoleOpen: async () => console !== undefined && isConsoleOpen(console.ports),
        requestIdOf: (request) => httpRequests.of(request).requestId,
      }),
    )

  if (metrics?.token !== undefined) app.use(metricsRoutes(metrics))
  if (console) app.use(consoleRoutes(console.ports, console.settings, httpRequests))
  if (outbox) app.use(outboxRoutes(outbox, httpRequests))
  if (publicUrl !== undefined) app.use(callbackRoutes(portsOf, publicUrl, httpRequests, watch))
  const known = routeTable(app.routes)
  return { app, httpRequests }

  /** What handles a request: where that is traced, with a child of its span for each step. */
  function portsOf({ span }: HttpRequest): HttpPorts {
    return span ? span.traced(ports) : ports
  }

  /** A body as its route reads it. */
  function bodyOf(request: Request): Promise<unknown> {
    const path = pathOf(request.url)
    if (isConsole(path)) return readForm(request)
    return publicUrl !== undefined && isCallback(request)
      ? readCallback(ports, watch, request, httpRequests.of(request).requestId)
      : readBody(request)
  }

  function routeOf(path: string): KnownRoute | undefined {
    return known.find(({ pattern }) => pattern.test(path))
  }

  /** A path that exists answers a wrong method with 405 and what it allows (RFC 9110 section 15.5.6). */
  function unrouted(request: Request, headers: Record<string, unknown>): Failure {
    const route = routeOf(pathOf(request.url))
    // A path such as /../health is another than it is read as here.
    if (!route || route.methods.includes(request.method)) return new Failure('route_not_found')
    headers.allow = route.methods.join(', ')
    return new Failure('method_not_allowed', `${route.path} takes ${route.methods.join(', ')}`)
  }
}

interface KnownRoute {
  readonly path: string
  readonly pattern: RegExp
  readonly methods: readonly string[]
}

/** The paths there are, with the methods of each; `:name` stands for one segment. */
function routeTable(routes: readonly { path: string; method: string }[]): KnownRoute[] {
  const byPath = Map.groupBy(routes, ({ path }) => path)
  return [...byPath].map(([path, alike]) => ({
    path,
    pattern: new RegExp(`^${path.split('/').map(segmentPattern).join('/')}$`),
    methods: alike.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])),
  }))
}

function segmentPattern(segment: string): string {
  return segment.startsWith(':') ? '[^/]+' : RegExp.escape(segment)
}

async function databaseState(ports: HttpPorts, log: Log): Promise<'ok' | 'unavailable'> {
  try {
    await ports.checkDatabase()
    return 'ok'
  } catch (error) {
    log.error({ err: error }, 'the database can not be used')
    return 'unavailable'
  }
}
