import { isIP } from 'node:net'
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialDescriptorJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server'
import type { AttestationObject } from '@simplewebauthn/server/helpers'
import type { Passkey } from '../../domain/accounts/accounts.ts'
import type { Passkeys } from '../../domain/accounts/sessions.ts'

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
interface RelyingParty {
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

/** Operators reach the console at its public URL, or at localhost through an SSH tunnel to the server's port. */
export function relyingParties(publicUrl: string | undefined, port: number): readonly RelyingParty[] {
  return [relyingParty(publicUrl, port), relyingParty(undefined, port)].filter((rp) => typeof rp !== 'string')
}

/** COSE: EdDSA, ES256, RS256. */
const algorithms = [-8, -7, -257]

/** As long as a person takes to find a security key. */
const timeout = 300_000

/** Several times what authenticators send. */
const maxResponseLength = 32_768

const forNew: Passkeys['forNew'] = ({ id, email, passkeys }, challenge) => {
  const options: PublicKeyCredentialCreationOptionsJSON = {
    rp: { name: 'otpost' },
    user: { id: encoded(id), name: email, displayName: email },
    challenge: encoded(challenge),
    pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
    timeout,
    attestation: 'none',
    authenticatorSelection: {
      residentKey: 'required',
      requireResidentKey: true,
      userVerification: 'required',
    },
    excludeCredentials: passkeys.map(described),
  }
  return JSON.stringify(options)
}

const forUse: Passkeys['forUse'] = (challenge, allowed = []) => {
  const options: PublicKeyCredentialRequestOptionsJSON = {
    challenge: encoded(challenge),
    timeout,
    userVerification: 'required',
    // Without any, the person chooses among those of the device.
    allowCredentials: allowed.map(described),
  }
  return JSON.stringify(options)
}

const read: Passkeys['read'] = (response) => {
  if (response.length > maxResponseLength) return undefined
  try {
    const { id: credentialId, response: signed } = JSON.parse(response)
    const { challenge } = JSON.parse(decoded(signed.clientDataJSON))
    if (!isBase64url(credentialId) || !isBase64url(challenge)) return undefined
    return { credentialId, challenge: decoded(challenge) }
  } catch {
    return undefined
  }
}

/** @param partiesOf where the console is open; the options leave out the ID, so browsers use the host name of the page */
export function createPasskeys(partiesOf: () => readonly RelyingParty[]): Passkeys {
  /** The party whose page signed the response. @throws if there is none */
  function partyOf({ response }: RegistrationResponseJSON | AuthenticationResponseJSON): RelyingParty {
    const { origin } = JSON.parse(decoded(response.clientDataJSON))
    const party = partiesOf().find((each) => each.origin === origin)
    if (!party) throw new Error('The page is not of this server.')
    return party
  }
  return {
    forNew,
    forUse,
    read,
    checkNew: async (text, challenge) => {
      const { verifyRegistrationResponse, decodeAttestationObject } = await load()
      try {
        const response: RegistrationResponseJSON = JSON.parse(text)
        const { id, origin } = partyOf(response)
        const { attestationObject } = response.response
        const attestation = decodeAttestationObject(Buffer.from(attestationObject, 'base64url'))
        if (!isWithoutCertificate(attestation)) return undefined
        const { registrationInfo } = await verifyRegistrationResponse({
          response,
          expectedChallenge: encoded(challenge),
          expectedOrigin: origin,
          expectedRPID: id,
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
    },
    // The library refuses a counter that does not increase, because the passkey may have been copied.
    check: async (text, challenge, { credentialId, operatorId, publicKey, signCount }) => {
      const { verifyAuthenticationResponse } = await load()
      try {
        const response: AuthenticationResponseJSON = JSON.parse(text)
        const { id, origin } = partyOf(response)
        const { userHandle } = response.response
        if (response.id !== credentialId) return undefined
        if (userHandle && decoded(userHandle) !== operatorId) return undefined
        const { verified, authenticationInfo } = await verifyAuthenticationResponse({
          response,
          expectedChallenge: encoded(challenge),
          expectedOrigin: origin,
          expectedRPID: id,
          credential: {
            id: credentialId,
            publicKey: Buffer.from(publicKey, 'base64url'),
            counter: signCount,
          },
        })
        return verified ? { signCount: authenticationInfo.newCounter } : undefined
      } catch {
        return undefined
      }
    },
  }
}

function described({
  credentialId,
  transports,
}: Pick<Passkey, 'credentialId' | 'transports'>): PublicKeyCredentialDescriptorJSON {
  return { type: 'public-key', id: credentialId, transports: transports.split(',').filter(Boolean) }
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

function isBase64url(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9_-]{1,1400}$/.test(value)
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64url')
}

function decoded(base64url: string): string {
  return Buffer.from(base64url, 'base64url').toString()
}
