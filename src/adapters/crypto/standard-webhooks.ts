import { createHmac } from 'node:crypto'
import { version } from '../../version.ts'

/** Reads a webhook secret: base64 with or without `whsec_`, or else plain text. Undefined: no base64 after `whsec_`. */
export function webhookKey(secret: string): Buffer | undefined {
  const encoded = secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : secret
  const isBase64 = encoded.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(encoded)
  if (isBase64) return Buffer.from(encoded, 'base64')
  return secret.startsWith('whsec_') ? undefined : Buffer.from(secret)
}

/** Standard Webhooks, "Signature scheme". @param timestamp in seconds */
export function webhookSignature(key: Buffer, id: string, timestamp: string, body: string): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
}

/**
 * @param id the same for each try of a message
 * @param previousKeys sign too, so that a receiver can change to the new secret at any time
 */
export function signedHeaders(
  key: Buffer,
  id: string,
  body: string,
  now: number,
  previousKeys: readonly Buffer[] = [],
) {
  const timestamp = String(Math.floor(now / 1000))
  const signatures = [key, ...previousKeys].map((each) => webhookSignature(each, id, timestamp, body))
  return {
    'content-type': 'application/json',
    'user-agent': `otpost/${version}`,
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}
