import { Failure, failureMessages } from '../../domain/ground/failures.ts'
import { pathOf } from './http-request.ts'

interface KnownRoute {
  readonly path: string
  readonly pattern: RegExp
  readonly methods: readonly string[]
}

const routerMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

type Handler = (request: Request) => Response | Promise<Response>

/** `:name` in a path matches one segment. */
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

  /** Bun's routes for the wrong methods. With them, Bun's router matches every request for a known path. */
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
   * Whether `request.url` differs from the path that the client sent, which the prefix rules of a proxy saw. Bun resolves dot
   * segments, encoded dots and backslashes. Requests that Bun's router matched have `params`.
   */
  isRewritten(request: Request & { readonly params?: Readonly<Record<string, string>> }): boolean {
    const { params } = request
    if (params) {
      for (const name in params) if (/^\.{1,2}$|[/\\]/.test(params[name] ?? '')) return true
      return false
    }
    return routerMethods.some((method) => method === request.method) && this.of(request.url) !== undefined
  }

  /** 405 with Allow if the path exists (RFC 9110 section 15.5.6), otherwise 404. */
  failure(request: Request, headers: Record<string, unknown>): Failure {
    const route = this.of(request.url)
    if (!route || route.methods.includes(request.method)) return new Failure('route_not_found')
    headers.allow = route.methods.join(', ')
    // The name of an action is no secret.
    const path = route.path.endsWith('/:action') ? pathOf(request.url) : route.path
    return new Failure(
      'method_not_allowed',
      `${failureMessages.method_not_allowed} ${path} accepts ${route.methods.join(', ')}.`,
    )
  }
}

function segmentPattern(segment: string): string {
  return segment.startsWith(':') ? '[^/]+' : RegExp.escape(segment)
}
