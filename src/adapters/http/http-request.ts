import type { RequestEnd } from '../../domain/events/event-log.ts'
import { type Attempt, newRequestContext, type RequestContext } from '../../domain/events/request-context.ts'
import type { Failure } from '../../domain/failures.ts'
import type { Clock } from '../../domain/ports.ts'
import { clientIp, type Network } from './client-ip.ts'
import type { HttpPorts } from './server.ts'

/** The part of a logger that this adapter uses. */
export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Traces requests. */
export interface RequestTracing {
  /** Begins the span of a request, which continues the caller's trace where it has one. */
  begin(request: Request): RequestSpan
}

/** The span of a request; it lasts until it is ended. */
export interface RequestSpan {
  readonly traceId: string
  /** The same ports, each use of which is a child of this span. */
  traced(ports: HttpPorts): HttpPorts
  end(end: {
    readonly method: string
    /** Undefined: it has none. */
    readonly route: string | undefined
    readonly status: number
    readonly requestId: string
    readonly app: string | undefined
    readonly brand: string | undefined
    readonly channel: string | undefined
    readonly error: string | undefined
  }): void
}

/** One request under way: what its answer and its log line are made of. */
export interface HttpRequest extends RequestContext {
  readonly startedAt: number
  /** Undefined where requests are not traced. */
  span?: RequestSpan | undefined
  failure?: { readonly code: string; readonly failure: Failure }
}

const tracked = Symbol('exchange')
type Tracked = Request & { [tracked]?: HttpRequest }

/** The exchanges under way, by request. Each has an id of its own from its first moment on (spec 2.4). */
export class HttpRequests {
  private readonly peers = new Map<string, string>()
  private readonly underWay = new Set<HttpRequest>()
  private readonly waiting: (() => void)[] = []

  constructor(
    private readonly trustedProxies: readonly Network[],
    private readonly now: Clock,
  ) {}

  begin(request: Request, peer: string | undefined): HttpRequest {
    const at = this.now()
    const httpRequest: HttpRequest = {
      ...newRequestContext({ requestId: newRequestId(at), at, clientIp: this.clientIp(peer, request) }),
      startedAt: performance.now(),
    }
    // On the request itself: a map beside it would cost more than all the rest of this.
    ;(request as Tracked)[tracked] = httpRequest
    // One with a body is under way once that has come: a client may take its time, or never send it. The headers tell,
    // since a look at the body itself would make a stream of it.
    const { headers } = request
    if (!headers.has('content-length') && !headers.has('transfer-encoding')) this.underWay.add(httpRequest)
    return httpRequest
  }

  private clientIp(peer: string | undefined, { headers }: Request): string {
    // Without trusted proxies it depends on the peer alone, and peers come back.
    if (this.trustedProxies.length > 0)
      return clientIp(peer, headers.get('x-forwarded-for'), this.trustedProxies)
    const known = peer === undefined ? undefined : this.peers.get(peer)
    if (known !== undefined) return known
    const ip = clientIp(peer, null, [])
    if (this.peers.size >= 1000) this.peers.clear()
    if (peer !== undefined) this.peers.set(peer, ip)
    return ip
  }

  /** Says that a request is here as a whole. */
  received(request: Request): void {
    this.underWay.add(this.of(request))
  }

  /** Says that a request has had its log line, which comes after its answer. */
  end(request: Request): void {
    this.underWay.delete(this.of(request))
    if (!this.busy) for (const resolve of this.waiting.splice(0)) resolve()
  }

  /** Whether a request that has come as a whole waits for its answer or its log line. */
  get busy(): boolean {
    return this.underWay.size > 0
  }

  /** Resolves when every request that has come as a whole has been answered and has had its log line. */
  idle(): Promise<void> {
    if (!this.busy) return Promise.resolve()
    return new Promise((resolve) => this.waiting.push(resolve))
  }

  of(request: Request): HttpRequest {
    return (request as Tracked)[tracked] ?? this.begin(request, undefined)
  }
}

/** What a request was answered. */
export interface Answered {
  readonly method: string
  /** The pattern of its route, never the path: what a stranger asks for may be anything, a code or a number among it. */
  readonly route: string | undefined
  readonly status: number
}

/**
 * The log line of a finished request (who, what, how long, why not); no key, code, full recipient or text. The cause of
 * a 5xx goes here with its stack, and nowhere else.
 */
export function logRequest(log: Log, answered: Answered, httpRequest: HttpRequest): void {
  const { requestId, attempts, failure } = httpRequest
  const cause =
    failure?.failure.details.cause ?? attempts.find((attempt) => attempt.error)?.error ?? httpRequest.fault
  // What is undefined is left out of the line.
  const line = {
    requestId,
    traceId: httpRequest.span?.traceId,
    method: answered.method,
    route: answered.route ?? 'unmatched',
    status: answered.status,
    durationMs: Math.round((performance.now() - httpRequest.startedAt) * 10) / 10,
    app: httpRequest.app,
    brand: httpRequest.brand,
    channel: httpRequest.channel,
    recipient: httpRequest.recipient,
    recipients: httpRequest.recipients,
    error: failure?.code,
    attempts: attempts.length > 0 ? attempts.map(attemptLine) : undefined,
    ...(cause === undefined ? {} : { err: cause }),
  }
  if (answered.status >= 500) log.error(line, failure?.failure.message ?? 'failed')
  else log.info(line, failure?.failure.kind ?? 'ok')
}

/** Ends the span of a finished request, where it has one. */
export function endSpan(answered: Answered, { span, failure, ...context }: HttpRequest): void {
  const { requestId, app, brand, channel } = context
  span?.end({ ...answered, requestId, app, brand, channel, error: failure?.code })
}

/** How an exchange ended, for its story. */
export function endOf({ failure, startedAt, channel }: HttpRequest, status: number): RequestEnd {
  const kind = failure?.failure.kind
  // These name fields and variables of ours; others may repeat what the caller wrote.
  const isOurs = kind === 'validation_error' || (kind === 'missing_variable' && channel === 'SMS')
  return {
    status,
    error: failure?.code ?? null,
    message: isOurs ? (failure?.failure.message ?? null) : null,
    durationMs: Math.round(performance.now() - startedAt),
  }
}

/**
 * A UUID that begins with its time, like one of version 7 (RFC 9562 section 5.7): what is kept of requests grows at one
 * end and needs no index by time. It calls itself version 4, since many checks of integrators know no later one than 5.
 */
function newRequestId(at: number): string {
  const id = Bun.randomUUIDv7('hex', at)
  return `${id.slice(0, 14)}4${id.slice(15)}`
}

/** An attempt as the log line tells it; the rest is in the delivery log. */
function attemptLine({ recipient, provider, route, outcome, reason, durationMs }: Attempt): object {
  return {
    recipient,
    provider,
    ...(route ? { route } : {}),
    outcome,
    durationMs,
    ...(reason === null ? {} : { reason }),
  }
}

/** The path of a URL, without its query. */
export function pathOf(url: string): string {
  // Bun gives a path alone where the Host is missing, empty or odd.
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  const end = url.indexOf('?', start)
  return start < 0 ? '/' : url.slice(start, end < 0 ? undefined : end)
}
