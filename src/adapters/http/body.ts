import { type Body, isObject } from '../../domain/body.ts'
import { Failure, failureMessages } from '../../domain/failures.ts'

export const maxBodyBytes = 256 * 1024

export async function readBody(request: Request): Promise<Body> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)) {
    throw new Failure('validation_error', 'Content-Type must be application/json.')
  }
  const value = parse(decode(await readBytes(request)))
  if (!isObject(value)) throw new Failure('validation_error', 'The request body must be a JSON object.')
  return value
}

const maxFormBytes = 64 * 1024

export async function readForm(request: Request): Promise<URLSearchParams> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
    throw new Failure('validation_error', 'Content-Type must be application/x-www-form-urlencoded.')
  }
  return new URLSearchParams(decode(await readBytes(request, maxFormBytes)))
}

export async function readBytes(request: Request, most = maxBodyBytes): Promise<Uint8Array> {
  const length = request.headers.get('content-length')
  if (length !== null && Number(length) > most) throw tooLarge(most)
  try {
    // Faster than reading a stream.
    return await (length === null ? readStream(request, most) : request.bytes())
  } catch (error) {
    throw unread(error)
  }
}

function tooLarge(most: number): Failure {
  return new Failure('body_too_large', `${failureMessages.body_too_large} The limit is ${most / 1024} KiB.`)
}

async function readStream(request: Request, most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of request.body ?? []) {
    length += chunk.byteLength
    if (length > most) throw tooLarge(most)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** A client that disconnects early is not an internal error. */
function unread(error: unknown): Failure {
  if (error instanceof Failure) return error
  return new Failure('validation_error', 'The request body is incomplete: the connection closed early.')
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new Failure('validation_error', 'The request body must be UTF-8.')
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's message quotes the body, which has credentials.
    throw new Failure('validation_error', 'The request body must be valid JSON.')
  }
}
