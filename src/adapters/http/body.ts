import { type Body, isObject } from '../../domain/body.ts'
import { Failure } from '../../domain/failures.ts'

/** The largest body that is read (design D4). */
export const maxBodyBytes = 256 * 1024

/**
 * Reads a request's body, which must be a JSON object (design 5). Reading stops at the size limit, so that a huge body
 * costs no memory.
 */
export async function readBody(request: Request): Promise<Body> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)) {
    throw new Failure('validation_error', 'Content-Type must be application/json')
  }
  if (Number(request.headers.get('content-length') ?? 0) > maxBodyBytes) throw new Failure('body_too_large')
  const value = parse(await readText(request))
  if (!isObject(value)) throw new Failure('validation_error', 'the request body must be a JSON object')
  return value
}

async function readText(request: Request): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let bytes = 0
  let text = ''
  try {
    for await (const chunk of request.body ?? []) {
      bytes += chunk.byteLength
      if (bytes > maxBodyBytes) throw new Failure('body_too_large')
      text += decoder.decode(chunk, { stream: true })
    }
    return text + decoder.decode()
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('validation_error', 'the request body must be UTF-8')
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's message quotes the body, which holds credentials.
    throw new Failure('validation_error', 'the request body must be valid JSON')
  }
}
