import { messageFailed } from '../delivery/message-events.ts'
import { advice, see } from '../ground/advice.ts'
import { counted } from '../ground/format.ts'
import { OperatorError } from '../ground/operator-error.ts'
import type { Secrets } from '../ground/ports.ts'
import type { ListedJob, NotifyJobStore, OperatorChange } from '../notify/queue.ts'
import { defaultLifetimeMs } from '../notify/queue-body.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { action, type Group } from './action.ts'
import { field, flag, requestIdIn } from './fields.ts'

// What operators do with asynchronous notifications (design D46).

export interface QueueOperatorPorts extends PolicyPorts {
  readonly jobs: NotifyJobStore
  readonly secrets: Pick<Secrets, 'newEventId'>
}

type RetryPorts = Pick<QueueOperatorPorts, 'jobs' | 'now' | 'actor'>

export const queueGroup: Group = {
  name: 'queue',
  does: 'see, retry and cancel asynchronous notifications (POST /notify with async)',
  entries: 'queue',
  target: 'request ID',
}

const requestField = field(requestIdIn, { label: 'Request ID', help: 'the requestId of the 202 answer' })

export const queueRetry = action(queueGroup, 'retry', {
  role: 'operator',
  isSensitive: false,
  does: 'send the failed jobs of a request again, for one hour',
  note: 'otpost keeps the message and the recipient of a failed job for 24 hours.',
  fields: {
    requestId: requestField,
    unknown: flag({
      label: 'Also unknown results',
      as: '--include-unknown',
      help: 'also jobs with an unknown result, whose recipients may get two messages',
    }),
  },
  audit: { 'queue.retried': 'Queued messages retried' },
  form: { path: 'queue/retry' },
  run: async ({ jobs, now, actor }: RetryPorts, { requestId, unknown: includesUnknown }) => {
    const at = now()
    const retried = await jobs.change(requestId, { actor, now: at }, (all) => {
      const wanted = known(requestId, all).filter(
        ({ state }) => state === 'failed' || (includesUnknown && state === 'unknown'),
      )
      if (wanted.length === 0) {
        throw all.some(({ state }) => state === 'unknown')
          ? new OperatorError(
              'No job of this request has failed. The results of some jobs are unknown: their messages may have been sent.',
              advice`To send them again, run ${see('queue retry', { requestId, unknown: '' })}.`,
            )
          : new OperatorError('No job of this request has failed.')
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
  },
  said: (retried) => `${counted(retried, 'job')} queued again.`,
})

export const queueCancel = action(queueGroup, 'cancel', {
  role: 'operator',
  isSensitive: false,
  does: 'cancel the queued jobs of a request',
  fields: { requestId: requestField },
  audit: { 'queue.cancelled': 'Queued messages cancelled' },
  form: { path: 'queue/cancel' },
  run: async ({ jobs, policy, now, actor, secrets }: QueueOperatorPorts, { requestId }) => {
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
  },
  said: (cancelled) => `${counted(cancelled, 'job')} cancelled.`,
})

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

export const queueActions = [queueRetry, queueCancel]
