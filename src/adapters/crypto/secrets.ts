import { createHash, createHmac, hkdfSync, randomBytes, randomInt, randomUUID } from 'node:crypto'
import type { Secrets } from '../../domain/ports.ts'

/** Keyed hashing under the server's secret, with a key of its own for each purpose (HKDF, RFC 5869). */
export function createSecrets(secretKey: string): Secrets {
  const codeKey = subkey(secretKey, 'otpost code v1')
  const subjectKey = subkey(secretKey, 'otpost subject v1')
  return {
    newId: () => randomUUID(),
    newCode: () => randomInt(0, 1_000_000).toString().padStart(6, '0'),
    newSalt: () => randomBytes(16).toString('base64url'),
    // JSON keeps the parts apart whatever they contain; binding id and scope makes a hash useless in another row.
    codeHash: ({ id, brandSlug, subject, salt }, code) =>
      hmac(codeKey, JSON.stringify([id, brandSlug, subject, salt, code])),
    newApiKey: () => {
      const key = `otp_live_${randomBytes(32).toString('hex')}`
      return { key, sha256: sha256(key) }
    },
    subject: (kind, value) => hmac(subjectKey, JSON.stringify([kind, value])),
  }
}

/** SHA-256 in base64url: how an API key is stored. Keys are long and random, so a slow hash would add nothing. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** A new server secret of 256 bits. */
export function newSecretKey(): string {
  return randomBytes(32).toString('base64url')
}

function hmac(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url')
}

function subkey(secretKey: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secretKey, '', purpose, 32))
}
