import { type AnyElysia, Elysia } from 'elysia'
import type { CallbackPorts } from '../../domain/delivery/delivery-reports.ts'
import { type Body, unknownFieldsOf } from '../../domain/ground/body.ts'
import { Failure } from '../../domain/ground/failures.ts'
import type { Log, Secrets } from '../../domain/ground/ports.ts'
import { catalog, type IntegrationPorts, requestIntegration } from '../../domain/integration/integration.ts'
import { type MessageQueryPorts, queryMessages } from '../../domain/notify/message-query.ts'
import { type NotifyPorts, notify } from '../../domain/notify/notify.ts'
import { type SendOtpPorts, sendOtp } from '../../domain/otp/send.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import { type VerifyOtpPorts, verifyOtp } from '../../domain/otp/verify.ts'
import type { RequestContext } from '../../domain/request/request-context.ts'
import type { RequestListener } from '../../domain/request/request-ended.ts'
import { maxBodyBytes, maxCodeBodyBytes, readBody, readForm } from './body.ts'
import { Callbacks } from './callbacks.ts'
import { docsRoutes } from './docs.ts'
import { answerHeaders, codeOf, type ErrorAnswer, errorAnswer, failureOf } from './errors.ts'
import { type HttpRequest, type HttpRequests, pathOf } from './http-request.ts'
import { hostOf, type IsKnownHost, refuseSecondHost } from './known-hosts.ts'
import { KnownRoutes } from './known-routes.ts'
import { fieldsOf, type SchemaName } from './schemas.ts'

export interface HttpPorts
  extends SendOtpPorts,
    VerifyOtpPorts,
    NotifyPorts,
    MessageQueryPorts,
    IntegrationPorts,
    CallbackPorts {
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly brands: SendOtpPorts['brands']
  readonly policy: SendOtpPorts['policy']
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
  /** PUBLIC_URL, else the URL on which the server listens. */
  readonly ownUrl: () => string
  readonly isStopping: () => boolean
  readonly isKnownHost: IsKnownHost
}

export interface AddedRoutes {
  readonly routes: AnyElysia
  /** At and below this path only known Host names are answered (design D29). */
  readonly under?: '/admin' | '/outbox'
}

export interface RequestTracing {
  begin(request: Request, context: RequestContext): void
  traced(context: RequestContext, ports: HttpPorts): HttpPorts
}

/** Returns the body of the answer without its `requestId`. Sets `context.status` if it is not 200. */
type Handler = (ports: HttpPorts, context: HttpRequest) => Promise<object> | object

type UseCase = (ports: HttpPorts, context: HttpRequest, body: Body) => Promise<object>

/**
 * The HTTP API (spec 4, design 5). A route calls one use case of the domain with the ports, the context of the request and
 * its body. Every answered request ends in one `RequestEnded` for all listeners.
 */
export function createHttp(ports: HttpPorts, settings: HttpSettings) {
  const { version, publicUrl, log, httpRequests, listeners, tracing, added, isStopping, isKnownHost } =
    settings
  const callbacks = publicUrl === undefined ? undefined : new Callbacks(ports, publicUrl, log)
  let answered: HttpRequest[] = []

  const app = new Elysia({ strictPath: true, normalize: false })
    .onRequest(({ request }) => {
      const peer = app.server?.requestIP(request)?.address
      const context = httpRequests.begin(request, peer)
      tracing?.begin(request, context)
      if (peer !== undefined && known.isRewritten(request)) throw new Failure('route_not_found')
      if (isGuarded(request) && !isKnownHost(hostOf(request))) throw new Failure('route_not_found')
      refuseSecondHost(request)
    })

    // These routes are before the hooks of pages, since hooks take longer than most rejected requests.
    .post(
      ...call('/otp/send', 'OtpSendRequest', async (ports, context, body) => {
        const { expiresIn } = await sendOtp(ports, context, body, { isResend: false })
        return { message: 'OTP sent successfully', expiresIn }
      }),
    )
    .post(
      ...call('/otp/resend', 'OtpSendRequest', async (ports, context, body) => {
        const { expiresIn } = await sendOtp(ports, context, body, { isResend: true })
        return { message: 'OTP resent successfully', expiresIn }
      }),
    )
    .post(
      ...call('/otp/verify', 'OtpVerifyRequest', async (ports, context, body) => {
        await verifyOtp(ports, context, body)
        return { message: 'OTP verified successfully' }
      }),
    )
    .post(
      ...call('/notify', 'NotifyRequest', async (ports, context, body) => {
        const notified = await notify(ports, context, body)
        if ('recipients' in notified) {
          context.status = 202
          return { message: 'Notification accepted', ...notified }
        }
        return { message: 'Notification sent successfully', ...notified }
      }),
    )
    .post(
      ...call('/messages/status', 'MessageStatusRequest', async (ports, context, body) => {
        // The event log then has every request whose answer the caller may have.
        endAnswered()
        return { message: 'Message status retrieved', ...(await queryMessages(ports, context, body)) }
      }),
    )
    .post(
      ...call('/integrations/requests', 'IntegrationRequest', async (ports, context, body) => {
        const integrationRequestId = await requestIntegration(ports, context, body)
        context.status = 201
        return { message: 'Integration request received', integrationRequestId, status: 'pending' }
      }),
    )
    .get(
      ...route('/integrations/catalog', async ({ limits, otpTtlSeconds, brands }) => ({
        success: true,
        ...catalog(limits, otpTtlSeconds, await brands.list()),
      })),
    )
    .get(
      ...route('/platform/brands', async ({ brands }) => {
        const active = (await brands.list()).filter(({ status }) => status === 'active')
        return {
          success: true,
          brands: active.map(({ slug, displayName }) => ({ brandId: slug, displayName })),
        }
      }),
    )
    .get(
      ...route('/health', async (ports, context) => {
        const database = (await isDatabaseUp(ports)) ? 'ok' : 'unavailable'
        if (database !== 'ok') context.status = 503
        return { status: database, version, checks: { database } }
      }),
    )
    .get(...route('/health/live', () => ({ status: 'ok' })))
    .get(
      ...route('/health/ready', async (ports, context) => {
        const status = isStopping() ? 'draining' : (await isDatabaseUp(ports)) ? 'ready' : 'unavailable'
        if (status !== 'ready') context.status = 503
        return { status }
      }),
    )

    .onParse({ as: 'global' }, ({ request }) => {
      const context = httpRequests.of(request)
      const path = pathOf(request.url)
      if (!callbacks?.has(path)) return received(context, readForm(request))
      return received(context, callbacks.read(path, request, context.requestId))
    })
    .onBeforeHandle({ as: 'global' }, ({ request, set }) => {
      Object.assign(set.headers, headersOf(httpRequests.of(request)))
    })
    .onError({ as: 'global' }, ({ code, error, request, set }) => {
      const context = httpRequests.of(request)
      const failure = code === 'NOT_FOUND' ? known.failure(request, set.headers) : error
      const { status, headers, envelope } = failed(context, failure)
      set.status = status
      Object.assign(set.headers, headersOf(context), headers)
      return envelope
    })
    .onAfterResponse({ as: 'global' }, ({ request, route, responseValue, set }) => {
      const context = httpRequests.of(request)
      context.route = route ?? known.of(request.url)?.path
      // Pages and files are complete responses with a status of their own.
      context.status = responseValue instanceof Response ? responseValue.status : Number(set.status ?? 200)
      ended(context)
    })
    .use(docsRoutes({ ...settings, brands: () => ports.brands.list() }))

  for (const { routes } of added) app.use(routes)
  if (callbacks) app.use(callbacks.routes(httpRequests, portsOf))
  const known = new KnownRoutes(app.routes)
  app.config.serve = { routes: known.wrongMethods((request) => app.fetch(request)) }
  return app

  function call<Path extends string>(path: Path, schema: SchemaName, useCase: UseCase) {
    const fields = fieldsOf(schema)
    const most = isUnder(path, '/otp') ? maxCodeBodyBytes : maxBodyBytes
    return route(path, async (ports, context) => {
      const key = context.request.headers.get('idempotency-key')
      if (key !== null) context.idempotencyKey = key
      const body = await received(context, readBody(context.request, most))
      context.unknownFields = unknownFieldsOf(body, fields)
      return { success: true, ...(await useCase(ports, context, body)) }
    })
  }

  function route<Path extends string>(path: Path, handle: Handler) {
    const answer = async ({ request }: { readonly request: Request }): Promise<Response> => {
      const context = httpRequests.of(request)
      context.route = path
      let response: Response
      try {
        const body = await handle(portsOf(context), context)
        const { status, requestId, replayOf = requestId } = context
        response = Response.json({ ...body, requestId: replayOf }, { status, headers: headersOf(context) })
      } catch (error) {
        const { status, headers, envelope } = failed(context, error)
        response = Response.json(envelope, { status, headers: { ...headersOf(context), ...headers } })
      }
      answered.push(context)
      if (answered.length === 1) setImmediate(endAnswered)
      return response
    }
    // The framework's own reading of bodies first turns them into streams.
    return [path, answer, { parse: 'none' }] as const
  }

  /** Resolves to what `reading` does, once the request is in progress. */
  async function received<Body>(context: HttpRequest, reading: Promise<Body>): Promise<Body> {
    try {
      return await reading
    } finally {
      httpRequests.received(context)
      // The idle time-out of the socket must not cut off the answer; use cases have their own time-outs.
      app.server?.timeout(context.request, 0)
    }
  }

  function failed(context: HttpRequest, error: unknown): ErrorAnswer {
    context.failure = failureOf(error)
    const answer = errorAnswer(context.failure, context.replayOf ?? context.requestId)
    context.status = answer.status
    return answer
  }

  function headersOf({ requestId, replayOf }: HttpRequest): Record<string, string> {
    const headers: Record<string, string> = { 'x-request-id': requestId, ...answerHeaders }
    if (replayOf !== undefined) headers['idempotency-replayed'] = 'true'
    return httpRequests.isClosing ? { ...headers, connection: 'close' } : headers
  }

  /** After the answers of a turn. An immediate for each request takes 0.15 µs longer. */
  function endAnswered(): void {
    const contexts = answered
    answered = []
    for (const context of contexts) ended(context)
  }

  function ended(context: HttpRequest): void {
    const { route, status, failure, startedAt } = context
    const { method } = context.request
    const error = failure && codeOf(failure)
    const durationMs = performance.now() - startedAt
    const requestEnded = { context, method, route, status, failure, error, durationMs }
    for (const listener of listeners) listener(requestEnded)
    httpRequests.end(context)
  }

  function portsOf(context: RequestContext): HttpPorts {
    return tracing ? tracing.traced(context, ports) : ports
  }

  function isGuarded({ url }: Request): boolean {
    const path = pathOf(url)
    return added.some(({ under }) => under !== undefined && isUnder(path, under))
  }

  async function isDatabaseUp({ checkDatabase }: HttpPorts): Promise<boolean> {
    try {
      await checkDatabase()
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
