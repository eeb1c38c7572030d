import { createHash, timingSafeEqual } from 'node:crypto'

/** How a client is told to show its token (RFC 6750 section 3). */
export const challenge = 'Bearer'

/** Whether a request shows a token as `Authorization: Bearer`. */
export function showsToken({ headers }: Request, token: string): boolean {
  const [, given] = /^bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '') ?? []
  return given !== undefined && isSame(given, token)
}

/** Compares secrets by their hashes, which have one length, in constant time. */
export function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
