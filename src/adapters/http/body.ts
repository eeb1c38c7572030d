import { type Body, isObject } from '../../domain/ground/body.ts'
import { Failure, failureMessages } from '../../domain/ground/failures.ts'

/** Design D4. */
export const maxBodyBytes = 256 * 1024
export const maxCodeBodyBytes = 16 * 1024
/** Of the management API: price files are long. */
export const maxManageBodyBytes = 1024 * 1024

/** Of all bodies that are being received by this process. */
export const maxReceivedBytes = 64 * 1024 * 1024

/** The part of it that only small bodies can use, so that requests for codes find room. */
const roomForSmallBytes = 16 * 1024 * 1024

/** For `Retry-After`. */
const fullRetrySeconds = 1

export async function readBody(request: Request, most: number): Promise<Body> {
  const type = request.headers.get('content-type') ?? ''
  if (!isJsonType.test(type)) {
    throw new Failure('validation_error', 'Content-Type must be application/json.')
  }
  const encoding = request.headers.get('content-encoding')
  if (encoding !== null && encoding.toLowerCase() !== 'identity') {
    throw new Failure('validation_error', 'The request body must not be compressed: remove Content-Encoding.')
  }
  return jsonOf(await readBytes(request, most))
}

/** @throws Failure validation_error */
export function jsonOf(bytes: Uint8Array): Body {
  const value = parse(decode(bytes))
  if (!isObject(value)) throw new Failure('validation_error', 'The request body must be a JSON object.')
  return value
}

const isJsonType = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i

const maxFormBytes = 64 * 1024

/** Of forms with the text of a file, by path. */
const largeForms: Readonly<Record<string, number>> = { '/admin/money/prices': 1024 * 1024 }

export async function readForm(request: Request, path: string): Promise<URLSearchParams> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
    throw new Failure('validation_error', 'Content-Type must be application/x-www-form-urlencoded.')
  }
  return formOf(await readBytes(request, largeForms[path] ?? maxFormBytes))
}

export function formOf(bytes: Uint8Array): URLSearchParams {
  return new URLSearchParams(decode(bytes))
}

/**
 * A body is read only if there is room for its Content-Length or, without one, for `most` bytes. Bun stores what a client has
 * sent of a body that is being read, and discards the others.
 * @throws Failure body_too_large, unavailable, or validation_error if there are two Content-Length or the connection closed early
 */
export async function readBytes(request: Request, most: number): Promise<Uint8Array> {
  const header = request.headers.get('content-length')
  // Bun accepts two equal ones, and joins them.
  if (header?.includes(',')) {
    throw new Failure('validation_error', 'A request must have at most one Content-Length header.')
  }
  const length = header === null ? most : Number(header)
  if (length > most) throw tooLarge(most)
  const room = maxReceivedBytes - (length > maxCodeBodyBytes ? roomForSmallBytes : 0)
  if (receivedBytes + length > room) {
    throw new Failure('unavailable', undefined, { retryAfterSeconds: fullRetrySeconds })
  }
  receivedBytes += length
  try {
    // Faster than reading a stream.
    return await (header === null ? readStream(request, most) : request.bytes())
  } catch (error) {
    throw unread(error)
  } finally {
    receivedBytes -= length
  }
}

let receivedBytes = 0

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

const mostLevels = 1000
/** Arrays, objects and strings, of which a name of a field is one. */
const mostParts = 10_000

/** The parser takes up to 33 ms for 256 KiB, and its client has shown no credentials yet. This takes 0.5 ms at most. */
function isTooComplex(text: string): boolean {
  let levels = 0
  let parts = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) {
      parts++
      at = endOfString(text, at)
    } else if (unit === openBracket || unit === openBrace) {
      parts++
      levels++
    } else if (unit === openBracket + 2 || unit === openBrace + 2) levels--
    if (levels > mostLevels || parts > mostParts) return true
  }
  return false
}

const [quote, backslash, openBracket, openBrace] = [0x22, 0x5c, 0x5b, 0x7b]

/** @returns the index of its last quotation mark, which has an even number of backslashes before it */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end >= 0) {
    let before = end - 1
    while (text.charCodeAt(before) === backslash) before--
    if ((end - before) % 2 === 1) return end
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

function parse(text: string): unknown {
  if (isTooComplex(text)) {
    throw new Failure(
      'validation_error',
      `The request body must have at most ${mostParts} arrays, objects and strings, nested at most ${mostLevels} levels deep.`,
    )
  }
  try {
    return JSON.parse(text)
  } catch {
    // The parser's message quotes the body, which has credentials.
    throw new Failure('validation_error', 'The request body must be valid JSON.')
  }
}
