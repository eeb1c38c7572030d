import { createHmac } from 'node:crypto'
import type { Settings } from '../../settings.ts'
import { outcomeOfStatus, post } from './http.ts'
import type { Vendor } from './vendor.ts'

/**
 * Hands each SMS to a service of the operator's own (design 8): a JSON POST, signed as Standard Webhooks say. The id of
 * a message stays the same over its routes, so that a receiver can tell a second attempt from a second message.
 */
export const webhook: Vendor = {
  name: 'webhook',
  configure(settings) {
    const why = 'the SMS provider webhook needs it'
    const url = settings.serviceUrl('SMS_WEBHOOK_URL', why)
    const key = signingKey(settings, why)
    return ({ now }) => ({
      name: 'webhook',
      async send(message, route, timeoutMs) {
        const { id, requestId, brandSlug, to, text, template } = message
        const body = JSON.stringify({
          id,
          to,
          route,
          text,
          ...(route === 'template' && template
            ? { templateKey: template.key, variables: template.variables }
            : {}),
          brandId: brandSlug,
          requestId,
        })
        const timestamp = String(Math.floor(now() / 1000))
        const headers = {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          'webhook-signature': `v1,${sign(key, `${id}.${timestamp}.${body}`)}`,
        }
        const result = await post(url, { headers, body }, timeoutMs)
        return result.answered ? outcomeOfStatus(result.status) : result.outcome
      },
    })
  },
}

/**
 * The bytes of SMS_WEBHOOK_SECRET: base64, with or without `whsec_` before it (Standard Webhooks, "Signature scheme"). A
 * secret that is not base64 is taken as it stands.
 */
function signingKey(settings: Settings, why: string): Buffer {
  const secret = settings.required('SMS_WEBHOOK_SECRET', why)
  const encoded = secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : secret
  const isBase64 = encoded.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(encoded)
  if (secret.startsWith('whsec_') && !isBase64) {
    settings.refuse('SMS_WEBHOOK_SECRET', 'must be base64 after whsec_')
  }
  return isBase64 ? Buffer.from(encoded, 'base64') : Buffer.from(secret)
}

function sign(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64')
}
