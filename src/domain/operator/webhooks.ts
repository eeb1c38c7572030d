import type { Actor } from '../ground/audit.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { Secrets } from '../ground/ports.ts'
import { type Clock, dayMs, type EpochMs } from '../ground/time.ts'
import { eventTypes, firstDueAt, type PreviousSecret, type Webhook } from '../ground/webhook-events.ts'
import type { Alerts } from '../health/alerts.ts'
import type { EventDeliveryPorts } from '../integration/event-delivery.ts'
import type { EventReader } from '../integration/event-store.ts'
import { type HostKindOf, webhookUrlProblem } from '../integration/webhook-url.ts'
import type { PolicyPorts, PolicyStore } from '../policy/policy-store.ts'
import { someOf } from './fields.ts'
import { type MoneyPorts, requireApp } from './money.ts'

export interface WebhookPorts extends PolicyPorts {
  readonly apps: MoneyPorts['apps']
  readonly secrets: Pick<Secrets, 'newWebhookSecret'>
  /** NODE_ENV=production. */
  readonly isProduction: boolean
  readonly hostKind: HostKindOf
}

export interface EventPorts extends Pick<PolicyPorts, 'actor' | 'now'> {
  readonly events: EventReader
}

interface TestEventSecrets {
  readonly secrets: Pick<Secrets, 'newEventId' | 'newId'>
}

/** Fields as operators write them. */
export interface WebhookRequest {
  readonly appId: string
  readonly url: string
  /** Empty: all. */
  readonly eventTypes: readonly string[]
}

/**
 * `app webhook` (design D45): where events of the app go. Each call creates a secret; the previous one signs too for 24 hours. Waiting
 * events go to the new URL. A webhook that was switched off is on again.
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
  if (problem !== undefined) throw new InvalidInput(problem)
  const types = eventTypesIn(request.eventTypes)
  const now = ports.now()
  const secret = ports.secrets.newWebhookSecret()
  const { webhook, hadWebhook } = await ports.policy.change({ actor: ports.actor, now }, ({ webhooks }) => {
    const present = webhooks.find((each) => each.appId === appId)
    const webhook: Webhook = {
      appId,
      url,
      secret,
      previousSecrets: previousSecrets(present, now),
      eventTypes: types,
      createdAt: now,
      disabledAt: null,
    }
    return {
      webhook,
      hadWebhook: present !== undefined,
      saveWebhooks: [webhook],
      entry: {
        action: 'app.webhook-set',
        target: appId,
        details: { url: shownUrl(url), events: types.join(', ') || 'all' },
      },
    }
  })
  return { webhook, hadWebhook }
}

const secretOverlapMs = dayMs

/** An event has a signature of each, so there is a limit. */
const mostPreviousSecrets = 4

/** With the one that ends now. */
function previousSecrets(present: Webhook | undefined, now: EpochMs): readonly PreviousSecret[] {
  if (!present) return []
  const older = present.previousSecrets.filter(({ signsUntil }) => signsUntil > now)
  const latest = { secret: present.secret, signsUntil: now + secretOverlapMs }
  return [latest, ...older].slice(0, mostPreviousSecrets)
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

/** An event of the app again, with all its tries. @throws OperatorError */
export async function sendEventAgain(
  { events, actor, now }: EventPorts,
  { appId, id }: { readonly appId: string; readonly id: string },
): Promise<void> {
  if (await events.sendAgain({ appId, id }, { actor, now: now() })) return
  throw new OperatorError(`App ${appId} has no event ${id}. otpost keeps events for 7 days.`)
}

/** A signed `message.delivered` that no message caused, also if the app does not receive that type. @throws OperatorError */
export async function sendTestEvent(
  { events, policy, secrets, actor, now }: EventPorts & Pick<PolicyPorts, 'policy'> & TestEventSecrets,
  appId: string,
): Promise<void> {
  const webhook = (await policy.rows()).webhooks.find((each) => each.appId === appId)
  if (!webhook) throw new OperatorError(`App ${appId} has no webhook.`)
  const at = now()
  const event = {
    id: secrets.newEventId(at),
    at,
    type: 'message.delivered',
    requestId: secrets.newId(),
    reportKey: null,
    position: null,
    status: 'delivered',
    reason: 'test event',
    state: 'waiting',
    appId,
    brand: null,
    channel: 'SMS',
    recipient: '00********00',
    reference: null,
    tries: 0,
    dueAt: firstDueAt(webhook, at),
    triedAt: null,
    httpStatus: null,
    error: null,
    endedAt: null,
  } as const
  await events.add(event, { actor, now: at })
}

const eventTypesIn = someOf('event', eventTypes)

/** A query may contain a secret of the receiver. */
export function shownUrl(url: string): string {
  return url.replace(/\?.*$/, '?…')
}

/** What the deliveries of events do to webhooks that fail (design D45). */
export function webhookSwitch({
  policy,
  alerts,
  now,
}: {
  readonly policy: Pick<PolicyStore, 'change'>
  readonly alerts: Pick<Alerts, 'webhook'>
  readonly now: Clock
}): Pick<EventDeliveryPorts, 'switchOff' | 'dropping'> {
  return {
    switchOff: async ({ appId, url, createdAt }, reason) => {
      const key = `webhook ${appId} disabled since ${createdAt}`
      // First, since a crash in between switches it off with the next event.
      await alerts.webhook(key, 'webhook.disabled', { appId, url: shownUrl(url), reason })
      await policy.change({ actor: server, now: now() }, ({ webhooks }) => {
        const present = webhooks.find((each) => each.appId === appId && each.createdAt === createdAt)
        if (!present || present.disabledAt !== null) return { entry: null }
        return { saveWebhooks: [{ ...present, disabledAt: now() }], entry: null }
      })
    },
    dropping: ({ appId, url }) => {
      const day = new Date(now()).toISOString().slice(0, 10)
      const data = { appId, url: shownUrl(url), reason: null }
      return alerts.webhook(`webhook ${appId} dropping ${day}`, 'webhook.dropping', data)
    },
  }
}

/** Without an audit entry, since no operator did it. */
const server: Actor = { by: 'command', name: 'serve' }
