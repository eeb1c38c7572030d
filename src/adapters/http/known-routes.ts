import { Failure } from '../../domain/failures.ts'
import { pathOf } from './http-request.ts'

interface KnownRoute {
  readonly path: string
  readonly pattern: RegExp
  readonly methods: readonly string[]
}

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

  /** The failure of a request that no route handles: 405 with Allow where the path exists (RFC 9110 section 15.5.6). */
  failure(request: Request, headers: Record<string, unknown>): Failure {
    const route = this.of(request.url)
    // The router reads a path such as /../health differently.
    if (!route || route.methods.includes(request.method)) return new Failure('route_not_found')
    headers.allow = route.methods.join(', ')
    return new Failure('method_not_allowed', `${route.path} takes ${route.methods.join(', ')}`)
  }
}

function segmentPattern(segment: string): string {
  return segment.startsWith(':') ? '[^/]+' : RegExp.escape(segment)
}
