import { createSealing } from '../adapters/crypto/sealing.ts'
import type { SecretKeys } from '../adapters/crypto/secret-file.ts'
import { docsAt } from '../domain/ground/docs.ts'
import { type Finding, found, warn } from '../domain/health/problem.ts'
import type { StoredFacts } from './facts.ts'

/** @param secretKeys undefined if they are unknown, which another finding reports */
export function relayFindings(
  { relays }: Pick<StoredFacts, 'relays'>,
  secretKeys: SecretKeys | undefined,
): readonly Finding[] {
  if (!secretKeys) return []
  const sealing = createSealing(...secretKeys)
  const opened = relays.map(({ name, sealedSecret }) => ({ name, ...sealing.unseal(sealedSecret, name) }))
  const named = (isOld: boolean | undefined) => opened.filter((each) => each.isOld === isOld)
  const names = (of: typeof opened) => of.map(({ name }) => name).join(', ')
  const [lost, previous] = [named(undefined), named(true)]
  return found(
    lost.length > 0 &&
      warn(
        'relays',
        `No secret key decrypts the secret of ${names(lost)}. The calls of the identity system are rejected.`,
        'Add the previous secret key to SECRET_KEY, or remove the relay and add it again.',
      ),
    previous.length > 0 &&
      warn(
        'relays',
        `A previous secret key encrypts the secret of ${names(previous)}.`,
        `Keep that key, or remove each relay and add it again. See ${docsAt('rotate-keys.md')}.`,
      ),
  )
}
