import { hkdfSync, randomBytes, randomFillSync, randomInt, randomUUID, timingSafeEqual } from 'node:crypto'
import type { Secrets } from '../../domain/ports.ts'

/**
 * Keyed hashing under the server's secret, with a key of its own for each purpose (HKDF, RFC 5869).
 *
 * @param secretKeys the present secret, then former ones whose hashes are still recognized
 */
export function createSecrets(...secretKeys: readonly [string, ...string[]]): Secrets {
  const codeKeys = mapped(secretKeys, (secretKey) => subkey(secretKey, 'otpost code v2'))
  const subjectKeys = mapped(secretKeys, (secretKey) => subkey(secretKey, 'otpost subject v1'))
  const reportKeys = mapped(secretKeys, (secretKey) => subkey(secretKey, 'otpost receipt v1'))
  return {
    newId: () => randomUUID(),
    newCode: () => randomInt(0, 1_000_000).toString().padStart(6, '0'),
    newRecordId: () => randomFillSync(recordIdBytes).toString('base64url'),
    // JSON keeps the parts apart whatever they contain.
    keyedCodes: ({ brandSlug, channel, identity }, code) => {
      const text = JSON.stringify([brandSlug, channel, identity, code])
      return mapped(codeKeys, (key) => hmac(key, text))
    },
    saltedHash,
    newApiKey: () => {
      const key = checked(`otp_live_${base62(randomBytes(32), 43)}`)
      return { key, sha256: sha256(key), lastFour: key.slice(-4) }
    },
    subjects: (kind, value) => {
      const text = JSON.stringify([kind, value])
      return mapped(subjectKeys, (key) => hmac(key, text).slice(0, subjectLength))
    },
    callbackToken: (about) => callbackToken(reportKeys[0], about),
    isCallbackToken: (about, token) =>
      reportKeys.some((key) => {
        const [expected, given] = [Buffer.from(callbackToken(key, about)), Buffer.from(token)]
        return expected.length === given.length && timingSafeEqual(expected, given)
      }),
  }
}

/** Characters of base64url: 132 bits, since every record and every event of a recipient repeats it. */
const subjectLength = 22

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Bytes as a number of so many digits to the base 62: letters and digits are one word to whoever selects them. */
function base62(bytes: Uint8Array, length: number): string {
  let text = ''
  for (let rest = BigInt(`0x${Buffer.from(bytes).toString('hex')}`); rest > 0n; rest /= 62n) {
    text = (digits[Number(rest % 62n)] ?? '') + text
  }
  return text.padStart(length, '0')
}

/** A key with its checksum: six digits to the base 62 of the CRC-32 of what stands before them. */
function checked(key: string): string {
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(Bun.hash.crc32(key))
  return key + base62(sum, 6)
}

/** `Secrets.saltedHash`, which needs no secret: what it hashes is keyed already. */
export function saltedHash(recordId: string, keyedCode: string): string {
  return sha256(`${recordId} ${keyedCode}`)
}

/** Whether a stored hash is that of a keyed code under this record id; compares in constant time. */
export function isHashOf(hash: string, recordId: string, keyedCode: string): boolean {
  const [stored, computed] = [Buffer.from(hash), Buffer.from(saltedHash(recordId, keyedCode))]
  return stored.length === computed.length && timingSafeEqual(stored, computed)
}

function mapped<A, B>([first, ...rest]: readonly [A, ...A[]], make: (each: A) => B): [B, ...B[]] {
  return [make(first), ...rest.map(make)]
}

/** Filled anew for each id. */
const recordIdBytes = Buffer.alloc(16)

/** SHA-256 in base64url: how an API key is stored. Keys are long and random, so a slow hash would add nothing. */
export function sha256(text: string): string {
  return Bun.CryptoHasher.hash('sha256', text, 'base64url')
}

/** 16 characters of base64url hold 96 bits: enough for what is tried over the network, and short in a URL. */
function callbackToken(key: Buffer, about: string): string {
  return hmac(key, about).slice(0, 16)
}

/** What stands for each secret where others may see it: nothing can be made with it. */
export function keyFingerprints(secretKeys: readonly [string, ...string[]]): [string, ...string[]] {
  return mapped(secretKeys, (secretKey) => subkey(secretKey, 'otpost mark v1').toString('base64url'))
}

/** A new server secret of 256 bits. */
export function newSecretKey(): string {
  return randomBytes(32).toString('base64url')
}

function hmac(key: Buffer, text: string): string {
  // Bun's own, since it takes half the time of node:crypto's.
  return new Bun.CryptoHasher('sha256', key).update(text).digest('base64url')
}

function subkey(secretKey: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secretKey, '', purpose, 32))
}
