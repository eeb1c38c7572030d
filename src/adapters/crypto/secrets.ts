import { hkdfSync, randomBytes, randomInt, randomUUID, timingSafeEqual } from 'node:crypto'
import type { Secrets } from '../../domain/ground/ports.ts'
import type { EpochMs } from '../../domain/ground/time.ts'

/** Keyed hashing with a subkey for each purpose (HKDF, RFC 5869). The first secret key is the present one. */
export function createSecrets(...secretKeys: readonly [string, ...string[]]): Secrets {
  const hmacs = (purpose: string) => mapped(secretKeys, (secretKey) => hmacWith(subkey(secretKey, purpose)))
  const codeHmacs = hmacs('otpost code v1')
  const subjectHmacs = hmacs('otpost subject v1')
  const reportHmacs = hmacs('otpost callback v1')
  return {
    newId: () => randomUUID(),
    newRequestId,
    newCode: () => randomInt(0, 1_000_000).toString().padStart(6, '0'),
    // JSON separates the parts unambiguously.
    keyedCodes: ({ brandSlug, channel, to }, code) => {
      const text = JSON.stringify([brandSlug, channel, to, code])
      return mapped(codeHmacs, (hmac) => hmac(text))
    },
    saltedHash,
    newApiKey: () => {
      const key = checked(`otp_live_${base62(randomBytes(32), 43)}`)
      return { key, sha256: sha256(key), lastFour: key.slice(-4) }
    },
    newWebhookSecret: () => `whsec_${randomBytes(32).toString('base64')}`,
    newEventId: (at) => Bun.randomUUIDv7('hex', at),
    subjects: (kind, value) => {
      const text = JSON.stringify([kind, value])
      return mapped(subjectHmacs, (hmac) => hmac(text).slice(0, subjectLength))
    },
    callbackToken: (about) => callbackToken(reportHmacs[0], about),
    isCallbackToken: (about, token) => reportHmacs.some((hmac) => isSame(token, callbackToken(hmac, about))),
  }
}

/**
 * A UUID that begins with its time (RFC 9562 section 5.7), so that the event log is inserted in order. It says version 4,
 * because many validators reject versions above 5.
 */
export function newRequestId(at: EpochMs): string {
  const id = Bun.randomUUIDv7('hex', at)
  return `${id.slice(0, 14)}4${id.slice(15)}`
}

const subjectLength = 22

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function base62(bytes: Uint8Array, length: number): string {
  let text = ''
  for (let rest = BigInt(`0x${Buffer.from(bytes).toString('hex')}`); rest > 0n; rest /= 62n) {
    text = (digits[Number(rest % 62n)] ?? '') + text
  }
  return text.padStart(length, '0')
}

function checked(key: string): string {
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(Bun.hash.crc32(key))
  return key + base62(sum, 6)
}

/** Needs no secret key, since the code is already keyed. */
export function saltedHash(recordId: string, keyedCode: string): string {
  return sha256(`${recordId} ${keyedCode}`)
}

export function isHashOf(hash: string, recordId: string, keyedCode: string): boolean {
  return isSame(hash, saltedHash(recordId, keyedCode))
}

/** Compares in constant time. */
export function isSame(given: Uint8Array | string, expected: Uint8Array | string): boolean {
  const [one, other] = [Buffer.from(given as Uint8Array), Buffer.from(expected as Uint8Array)]
  return one.length === other.length && timingSafeEqual(one, other)
}

export function mapped<A, B>(all: readonly [A, ...A[]], make: (each: A) => B): [B, ...B[]] {
  return all.map((each) => make(each)) as [B, ...B[]]
}

/** In base64url. API keys are long and random, so a slow hash is not necessary. */
export function sha256(text: string): string {
  return Bun.CryptoHasher.hash('sha256', text, 'base64url')
}

/** 96 bits, enough against guessing over the network, and short in a URL. */
function callbackToken(hmac: Hmac, about: string): string {
  return hmac(about).slice(0, 16)
}

export function keyFingerprints(secretKeys: readonly [string, ...string[]]): [string, ...string[]] {
  return mapped(secretKeys, (secretKey) => subkey(secretKey, 'otpost fingerprint v1').toString('base64url'))
}

export function newSecretKey(): string {
  return randomBytes(32).toString('base64url')
}

export type Hmac = (text: string) => string

/** HMAC-SHA-256 in base64url. Twice as fast as node:crypto; a copy saves preparing the key again. */
export function hmacWith(key: Buffer): Hmac {
  const prepared = new Bun.CryptoHasher('sha256', key)
  return (text) => prepared.copy().update(text).digest('base64url')
}

/** HKDF (RFC 5869). */
export function subkey(secretKey: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secretKey, '', purpose, 32))
}
