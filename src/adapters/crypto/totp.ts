import { createHmac } from 'node:crypto'
import { HOTP, Secret, TOTP } from 'otpauth/bare'

// One-time passwords of authenticator apps (RFC 6238): SHA-1, six digits, 30 seconds. Apps support little else.

const stepMs = 30_000

const hmac = (_: string, key: Uint8Array, message: Uint8Array) =>
  createHmac('sha1', key).update(message).digest()

/** 160 random bits in base32 (RFC 4226 section 4). */
export function newTotpSecret(): string {
  return new Secret({ size: 20 }).base32
}

/** What an app reads from a QR code. The host name separates the accounts of several servers. */
export function totpUri(secret: string, email: string, host: string): string {
  const issuer = `otpost ${host}`
  return new TOTP({ issuer, label: email, secret: Secret.fromBase32(secret), hmac }).toString()
}

/**
 * The time step of the code: the present one, or one before or after it (RFC 6238 section 5.2). Undefined for a wrong
 * code. A code is used once if the step must be later than the last one that was accepted.
 */
export function totpStep(secret: string, code: string, now: number): number | undefined {
  const counter = Math.floor(now / stepMs)
  const token = code.replaceAll(/\s/g, '')
  const delta = HOTP.validate({ token, secret: Secret.fromBase32(secret), counter, window: 1, hmac })
  return delta === null ? undefined : counter + delta
}
