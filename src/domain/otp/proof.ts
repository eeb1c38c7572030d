/** Signs proofs (design D55): for services that trust the keys of this server, instead of the answer to a verify. */
export interface Proofs {
  /** The key ID of the present secret key. Loads all that `sign` needs. */
  keyId(): Promise<string>
  /** @param keyId of the proof to repeat, which a previous secret key may have signed */
  sign(claims: object, keyId: string): Promise<string>
  /** The public keys of all secret keys, as a JWK Set (RFC 7517). */
  keySet(): Promise<{ readonly keys: readonly object[] }>
}

/** What a kept answer has of its proof (design D43). The repeated request has the rest. */
export interface ProofStamp {
  /** In seconds. */
  readonly iat: number
  readonly keyId: string
  /** A repetition has it even if PUBLIC_URL has changed. */
  readonly iss: string
  /** The fixed code of a review number: no provider has sent it. */
  readonly review?: true
}

export interface ProofPorts {
  readonly proofs: Proofs
  /** PUBLIC_URL, else `otpost`. */
  readonly proofIssuer: () => string
}
