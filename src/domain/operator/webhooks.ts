import { type EventType, eventTypes, type Webhook } from '../events/webhook-events.ts'
import { type HostKindOf, webhookUrlProblem } from '../events/webhook-url.ts'
import type { Secrets } from '../ports.ts'
import { oneOf } from './destinations.ts'
import { type MoneyPorts, requireApp } from './money.ts'
import { OperatorError } from './operator.ts'
import type { PolicyPorts } from './policy.ts'

export interface WebhookPorts extends PolicyPorts {
  readonly apps: MoneyPorts['apps']
  readonly secrets: Pick<Secrets, 'newWebhookSecret'>
  /** NODE_ENV=production. */
  readonly isProduction: boolean
  readonly hostKind: HostKindOf
}

/** Fields as operators write them. */
export interface WebhookRequest {
  readonly appId: string
  readonly url: string
  /** Empty: all. */
  readonly eventTypes: readonly string[]
}

/**
 * `app webhook` (design D45): where events of the app go. Each call creates a secret, and the previous one ends. Waiting events go to
 * the new URL. A webhook that was switched off is on again.
 * @returns with the new secret, and whether there was one before
 * @throws OperatorError
 */
export async function setWebhook(
  ports: WebhookPorts,
  request: WebhookRequest,
): Promise<{ readonly webhook: Webhook; readonly hadWebhook: boolean }> {
  const { appId } = request
  await requireApp(ports.apps, appId)
  const url = request.url.trim()
  const problem = webhookUrlProblem(url, ports.isProduction, ports.hostKind)
  if (problem !== undefined) throw new OperatorError(problem)
  const types = eventTypesIn(request.eventTypes)
  const now = ports.now()
  const secret = ports.secrets.newWebhookSecret()
  const webhook: Webhook = { appId, url, secret, eventTypes: types, createdAt: now, disabledAt: null }
  const { hadWebhook } = await ports.policy.change({ actor: ports.actor, now }, ({ webhooks }) => ({
    hadWebhook: webhooks.some((each) => each.appId === appId),
    saveWebhooks: [webhook],
    entry: {
      action: 'app.webhook-set',
      target: appId,
      details: { url: shownUrl(url), events: types.join(', ') || 'all' },
    },
  }))
  return { webhook, hadWebhook }
}

/** `app webhook --off`: ends the webhook, and deletes events that wait. @throws OperatorError */
export async function removeWebhook(ports: PolicyPorts, appId: string): Promise<Webhook> {
  const { webhook } = await ports.policy.change({ actor: ports.actor, now: ports.now() }, ({ webhooks }) => {
    const webhook = webhooks.find((each) => each.appId === appId)
    if (!webhook) throw new OperatorError(`App ${appId} has no webhook.`)
    const details = { url: shownUrl(webhook.url) }
    return {
      webhook,
      removeWebhooks: [webhook],
      entry: { action: 'app.webhook-removed', target: appId, details },
    }
  })
  return webhook
}

/** Each once, in the order of `eventTypes`. @throws OperatorError */
export function eventTypesIn(names: readonly string[]): readonly EventType[] {
  const given = names.map((name) => oneOf('event', eventTypes, name))
  return eventTypes.filter((type) => given.includes(type))
}

/** A query may contain a secret of the receiver. */
export function shownUrl(url: string): string {
  return url.replace(/\?.*$/, '?…')
}
