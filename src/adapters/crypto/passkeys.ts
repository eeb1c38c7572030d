import { isIP } from 'node:net'
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialDescriptorJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server'
import type { AttestationObject } from '@simplewebauthn/server/helpers'
import type { Passkey } from '../../domain/operator/accounts.ts'
import type { Passkeys } from '../../domain/operator/sessions.ts'

// Passkeys (WebAuthn). The authenticator verifies the person, so a passkey replaces password and second factor.

/** Loads at the first response, since it takes 0.1 s and 24 MB. */
async function load() {
  // First, since the bundle of the binary orders modules differently.
  await import('reflect-metadata')
  const [server, helpers] = await Promise.all([
    import('@simplewebauthn/server'),
    import('@simplewebauthn/server/helpers'),
  ])
  return { ...server, ...helpers }
}

/** The server, as authenticators know it. */
export interface RelyingParty {
  /** A host name. */
  readonly id: string
  readonly origin: string
}

/** Returns the reason instead if browsers have no passkeys for this URL. */
export function relyingParty(publicUrl: string | undefined, port: number): RelyingParty | string {
  const { hostname, protocol, origin } = new URL(publicUrl ?? `http://localhost:${port}`)
  if (isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0) {
    return `Passkeys need a host name, but PUBLIC_URL has the IP address ${hostname}. Give the server a name, and set PUBLIC_URL to it.`
  }
  if (protocol !== 'https:' && !/(^|\.)localhost$/.test(hostname)) {
    return `Passkeys need HTTPS, but PUBLIC_URL is ${origin}. Set up TLS, and set PUBLIC_URL to the https URL.`
  }
  return { id: hostname, origin }
}

/** COSE: EdDSA, ES256, RS256. */
const algorithms = [-8, -7, -257]

/** As long as a person takes to find a security key. */
const timeout = 300_000

type KnownPasskey = Pick<Passkey, 'credentialId' | 'transports'>

type NewPasskey = Pick<Passkey, 'credentialId' | 'publicKey' | 'signCount' | 'transports'>

/** Options for `navigator.credentials.create`. @param challenge random and used once, in base64url */
export function creationOptions(
  rp: RelyingParty,
  account: { readonly id: string; readonly email: string },
  challenge: string,
  existing: readonly KnownPasskey[],
): PublicKeyCredentialCreationOptionsJSON {
  return {
    rp: { id: rp.id, name: 'otpost' },
    user: {
      id: Buffer.from(account.id).toString('base64url'),
      name: account.email,
      displayName: account.email,
    },
    challenge,
    pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
    timeout,
    attestation: 'none',
    authenticatorSelection: {
      residentKey: 'required',
      requireResidentKey: true,
      userVerification: 'required',
    },
    excludeCredentials: existing.map(described),
  }
}

/**
 * Options for `navigator.credentials.get`.
 *
 * @param challenge random and used once, in base64url
 * @param allowed passkeys of the account; empty before sign-in, so that the person chooses among those of the device
 */
export function requestOptions(
  rp: RelyingParty,
  challenge: string,
  allowed: readonly KnownPasskey[] = [],
): PublicKeyCredentialRequestOptionsJSON {
  return {
    rpId: rp.id,
    challenge,
    timeout,
    userVerification: 'required',
    allowCredentials: allowed.map(described),
  }
}

function described({ credentialId, transports }: KnownPasskey): PublicKeyCredentialDescriptorJSON {
  return { type: 'public-key', id: credentialId, transports: transports.split(',').filter(Boolean) }
}

/** What a browser sent, not verified yet. */
export interface PasskeyResponse {
  readonly credentialId: string
  /** In base64url. The caller looks for it among those it gave out. */
  readonly challenge: string
  readonly json: unknown
}

/** Several times what authenticators send. */
const maxResponseLength = 32_768

/** Reads the field `passkey` of a form. Undefined for anything that no browser sends. */
export function readPasskeyResponse(text: string): PasskeyResponse | undefined {
  if (text.length > maxResponseLength) return undefined
  try {
    const json = JSON.parse(text)
    const { challenge } = JSON.parse(Buffer.from(json.response.clientDataJSON, 'base64url').toString())
    const { id: credentialId } = json
    return isBase64url(credentialId) && isBase64url(challenge) ? { credentialId, challenge, json } : undefined
  } catch {
    return undefined
  }
}

/** Undefined if the response is not a new passkey for this challenge. @param challenge one that the caller gave out */
export async function verifyNewPasskey(
  rp: RelyingParty,
  { json }: PasskeyResponse,
  challenge: string,
): Promise<NewPasskey | undefined> {
  const response = json as RegistrationResponseJSON
  const { verifyRegistrationResponse, decodeAttestationObject } = await load()
  try {
    const attestation = decodeAttestationObject(Buffer.from(response.response.attestationObject, 'base64url'))
    if (!isWithoutCertificate(attestation)) return undefined
    const { registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: rp.origin,
      expectedRPID: rp.id,
      supportedAlgorithmIDs: algorithms,
    })
    if (!registrationInfo) return undefined
    const { credential } = registrationInfo
    return {
      credentialId: credential.id,
      publicKey: Buffer.from(credential.publicKey).toString('base64url'),
      signCount: credential.counter,
      transports: knownTransports.filter((each) => credential.transports?.includes(each)).join(','),
    }
  } catch {
    return undefined
  }
}

/**
 * Browsers send no certificates for the attestation `none`. The library would load their revocation lists from other
 * servers.
 */
function isWithoutCertificate(attestation: AttestationObject): boolean {
  const format = attestation.get('fmt')
  return format === 'none' || (format === 'packed' && attestation.get('attStmt').get('x5c') === undefined)
}

const knownTransports = ['ble', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'] as const

/**
 * Undefined if the response is not of this passkey of this account for this challenge. A counter that does not increase
 * is refused, because the passkey may have been copied.
 *
 * @param challenge one that the caller gave out
 */
export async function verifyPasskey(
  rp: RelyingParty,
  { json }: PasskeyResponse,
  challenge: string,
  passkey: Passkey,
): Promise<Pick<Passkey, 'signCount'> | undefined> {
  const response = json as AuthenticationResponseJSON
  const { verifyAuthenticationResponse } = await load()
  try {
    const { userHandle } = response.response
    if (response.id !== passkey.credentialId) return undefined
    if (userHandle && Buffer.from(userHandle, 'base64url').toString() !== passkey.operatorId) return undefined
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: rp.origin,
      expectedRPID: rp.id,
      credential: {
        id: passkey.credentialId,
        publicKey: Buffer.from(passkey.publicKey, 'base64url'),
        counter: passkey.signCount,
      },
    })
    if (!verified) return undefined
    return { signCount: authenticationInfo.newCounter }
  } catch {
    return undefined
  }
}

function isBase64url(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9_-]{1,1400}$/.test(value)
}

/** Challenges are texts here. */
export function createPasskeys(rpOf: () => RelyingParty | string): Passkeys {
  function required(): RelyingParty {
    const rp = rpOf()
    if (typeof rp === 'string') throw new Error(rp)
    return rp
  }
  async function answer<Result>(
    response: string,
    challenge: string,
    check: (rp: RelyingParty, read: PasskeyResponse, challenge: string) => Promise<Result | undefined>,
  ): Promise<Result | undefined> {
    const rp = rpOf()
    const read = readPasskeyResponse(response)
    return read && typeof rp !== 'string' ? check(rp, read, encoded(challenge)) : undefined
  }
  return {
    unavailable: () => {
      const rp = rpOf()
      return typeof rp === 'string' ? rp : undefined
    },
    forNew: (account, challenge) =>
      JSON.stringify(creationOptions(required(), account, encoded(challenge), account.passkeys)),
    forUse: (challenge, allowed) => JSON.stringify(requestOptions(required(), encoded(challenge), allowed)),
    read: (response) => {
      const read = readPasskeyResponse(response)
      if (!read) return undefined
      const { credentialId, challenge } = read
      return { credentialId, challenge: Buffer.from(challenge, 'base64url').toString() }
    },
    check: (response, challenge, passkey) =>
      answer(response, challenge, (rp, read, own) => verifyPasskey(rp, read, own, passkey)),
    checkNew: (response, challenge) => answer(response, challenge, verifyNewPasskey),
  }
}

function encoded(challenge: string): string {
  return Buffer.from(challenge).toString('base64url')
}
