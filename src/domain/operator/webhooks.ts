import { advice, see } from '../ground/advice.ts'
import type { Actor } from '../ground/audit.ts'
import { counted } from '../ground/format.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { Secrets } from '../ground/ports.ts'
import { type Clock, dayMs, type EpochMs } from '../ground/time.ts'
import {
  type EventType,
  eventTypes,
  firstDueAt,
  type PreviousSecret,
  type Webhook,
} from '../ground/webhook-events.ts'
import type { Alerts } from '../health/alerts.ts'
import type { EventDeliveryPorts } from '../integration/event-delivery.ts'
import type { EventReader } from '../integration/event-store.ts'
import { type HostKindOf, webhookUrlProblem } from '../integration/webhook-url.ts'
import type { PolicyPorts, PolicyStore } from '../policy/policy-store.ts'
import { action } from './action.ts'
import { appGroup } from './apps.ts'
import { changeList, field, flag, optional, someOf, text, trimmed } from './fields.ts'
import { type MoneyPorts, requireApp } from './money.ts'

export interface WebhookPorts extends PolicyPorts {
  readonly apps: MoneyPorts['apps']
  readonly secrets: Pick<Secrets, 'newWebhookSecret'>
  /** NODE_ENV=production. */
  readonly isProduction: boolean
  readonly hostKind: HostKindOf
}

export interface StoredEventPorts extends Pick<PolicyPorts, 'actor' | 'now'> {
  readonly events: EventReader
}

interface TestEventPorts extends StoredEventPorts, Pick<PolicyPorts, 'policy'> {
  readonly secrets: Pick<Secrets, 'newEventId' | 'newId'>
}

const appField = field(text, { label: 'App', help: 'the appId' })

/**
 * Design D45: where events of the app go. Each call creates a secret, unless it keeps the present one; the previous one signs too for 24 hours. Waiting events go to the new
 * URL. A webhook that was switched off is on again.
 */
export const appWebhook = action(appGroup, 'webhook', {
  role: 'operator',
  isSensitive: true,
  does: 'set where events of an app go, and print the secret that signs them',
  note: 'otpost prints the secret only once. Events that wait go to the new URL.',
  fields: {
    appId: appField,
    url: optional(trimmed, {
      label: 'URL',
      as: '--url <url>',
      help: 'the URL that receives the events',
      inputType: 'url',
      isRequiredInForm: true,
      hint: 'https, and a host with a public IP address. Without `NODE_ENV=production` also http to a loopback address.',
    }),
    events: changeList(someOf('event', eventTypes), {
      label: 'Events',
      as: '--event <type>',
      help: `an event to send: ${eventTypes.join(', ')}; all by default`,
    }),
    keepSecret: flag({
      label: 'Keep the secret',
      as: '--keep-secret',
      help: 'create no new secret; with the same URL and events, nothing changes',
    }),
    off: flag({ label: 'End', as: '--off', help: 'end the webhook; events that wait are deleted' }),
  },
  audit: { 'app.webhook-set': 'Webhook set', 'app.webhook-removed': 'Webhook ended' },
  form: { path: 'apps/webhook', page: 'apps/webhook?app={appId}' },
  run: async (ports: WebhookPorts, { appId, url, events, keepSecret, off }) => {
    if (off ? url !== undefined || events?.length : url === undefined) {
      throw new InvalidInput('Give the URL and the events, or end the webhook.')
    }
    return url === undefined
      ? { removed: await removeWebhook(ports, appId) }
      : setWebhook(ports, appId, url, events, keepSecret)
  },
  said: (result, { appId }) =>
    'removed' in result
      ? `The webhook of ${appId} is ended.`
      : {
          text: `Events of ${appId} go to ${shownUrl(result.webhook.url)}.`,
          ...(result.isNewSecret && { secret: result.webhook.secret }),
          warnings:
            result.hadWebhook && result.isNewSecret
              ? [{ text: `The previous secret of ${appId} signs events too, for 24 hours.` }]
              : [],
        },
})

/** @param events undefined: all */
export async function setWebhook(
  ports: WebhookPorts,
  appId: string,
  url: string,
  events: readonly EventType[] | undefined,
  keepsSecret = false,
) {
  await requireApp(ports.apps, appId)
  const problem = webhookUrlProblem(url, ports.isProduction, ports.hostKind)
  if (problem !== undefined) throw new InvalidInput(problem)
  if (events?.length === 0) throw new InvalidInput('Select at least one event.')
  // All of them: also those of later versions.
  const types = events === undefined || events.length === eventTypes.length ? [] : events
  const now = ports.now()
  const newSecret = ports.secrets.newWebhookSecret()
  return ports.policy.change({ actor: ports.actor, now }, ({ webhooks }) => {
    const present = webhooks.find((each) => each.appId === appId)
    const kept = keepsSecret ? present : undefined
    const found = { hadWebhook: present !== undefined, isNewSecret: !kept }
    const isSame = kept?.url === url && kept.disabledAt === null && kept.eventTypes.join() === types.join()
    if (kept && isSame) return { ...found, webhook: kept, entry: null }
    const webhook: Webhook = {
      appId,
      url,
      secret: kept?.secret ?? newSecret,
      previousSecrets: kept?.previousSecrets ?? previousSecrets(present, now),
      eventTypes: types,
      createdAt: now,
      disabledAt: null,
    }
    return {
      ...found,
      webhook,
      saveWebhooks: [webhook],
      entry: {
        action: 'app.webhook-set',
        target: appId,
        details: { url: shownUrl(url), events: types.join(', ') || 'all' },
      },
    }
  })
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

export async function removeWebhook(ports: PolicyPorts, appId: string): Promise<Webhook> {
  const { webhook } = await ports.policy.change({ actor: ports.actor, now: ports.now() }, ({ webhooks }) => {
    const webhook = webhooks.find((each) => each.appId === appId)
    if (!webhook) throw noWebhook(appId)
    const details = { url: shownUrl(webhook.url) }
    return {
      webhook,
      removeWebhooks: [webhook],
      entry: { action: 'app.webhook-removed', target: appId, details },
    }
  })
  return webhook
}

function noWebhook(appId: string): OperatorError {
  return new OperatorError(`App ${appId} has no webhook.`)
}

/** An event of the app again, with all its tries. */
export const appWebhookResend = action(appGroup, 'webhook-resend', {
  role: 'operator',
  isSensitive: false,
  does: 'send an event of an app again, with all its tries',
  fields: { appId: appField, id: field(text, { label: 'Event', help: 'the webhook-id of the event' }) },
  audit: { 'app.event-sent': 'Event sent' },
  form: { path: 'apps/webhook/resend', page: 'apps/webhook?app={appId}' },
  run: async ({ events, actor, now }: StoredEventPorts, { appId, id }) => {
    if ((await events.sendAgain(appId, { id }, { actor, now: now() })) > 0) return
    throw new OperatorError(`App ${appId} has no event ${id}. otpost keeps events for 7 days.`)
  },
  said: () => 'The event is sent again.',
})

/** For a receiver that was repaired: without it, each event waits for its next try, up to 10 hours. */
export const appWebhookResendAll = action(appGroup, 'webhook-resend-all', {
  role: 'operator',
  isSensitive: false,
  does: 'send all events of an app now whose latest try failed',
  fields: { appId: appField },
  audit: { 'app.events-sent': 'All failed events sent' },
  form: { path: 'apps/webhook/resend-all', page: 'apps/webhook?app={appId}' },
  run: async ({ events, policy, actor, now }: StoredEventPorts & Pick<PolicyPorts, 'policy'>, { appId }) => {
    const webhook = (await policy.rows()).webhooks.find((each) => each.appId === appId)
    if (!webhook) throw noWebhook(appId)
    if (webhook.disabledAt !== null) {
      throw new OperatorError(
        `The webhook of ${appId} is switched off. Set it again first: then the events that wait are sent.`,
        advice`${see('app webhook', { appId, url: 'URL' })} sets it.`,
      )
    }
    const sent = await events.sendAgain(appId, 'failed', { actor, now: now() })
    if (sent === 0) throw new OperatorError(`No event of ${appId} has failed in the last 7 days.`)
    return sent
  },
  said: (sent, { appId }) => `${counted(sent, 'event')} of ${appId} ${sent === 1 ? 'is' : 'are'} sent now.`,
})

/** A signed `message.delivered` that no message caused, also if the app does not receive that type. */
export const appWebhookTest = action(appGroup, 'webhook-test', {
  role: 'operator',
  isSensitive: false,
  does: 'send a signed test event to the webhook of an app',
  fields: { appId: appField },
  audit: { 'app.event-sent': 'Event sent' },
  form: { path: 'apps/webhook/test', page: 'apps/webhook?app={appId}' },
  run: async ({ events, policy, secrets, actor, now }: TestEventPorts, { appId }) => {
    const webhook = (await policy.rows()).webhooks.find((each) => each.appId === appId)
    if (!webhook) throw noWebhook(appId)
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
      answer: null,
      endedAt: null,
    } as const
    await events.add(event, { actor, now: at })
  },
  said: () => 'A test event is sent.',
})

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

export const webhookActions = [appWebhook, appWebhookTest, appWebhookResend, appWebhookResendAll]
