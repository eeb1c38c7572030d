import { Elysia } from 'elysia'
import type { ReceiptCall } from '../../domain/providers.ts'
import { type ReceiptPorts, receiptReader, takeReceipts } from '../../domain/receipts.ts'
import { readBytes } from './body.ts'
import { failureOf } from './errors.ts'
import { type Exchange, type Exchanges, type Log, pathOf } from './exchange.ts'

const prefix = '/receipts/'

/** Some vendors tell of many messages at once, and take a refusal as final. */
export const maxReceiptBytes = 2 * 1024 * 1024

/** Whether a request is for one of these routes: vendors send what they like, forms among it. */
export function isReceipt(request: Request): boolean {
  return pathOf(request.url).startsWith(prefix)
}

/** What tells the operator of receipts that are refused: what a vendor sends next will fail too, and nobody reads its logs. */
export function receiptWatch(ports: ReceiptPorts, log: Log) {
  return async <T>(provider: string, requestId: string, taking: () => T | Promise<T>): Promise<T> => {
    try {
      return await taking()
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

type Watch = ReturnType<typeof receiptWatch>

/** Reads the body of a receipt, if it came to an address of ours: strangers are not listened to for long. */
export function readReceipt(
  ports: ReceiptPorts,
  watch: Watch,
  request: Request,
  requestId: string,
): Promise<Uint8Array> {
  const [, , provider = '', token = ''] = pathOf(request.url).split('/')
  return watch(provider, requestId, () => {
    receiptReader(ports, provider, token)
    return readBytes(request, maxReceiptBytes)
  })
}

/** Where vendors tell what became of messages: by GET or POST, at paths that only they were told. */
export function receiptRoutes(
  portsOf: (exchange: Exchange) => ReceiptPorts,
  publicUrl: string,
  exchanges: Exchanges,
  watch: Watch,
) {
  const take = async (
    // What is not well encoded comes as null.
    { provider, token }: { readonly provider: string | null; readonly token: string | null },
    request: Request,
    body: Uint8Array,
  ): Promise<unknown> => {
    const exchange = exchanges.of(request)
    const { requestId } = exchange
    // It asks what a GET would answer, and is no news.
    if (request.method === 'HEAD') return { success: true, requestId }
    const answer = await watch(provider ?? '', requestId, () =>
      takeReceipts(portsOf(exchange), provider ?? '', token ?? '', callOf(request, publicUrl, body)),
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

function callOf(request: Request, publicUrl: string, body: Uint8Array): ReceiptCall {
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
