import { createHash } from 'node:crypto'
import type { Advice } from '../../domain/ground/advice.ts'
import { type Alert, budgetKind, reviewNumberKind } from '../../domain/ground/alert.ts'
import type { Mailer, Outcome } from '../../domain/ground/providers.ts'
import type { Clock } from '../../domain/ground/time.ts'
import {
  type AlertTarget,
  alertData,
  alertTimeoutMs,
  budgetAlertOf,
  disabledWebhook,
  type RequestAlert,
  requestKind,
  type WebhookAlert,
} from '../../domain/health/alerts.ts'
import { conditionKinds } from '../../domain/health/conditions.ts'
import { surgeKind } from '../../domain/health/surges.ts'
import { renderMail } from '../../domain/texts/emails.ts'
import { signedHeaders } from '../crypto/standard-webhooks.ts'

export function alertMail(mailer: Mailer, to: string): AlertTarget {
  return {
    channel: 'email',
    send(alert, tries) {
      const { title: subject } = alert
      const about = { brandSlug: null, brandName: null, recipientHash: '', template: null, position: null }
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
  outcomeOf: (status: number) => Outcome,
  needs: 'status',
) => Promise<Outcome>

/** Standard Webhooks: a POST with `type`, `timestamp` and `data`, which has the same `webhook-id` in each try. */
export function alertWebhook(
  { url, key }: { readonly url: string; readonly key: Buffer },
  post: Post,
  now: Clock,
): AlertTarget {
  return {
    channel: 'webhook',
    send(alert) {
      const timestamp = new Date(alert.at).toISOString()
      const body = JSON.stringify({ type: alert.kind, timestamp, data: alertData(alert) })
      const headers = signedHeaders(key, idOf(alert), body, now())
      return post(url, { headers, body }, alertTimeoutMs, outcomeOf, 'status')
    },
  }
}

function outcomeOf(status: number): Outcome {
  return status >= 200 && status < 300
    ? { kind: 'accepted' }
    : { kind: 'retryable', reason: `HTTP ${status}` }
}

function idOf({ key }: Alert): string {
  return `alert_${createHash('sha256').update(key).digest('hex').slice(0, 32)}`
}

/** The fields of each reference are the arguments of its command, in their order. */
export function commandWords(advice: Advice): string {
  return advice
    .map((part) =>
      typeof part === 'string' ? part : ['otpost', part.to, ...Object.values(part.fields)].join(' '),
    )
    .join('')
}

/** The figures, for people. */
export function alertRows(alert: Alert): Readonly<Record<string, unknown>> {
  if (hasMessage(alert)) {
    const { message: _, remedy: __, countries, ...figures } = alertData(alert)
    if (!Array.isArray(countries)) return figures
    // Of a budget with what each has spent, else names.
    const words = countries.map((each) => (typeof each === 'string' ? each : `${each.country} ${each.spent}`))
    return { ...figures, countries: words.join(', ') }
  }
  if (alert.kind !== requestKind) return alertData(alert)
  const { url, requests }: RequestAlert = JSON.parse(alert.text)
  const rows = requests.map(({ companyName, brandName }, index) => [
    `Request ${index + 1}`,
    `${companyName}, brand ${brandName}`,
  ])
  return { ...Object.fromEntries(rows), Console: url }
}

function hasMessage({ kind }: Alert): boolean {
  return kind === surgeKind || conditionKinds.some((each) => each === kind)
}

/** For people, without the figures of the alert. */
function meaningOf(alert: Alert): string {
  if (hasMessage(alert)) {
    const { message, remedy = '' } = alertData(alert)
    return `${message} ${remedy}`.trim()
  }
  if (alert.kind === requestKind) {
    return 'Requesters entered these names, and otpost has not verified them. Approve or reject each request in the console or with the command otpost request. otpost sends at most one alert about requests in 10 minutes.'
  }
  if (alert.kind === reviewNumberKind) {
    return 'A fixed code verifies for this phone number until the last day, and no SMS is sent. If no operator should have added it, remove it with otpost review-number remove or in the console, and check the audit log.'
  }
  if (alert.kind !== budgetKind) {
    const { appId, reason }: WebhookAlert = JSON.parse(alert.text)
    return reason === null
      ? 'Too many events wait for the webhook of this app, so otpost drops later ones. Check the receiver.'
      : disabledWebhook(appId).remedy
  }
  const { resetsAt, stops } = budgetAlertOf(alert)
  return stops
    ? `When the amount is spent, requests that cost more than what is left are rejected with 429 rate_limited until ${resetsAt}. To send more before, set a larger amount (otpost budget set) or lift the budget for a time (otpost budget lift).`
    : 'This budget only sends alerts. It rejects no messages.'
}
