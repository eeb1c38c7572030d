import type { Authorization } from '../../domain/request/request-context.ts'

/** Fits a user and a password of 512 characters each. */
const maxLength = 6 * 1024

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads an `Authorization` header as RFC 6750 and RFC 7617 define it. The token is visible ASCII. Basic is UTF-8 without control
 * characters. The password may contain colons. No part is empty.
 * @returns undefined: the request has no such header
 */
export function parseAuthorization(header: string | null): Authorization | 'malformed' | undefined {
  if (header === null) return undefined
  if (header.length > maxLength) return 'malformed'
  const [, scheme, token] = /^(bearer|basic) +([!-~]+) *$/i.exec(header) ?? []
  if (scheme === undefined || token === undefined) return 'malformed'
  if (scheme.length === 'bearer'.length) return { scheme: 'bearer', token }
  const [, user, password] = /^([^:\p{Cc}]+):(\P{Cc}+)$/u.exec(decoded(token)) ?? []
  return user === undefined || password === undefined ? 'malformed' : { scheme: 'basic', user, password }
}

/** Empty if it is not base64 of UTF-8, which Buffer alone accepts. */
function decoded(base64: string): string {
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.toString('base64') !== base64) return ''
  try {
    return utf8.decode(bytes)
  } catch {
    return ''
  }
}
