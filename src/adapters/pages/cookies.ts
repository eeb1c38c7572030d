import { createHash, timingSafeEqual } from 'node:crypto'

/** Not from headers, which a client or a proxy can change. */
export function usesTls(publicUrl: string | undefined): boolean {
  return publicUrl?.startsWith('https:') === true
}

export function cookieIn({ headers }: Request, name: string): string | undefined {
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

/** In constant time: the hashes have the same length. */
export function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
