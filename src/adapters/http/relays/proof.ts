import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { EpochMs } from '../../../domain/ground/time.ts'
import { parseAuthorization } from '../authorization.ts'

/** How the caller of a relay shows that it knows the secret (design D53). */
export type Proof = 'standard-webhooks' | 'zitadel' | 'body-hmac' | 'authorization'

export interface Given {
  readonly headers: Headers
  /** As it was received: signatures are computed from these bytes. */
  readonly body: Uint8Array
  readonly secret: string
  /** Of a Basic login. */
  readonly user: string
  readonly now: EpochMs
}

/** The clocks may differ by this much. */
const toleranceMs = 300_000

/** Undefined: proven. Otherwise what is missing or wrong. Compares in constant time. */
export const faultOf: Readonly<Record<Proof, (given: Given) => string | undefined>> = {
  /** https://github.com/standard-webhooks/standard-webhooks, with a secret `v1,whsec_…`. */
  'standard-webhooks': ({ headers, body, secret, now }) => {
    const [id, at, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
      headers.get(`webhook-${name}`),
    )
    if (!id || !at || !signatures)
      return 'The headers webhook-id, webhook-timestamp and webhook-signature are required.'
    const key = Buffer.from(secret.replace(/^v1,whsec_/, ''), 'base64')
    const expected = hmac(key, [`${id}.${at}.`, body], 'base64')
    // Supabase joins several signatures by `, `, the standard by a space.
    const given = signatures.split(/,? +/).map((each) => each.replace(/^v1,/, ''))
    return signed(given, expected) ?? stale(at, now)
  },
  zitadel: ({ headers, body, secret, now }) => {
    const header = headers.get('zitadel-signature')
    const parts = (header ?? '').split(',').map((part) => part.trim().split('='))
    const at = parts.find(([name]) => name === 't')?.[1]
    if (!at) return 'The header ZITADEL-Signature is required: t=UNIX,v1=HEX.'
    const given = parts.flatMap(([name, value = '']) => (name === 'v1' ? [value] : []))
    return signed(given, hmac(secret, [`${at}.`, body], 'hex')) ?? stale(at, now)
  },
  'body-hmac': ({ headers, body, secret }) => {
    const given = headers.get('x-authgear-body-signature')
    if (!given) return 'The header x-authgear-body-signature is required.'
    return signed([given], hmac(secret, [body], 'hex'))
  },
  authorization: ({ headers, secret, user }) => {
    const given = parseAuthorization(headers.get('authorization'))
    if (given === undefined || given === 'malformed')
      return 'The header Authorization is required, with Bearer and the secret of the relay, or a Basic login.'
    if (given.scheme === 'bearer') return isSame(given.token, secret) ? undefined : wrongSecret
    const isUser = isSame(given.user, user)
    return isSame(given.password, secret) && isUser ? undefined : wrongSecret
  },
}

const wrongSecret = 'The secret is not that of the relay. Add the relay anew if it is lost.'

function signed(given: readonly string[], expected: string): string | undefined {
  if (given.length > mostSignatures) return 'The request has too many signatures.'
  if (given.some((each) => isSame(each, expected))) return undefined
  return 'The signature is not that of this body with the secret of the relay.'
}

const mostSignatures = 10

function stale(unixSeconds: string, now: EpochMs): string | undefined {
  const at = /^\d{1,12}$/.test(unixSeconds) ? Number(unixSeconds) * 1000 : Number.NEGATIVE_INFINITY
  if (Math.abs(now - at) <= toleranceMs) return undefined
  return 'The signature is older or newer than 5 minutes. Compare the clocks of both servers.'
}

function hmac(key: string | Buffer, parts: readonly (string | Uint8Array)[], as: 'hex' | 'base64'): string {
  const mac = createHmac('sha256', key)
  for (const part of parts) mac.update(part)
  return mac.digest(as)
}

function isSame(a: string, b: string): boolean {
  return timingSafeEqual(sha256(a), sha256(b))
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
