import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { createProofs } from '../../src/adapters/crypto/proofs.ts'

const [one, other] = ['the-old-secret-of-32-bytes-or-more', 'the-new-secret-of-32-bytes-or-more']

const claims = fc.record(
  {
    iss: fc.constantFrom('otpost', 'https://otp.example.com/base'),
    aud: fc.string({ minLength: 1 }),
    iat: fc.constant(1_700_000_000),
    exp: fc.constant(4_000_000_000),
    jti: fc.uuid(),
    brandId: fc.string({ unit: 'grapheme' }),
    channel: fc.constantFrom('SMS', 'EMAIL'),
    to: fc.oneof(fc.emailAddress(), fc.string({ unit: 'grapheme' })),
    review: fc.constant(true),
  },
  { requiredKeys: ['iss', 'aud', 'iat', 'exp', 'jti', 'brandId', 'channel', 'to'] },
)

async function read(
  proof: string,
  { iss: issuer, aud: audience }: { iss: string; aud: string },
  keys = [one],
) {
  const [first = '', ...more] = keys
  const { keys: shown } = await createProofs(first, ...more).keySet()
  const keySet = createLocalJWKSet({ keys: shown as { kty: string }[] })
  return (await jwtVerify(proof, keySet, { algorithms: ['EdDSA'], issuer, audience })).payload
}

test('any claims are read as they were signed, each time with the same bytes', async () => {
  await fc.assert(
    fc.asyncProperty(claims, async (given) => {
      const proofs = createProofs(one, other)
      const proof = await proofs.sign(given, await proofs.keyId())
      expect({ ...(await read(proof, given)) }).toEqual({ ...given })
      expect(await createProofs(other, one).sign(given, await proofs.keyId())).toBe(proof)
    }),
  )
})

test('no other character, no other claim and no other secret key has a valid signature', async () => {
  const place = fc.nat()
  const character = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.')
  await fc.assert(
    fc.asyncProperty(claims, claims, place, character, async (given, second, at, changed) => {
      const proofs = createProofs(one)
      const [proof, another] = await Promise.all(
        [given, second].map(async (each) => proofs.sign(each, await proofs.keyId())),
      )
      const [head = '', payload, signature = ''] = proof?.split('.') ?? []
      const theirs = another?.split('.')[1]
      const mixed = `${head}.${theirs}.${signature}`
      if (theirs !== payload) await expect(read(mixed, second)).rejects.toThrow()
      // The last character of a signature has four bits that no decoder reads.
      const index = at % ((proof?.length ?? 0) - 1)
      const altered = `${proof?.slice(0, index)}${changed}${proof?.slice(index + 1)}`
      if (altered !== proof) await expect(read(altered, given)).rejects.toThrow()
      await expect(read(proof ?? '', given, [other])).rejects.toThrow()
    }),
  )
})
