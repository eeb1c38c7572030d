import { randomUUID } from 'node:crypto'
import type { Failure } from '../../domain/failures.ts'
import type { Call } from '../../domain/ports.ts'
import { clientIp, type Network } from './client-ip.ts'

/** The part of a logger that this adapter uses. */
export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** One request under way: what its answer and its log line are made of. */
export interface Exchange extends Call {
  readonly startedAt: number
  failure?: { readonly code: string; readonly failure: Failure }
}

const tracked = Symbol('exchange')
type Tracked = Request & { [tracked]?: Exchange }

/** The exchanges under way, by request. Each has an id of its own from its first moment on (spec 2.4). */
export class Exchanges {
  private readonly peers = new Map<string, string>()
  private readonly underWay = new Set<Exchange>()
  private readonly waiting: (() => void)[] = []

  constructor(private readonly trustedProxies: readonly Network[]) {}

  begin(request: Request, peer: string | undefined): Exchange {
    const exchange: Exchange = {
      requestId: randomUUID(),
      clientIp: this.clientIp(peer, request),
      trail: { attempts: [] },
      startedAt: performance.now(),
    }
    // On the request itself: a map beside it would cost more than all the rest of this.
    ;(request as Tracked)[tracked] = exchange
    // One with a body is under way once that has come: a client may take its time, or never send it. The headers tell,
    // since a look at the body itself would make a stream of it.
    const { headers } = request
    if (!headers.has('content-length') && !headers.has('transfer-encoding')) this.underWay.add(exchange)
    return exchange
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

  of(request: Request): Exchange {
    return (request as Tracked)[tracked] ?? this.begin(request, undefined)
  }
}

/**
 * The log line of a finished request (who, what, how long, why not); no key, code, full recipient or text. The cause of
 * a 5xx goes here with its stack, and nowhere else.
 */
export function logExchange(
  log: Log,
  answered: { method: string; route: string; status: number },
  exchange: Exchange,
): void {
  const { requestId, trail, failure } = exchange
  const { attempts } = trail
  const cause =
    failure?.failure.details.cause ?? attempts.find((attempt) => attempt.error)?.error ?? trail.fault
  // What is undefined is left out of the line.
  const line = {
    requestId,
    method: answered.method,
    route: answered.route,
    status: answered.status,
    durationMs: Math.round((performance.now() - exchange.startedAt) * 10) / 10,
    app: trail.app,
    brand: trail.brand,
    channel: trail.channel,
    recipient: trail.recipient,
    recipients: trail.recipients,
    error: failure?.code,
    attempts: attempts.length > 0 ? attempts.map(({ error: _, ...attempt }) => attempt) : undefined,
    ...(cause === undefined ? {} : { err: cause }),
  }
  if (answered.status >= 500) log.error(line, failure?.failure.message ?? 'failed')
  else log.info(line, failure?.failure.kind ?? 'ok')
}

/** The path of a URL, without its query. */
export function pathOf(url: string): string {
  // Bun gives a path alone where the Host is missing, empty or odd.
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  const end = url.indexOf('?', start)
  return start < 0 ? '/' : url.slice(start, end < 0 ? undefined : end)
}
