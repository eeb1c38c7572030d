import { type DeliveryPorts, deliver, longestDeliveryMs } from '../delivery/delivery.ts'
import { events } from '../delivery/message-events.ts'
import { messageStatus, recipientIndex } from '../delivery/message-status.ts'
import type { Body } from '../ground/body.ts'
import { type Channel, parseChannel } from '../ground/contact.ts'
import { Failure, failureMessages } from '../ground/failures.ts'
import type { Secrets } from '../ground/ports.ts'
import { dayMs } from '../ground/time.ts'
import { authenticate, type CredentialPorts, permitted } from '../limits/credentials.ts'
import { admitting, once, pass, ReadFields, settling, uncounted } from '../limits/gates.ts'
import { type IdempotencyPorts, idempotently } from '../limits/idempotency-key.ts'
import { calls, type LimitSettings } from '../limits/limits.ts'
import type { AppScope } from '../limits/scope.ts'
import { Charge } from '../money/charge.ts'
import type { OtpStore } from '../otp/store.ts'
import type { Policy, ReadPolicy } from '../policy/policy.ts'
import type { RequestContext } from '../request/request-context.ts'
import {
  type MessageOrder,
  type MessageOrderPorts,
  notifySizes,
  readMailBrand,
  readMailOrder,
  readSmsBrand,
  readSmsOrder,
} from './order.ts'
import { type Accepted, type QueuedPorts, queued } from './queued.ts'
import { type WatchedPorts, watched } from './watched.ts'

export interface NotifyPorts
  extends CredentialPorts,
    IdempotencyPorts,
    MessageOrderPorts,
    QueuedPorts,
    WatchedPorts,
    DeliveryPorts {
  readonly policy: ReadPolicy
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly limits: LimitSettings
}

export interface Notified {
  readonly channel: Channel
  readonly templateKey?: string
}

/** Concurrent messages per request (design D12). */
const concurrency = 8

export function longestNotifyMs(providerTimeoutMs: number, recipients: number = notifySizes.to): number {
  return Math.ceil(recipients / concurrency) * longestDeliveryMs(providerTimeoutMs)
}

/** A transactional SMS or e-mail (spec 4.4). */
export async function notify(
  ports: NotifyPorts,
  context: RequestContext,
  body: Body,
): Promise<Notified | Accepted> {
  context.operation = 'notify'
  const app = await authenticate(ports, context, body)
  const policy = await ports.policy()
  return notifyAs(ports, context, body, { policy, scope: permitted(policy, app, 'notify') })
}

/** After the check of the credentials. */
export async function notifyAs(
  ports: NotifyPorts,
  context: RequestContext,
  body: Body,
  { policy, scope }: { readonly policy: Policy; readonly scope: AppScope },
): Promise<Notified | Accepted> {
  const app = scope.appId
  const isSms = parseChannel(body.channel) === 'SMS'
  const smsBrand = isSms ? await readSmsBrand(ports, context, body, scope) : undefined
  return idempotently(ports, context, body, keySettings(ports), async (key) => {
    const brand = smsBrand ?? (await readMailBrand(ports, body, scope))
    const order = new ReadFields(() =>
      smsBrand
        ? readSmsOrder(ports, context, body, { brand: smsBrand, policy })
        : readMailOrder(ports, context, body, brand),
    )
    const sms = () => (isSms ? order.value.messages() : [])
    const about = { app, brand: brand?.slug ?? '', of: 'notifications' } as const
    const charge = once(() => new Charge(policy, about, context, ports, sms()))
    const isQueued = () => order.value.expiresAt !== undefined
    // The order of the contract, after credentials and brand.
    const gates = [
      key,
      calls(ports.limits, scope),
      order,
      () => watched(ports, context, { app: scope, messages: sms(), isQueued: isQueued() }),
      // Each job claims what it costs.
      () => (isQueued() ? { claims: uncounted(charge().claims) } : charge()),
      () => {
        const { expiresAt } = order.value
        return expiresAt === undefined
          ? events(ports, context, policy.webhooks.has(app))
          : queued(ports, context, expiresAt, { order: order.value, brand, key })
      },
    ]
    const { settle } = await pass(ports, context, gates, admitting(ports))
    const { channel, recipients, templateKey, expiresAt } = order.value
    if (expiresAt !== undefined) return { channel, recipients: recipients.length }
    const failed = await settling(context, settle, async (failed) => {
      await eachOf(order.value.messages(), async (message) => {
        const outcome = await deliver(ports, context, message, { charging: charge() })
        if (outcome.kind !== 'accepted') failed.push(message.position)
      })
      return failed
    })
    if (failed.length > 0) throw notificationFailed(context, order.value, failed.length)
    return templateKey === null ? { channel } : { channel, templateKey }
  })
}

function keySettings({ providerTimeoutMs }: NotifyPorts) {
  return {
    windowMs: dayMs,
    longestMs: longestNotifyMs(providerTimeoutMs),
    kept: ['notification_failed', 'internal_error'],
  } as const
}

/** A few at a time (design D12). */
async function eachOf<Each>(all: readonly Each[], work: (each: Each) => Promise<void>): Promise<void> {
  const waiting = all.values()
  const worker = async () => {
    for (const each of waiting) await work(each)
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, all.length) }, worker))
}

function notificationFailed(
  { attempts, at }: RequestContext,
  { channel, recipients: all }: MessageOrder,
  failed: number,
): Failure {
  const of = Map.groupBy(attempts, ({ position }) => recipientIndex(position))
  const request = { state: 'failed', at } as const
  const recipients = all.map(({ position }) => {
    const index = recipientIndex(position)
    const { status } = messageStatus({ attempts: of.get(index) ?? [], job: null, request })
    return { index, status }
  })
  const which = all.length === 1 ? 'the message' : `${failed} of ${all.length} messages`
  const message = `${failureMessages.notification_failed} No provider accepted ${which}.`
  return new Failure('notification_failed', message, { channel, recipients })
}
