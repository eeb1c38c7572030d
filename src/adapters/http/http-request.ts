import type { Failure } from '../../domain/ground/failures.ts'
import type { Clock } from '../../domain/ground/time.ts'
import { newRequestContext, type RequestContext } from '../../domain/request/request-context.ts'
import { newRequestId } from '../crypto/secrets.ts'
import { clientIp, isTrustedProxy, type Network, untrustedNetwork } from './client-ip.ts'

export interface HttpRequest extends RequestContext {
  /** Monotonic milliseconds. */
  readonly startedAt: number
  readonly request: Request
  /** The pattern of the path. Undefined: unknown path. */
  route: string | undefined
  status: number
  failure?: Failure
}

const tracked = Symbol('HttpRequest')
type Tracked = Request & { [tracked]?: HttpRequest }

export class HttpRequests {
  private readonly peers = new Map<string, string>()
  private readonly underWay = new Set<HttpRequest>()
  private readonly waiting: (() => void)[] = []
  requestCount = 0
  /** Each answer closes its connection. */
  isClosing = false

  private ignoredHour = Number.NaN

  /** @param ignored receives the network of a peer whose X-Forwarded-For is ignored, once per hour (design D21) */
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
      request,
      route: undefined,
      status: 200,
    }
    const proxyRequestId = this.proxyRequestId(peer, request)
    if (proxyRequestId !== undefined) httpRequest.proxyRequestId = proxyRequestId
    // A property of the request is much faster than a map.
    const own: Tracked = request
    own[tracked] = httpRequest
    // A request is in progress once its body has been received: clients may send it slowly, or never.
    // Reading `request.body` would create a stream.
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

  private proxyRequestId(peer: string | undefined, { headers }: Request): string | undefined {
    if (this.trustedProxies.length === 0) return undefined
    const id = headers.get('x-request-id') ?? ''
    return requestIdOfProxy.test(id) && isTrustedProxy(peer, this.trustedProxies) ? id : undefined
  }

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

  /** A request in progress. Only for rare requests, since it compares with each. */
  find(requestId: string): HttpRequest | undefined {
    return this.underWay.values().find((each) => each.requestId === requestId)
  }

  received(httpRequest: HttpRequest): void {
    this.underWay.add(httpRequest)
  }

  end(httpRequest: HttpRequest): void {
    this.underWay.delete(httpRequest)
    if (!this.busy) for (const resolve of this.waiting.splice(0)) resolve()
  }

  /** True until all received requests are answered and logged. */
  get busy(): boolean {
    return this.underWay.size > 0
  }

  idle(): Promise<void> {
    if (!this.busy) return Promise.resolve()
    return new Promise((resolve) => this.waiting.push(resolve))
  }

  of(request: Request): HttpRequest {
    return (request as Tracked)[tracked] ?? this.begin(request, undefined)
  }
}

/** A UUID or 32 hexadecimal digits, as proxies generate them: a proxy may pass on the header of a stranger. */
const requestIdOfProxy = /^[\da-f]{8}(-?[\da-f]{4}){3}-?[\da-f]{12}$/i

export function pathOf(url: string): string {
  // Bun sets only the path if Host is missing or invalid.
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  const end = url.indexOf('?', start)
  return start < 0 ? '/' : url.slice(start, end < 0 ? undefined : end)
}
