import { randomBytes } from 'node:crypto'
import type { ConsoleSecrets } from '../../domain/operator/sessions.ts'
import { sha256 } from './secrets.ts'

/** One at a time, since each takes a large part of a second and 64 MiB. */
let underWay: Promise<unknown> = Promise.resolve()

/** Console tokens, and the console password by argon2id (RFC 9106). */
export const consoleSecrets: ConsoleSecrets = {
  newToken: () => {
    const token = randomBytes(32).toString('base64url')
    return { token, sha256: sha256(token) }
  },
  sha256,
  isPassword: (password, hash) => {
    const checking = underWay.then(() => Bun.password.verify(password, hash))
    underWay = checking.catch(() => undefined)
    return checking
  },
}

/** The value of ADMIN_PASSWORD_HASH for a password. */
export function passwordHash(password: string): Promise<string> {
  return Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: 65_536, timeCost: 3 })
}

/** 16, 24, 32, 48 and 64 bytes in base64: any other hash is truncated. */
const hashLengths = [22, 32, 43, 64, 86]

export function isPasswordHash(text: string): boolean {
  const [, m = '', t = '', p = '', salt = '', hash = ''] =
    /^\$argon2(?:id|i|d)\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,8})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(
      text,
    ) ?? []
  // RFC 9106 section 3.1.
  return (
    Number(t) >= 1 &&
    Number(p) >= 1 &&
    Number(m) >= 8 * Number(p) &&
    salt.length >= 11 &&
    hashLengths.includes(hash.length)
  )
}
