import { Type } from '@sinclair/typebox'
import { anyCall, get } from '../endpoint.ts'

const base64url = { pattern: '^[A-Za-z0-9_-]{43}$' }
const key = Type.Object({
  kty: Type.Literal('OKP'),
  crv: Type.Literal('Ed25519'),
  x: Type.String({ ...base64url, description: 'The public key.' }),
  use: Type.Literal('sig'),
  alg: Type.Literal('EdDSA'),
  kid: Type.String({ ...base64url, description: 'The JWK thumbprint (RFC 7638).' }),
})
const keySet = Type.Object(
  { keys: Type.Array(key, { minItems: 1 }) },
  { title: 'KeySet', description: 'A JWK Set (RFC 7517).' },
)

const x = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'
const kid = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'
const keys = [{ kty: 'OKP', crv: 'Ed25519', x, use: 'sig', alg: 'EdDSA', kid }]

export const getKeySet = get({
  path: '/.well-known/jwks.json',
  tag: 'OTP',
  id: 'getKeySet',
  summary: 'The public keys of proofs',
  description:
    'With these keys, other services check the proofs of `/otp/verify`. The first key signs new proofs. The set also has the key of each previous secret key. No credentials. Caches may keep it for 5 minutes.',
  answers: { 200: { schema: keySet, examples: { keys: ['One secret key', { keys }] } } },
  failures: anyCall,
  cachedSeconds: 300,
  answer: ({ ports }) => ports.proofs.keySet(),
})
