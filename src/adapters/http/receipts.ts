import { Elysia } from 'elysia'
import type { ReceiptCall } from '../../domain/providers.ts'
import { type ReceiptPorts, takeReceipts } from '../../domain/receipts.ts'
import { failureOf } from './errors.ts'
import { type Exchanges, type Log, pathOf } from './exchange.ts'

const prefix = '/receipts/'

/** Some vendors tell of many messages at once, and take a refusal as final. */
export const maxReceiptBytes = 2 * 1024 * 1024

/** Whether a request is for one of these routes: vendors send what they like, forms among it. */
export function isReceipt(request: Request): boolean {
  return pathOf(request.url).startsWith(prefix)
}

/** Where vendors tell what became of messages: by GET or POST, at paths that only they were told. */
export function receiptRoutes(ports: ReceiptPorts, publicUrl: string, exchanges: Exchanges, log: Log) {
  const take = async (
    // What is not well encoded comes as null.
    { provider, token }: { readonly provider: string | null; readonly token: string | null },
    request: Request,
    body: Uint8Array,
  ): Promise<unknown> => {
    const { requestId } = exchanges.of(request)
    const taking = takeReceipts(ports, provider ?? '', token ?? '', callOf(request, publicUrl, body))
    const answer = await taking.catch((error: unknown) => {
      // What the vendor sends next will fail too, and nobody reads its logs.
      if (ports.providers.some(({ name }) => name === provider)) warn(log, error, { provider, requestId })
      throw error
    })
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

function warn(log: Log, error: unknown, fields: object): void {
  const { kind, message } = failureOf(error)
  if (kind === 'internal_error') return
  const why =
    kind === 'route_not_found'
      ? 'its address is not one of this server: enter what otpost receipts prints'
      : message
  log.warn(fields, `a receipt was refused: ${why}`)
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
