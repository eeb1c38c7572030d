import { newRequestContext, type RequestContext } from '../../domain/events/request-context.ts'
import type { Failure } from '../../domain/failures.ts'
import type { Clock } from '../../domain/time.ts'
import { clientIp, type Network, untrustedNetwork } from './client-ip.ts'

/** A request from its headers to its answer. */
export interface HttpRequest extends RequestContext {
  /** Monotonic milliseconds. */
  readonly startedAt: number
  failure?: Failure
}

const tracked = Symbol('HttpRequest')
type Tracked = Request & { [tracked]?: HttpRequest }

/** The requests under way. Each has its id from the beginning (spec 2.4). */
export class HttpRequests {
  private readonly peers = new Map<string, string>()
  private readonly underWay = new Set<HttpRequest>()
  private readonly waiting: (() => void)[] = []
  /** Requests so far. */
  requestCount = 0
  /** Whether each answer closes its connection. */
  isClosing = false

  private ignoredHour = Number.NaN

  /** @param ignored receives the network of a peer whose X-Forwarded-For is ignored, once per hour of the clock (design D21) */
  constructor(
    private readonly trustedProxies: readonly Network[],
    private readonly now: Clock,
    private readonly ignored: (network: string) => void = () => {},
  ) {}

  begin(request: Request, peer: string | undefined): HttpRequest {
    this.requestCount++
    const at = this.now()
    const httpRequest: HttpRequest = {
      ...newRequestContext({ requestId: newRequestId(at), at, clientIp: this.clientIp(peer, request) }),
      startedAt: performance.now(),
    }
    // On the request itself: a map beside it would cost more than all the rest of this.
    ;(request as Tracked)[tracked] = httpRequest
    // A request with a body is under way once the body has been received: a client may take its time, or never send it.
    // The headers show whether there is one; reading `request.body` would create a stream.
    const { headers } = request
    if (!headers.has('content-length') && !headers.has('transfer-encoding')) this.underWay.add(httpRequest)
    return httpRequest
  }

  private clientIp(peer: string | undefined, { headers }: Request): string {
    const own = this.ipOf(peer)
    const forwardedFor = headers.get('x-forwarded-for')
    if (forwardedFor === null) return own
    const ip = this.trustedProxies.length > 0 ? clientIp(peer, forwardedFor, this.trustedProxies) : own
    if (ip === own) this.noteIgnored(peer)
    return ip
  }

  /** The IP address that a peer counts as without X-Forwarded-For. */
  private ipOf(peer: string | undefined): string {
    const known = peer === undefined ? undefined : this.peers.get(peer)
    if (known !== undefined) return known
    const ip = clientIp(peer, null, [])
    if (this.peers.size >= 1000) this.peers.clear()
    if (peer !== undefined) this.peers.set(peer, ip)
    return ip
  }

  private noteIgnored(peer: string | undefined): void {
    const hour = Math.floor(this.now() / 3_600_000)
    if (hour === this.ignoredHour) return
    const network = untrustedNetwork(peer, this.trustedProxies)
    if (network === undefined) return
    this.ignoredHour = hour
    this.ignored(network)
  }

  /** The body of a request has been received. */
  received(request: Request): void {
    this.underWay.add(this.of(request))
  }

  /** A request has been answered and logged. */
  end(request: Request): void {
    this.underWay.delete(this.of(request))
    if (!this.busy) for (const resolve of this.waiting.splice(0)) resolve()
  }

  /** Whether a request that has been received is not yet answered and logged. */
  get busy(): boolean {
    return this.underWay.size > 0
  }

  /** Resolves when every request that has been received is answered and logged. */
  idle(): Promise<void> {
    if (!this.busy) return Promise.resolve()
    return new Promise((resolve) => this.waiting.push(resolve))
  }

  of(request: Request): HttpRequest {
    return (request as Tracked)[tracked] ?? this.begin(request, undefined)
  }
}

/**
 * A UUID that begins with its time, like one of version 7 (RFC 9562 section 5.7), so that rows of the event log are
 * inserted in order. It says version 4, because many validators of integrators accept no version above 5.
 */
function newRequestId(at: number): string {
  const id = Bun.randomUUIDv7('hex', at)
  return `${id.slice(0, 14)}4${id.slice(15)}`
}

/** The path of a URL, without its query. */
export function pathOf(url: string): string {
  // Bun gives only the path where the Host is missing, empty or invalid.
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  const end = url.indexOf('?', start)
  return start < 0 ? '/' : url.slice(start, end < 0 ? undefined : end)
}
