import { createHash, timingSafeEqual } from 'node:crypto'

/** Whether browsers use TLS. Only PUBLIC_URL decides: a client or a proxy can change every header. */
export function usesTls(publicUrl: string | undefined): boolean {
  return publicUrl?.startsWith('https:') === true
}

/** The value of a cookie; undefined: the request does not have it. */
export function cookieIn({ headers }: Request, name: string): string | undefined {
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

/** Compares secrets in constant time, by their hashes, which have one length. */
export function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
