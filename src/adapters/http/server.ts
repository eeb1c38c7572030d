import { type AnyElysia, Elysia } from 'elysia'
import type { Body } from '../../domain/body.ts'
import type { Brand } from '../../domain/brands/brand.ts'
import type { RequestContext } from '../../domain/events/request-context.ts'
import type { RequestListener } from '../../domain/events/request-ended.ts'
import { Failure } from '../../domain/failures.ts'
import { catalog, type IntegrationPorts, requestIntegration } from '../../domain/integration/integration.ts'
import type { CallbackPorts } from '../../domain/messages/delivery-reports.ts'
import { type NotifyPorts, notify } from '../../domain/messages/notify.ts'
import { type SendOtpPorts, sendOtp } from '../../domain/otp/send.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import { type VerifyOtpPorts, verifyOtp } from '../../domain/otp/verify.ts'
import type { Log, Secrets } from '../../domain/ports.ts'
import { readBody, readForm } from './body.ts'
import { Callbacks } from './callbacks.ts'
import { docsRoutes } from './docs.ts'
import { answerHeaders, codeOf, errorAnswer, failureOf } from './errors.ts'
import { type HttpRequests, pathOf } from './http-request.ts'
import { hostOf, type IsKnownHost } from './known-hosts.ts'
import { KnownRoutes } from './known-routes.ts'

export interface HttpPorts
  extends SendOtpPorts,
    VerifyOtpPorts,
    NotifyPorts,
    IntegrationPorts,
    CallbackPorts {
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly brands: SendOtpPorts['brands'] & { list(): Promise<readonly Brand[]> }
  readonly checkDatabase: () => Promise<void>
}

export interface HttpSettings {
  readonly version: string
  /** Undefined: providers cannot call this server. */
  readonly publicUrl: string | undefined
  readonly log: Log
  readonly httpRequests: HttpRequests
  readonly listeners: readonly RequestListener[]
  /** Undefined: requests are not traced. */
  readonly tracing: RequestTracing | undefined
  readonly added: readonly AddedRoutes[]
  /** The API description then includes /outbox. */
  readonly hasOutbox: boolean
  readonly isStopping: () => boolean
  readonly isKnownHost: IsKnownHost
}

export interface AddedRoutes {
  readonly routes: AnyElysia
  /** At and below this path only known Host names are answered (design D29). */
  readonly under?: '/admin' | '/outbox'
  readonly takesForms?: true
}

export interface RequestTracing {
  begin(request: Request, context: RequestContext): void
  traced(context: RequestContext, ports: HttpPorts): HttpPorts
}

type UseCase = (ports: HttpPorts, context: RequestContext, body: Body) => Promise<object>

/**
 * The HTTP API (spec 4, design 5). A route calls one use case of the domain with the ports, the context of the request and
 * its body. Every error ends in `onError`, every answered request in one `RequestEnded` for all listeners.
 */
export function createHttp(ports: HttpPorts, settings: HttpSettings) {
  const { version, publicUrl, log, httpRequests, listeners, tracing, added, isStopping, isKnownHost } =
    settings
  const callbacks = publicUrl === undefined ? undefined : new Callbacks(ports, publicUrl, log)
  const requestIdOf = (request: Request) => httpRequests.of(request).requestId

  const app = new Elysia({ strictPath: true, normalize: false })
    .onRequest(({ request, server, set }) => {
      const peer = server?.requestIP(request)?.address
      const context = httpRequests.begin(request, peer)
      tracing?.begin(request, context)
      const { headers } = set
      headers['x-request-id'] = context.requestId
      Object.assign(headers, answerHeaders)
      if (httpRequests.isClosing) headers.connection = 'close'
      if (peer !== undefined && known.isRewritten(request)) throw new Failure('route_not_found')
      if (addedTo(request)?.under && !isKnownHost(hostOf(request))) throw new Failure('route_not_found')
    })
    .onParse({ as: 'global' }, async ({ request, server }) => {
      const body = await bodyOf(request).finally(() => httpRequests.received(request))
      // The idle time-out of the socket must not cut off the answer; use cases have their own time-outs.
      server?.timeout(request, 0)
      return body
    })
    .onError({ as: 'global' }, ({ code, error, request, set }) => {
      const context = httpRequests.of(request)
      context.failure = code === 'NOT_FOUND' ? known.failure(request, set.headers) : failureOf(error)
      const { status, headers, envelope } = errorAnswer(context.failure, context.requestId)
      set.status = status
      Object.assign(set.headers, headers)
      return envelope
    })
    .onAfterResponse({ as: 'global' }, ({ request, route, responseValue, set }) => {
      const context = httpRequests.of(request)
      const { failure, startedAt } = context
      const ended = {
        context,
        method: request.method,
        route: route ?? known.of(request.url)?.path,
        // Pages and files are complete responses with a status of their own.
        status: responseValue instanceof Response ? responseValue.status : Number(set.status ?? 200),
        failure,
        error: failure && codeOf(failure),
        durationMs: performance.now() - startedAt,
      }
      for (const listener of listeners) listener(ended)
      httpRequests.end(request)
    })

    .post(
      '/otp/send',
      answer(async (ports, context, body) => {
        const { expiresIn } = await sendOtp(ports, context, body, { isResend: false })
        return { message: 'OTP sent successfully', expiresIn }
      }),
    )
    .post(
      '/otp/resend',
      answer(async (ports, context, body) => {
        const { expiresIn } = await sendOtp(ports, context, body, { isResend: true })
        return { message: 'OTP resent successfully', expiresIn }
      }),
    )
    .post(
      '/otp/verify',
      answer(async (ports, context, body) => {
        await verifyOtp(ports, context, body)
        return { message: 'OTP verified successfully' }
      }),
    )
    .post(
      '/notify',
      answer(async (ports, context, body) => {
        const notified = await notify(ports, context, body)
        return { message: 'Notification sent successfully', ...notified }
      }),
    )
    .get('/integrations/catalog', ({ request }) => ({
      success: true,
      ...catalog(ports.limits, ports.otpTtlSeconds),
      requestId: requestIdOf(request),
    }))
    .post('/integrations/requests', async ({ request, body, set }) => {
      const context = httpRequests.of(request)
      const integrationRequestId = await requestIntegration(portsOf(context), context, body as Body)
      set.status = 201
      return {
        success: true,
        message: 'Integration request received',
        integrationRequestId,
        status: 'pending',
        requestId: context.requestId,
      }
    })
    .get('/platform/brands', async ({ request }) => {
      const active = (await ports.brands.list()).filter(({ status }) => status === 'active')
      const brands = active.map(({ slug, displayName }) => ({ brandId: slug, displayName }))
      return { success: true, brands, requestId: requestIdOf(request) }
    })

    .get('/health', async ({ request, set }) => {
      const database = (await isDatabaseUp(request)) ? 'ok' : 'unavailable'
      if (database !== 'ok') set.status = 503
      return { status: database, version, checks: { database }, requestId: requestIdOf(request) }
    })
    .get('/health/live', ({ request }) => ({ status: 'ok', requestId: requestIdOf(request) }))
    .get('/health/ready', async ({ request, set }) => {
      const status = isStopping() ? 'draining' : (await isDatabaseUp(request)) ? 'ready' : 'unavailable'
      if (status !== 'ready') set.status = 503
      return { status, requestId: requestIdOf(request) }
    })
    .use(docsRoutes(version, settings.hasOutbox))

  for (const { routes } of added) app.use(routes)
  if (callbacks) app.use(callbacks.routes(httpRequests, portsOf))
  const known = new KnownRoutes(app.routes)
  app.config.serve = { routes: known.wrongMethods((request) => app.fetch(request)) }
  return app

  function answer(useCase: UseCase) {
    return async ({ request, body }: { readonly request: Request; readonly body: unknown }) => {
      const context = httpRequests.of(request)
      const result = await useCase(portsOf(context), context, body as Body)
      return { success: true, ...result, requestId: context.requestId }
    }
  }

  function portsOf(context: RequestContext): HttpPorts {
    return tracing ? tracing.traced(context, ports) : ports
  }

  function bodyOf(request: Request): Promise<unknown> {
    if (addedTo(request)?.takesForms) return readForm(request)
    const path = pathOf(request.url)
    return callbacks?.has(path) ? callbacks.read(path, request, requestIdOf(request)) : readBody(request)
  }

  function addedTo({ url }: Request): AddedRoutes | undefined {
    const path = pathOf(url)
    return added.find(({ under }) => under !== undefined && isUnder(path, under))
  }

  async function isDatabaseUp(request: Request): Promise<boolean> {
    try {
      await portsOf(httpRequests.of(request)).checkDatabase()
      return true
    } catch (error) {
      log.error({ err: error }, 'the database cannot be used')
      return false
    }
  }
}

function isUnder(path: string, parent: string): boolean {
  return path.startsWith(parent) && (path.length === parent.length || path[parent.length] === '/')
}
