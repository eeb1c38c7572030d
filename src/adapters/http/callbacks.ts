import { Elysia } from 'elysia'
import {
  type CallbackPorts,
  type ReportRejection,
  reportReader,
  takeReports,
} from '../../domain/delivery/delivery-reports.ts'
import type { FailureKind } from '../../domain/ground/failures.ts'
import { onceAMinute } from '../../domain/ground/once-a-minute.ts'
import type { Log } from '../../domain/ground/ports.ts'
import type { CallbackRequest } from '../../domain/ground/providers.ts'
import type { RequestContext } from '../../domain/request/request-context.ts'
import { readBytes } from './body.ts'
import { failureOf } from './errors.ts'
import { type HttpRequests, pathOf } from './http-request.ts'

const prefix = '/callbacks/'

/** Some providers report many messages at once, and do not retry a rejected request. */
export const maxCallbackBytes = 2 * 1024 * 1024

const rejections: Readonly<Partial<Record<FailureKind, ReportRejection>>> = {
  route_not_found: 'url',
  forbidden: 'signature',
  validation_error: 'form',
  body_too_large: 'form',
}

/** The status callback URLs of providers, by GET or POST. */
export class Callbacks {
  /** Any client can send reports that are rejected. */
  private readonly limited: ReturnType<typeof onceAMinute>

  constructor(
    private readonly ports: CallbackPorts,
    private readonly publicUrl: string,
    private readonly log: Log,
  ) {
    this.limited = onceAMinute(ports.stopwatch)
  }

  has(path: string): boolean {
    return path.startsWith(prefix)
  }

  read(path: string, request: Request, requestId: string): Promise<Uint8Array> {
    const [, , provider = '', token = ''] = path.split('/')
    return this.warnOfRejected(provider, requestId, () => {
      reportReader(this.ports, provider, token)
      return readBytes(request, maxCallbackBytes)
    })
  }

  routes(httpRequests: HttpRequests, portsOf: (context: RequestContext) => CallbackPorts) {
    const take = async (
      // The router passes null for bad percent-encoding.
      { provider, token }: { readonly provider: string | null; readonly token: string | null },
      request: Request,
      body: Uint8Array,
    ): Promise<unknown> => {
      const context = httpRequests.of(request)
      const { requestId } = context
      if (request.method === 'HEAD') return { success: true, requestId }
      const answer = await this.warnOfRejected(provider ?? '', requestId, () =>
        takeReports(portsOf(context), provider ?? '', token ?? '', this.callOf(request, body)),
      )
      if (answer === undefined) return { success: true, requestId }
      if (typeof answer === 'string') {
        return new Response(answer, { headers: { 'content-type': 'text/plain; charset=utf-8' } })
      }
      // Without a charset: some providers compare the Content-Type literally.
      return new Response(JSON.stringify(answer), { headers: { 'content-type': 'application/json' } })
    }
    return new Elysia({ strictPath: true, normalize: false })
      .get(`${prefix}:provider/:token`, ({ params, request }) => take(params, request, new Uint8Array()))
      .post(`${prefix}:provider/:token`, ({ params, request, body }) =>
        take(params, request, body as Uint8Array),
      )
  }

  /**
   * Counts and logs rejected delivery reports, since the next ones fail too, and operators do not see the logs of the provider. At
   * most a line a minute for each provider has the number since the previous line.
   */
  private async warnOfRejected<T>(
    provider: string,
    requestId: string,
    work: () => T | Promise<T>,
  ): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const { kind, message } = failureOf(error)
      const rejection = rejections[kind]
      if (rejection === undefined) throw error
      const isKnown = this.ports.providers.some(({ name }) => name === provider)
      this.ports.reportRejected(isKnown ? provider : '', rejection)
      if (isKnown) {
        const why =
          rejection === 'url'
            ? 'its URL is not one of this server; enter the URL that `otpost callbacks` prints at the provider'
            : message
        this.limited(provider, (rejected) =>
          this.log.warn({ provider, requestId, rejected }, `a delivery report was rejected: ${why}`),
        )
      }
      throw error
    }
  }

  private callOf({ url, headers }: Request, body: Uint8Array): CallbackRequest {
    const path = pathOf(url)
    const query = url.slice(url.indexOf(path) + path.length)
    const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers.get('content-type') ?? '')
    const form = isForm ? new TextDecoder().decode(body) : ''
    return {
      // Providers sign the public URL, which a proxy may rewrite.
      url: this.publicUrl + path + query,
      fields: Object.fromEntries([...new URLSearchParams(query), ...new URLSearchParams(form)]),
      headers: headers.toJSON() as Record<string, string>,
      body,
    }
  }
}
