import type { NotifyJob, NotifyOrder } from '../ground/notify-job.ts'
import type { Sealing } from '../ground/ports.ts'
import type { DueJob } from './queue.ts'

// Content and recipient of a stored job are encrypted under the secret key, each for its row (design D46).

interface StoredNotification {
  readonly order: NotifyOrder
  readonly jobs: readonly NotifyJob[]
}

export function sealedNotification(
  sealing: Sealing,
  { order, jobs }: StoredNotification,
): StoredNotification {
  return {
    order: { ...order, content: sealing.seal(order.content, ownerOfContent(order)) },
    jobs: jobs.map((job) => ({
      ...job,
      recipient: job.recipient === null ? null : sealing.seal(job.recipient, ownerOfRecipient(job)),
    })),
  }
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
