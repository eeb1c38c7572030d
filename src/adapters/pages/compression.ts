import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** On another thread. */
export const gzipped: (content: string | Uint8Array) => Promise<Uint8Array<ArrayBuffer>> = promisify(gzip)

export function acceptsGzip({ headers }: Request): boolean {
  return /\bgzip\b(?!;\s*q=0(?:\.0*)?\b)/.test(headers.get('accept-encoding') ?? '')
}

/**
 * A page of one request. The session cookie is SameSite=Strict, so other sites cannot learn the token of a form from the size of answers
 * to requests that they cause.
 */
export async function compressed(request: Request, response: Response): Promise<Response> {
  const type = response.headers.get('content-type') ?? ''
  if (!/^(?:text\/(?:html|csv)|application\/json)/.test(type)) return response
  const { status, headers } = response
  headers.append('vary', 'accept-encoding')
  if (!acceptsGzip(request)) return response
  headers.set('content-encoding', 'gzip')
  // A file can be long, and is read as the client takes it.
  if (type.startsWith('text/csv') && response.body)
    return new Response(response.body.pipeThrough(new CompressionStream('gzip')), { status, headers })
  return new Response(await gzipped(await response.bytes()), { status, headers })
}
