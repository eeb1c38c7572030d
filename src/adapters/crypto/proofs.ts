import { createPrivateKey } from 'node:crypto'
import type { Proofs } from '../../domain/otp/proof.ts'
import { mapped, subkey } from './secrets.ts'

/** PKCS #8 of an Ed25519 private key (RFC 8410), without its 32 bytes. */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Ed25519, with a key pair derived from each secret key. The first secret key is the present one. */
export function createProofs(...secretKeys: readonly [string, ...string[]]): Proofs {
  const load = async () => {
    const { SignJWT, calculateJwkThumbprint } = await import('jose')
    const keys = await Promise.all(
      mapped(secretKeys, async (secretKey) => {
        const der = Buffer.concat([pkcs8, subkey(secretKey, 'otpost proof v1')])
        const { x = '', d = '' } = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({
          format: 'jwk',
        })
        const shown = { kty: 'OKP', crv: 'Ed25519', x }
        return { kid: await calculateJwkThumbprint(shown), shown, signing: { ...shown, d } }
      }),
    )
    return { SignJWT, keys }
  }
  // At the first proof, since most servers sign none.
  let loading: ReturnType<typeof load> | undefined
  const loaded = () => (loading ??= load())
  return {
    keyId: async () => (await loaded()).keys[0].kid,
    sign: async (claims, keyId) => {
      const { SignJWT, keys } = await loaded()
      const { kid, signing } = keys.find((key) => key.kid === keyId) ?? keys[0]
      return new SignJWT({ ...claims }).setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', kid }).sign(signing)
    },
    keySet: async () => {
      const { keys } = await loaded()
      return { keys: keys.map(({ shown, kid }) => ({ ...shown, use: 'sig', alg: 'EdDSA', kid })) }
    },
  }
}
