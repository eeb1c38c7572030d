import { type AnyElysia, Elysia } from 'elysia'
import { type Body, unknownFieldsOf } from '../../domain/ground/body.ts'
import { Failure } from '../../domain/ground/failures.ts'
import type { Log } from '../../domain/ground/ports.ts'
import type { RequestContext } from '../../domain/request/request-context.ts'
import type { RequestListener } from '../../domain/request/request-ended.ts'
import { Answers } from './answers.ts'
import { parseAuthorization } from './authorization.ts'
import { maxManageBodyBytes, readBody, readBytes, readForm } from './body.ts'
import { Callbacks } from './callbacks.ts'
import { docsRoutes } from './docs.ts'
import type { Endpoint, HttpPorts, ServerState } from './endpoint.ts'
import { endpoints } from './endpoints/index.ts'
import { type HttpRequest, type HttpRequests, pathOf } from './http-request.ts'
import { hostOf, type IsKnownHost, refuseSecondHost } from './known-hosts.ts'
import { KnownRoutes } from './known-routes.ts'
import { managePath } from './manage/description.ts'
import { relayRoutes } from './relays/index.ts'
import { fieldsOf } from './schema.ts'

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

/**
 * The HTTP API (spec 4, design 5): mounts the endpoints, and has what happens before each.
 */
export function createHttp(ports: HttpPorts, settings: HttpSettings) {
  const { version, publicUrl, log, httpRequests, listeners, tracing, added, isStopping, isKnownHost } =
    settings
  const callbacks = publicUrl === undefined ? undefined : new Callbacks(ports, publicUrl, log)
  const answers = new Answers(httpRequests, listeners)
  const server: ServerState = { version, log, isStopping, endAnswered: answers.endAnswered }

  const app = new Elysia({ strictPath: true, normalize: false }).onRequest(({ request }) => {
    const peer = app.server?.requestIP(request)?.address
    const context = httpRequests.begin(request, peer)
    tracing?.begin(request, context)
    if (peer !== undefined && known.isRewritten(request)) throw new Failure('route_not_found')
    if (isGuarded(request) && !isKnownHost(hostOf(request))) throw new Failure('route_not_found')
    refuseSecondHost(request)
  })

  // Their routes are before the hooks of pages, since hooks take longer than most rejected requests.
  for (const endpoint of endpoints) mount(endpoint)
  app.use(relayRoutes({ httpRequests, answers, portsOf, received }))

  app
    .onParse({ as: 'global' }, ({ request }) => {
      const context = httpRequests.of(request)
      const path = pathOf(request.url)
      const reading = callbacks?.has(path)
        ? callbacks.read(path, request, context.requestId)
        : isUnder(path, managePath)
          ? readBytes(request, maxManageBodyBytes)
          : readForm(request, path)
      return reading.finally(() => received(context))
    })
    .onBeforeHandle({ as: 'global' }, ({ request, set }) => {
      Object.assign(set.headers, answers.headersOf(httpRequests.of(request)))
    })
    .onError({ as: 'global' }, ({ code, error, request, set }) => {
      const context = httpRequests.of(request)
      const failure = code === 'NOT_FOUND' ? known.failure(request, set.headers) : error
      const { status, headers, envelope } = answers.failed(context, failure)
      set.status = status
      Object.assign(set.headers, answers.headersOf(context), headers)
      return envelope
    })
    .onAfterResponse({ as: 'global' }, ({ request, route, responseValue, set }) => {
      const context = httpRequests.of(request)
      context.route = route ?? known.of(request.url)?.path
      // Pages and files are complete responses with a status of their own.
      context.status = responseValue instanceof Response ? responseValue.status : Number(set.status ?? 200)
      answers.ended(context)
    })
    .use(docsRoutes({ ...settings, brands: () => ports.brands.list() }))

  for (const { routes } of added) app.use(routes)
  if (callbacks) app.use(callbacks.routes(httpRequests, portsOf))
  const known = new KnownRoutes(app.routes)
  app.config.serve = { routes: known.wrongMethods((request) => app.fetch(request)) }
  return app

  function mount({ method, path, maxBytes, security, body, cachedSeconds, answer }: Endpoint): void {
    const known = body && new Set(fieldsOf(body.schema))
    const read = async (context: HttpRequest, known: ReadonlySet<string>): Promise<Body> => {
      const { request } = context
      const key = request.headers.get('idempotency-key')
      if (key !== null) context.idempotencyKey = key
      try {
        const given = await readBody(request, maxBytes)
        context.unknownFields = unknownFieldsOf(given, known)
        const header = security ? request.headers.get('authorization') : null
        if (header !== null) context.authorization = parseAuthorization(header)
        return given
      } finally {
        received(context)
      }
    }
    const handle = async ({ request }: { readonly request: Request }): Promise<Response> => {
      const context = httpRequests.of(request)
      context.route = path
      try {
        const given = known ? await read(context, known) : {}
        const call = { ports: portsOf(context), context, body: given, server }
        return answers.ofEndpoint(context, await answer(call), cachedSeconds)
      } catch (error) {
        return answers.ofFailure(context, error)
      }
    }
    // The framework's own reading of bodies first turns them into streams.
    app.route(method, path, handle, { parse: 'none' })
  }

  /** The request is in progress. */
  function received(context: HttpRequest): void {
    httpRequests.received(context)
    // The idle time-out of the socket must not cut off the answer; use cases have their own time-outs.
    app.server?.timeout(context.request, 0)
  }

  function portsOf(context: RequestContext): HttpPorts {
    return tracing ? tracing.traced(context, ports) : ports
  }

  function isGuarded({ url }: Request): boolean {
    const path = pathOf(url)
    return added.some(({ under }) => under !== undefined && isUnder(path, under))
  }
}

function isUnder(path: string, parent: string): boolean {
  return path.startsWith(parent) && (path.length === parent.length || path[parent.length] === '/')
}
