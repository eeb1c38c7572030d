import { type Body, isGiven } from '../ground/body.ts'
import { invalidField } from '../ground/failures.ts'
import type { Secrets } from '../ground/ports.ts'
import type { IsTopLevelDomain } from '../ground/words.ts'
import { type PartFlag, partFlags } from '../request/request-context.ts'
import { type NamedTransaction, readTransaction } from '../texts/transaction.ts'

/** What a code is for (design D55). It verifies with the same alone. */
export interface Binding {
  readonly purpose?: string
  readonly transaction?: NamedTransaction
}

export const purposePattern = '^[a-z][a-z0-9_-]{0,39}$'

/** @throws validation_error */
export function readBinding({ purpose, transaction }: Body, isTopLevelDomain: IsTopLevelDomain): Binding {
  if (isGiven(purpose) && !(typeof purpose === 'string' && new RegExp(purposePattern).test(purpose)))
    throw invalidField('purpose', 'must be 1 to 40 characters of a-z, 0-9, _ and -, beginning with a letter.')
  return {
    ...(typeof purpose === 'string' && { purpose }),
    ...(isGiven(transaction) && { transaction: readTransaction(transaction, isTopLevelDomain) }),
  }
}

export function isBound({ purpose, transaction }: Binding): boolean {
  return purpose !== undefined || transaction !== undefined
}

/** What is hashed of a code. JSON separates the parts unambiguously, and a keyed code has no space. */
export function boundCode(keyedCode: string, binding: Binding): string {
  return isBound(binding) ? `${keyedCode} ${JSON.stringify(partsOf(binding))}` : keyedCode
}

/** In the order of `partFlags`. */
function partsOf({ purpose, transaction }: Binding): readonly (string | undefined)[] {
  return [purpose, transaction?.amount, transaction?.currency, transaction?.payee]
}

/**
 * The stored hash of a code. Short keyed hashes of the parts follow, for `otherParts`. They are salted with the ID of the request: without
 * the secret key, they show neither a value nor which codes have the same one.
 */
export function boundHash(secrets: Secrets, requestId: string, keyedCode: string, binding: Binding): string {
  const hash = secrets.saltedHash(requestId, boundCode(keyedCode, binding))
  if (!isBound(binding)) return hash
  return [hash, ...partsOf(binding).map((part, index) => hashesOf(secrets, requestId, index, part)[0])].join(
    ' ',
  )
}

/** The parts in which a request to verify differs from the send. @param sent undefined: the code is for nothing */
export function otherParts(
  secrets: Secrets,
  binding: Binding,
  sent: { readonly id: string; readonly partHashes: readonly string[] } | undefined,
): readonly PartFlag[] {
  const parts = partsOf(binding)
  return partFlags.filter((_, index) => {
    const part = parts[index]
    const stored = sent?.partHashes[index]
    if (!sent || stored === undefined) return part !== undefined
    return !hashesOf(secrets, sent.id, index, part).includes(stored)
  })
}

/** Under each secret key. */
function hashesOf(secrets: Secrets, requestId: string, index: number, part: string | undefined) {
  const value = JSON.stringify([requestId, index, part])
  return secrets.subjects('code-part', value).map((hash) => hash.slice(0, 6))
}
