import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Sealing } from '../../domain/ground/ports.ts'
import { subkey } from './secrets.ts'

const algorithm = 'aes-256-gcm'
const version = 'v1.'
const ivLength = 12
const tagLength = 16

/** AES-256-GCM with a subkey. The first secret key is the present one. */
export function createSealing(...secretKeys: readonly [string, ...string[]]): Sealing {
  const [key, ...previous] = secretKeys.map((each) => subkey(each, 'otpost sealed v1')) as [
    Buffer,
    ...Buffer[],
  ]
  return {
    seal: (text, owner) => {
      const iv = randomBytes(ivLength)
      const cipher = createCipheriv(algorithm, key, iv).setAAD(Buffer.from(owner))
      const parts = [iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]
      return version + Buffer.concat(parts).toString('base64url')
    },
    unseal: (sealed, owner) => {
      if (!sealed.startsWith(version)) return undefined
      const bytes = Buffer.from(sealed.slice(version.length), 'base64url')
      if (bytes.length < ivLength + tagLength) return undefined
      for (const each of [key, ...previous]) {
        const text = opened(bytes, each, owner)
        if (text !== undefined) return { text, isOld: each !== key }
      }
      return undefined
    },
  }
}

function opened(bytes: Buffer, key: Buffer, owner: string): string | undefined {
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, ivLength), { authTagLength: tagLength })
    .setAAD(Buffer.from(owner))
    .setAuthTag(bytes.subarray(-tagLength))
  const start = decipher.update(bytes.subarray(ivLength, -tagLength))
  try {
    return Buffer.concat([start, decipher.final()]).toString('utf8')
  } catch {
    // Another key, another owner, or changed bytes.
    return undefined
  }
}
