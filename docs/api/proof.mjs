import { createInterface } from 'node:readline'
import { createRemoteJWKSet, errors, jwtVerify } from 'jose'

const { OTPOST_URL, OTPOST_ISSUER, OTPOST_APP_ID } = process.env

// Keeps the keys for some minutes, and loads them again for an unknown one.
const keys = createRemoteJWKSet(new URL(`${OTPOST_URL}/.well-known/jwks.json`))

/** Returns the claims of a valid proof. Undefined: refuse it. */
async function claimsOf(proof) {
  try {
    const { payload } = await jwtVerify(proof, keys, {
      algorithms: ['EdDSA'],
      issuer: OTPOST_ISSUER,
      audience: OTPOST_APP_ID,
      requiredClaims: ['exp', 'jti', 'to'],
      clockTolerance: 30,
    })
    // The code of a review number was sent to nobody.
    return payload.review ? undefined : payload
  } catch (error) {
    // Another error, such as a server that cannot be reached, says nothing about the proof.
    if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout)) return undefined
    throw error
  }
}

for await (const proof of createInterface({ input: process.stdin })) {
  const claims = await claimsOf(proof)
  console.log(claims ? `proves ${claims.to}` : 'refused')
}
