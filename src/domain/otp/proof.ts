import type { Channel } from '../ground/contact.ts'
import { minuteMs } from '../ground/time.ts'

/** Signs proofs (design D55): for services that trust the keys of this server, instead of the answer to a verify. */
export interface Proofs {
  /** The key ID of the present secret key. Loads all that `sign` needs. */
  keyId(): Promise<string>
  /** @param keyId of the proof to repeat, which a previous secret key may have signed */
  sign(claims: ProofClaims, keyId: string): Promise<string>
  /** The public keys of all secret keys, as a JWK Set (RFC 7517). */
  keySet(): Promise<{ readonly keys: readonly object[] }>
}

/** In seconds where they are times (RFC 7519). */
export interface ProofClaims {
  readonly iss: string
  /** The appId. */
  readonly aud: string
  readonly iat: number
  readonly exp: number
  /** The ID of the request that verified the code. */
  readonly jti: string
  readonly brandId: string
  readonly channel: Channel
  readonly to: string
  /** The fixed code of a review number: no provider has sent it. */
  readonly review?: true
}

/** What a kept answer has of its proof (design D43). The repeated request has the rest. */
export interface ProofStamp {
  readonly iat: number
  readonly keyId: string
  readonly review?: true
}

/** Before the guess, so that a key that cannot be loaded consumes no code. */
export async function stampOf(proofs: Proofs, now: number): Promise<ProofStamp> {
  return { iat: Math.floor(now / 1000), keyId: await proofs.keyId() }
}

const lifetimeSeconds = (10 * minuteMs) / 1000

/** Call it only after the step that consumed the code is durable. */
export function signedProof(
  { proofs, proofIssuer }: { readonly proofs: Proofs; readonly proofIssuer: () => string },
  { keyId, ...stamp }: ProofStamp,
  about: Pick<ProofClaims, 'aud' | 'jti' | 'brandId' | 'channel' | 'to'>,
): Promise<string> {
  return proofs.sign({ iss: proofIssuer(), ...about, ...stamp, exp: stamp.iat + lifetimeSeconds }, keyId)
}
