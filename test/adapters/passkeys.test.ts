import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { isoCBOR } from '@simplewebauthn/server/helpers'
import fc from 'fast-check'
import { createPasskeys, relyingParties, relyingParty } from '../../src/adapters/crypto/passkeys.ts'
import { notSetUp } from '../../src/domain/accounts/account-changes.ts'
import type { Account, Passkey } from '../../src/domain/accounts/accounts.ts'
import { type AuthenticatorOptions, createAuthenticator } from '../support/authenticator.ts'

const rp = { id: 'otp.example.com', origin: 'https://otp.example.com' }
const elsewhere = { id: 'example.org', origin: 'https://example.org' }
const tunnel = { id: 'localhost', origin: 'http://localhost:3000' }
const passkeys = createPasskeys(() => relyingParties(rp.origin, 3000))
const newChallenge = () => randomBytes(32).toString('base64url')

const stored = { operatorId: '0199d2a4-7c11-7cc0-a1f5-1f1f6f0a7e55', name: 'Laptop', createdAt: 0, usedAt: 0 }
const known: Passkey = { ...stored, credentialId: 'AAAA', transports: 'usb', publicKey: '', signCount: 0 }
const ana: Account = {
  ...notSetUp,
  id: stored.operatorId,
  email: 'ana@example.com',
  role: 'owner',
  createdAt: 0,
}

const forNew = (challenge: string, { of = passkeys, account = ana } = {}) =>
  JSON.parse(of.forNew(account, challenge))
const forUse = (challenge: string, allowed?: readonly Passkey[]) =>
  JSON.parse(passkeys.forUse(challenge, allowed))
const checkNew = (made: unknown, challenge: string) => passkeys.checkNew(JSON.stringify(made), challenge)

async function enrolled(options: AuthenticatorOptions = {}) {
  const authenticator = createAuthenticator(options)
  const challenge = newChallenge()
  const made = authenticator.create(forNew(challenge), rp.origin)
  const passkey = await checkNew(made, challenge)
  return { authenticator, challenge, made, passkey }
}

async function owned(options: AuthenticatorOptions = {}) {
  const { authenticator, passkey } = await enrolled(options)
  if (!passkey) throw new Error('The passkey was refused')
  return { authenticator, passkey: { ...passkey, ...stored } }
}

describe('the relying party', () => {
  test.each([
    ['https://otp.example.com', 3000, rp],
    ['https://otp.example.com:8443/base', 3000, { id: rp.id, origin: 'https://otp.example.com:8443' }],
    [undefined, 3000, { id: 'localhost', origin: 'http://localhost:3000' }],
    ['http://otp.localhost:3000', 3000, { id: 'otp.localhost', origin: 'http://otp.localhost:3000' }],
  ])('of %p', (url, port, wanted) => {
    expect(relyingParty(url, port)).toEqual(wanted)
  })

  test.each([
    ['https://192.0.2.7', 'the IP address 192.0.2.7'],
    ['https://[2001:db8::7]:8443', 'the IP address [2001:db8::7]'],
    ['http://127.0.0.1:3000', 'the IP address 127.0.0.1'],
    ['http://otp.example.com', 'Passkeys need HTTPS'],
    ['http://notlocalhost:3000', 'Passkeys need HTTPS'],
  ])('does not exist for %p', (url, reason) => {
    expect(relyingParty(url, 3000)).toContain(reason)
  })
})

describe('the options', () => {
  test('for a new passkey ask for one on the device that verifies the person, and for no attestation', async () => {
    const challenge = newChallenge()
    const account = { ...ana, passkeys: [known] }
    expect(forNew(challenge, { account })).toMatchObject({
      challenge: Buffer.from(challenge).toString('base64url'),
      rp: { name: 'otpost' },
      user: { id: Buffer.from(ana.id).toString('base64url'), name: ana.email },
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      excludeCredentials: [{ id: 'AAAA', type: 'public-key', transports: ['usb'] }],
    })
  })

  test('for a sign-in leave the choice of passkey to the person; a known account has its own', async () => {
    const challenge = newChallenge()
    expect(forUse(challenge)).toMatchObject({
      challenge: Buffer.from(challenge).toString('base64url'),
      userVerification: 'required',
      allowCredentials: [],
    })
    const own = forUse(challenge, [known])
    expect(own.allowCredentials).toEqual([{ id: 'AAAA', type: 'public-key', transports: ['usb'] }])
  })
})

describe('a passkey', () => {
  test('is added and then signs in, again and again', async () => {
    const { authenticator, passkey } = await owned()
    expect(passkey).toMatchObject({ signCount: 1, transports: 'internal' })
    let counter = passkey.signCount
    for (const _ of [1, 2]) {
      const challenge = newChallenge()
      const response = JSON.stringify(authenticator.get(forUse(challenge), rp.origin))
      expect(passkeys.read(response)).toEqual({ credentialId: passkey.credentialId, challenge })
      const verified = await passkeys.check(response, challenge, { ...passkey, signCount: counter })
      expect(verified).toEqual({ signCount: counter + 1 })
      counter++
    }
  })

  test('works at localhost with the port of the server, as through an SSH tunnel, and at no other port', async () => {
    const authenticator = createAuthenticator()
    const challenge = newChallenge()
    const made = authenticator.create(forNew(challenge), tunnel.origin)
    const passkey = await checkNew(made, challenge)
    if (!passkey) throw new Error('The passkey was refused')
    const checked = (origin: string) =>
      passkeys.check(JSON.stringify(authenticator.get(forUse(challenge), origin)), challenge, {
        ...passkey,
        ...stored,
      })
    expect(await checked(tunnel.origin)).toEqual({ signCount: 2 })
    expect(await checked('http://localhost:3001')).toBeUndefined()
    const other = createAuthenticator().create(forNew(challenge), 'http://localhost:3001')
    expect(await checkNew(other, challenge)).toBeUndefined()
  })

  test('of a phone does not count and is backed up', async () => {
    const { authenticator, passkey } = await owned({ isCounting: false })
    expect(passkey).toMatchObject({ signCount: 0 })
    const challenge = newChallenge()
    const used = authenticator.get(forUse(challenge), rp.origin)
    expect(await verify({ used, challenge, passkey })).toEqual({ signCount: 0 })
  })

  test('is not added without verification of the person, for another challenge, or from another site', async () => {
    expect((await enrolled({ isVerifying: false })).passkey).toBeUndefined()
    const { made, challenge, authenticator } = await enrolled()
    expect(await checkNew(made, newChallenge())).toBeUndefined()
    const phished = authenticator.create(forNew(challenge), elsewhere.origin)
    expect(await checkNew(phished, challenge)).toBeUndefined()
    const options = { ...forNew(challenge), rp: { id: elsewhere.id, name: 'otpost' } }
    expect(await checkNew(authenticator.create(options, rp.origin), challenge)).toBeUndefined()
  })

  test('is not added with a certificate of its maker', async () => {
    const { made, challenge } = await enrolled()
    const { attestationObject } = made.response
    const withFormat = (format: string, statement: readonly (readonly [string, unknown])[]) => {
      const parts = isoCBOR.decodeFirst<Map<string, unknown>>(
        new Uint8Array(Buffer.from(attestationObject, 'base64url')),
      )
      parts.set('fmt', format).set('attStmt', new Map(statement))
      const encoded = isoCBOR.encode(parts as Parameters<typeof isoCBOR.encode>[0])
      const response = { ...made.response, attestationObject: Buffer.from(encoded).toString('base64url') }
      return checkNew({ ...made, response }, challenge)
    }
    expect(await withFormat('none', [])).toBeDefined()
    const certificates = ['x5c', [new Uint8Array(3)]] as const
    for (const format of ['packed', 'apple', 'fido-u2f', 'tpm', 'android-key', 'android-safetynet'])
      expect(await withFormat(format, [certificates])).toBeUndefined()
  })

  test('keeps only transports that exist', async () => {
    const { made, challenge } = await enrolled()
    const transports = ['usb', '"><script>', 'x'.repeat(5000), 'nfc']
    const changed = { ...made, response: { ...made.response, transports } }
    expect((await checkNew(changed, challenge))?.transports).toBe('nfc,usb')
  })

  interface Attempt {
    readonly used: ReturnType<ReturnType<typeof createAuthenticator>['get']>
    readonly challenge: string
    readonly passkey: Passkey
  }
  const verify = ({ used, challenge, passkey }: Attempt) =>
    passkeys.check(JSON.stringify(used), challenge, passkey)

  const refused: readonly (readonly [string, (attempt: Attempt) => Attempt | Promise<Attempt>])[] = [
    ['another challenge', (each) => ({ ...each, challenge: newChallenge() })],
    ['another account', (each) => ({ ...each, passkey: { ...each.passkey, operatorId: 'bob' } })],
    ['a counter that stood still', (each) => ({ ...each, passkey: { ...each.passkey, signCount: 2 } })],
    ['a counter that went back', (each) => ({ ...each, passkey: { ...each.passkey, signCount: 9 } })],
    [
      'the public key of another passkey',
      async (each) => {
        const { publicKey } = (await owned()).passkey
        return { ...each, passkey: { ...each.passkey, publicKey } }
      },
    ],
    [
      'the ID of another passkey',
      (each) => ({ ...each, passkey: { ...each.passkey, credentialId: 'AAAA' } }),
    ],
    [
      'a changed signature',
      ({ used, ...each }) => {
        const signature = Buffer.from(used.response.signature, 'base64url')
        signature[12] = (signature[12] ?? 0) ^ 1
        const response = { ...used.response, signature: signature.toString('base64url') }
        return { ...each, used: { ...used, response } }
      },
    ],
  ]
  test('signs in unless something is changed', async () => {
    const { authenticator, passkey } = await owned()
    const challenge = newChallenge()
    const used = authenticator.get(forUse(challenge), rp.origin)
    expect(await verify({ used, challenge, passkey })).toEqual({ signCount: 2 })
  })
  test.each(refused)('does not sign in with %s', async (_, change) => {
    const { authenticator, passkey } = await owned()
    const challenge = newChallenge()
    const used = authenticator.get(forUse(challenge), rp.origin)
    expect(await verify(await change({ used, challenge, passkey }))).toBeUndefined()
  })

  test.each([
    ['from another site', elsewhere.origin, {}],
    ['from another port', `${rp.origin}:8443`, {}],
    ['without verification of the person', rp.origin, { isVerified: false }],
  ])('does not sign in %s', async (_, origin, options) => {
    const { authenticator, passkey } = await owned()
    const challenge = newChallenge()
    const request = { ...forUse(challenge), rpId: rp.id }
    const used = authenticator.get(request, origin, options)
    expect(await verify({ used, challenge, passkey })).toBeUndefined()
  })
})

describe('a malformed response', () => {
  const clientData = (text: string) =>
    `{"id":"AAAA","response":{"clientDataJSON":"${Buffer.from(text).toString('base64url')}"}}`

  test('is not read', () => {
    const texts = ['', 'null', '[]', '{}', '{"id":7}', '['.repeat(30_000), `"${'x'.repeat(10_000_000)}"`]
    const parts = [clientData(''), clientData('null'), clientData('{}'), clientData('{"challenge":[]}')]
    expect([...texts, ...parts].map(passkeys.read)).toEqual(Array(11).fill(undefined))
    expect(passkeys.read(clientData('{"challenge":"YWJj"}'))?.challenge).toBe('abc')
  })

  test('is undefined for each value of each field', async () => {
    const { authenticator, passkey } = await owned()
    const challenge = newChallenge()
    const made = authenticator.create(forNew(challenge), rp.origin)
    const used = authenticator.get(forUse(challenge), rp.origin)
    const values = fc.oneof(
      fc.jsonValue(),
      fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
      // CBOR: arrays in arrays, and a length that is not there.
      fc.constantFrom('gYGB'.repeat(5000), '-7__________', 'm__________w'),
    )
    const fields = [
      'id',
      'rawId',
      'type',
      'clientDataJSON',
      'attestationObject',
      'authenticatorData',
      'signature',
    ]
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...fields), values, async (field, value) => {
        for (const original of [made, used]) {
          const place = field in original ? original : original.response
          if (!(field in place)) continue
          const changed = JSON.stringify(original, (key, old) => (key === field ? value : old))
          const found =
            original === made
              ? await passkeys.checkNew(changed, challenge)
              : await passkeys.check(changed, challenge, passkey)
          expect(found).toBeUndefined()
        }
      }),
    )
  })
})
