import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server'
import { isoCBOR } from '@simplewebauthn/server/helpers'

interface Credential {
  readonly id: string
  readonly rpId: string
  readonly userHandle: string
  readonly key: KeyObject
}

/** What an authenticator of a test does differently. */
export interface AuthenticatorOptions {
  /** Whether it counts its uses, as security keys do. Phones do not. */
  readonly isCounting?: boolean
  /** Whether the person proves who they are, such as by fingerprint. */
  readonly isVerifying?: boolean
  readonly isBackedUp?: boolean
}

/** A browser and its authenticator in software, with ES256. It answers options as `navigator.credentials` would. */
export function createAuthenticator({
  isCounting = true,
  isVerifying = true,
  isBackedUp = false,
}: AuthenticatorOptions = {}) {
  const credentials: Credential[] = []
  const authenticator = {
    /** The next use counts from here. */
    counter: 0,
    create(options: PublicKeyCredentialCreationOptionsJSON, origin: string): RegistrationResponseJSON {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const idBytes = randomBytes(16)
      const id = idBytes.toString('base64url')
      const rpId = options.rp.id ?? new URL(origin).hostname
      credentials.push({ id, rpId, userHandle: options.user.id, key: privateKey })
      const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
      const cose = new Map<number, number | Uint8Array<ArrayBuffer>>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, bytesOf(x)],
        [-3, bytesOf(y)],
      ])
      const length = Buffer.of(0, idBytes.length)
      const attested = Buffer.concat([Buffer.alloc(16), length, idBytes, isoCBOR.encode(cose)])
      const attestation = new Map<string, unknown>([
        ['fmt', 'none'],
        ['attStmt', new Map()],
        ['authData', new Uint8Array(dataFor(rpId, 0x40, isVerifying, attested))],
      ])
      return {
        id,
        rawId: id,
        type: 'public-key',
        clientExtensionResults: {},
        response: {
          clientDataJSON: clientData('webauthn.create', options.challenge, origin),
          attestationObject: base64url(isoCBOR.encode(attestation as Parameters<typeof isoCBOR.encode>[0])),
          transports: ['internal'],
        },
      }
    },
    /** With the first allowed passkey, else the newest one of the server. */
    get(
      options: PublicKeyCredentialRequestOptionsJSON,
      origin: string,
      { isVerified = isVerifying } = {},
    ): AuthenticationResponseJSON {
      const rpId = options.rpId ?? new URL(origin).hostname
      const allowed = new Set(options.allowCredentials?.map(({ id }) => id))
      const credential = credentials.findLast(
        (each) => each.rpId === rpId && (allowed.size === 0 || allowed.has(each.id)),
      )
      if (!credential) throw new Error(`The authenticator has no passkey for ${rpId}`)
      const { id, userHandle, key } = credential
      const clientDataJSON = clientData('webauthn.get', options.challenge, origin)
      const authenticatorData = dataFor(rpId, 0, isVerified)
      const clientHash = createHash('sha256').update(Buffer.from(clientDataJSON, 'base64url')).digest()
      const signature = sign('sha256', Buffer.concat([authenticatorData, clientHash]), key)
      return {
        id,
        rawId: id,
        type: 'public-key',
        clientExtensionResults: {},
        response: {
          clientDataJSON,
          authenticatorData: base64url(authenticatorData),
          signature: base64url(signature),
          userHandle,
        },
      }
    },
  }
  return authenticator

  /** WebAuthn section 6.1: the hash of the server's name, flags, the counter, and the new credential if there is one. */
  function dataFor(rpId: string, flag: number, isVerified: boolean, attested = Buffer.alloc(0)): Buffer {
    const isPresent = 0x01
    const flags = isPresent | (isVerified ? 0x04 : 0) | (isBackedUp ? 0x18 : 0) | flag
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(isCounting ? ++authenticator.counter : 0)
    return Buffer.concat([createHash('sha256').update(rpId).digest(), Buffer.of(flags), counter, attested])
  }
}

function clientData(type: string, challenge: string, origin: string): string {
  return base64url(Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false })))
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text, 'base64url'))
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}
