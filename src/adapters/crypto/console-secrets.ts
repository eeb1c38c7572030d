import { randomBytes, randomUUID } from 'node:crypto'
import type { ConsoleSecrets } from '../../domain/accounts/sessions.ts'
import { Failure, failureMessages } from '../../domain/ground/failures.ts'
import { createSealing } from './sealing.ts'
import { type Hmac, hmacWith, isSame, sha256, subkey } from './secrets.ts'
import { newTotpSecret, totpStep, totpUri } from './totp.ts'

/** Checks of passwords, one at a time, since each takes a large part of a second and 64 MiB. */
function createQueue() {
  let underWay: Promise<unknown> = Promise.resolve()
  let waiting = 0
  return async (check: () => Promise<boolean>): Promise<boolean> => {
    if (waiting >= maxWaiting)
      throw new Failure('rate_limited', failureMessages.rate_limited, { retryAfterSeconds: 10 })
    waiting++
    const checking = underWay.then(check).finally(() => waiting--)
    underWay = checking.catch(() => undefined)
    return checking
  }
}

const maxWaiting = 16

/** Strangers cannot fill the queue of browsers that have signed in before. */
const queues = { known: createQueue(), unknown: createQueue() }

/** The first secret key is the present one. */
export function createConsoleSecrets(...secretKeys: readonly [string, ...string[]]): ConsoleSecrets {
  const { seal, unseal } = createSealing(...secretKeys)
  const [hmac, ...previous] = secretKeys.map((key) => hmacWith(subkey(key, 'otpost console v1'))) as [
    Hmac,
    ...Hmac[],
  ]
  const signed = (by: Hmac, purpose: string, text: string) => `${text}.${by(JSON.stringify([purpose, text]))}`
  return {
    newId: () => randomUUID(),
    newToken: () => {
      const token = randomBytes(32).toString('base64url')
      return { token, sha256: sha256(token) }
    },
    sha256,
    newRecoveryCode: () => {
      const letters = Array.from(randomBytes(24), (byte) => recoveryAlphabet[byte % 32]).join('')
      return letters.match(/.{4}/g)?.join('-') ?? letters
    },
    sign: (purpose, text) => signed(hmac, purpose, text),
    signedText: (purpose, given) => {
      const text = given.slice(0, given.lastIndexOf('.'))
      const isSigned = [hmac, ...previous].some((by) => isSame(given, signed(by, purpose, text)))
      return isSigned ? text : undefined
    },
    isPassword: async (password, hash, browser, standIn) => {
      return queues[browser](async () => {
        const isRight = await Bun.password.verify(password.normalize('NFC'), hash ?? standIn ?? noPassword)
        return isRight && hash !== undefined
      })
    },
    passwordHash,
    passwordProblem: async (password, context) => {
      // Loads 14 MB of word lists.
      const { passwordProblem } = await import('./new-password.ts')
      return passwordProblem(password, context)
    },
    newTotpSecret: (accountId) => seal(newTotpSecret(), accountId),
    totpUri: ({ id, email }, sealed, host) => {
      const secret = unseal(sealed, id)
      return secret && totpUri(secret.text, email, host)
    },
    totpStep: ({ id, totpSecret }, code, now) => {
      const secret = totpSecret === null ? undefined : unseal(totpSecret, id)
      const step = secret && totpStep(secret.text, code, now)
      if (!secret || step === undefined) return undefined
      return { totpStep: step, totpSecret: secret.isOld ? seal(secret.text, id) : (totpSecret ?? '') }
    },
  }
}

/** Without 0, 1, I and O, which look alike. */
const recoveryAlphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'

/** Of random bytes. */
const noPassword =
  '$argon2id$v=19$m=65536,t=3,p=1$WHgQyEj9BwFY7HOJhWUkkg0k3FzpdPbwDK3Fix1vYDs$JJ3UidTzyuLE7rHV/gh1gSqbdlzd0sdPoFPa+7PfB/8'

/** Of a password in any Unicode form. */
function passwordHash(password: string): Promise<string> {
  return Bun.password.hash(password.normalize('NFC'), {
    algorithm: 'argon2id',
    memoryCost: 65_536,
    timeCost: 3,
  })
}
