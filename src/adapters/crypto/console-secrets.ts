import { randomBytes } from 'node:crypto'
import { Failure, failureMessages } from '../../domain/failures.ts'
import type { ConsoleSecrets } from '../../domain/operator/sessions.ts'
import { sha256 } from './secrets.ts'

/** One at a time, since each takes a large part of a second and 64 MiB. */
let underWay: Promise<unknown> = Promise.resolve()

let waiting = 0
const maxWaiting = 16

export const consoleSecrets: ConsoleSecrets = {
  newToken: () => {
    const token = randomBytes(32).toString('base64url')
    return { token, sha256: sha256(token) }
  },
  sha256,
  isPassword: async (password, hash) => {
    if (waiting >= maxWaiting)
      throw new Failure('rate_limited', failureMessages.rate_limited, { retryAfterSeconds: 10 })
    waiting++
    const checking = underWay.then(() => Bun.password.verify(password.normalize('NFC'), hash))
    underWay = checking.catch(() => undefined)
    return checking.finally(() => waiting--)
  },
}

/** The value of ADMIN_PASSWORD_HASH for a password in any Unicode form. */
export function passwordHash(password: string): Promise<string> {
  return Bun.password.hash(password.normalize('NFC'), {
    algorithm: 'argon2id',
    memoryCost: 65_536,
    timeCost: 3,
  })
}

/** 16, 24, 32, 48 and 64 bytes in base64: any other hash is truncated. */
const hashLengths = [22, 32, 43, 64, 86]

export function isPasswordHash(text: string): boolean {
  const { memoryKib, passes, lanes, salt, hash } = parametersOf(text)
  // RFC 9106 section 3.1.
  return (
    passes >= 1 &&
    lanes >= 1 &&
    memoryKib >= 8 * lanes &&
    salt.length >= 11 &&
    hashLengths.includes(hash.length)
  )
}

/** Whether the hash is below OWASP's minimum for argon2id, such as 19 MiB and 2 passes. */
export function isWeakPasswordHash(text: string): boolean {
  const { kind, memoryKib, passes } = parametersOf(text)
  return kind !== 'id' || memoryKib < 7168 || memoryKib * passes < 35_840
}

function parametersOf(text: string) {
  const [, kind = '', m = '', t = '', p = '', salt = '', hash = ''] =
    /^\$argon2(id|i|d)\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,8})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(
      text,
    ) ?? []
  return { kind, memoryKib: Number(m), passes: Number(t), lanes: Number(p), salt, hash }
}
