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
  const value = parse(decode(await readBytes(request)))
  if (!isObject(value)) throw new Failure('validation_error', 'the request body must be a JSON object')
  return value
}

/** The largest form that is read. */
const maxFormBytes = 64 * 1024

/** Reads a request's body as a form that a browser has sent. */
export async function readForm(request: Request): Promise<URLSearchParams> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
    throw new Failure('validation_error', 'Content-Type must be application/x-www-form-urlencoded')
  }
  return new URLSearchParams(decode(await readBytes(request, maxFormBytes)))
}

/** Reads a body of any kind, up to a limit in bytes. */
export async function readBytes(request: Request, most = maxBodyBytes): Promise<Uint8Array> {
  const length = request.headers.get('content-length')
  if (length !== null && Number(length) > most) throw new Failure('body_too_large')
  // A body whose length is known to fit is read in one go, which costs a fraction of its stream.
  return await (length === null ? readStream(request, most) : request.bytes()).catch(unread)
}

async function readStream(request: Request, most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of request.body ?? []) {
    length += chunk.byteLength
    if (length > most) throw new Failure('body_too_large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** A client that went away before it had sent all is no fault of ours. */
function unread(error: unknown): never {
  if (error instanceof Failure) throw error
  throw new Failure('validation_error', 'the request body did not arrive as a whole')
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
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
