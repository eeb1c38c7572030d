import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Proofs } from '../../../domain/otp/proof.ts'
import { fileAnswer, loadFile } from '../../pages/static.ts'
import { anyCall, type EndpointOperation } from '../endpoint.ts'

const path = '/.well-known/jwks.json'

const base64url = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' })

const keySet = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        kty: Type.Literal('OKP'),
        crv: Type.Literal('Ed25519'),
        x: { ...base64url, description: 'The public key.' },
        use: Type.Literal('sig'),
        alg: Type.Literal('EdDSA'),
        kid: { ...base64url, description: 'The JWK thumbprint (RFC 7638).' },
      }),
      { minItems: 1 },
    ),
  },
  { title: 'KeySet', description: 'A JWK Set (RFC 7517).' },
)

const example = {
  kty: 'OKP',
  crv: 'Ed25519',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  use: 'sig',
  alg: 'EdDSA',
  kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
}

/** Without a `requestId` in the body, since caches share it. */
export const getKeySet: EndpointOperation = {
  method: 'GET',
  path,
  tag: 'OTP',
  id: 'getKeySet',
  summary: 'The public keys of proofs',
  description:
    'With these keys, other services check the proofs of `/otp/verify`. The first key signs new proofs. The set also has the key of each previous secret key. No credentials. Caches may keep it for 5 minutes.',
  answers: { 200: { schema: keySet, examples: { keys: ['One secret key', { keys: [example] }] } } },
  failures: anyCall,
}

export function keySetRoutes({ proofs }: { readonly proofs: Proofs }) {
  let file: ReturnType<typeof loadFile> | undefined
  return new Elysia({ strictPath: true, normalize: false }).get(path, async ({ request }) => {
    file ??= proofs.keySet().then((keys) => loadFile(JSON.stringify(keys)))
    const answer = fileAnswer(request, 'application/json', await file)
    answer.headers.set('cache-control', 'public, max-age=300')
    return answer
  })
}
