import { randomBytes } from 'node:crypto'
import type { ConsoleSecrets } from '../../domain/console.ts'
import { sha256 } from './secrets.ts'

/** The password that is looked at: one at a time, since each takes a good part of a second and 64 MiB. */
let underWay: Promise<unknown> = Promise.resolve()

/** Tokens of the console, and its password by argon2id (RFC 9106), off the event loop and one at a time. */
export const consoleSecrets: ConsoleSecrets = {
  newToken: () => {
    const token = randomBytes(32).toString('base64url')
    return { token, sha256: sha256(token) }
  },
  sha256,
  isPassword: (password, hash) => {
    const looking = underWay.then(() => Bun.password.verify(password, hash))
    underWay = looking.catch(() => undefined)
    return looking
  },
}

/** What ADMIN_PASSWORD_HASH is set to for a password. */
export function passwordHash(password: string): Promise<string> {
  return Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: 65_536, timeCost: 3 })
}

/** Whether a text is such a hash. */
export function isPasswordHash(text: string): boolean {
  return /^\$argon2(id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/.test(text)
}
