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
  if (!/^(?:text\/html|application\/json)/.test(response.headers.get('content-type') ?? '')) return response
  const { status, headers } = response
  headers.append('vary', 'accept-encoding')
  if (!acceptsGzip(request)) return response
  headers.set('content-encoding', 'gzip')
  return new Response(await gzipped(await response.bytes()), { status, headers })
}
