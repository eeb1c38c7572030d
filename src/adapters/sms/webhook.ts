import { declare } from '../../config/setting.ts'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import { Failure, invalid } from '../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome } from '../../domain/ground/providers.ts'
import { isSame } from '../crypto/secrets.ts'
import { signedHeaders, webhookSignature } from '../crypto/standard-webhooks.ts'
import { call, meaningOfStatus } from './http.ts'
import { failure, type SmsProviderSpec } from './provider.ts'
import { fieldsOf, reportJson } from './reading.ts'

const webhookSettings = declare('Webhook', {
  SMS_WEBHOOK_URL: {
    format: 'https URL',
    secret: true,
    meaning: 'The URL of your service. otpost posts each SMS to it as JSON.',
  },
  SMS_WEBHOOK_SECRET: {
    format: '`whsec_` and base64, or text',
    secret: true,
    meaning: 'The webhook secret, which signs messages and delivery reports (Standard Webhooks).',
  },
})

/**
 * Design 9: the POST and its reports are signed by Standard Webhooks with one secret.
 * A message has the same ID on all routes, so that the receiver recognizes a retry.
 */
export const webhook: SmsProviderSpec = {
  name: 'webhook',
  routes: ['plain', 'template'],
  settings: webhookSettings,
  configure(settings) {
    const why = 'the SMS provider webhook needs it'
    const url = settings.serviceUrl(webhookSettings.SMS_WEBHOOK_URL, why)
    const key = settings.webhookKey(webhookSettings.SMS_WEBHOOK_SECRET, why)
    return ({ now }) => ({
      name: 'webhook',
      endpoint: url,
      async send({ id, to, route, text, template, brandSlug, requestId }, timeoutMs) {
        const body = JSON.stringify({
          id,
          to,
          route,
          text,
          ...(template ? { templateKey: template.key, variables: template.variables } : {}),
          brandId: brandSlug,
          requestId,
        })
        const headers = signedHeaders(key, id, body, now())
        const outcome = await call(url, { headers, body }, timeoutMs, outcomeOf, 'status')
        // The receiver has our ID even if its response was lost.
        return outcome.kind === 'rejected' || outcome.kind === 'retryable'
          ? outcome
          : { ...outcome, providerMessageId: id }
      },
      deliveryReports: { namedBy: 'providerMessageId', read: (call) => readCallback(call, key, now()) },
    })
  },
}

/** Results that a gateway names in its answer, as those of Authgear do. A rejected number or message stops a fallback. */
const results = new Map<unknown, Meaning>([
  ['invalid_phone_number', 'recipient'],
  ['delivery_rejected', 'recipient'],
  ['authentication_failed', 'account'],
  ['rate_limited', 'retryable'],
  ['timeout', 'unknown'],
])

/** `{"code"}` in the answer decides if it is known, else the status. */
function outcomeOf(status: number, text: string): Outcome {
  const { code } = fieldsOf(text)
  const result = results.get(code)
  if (result) return failure(result, String(code))
  return status >= 200 && status < 300
    ? { kind: 'accepted' }
    : failure(meaningOfStatus(status), `HTTP ${status}`)
}

/** Standard Webhooks, "Verifying timestamps". */
const reportToleranceMs = 300_000

/** `{"id", "status": "delivered" | "failed" | …, "reason"?}` */
function readCallback(
  { headers, body }: CallbackRequest,
  key: Buffer,
  now: number,
): readonly DeliveryReport[] {
  const raw = Buffer.from(body).toString()
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '' } = headers
  const expected = webhookSignature(key, id, timestamp, raw)
  const signatures = (headers['webhook-signature'] ?? '').split(' ')
  const isSigned = signatures.some((signature) => isSame(signature, expected))
  const isRecent = Math.abs(now - Number(timestamp) * 1000) <= reportToleranceMs
  if (!isSigned || !isRecent) throw new Failure('forbidden', 'The signature is wrong or too old.')
  const { id: providerMessageId, status, reason } = Object(reportJson(raw))
  if (typeof providerMessageId !== 'string' || typeof status !== 'string') {
    throw invalid('`id` and `status` are required.')
  }
  return [
    {
      providerMessageId,
      status: status === 'delivered' || status === 'failed' ? status : 'pending',
      reason: typeof reason === 'string' && /^[\w .:/-]{1,40}$/.test(reason) ? reason : null,
    },
  ]
}
