import { Failure, failureMessages } from '../../domain/failures.ts'
import { pathOf } from './http-request.ts'

interface KnownRoute {
  readonly path: string
  readonly pattern: RegExp
  readonly methods: readonly string[]
}

/** The methods that Bun's router knows. */
const routerMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

type Handler = (request: Request) => Response | Promise<Response>

/** The paths of a server with the methods of each; `:name` matches one segment. */
export class KnownRoutes {
  private readonly routes: readonly KnownRoute[]

  constructor(routes: readonly { readonly path: string; readonly method: string }[]) {
    this.routes = [...Map.groupBy(routes, ({ path }) => path)].map(([path, alike]) => ({
      path,
      pattern: new RegExp(`^${path.split('/').map(segmentPattern).join('/')}$`),
      methods: alike.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])),
    }))
  }

  of(url: string): KnownRoute | undefined {
    return this.routes.find(({ pattern }) => pattern.test(pathOf(url)))
  }

  /**
   * Bun's routes for the wrong methods of each path. With them, Bun's router, which compares raw paths, matches every request
   * for a known path.
   */
  wrongMethods(handler: Handler): Record<string, Record<string, Handler>> {
    return Object.fromEntries(
      this.routes.map(({ path, methods }) => [
        path,
        Object.fromEntries(
          routerMethods.filter((method) => !methods.includes(method)).map((method) => [method, handler]),
        ),
      ]),
    )
  }

  /**
   * Whether the path that a client sent is another than the one of `request.url`, which has no dot segments, encoded dots or
   * backslashes: prefix rules of a proxy saw the first.
   *
   * @param request received over a socket; one that Bun's router has matched has `params`
   */
  isRewritten(request: Request & { readonly params?: Readonly<Record<string, string>> }): boolean {
    const { params } = request
    if (params) {
      for (const name in params) if (/^\.{1,2}$|[/\\]/.test(params[name] ?? '')) return true
      return false
    }
    return routerMethods.some((method) => method === request.method) && this.of(request.url) !== undefined
  }

  /** The failure of a request that no route handles: 405 with Allow where the path exists (RFC 9110 section 15.5.6). */
  failure(request: Request, headers: Record<string, unknown>): Failure {
    const route = this.of(request.url)
    if (!route || route.methods.includes(request.method)) return new Failure('route_not_found')
    headers.allow = route.methods.join(', ')
    return new Failure(
      'method_not_allowed',
      `${failureMessages.method_not_allowed} ${route.path} accepts ${route.methods.join(', ')}.`,
    )
  }
}

function segmentPattern(segment: string): string {
  return segment.startsWith(':') ? '[^/]+' : RegExp.escape(segment)
}
