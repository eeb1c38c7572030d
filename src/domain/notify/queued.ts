import { mask } from '../ground/contact.ts'
import type { NotifyJob, NotifyOrder } from '../ground/notify-job.ts'
import type { Sealing } from '../ground/ports.ts'
import type { Clock, EpochMs } from '../ground/time.ts'
import type { Gate } from '../limits/limits.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { EventLog } from '../request/request-trace.ts'
import type { Brand } from '../texts/brand.ts'
import type { MessageOrder } from './order.ts'
import type { DueJob, JobQueue } from './queue.ts'

// The jobs of an asynchronous notification are stored with its claims. Content and recipient of a stored job are encrypted under the
// secret key, each for its row (design D46).

export interface QueuedPorts {
  readonly queue: JobQueue
  readonly sealing: Sealing
  readonly eventLog: EventLog
  readonly now: Clock
}

/** Of an asynchronous notification. */
export interface Accepted {
  readonly channel: MessageOrder['channel']
  /** How many jobs were stored. */
  readonly recipients: number
}

/** A job for each recipient, instead of the delivery. */
export async function queued(
  ports: QueuedPorts,
  context: RequestContext,
  expiresAt: EpochMs,
  {
    order,
    brand,
    key,
  }: {
    readonly order: MessageOrder
    readonly brand: Brand | undefined
    readonly key: { answerWithClaim(status: number, answer: Accepted): void } | undefined
  },
): Promise<Gate> {
  const { queue, eventLog } = ports
  const { app = '' } = context
  const { channel, recipients } = order
  key?.answerWithClaim(202, { channel, recipients: recipients.length })
  return {
    claims: [await queue.claimOf(app, recipients.length)],
    effects: [{ kind: 'queue', ...rowsOf(ports, context, expiresAt, order, brand) }],
    admitted: async () => {
      eventLog.note(context)
      // The request is in the event log before its first attempt.
      await eventLog.flush()
      queue.wake(app)
    },
  }
}

function rowsOf(
  { sealing, now }: QueuedPorts,
  { requestId, app: appId = '', reference }: RequestContext,
  expiresAt: EpochMs,
  { channel, recipients, content }: MessageOrder,
  brand: Brand | undefined,
): { readonly order: NotifyOrder; readonly jobs: readonly NotifyJob[] } {
  const createdAt = now()
  const named = { brandSlug: brand?.slug ?? null, reference: reference ?? null }
  const about = { requestId, appId, ...named, channel, createdAt, expiresAt }
  const jobs = recipients.map((recipient) => {
    const { to, recipientHash, position } = recipient
    return {
      requestId,
      appId,
      position,
      state: 'queued' as const,
      recipient: sealing.seal(to, ownerOfRecipient({ requestId, position })),
      recipientHash,
      masked: mask(recipient),
      tries: 0,
      attempts: 0,
      dueAt: createdAt,
      owner: null,
      updatedAt: createdAt,
      reason: null,
    }
  })
  const sealed = sealing.seal(JSON.stringify(content()), ownerOfContent({ requestId }))
  return { order: { ...about, content: sealed }, jobs }
}

/** Undefined: no secret key of this server opens it, or it was copied from another row. */
export function openedJob(
  sealing: Sealing,
  { order, job }: DueJob,
): { readonly content: string; readonly recipient: string } | undefined {
  const content = sealing.unseal(order.content, ownerOfContent(order))?.text
  const recipient = sealing.unseal(job.recipient, ownerOfRecipient(job))?.text
  return content === undefined || recipient === undefined ? undefined : { content, recipient }
}

function ownerOfContent({ requestId }: Pick<NotifyOrder, 'requestId'>): string {
  return `notify_orders ${requestId}`
}

function ownerOfRecipient({ requestId, position }: Pick<NotifyJob, 'requestId' | 'position'>): string {
  return `notify_jobs ${requestId} ${position}`
}
