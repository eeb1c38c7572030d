import { createHash } from 'node:crypto'
import type { Alert } from '../../domain/ground/alert.ts'
import type { Mailer, Outcome } from '../../domain/ground/providers.ts'
import type { Clock } from '../../domain/ground/time.ts'
import {
  type AlertTarget,
  alertData,
  alertRows,
  alertTimeoutMs,
  meaningOf,
} from '../../domain/health/alerts.ts'
import { renderMail } from '../../domain/texts/emails.ts'
import { signedHeaders } from '../crypto/standard-webhooks.ts'

export function alertMail(mailer: Mailer, to: string): AlertTarget {
  return {
    channel: 'email',
    send(alert, tries) {
      const { title: subject } = alert
      const about = { brandSlug: null, brandName: null, recipientSubject: '', template: null, position: null }
      const content = renderMail(subject, meaningOf(alert), { ...alertRows(alert) })
      const mail = { ...about, ...content, subject, to, requestId: idOf(alert) }
      return mailer.send(mail, tries, alertTimeoutMs)
    },
  }
}

type Post = (
  url: string,
  request: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
  timeoutMs: number,
  needs: 'status',
) => Promise<
  | { readonly answered: true; readonly status: number }
  | { readonly answered: false; readonly outcome: Outcome }
>

/** Standard Webhooks: a POST with `type`, `timestamp` and `data`, which has the same `webhook-id` in each try. */
export function alertWebhook(
  { url, key }: { readonly url: string; readonly key: Buffer },
  post: Post,
  now: Clock,
): AlertTarget {
  return {
    channel: 'webhook',
    async send(alert) {
      const timestamp = new Date(alert.at).toISOString()
      const body = JSON.stringify({ type: alert.kind, timestamp, data: alertData(alert) })
      const headers = signedHeaders(key, idOf(alert), body, now())
      const result = await post(url, { headers, body }, alertTimeoutMs, 'status')
      if (!result.answered) return result.outcome
      const { status } = result
      return status >= 200 && status < 300
        ? { kind: 'accepted' }
        : { kind: 'retryable', reason: `HTTP ${status}` }
    },
  }
}

function idOf({ key }: Alert): string {
  return `alert_${createHash('sha256').update(key).digest('hex').slice(0, 32)}`
}
