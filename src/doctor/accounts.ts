import { relyingParty } from '../adapters/crypto/passkeys.ts'
import { createSealing } from '../adapters/crypto/sealing.ts'
import type { SecretKeys } from '../adapters/crypto/secret-file.ts'
import type { Config } from '../config/config.ts'
import { type Account, isSetUp } from '../domain/accounts/accounts.ts'
import { docsAt } from '../domain/ground/docs.ts'
import { type Finding, found, ok, warn } from '../domain/health/problem.ts'
import type { StoredFacts } from './facts.ts'

/** @param secretKeys undefined if they are unknown, which another finding reports */
export function accountFindings(
  { accounts, invited }: Pick<StoredFacts, 'accounts' | 'invited'>,
  secretKeys: SecretKeys | undefined,
  { publicUrl, port }: Pick<Config, 'publicUrl' | 'port'>,
): readonly Finding[] {
  if (accounts.length === 0) return []
  const sealing = secretKeys && createSealing(...secretKeys)
  const keyOf = ({ id, totpSecret }: Account) => {
    if (!sealing || totpSecret === null) return 'present'
    const opened = sealing.unseal(totpSecret, id)
    return opened ? (opened.isOld ? 'previous' : 'present') : 'lost'
  }
  const named = (which: (account: Account) => boolean) => accounts.filter(which).map(({ email }) => email)
  const expired = named((account) => !isSetUp(account) && !invited.has(account.id))
  const lost = named((account) => keyOf(account) === 'lost')
  const previous = named((account) => keyOf(account) === 'previous')
  const rp = relyingParty(publicUrl, port)
  return found(
    expired.length > 0 &&
      warn(
        'accounts',
        `Not set up, and without a valid link: ${expired.join(', ')}.`,
        'Create a new link with `otpost admin operator reset EMAIL`, or run `otpost admin operator remove EMAIL`.',
      ),
    lost.length > 0 &&
      warn(
        'accounts',
        `No secret key decrypts the authenticator app of ${lost.join(', ')}. Its codes are rejected.`,
        'Add the previous secret key to SECRET_KEY, or run `otpost admin operator reset EMAIL`. Passkeys and recovery codes still work.',
      ),
    previous.length > 0 &&
      warn(
        'accounts',
        `A previous secret key encrypts the authenticator app of ${previous.join(', ')}.`,
        `Keep that key until each of them has signed in with a code. See ${docsAt('rotate-keys.md')}.`,
      ),
    typeof rp === 'string' && ok('passkeys', rp),
  )
}
