import { Elysia } from 'elysia'
import { type CallbackPorts, reportReader, takeReports } from '../../domain/messages/delivery-reports.ts'
import type { CallbackRequest } from '../../domain/messages/providers.ts'
import { readBytes } from './body.ts'
import { failureOf } from './errors.ts'
import { type HttpRequest, type HttpRequests, type Log, pathOf } from './http-request.ts'

const prefix = '/receipts/'

/** Some vendors tell of many messages at once, and take a refusal as final. */
export const maxCallbackBytes = 2 * 1024 * 1024

/** Whether a request is for one of these routes: vendors send what they like, forms among it. */
export function isCallback(request: Request): boolean {
  return pathOf(request.url).startsWith(prefix)
}

/** What tells the operator of receipts that are refused: what a vendor sends next will fail too, and nobody reads its logs. */
export function callbackWatch(ports: CallbackPorts, log: Log) {
  return async <T>(provider: string, requestId: string, grant: () => T | Promise<T>): Promise<T> => {
    try {
      return await grant()
    } catch (error) {
      const { kind, message } = failureOf(error)
      if (kind !== 'internal_error' && ports.providers.some(({ name }) => name === provider)) {
        const why =
          kind === 'route_not_found'
            ? 'its address is not one of this server: enter what otpost receipts prints'
            : message
        log.warn({ provider, requestId }, `a receipt was refused: ${why}`)
      }
      throw error
    }
  }
}

type Watch = ReturnType<typeof callbackWatch>

/** Reads the body of a receipt, if it came to an address of ours: strangers are not listened to for long. */
export function readCallback(
  ports: CallbackPorts,
  watch: Watch,
  request: Request,
  requestId: string,
): Promise<Uint8Array> {
  const [, , provider = '', token = ''] = pathOf(request.url).split('/')
  return watch(provider, requestId, () => {
    reportReader(ports, provider, token)
    return readBytes(request, maxCallbackBytes)
  })
}

/** Where vendors tell what became of messages: by GET or POST, at paths that only they were told. */
export function callbackRoutes(
  portsOf: (httpRequest: HttpRequest) => CallbackPorts,
  publicUrl: string,
  httpRequests: HttpRequests,
  watch: Watch,
) {
  const take = async (
    // What is not well encoded comes as null.
    { provider, token }: { readonly provider: string | null; readonly token: string | null },
    request: Request,
    body: Uint8Array,
  ): Promise<unknown> => {
    const httpRequest = httpRequests.of(request)
    const { requestId } = httpRequest
    // It asks what a GET would answer, and is no news.
    if (request.method === 'HEAD') return { success: true, requestId }
    const answer = await watch(provider ?? '', requestId, () =>
      takeReports(portsOf(httpRequest), provider ?? '', token ?? '', callOf(request, publicUrl, body)),
    )
    if (answer === undefined) return { success: true, requestId }
    // Bare of a charset: who wants an answer of their own reads its type to the letter.
    return new Response(JSON.stringify(answer), { headers: { 'content-type': 'application/json' } })
  }
  return new Elysia({ strictPath: true, normalize: false })
    .get(`${prefix}:provider/:token`, ({ params, request }) => take(params, request, new Uint8Array()))
    .post(`${prefix}:provider/:token`, ({ params, request, body }) =>
      take(params, request, body as Uint8Array),
    )
}

function callOf(request: Request, publicUrl: string, body: Uint8Array): CallbackRequest {
  const { url, headers } = request
  const path = pathOf(url)
  const query = url.slice(url.indexOf(path) + path.length)
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers.get('content-type') ?? '')
  const form = isForm ? new TextDecoder().decode(body) : ''
  return {
    // Vendors sign the address that they were given, which a proxy may not hand on.
    url: publicUrl + path + query,
    fields: Object.fromEntries([...new URLSearchParams(query), ...new URLSearchParams(form)]),
    headers: headers.toJSON() as Record<string, string>,
    body,
  }
}
