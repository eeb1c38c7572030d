import { messageFailed } from '../delivery/message-events.ts'
import { OperatorError } from '../ground/operator-error.ts'
import type { Secrets } from '../ground/ports.ts'
import type { ListedJob, NotifyJobStore, OperatorChange } from '../notify/queue.ts'
import { defaultLifetimeMs } from '../notify/queue-body.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'

// What operators do with asynchronous notifications (design D46).

export interface QueueOperatorPorts extends PolicyPorts {
  readonly jobs: NotifyJobStore
  readonly secrets: Pick<Secrets, 'newEventId'>
}

/** `queue retry`. Sends failed jobs of a request again, for another hour. Returns how many. */
export async function retryJobs(
  { jobs, now, actor }: Pick<QueueOperatorPorts, 'jobs' | 'now' | 'actor'>,
  requestId: string,
  { includesUnknown }: { readonly includesUnknown: boolean },
): Promise<number> {
  const at = now()
  const retried = await jobs.change(requestId, { actor, now: at }, (all) => {
    const wanted = known(requestId, all).filter(
      ({ state }) => state === 'failed' || (includesUnknown && state === 'unknown'),
    )
    if (wanted.length === 0) {
      throw new OperatorError(
        all.some(({ state }) => state === 'unknown')
          ? 'No job of this request has failed. The results of some jobs are unknown: their messages may have been sent. To send them again, confirm it with --include-unknown.'
          : 'No job of this request has failed.',
      )
    }
    const kept = wanted.filter(({ hasContent }) => hasContent)
    if (kept.length === 0) {
      throw new OperatorError(
        'The message is deleted, since the jobs ended more than 24 hours ago or their recipients were erased. Send the notification again from the app.',
      )
    }
    const change = { state: 'queued', tries: 0, dueAt: at, updatedAt: at, owner: null } as const
    return {
      changes: kept.map(({ position }) => ({ position, change })),
      expiresAt: Math.max(at + defaultLifetimeMs, ...all.map(({ expiresAt }) => expiresAt)),
      action: 'queue.retried',
    }
  })
  return changedJobs(retried)
}

/** `queue cancel`. Cancels the jobs of a request that are queued. Returns how many. */
export async function cancelJobs(
  { jobs, policy, now, actor, secrets }: QueueOperatorPorts,
  requestId: string,
): Promise<number> {
  const at = now()
  const { webhooks } = await policy.rows()
  const cancelled = await jobs.change(requestId, { actor, now: at }, (all) => {
    const queued = known(requestId, all).filter(({ state }) => state === 'queued')
    if (queued.length === 0) throw new OperatorError('No job of this request is queued.')
    const reason = 'cancelled'
    const change = { state: 'cancelled', recipient: null, dueAt: at, updatedAt: at, reason } as const
    const hasWebhook = webhooks.some((webhook) => webhook.appId === all[0]?.appId)
    const changes = queued.map(({ position }): OperatorChange => {
      if (!hasWebhook) return { position, change }
      const message = { id: secrets.newEventId(at), at, requestId, position }
      return { position, change, event: messageFailed(message, 'failed', reason) }
    })
    return { changes, action: 'queue.cancelled' }
  })
  return changedJobs(cancelled)
}

/** The longest list for operators. */
export const mostListedJobs = 1000

/** Jobs that are queued, in flight, or can be retried; oldest request first. */
export function listJobs(
  { jobs }: Pick<QueueOperatorPorts, 'jobs'>,
  { appId }: { readonly appId?: string | undefined } = {},
): Promise<readonly ListedJob[]> {
  return jobs.list({ appId, limit: mostListedJobs })
}

function known(requestId: string, jobs: readonly ListedJob[]): readonly ListedJob[] {
  if (jobs.length > 0) return jobs
  throw new OperatorError(`Request ${requestId} has no asynchronous notification.`)
}

function changedJobs(changed: number): number {
  if (changed > 0) return changed
  throw new OperatorError('The jobs of this request have changed meanwhile. Look at them again.')
}
