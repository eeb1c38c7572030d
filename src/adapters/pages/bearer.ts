import { isSame } from './cookies.ts'

/** How a client is told to show its token (RFC 6750 section 3). */
export const challenge = 'Bearer'

/** Whether a request shows a token as `Authorization: Bearer`. */
export function showsToken({ headers }: Request, token: string): boolean {
  const [, given] = /^bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '') ?? []
  return given !== undefined && isSame(given, token)
}
