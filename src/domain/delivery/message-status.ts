import type { NotifyJob } from '../ground/notify-job.ts'
import type { MessageStatus } from '../ground/providers.ts'
import type { EpochMs } from '../ground/time.ts'
import { type Attempt, mayBeSent } from '../request/request-context.ts'
import type { Delivery } from './delivery-reports.ts'

export interface MessageFacts {
  /** At providers, in order. `report`: the latest delivery report. */
  readonly attempts: readonly MessageAttempt[]
  /** Of an asynchronous notification. Null: synchronous, or already deleted. */
  readonly job: Pick<NotifyJob, 'state' | 'updatedAt'> | null
  readonly request: RequestProgress
  /** It may be sent again, by a further way. */
  readonly isClimbing?: boolean
}

export type MessageAttempt = Pick<Attempt, 'outcome' | 'errorClass' | 'at' | 'durationMs'> &
  Partial<Pick<Delivery, 'report'>>

/** `lost`: the process ended before the answer. */
export interface RequestProgress {
  readonly state: 'running' | 'succeeded' | 'failed' | 'lost'
  /** When it was answered, or else when it began. */
  readonly at: EpochMs
}

export interface DatedStatus {
  readonly status: MessageStatus
  /** Of the attempt, report or job that decides the status. */
  readonly updatedAt: EpochMs
}

/**
 * The status of a message from everything that is known of it. Proof of delivery of any attempt outranks all else. A
 * message is `failed` only if no attempt may have reached the recipient.
 */
export function messageStatus({ attempts, job, request, isClimbing }: MessageFacts): DatedStatus {
  const delivered = attempts.find(({ report }) => report?.status === 'delivered')?.report
  if (delivered) return { status: 'delivered', updatedAt: delivered.at }

  const sent = attempts.filter(mayBeSent)
  const open = sent.filter(({ report }) => report?.status !== 'failed')
  const accepted = open.findLast(isAccepted)
  if (accepted) return { status: 'accepted', updatedAt: endOf(accepted) }

  const last = attempts.at(-1)
  const lastAt = Math.max(last ? endOf(last) : 0, job?.updatedAt ?? request.at)
  if (isClimbing) return { status: 'queued', updatedAt: lastAt }
  // Nothing is tried after an attempt that was accepted.
  if (!sent.some(isAccepted)) {
    if (job?.state === 'accepted') return { status: 'accepted', updatedAt: job.updatedAt }
    const isGoing = job ? job.state === 'queued' || job.state === 'sending' : request.state === 'running'
    if (isGoing) return { status: 'queued', updatedAt: lastAt }
    // An attempt that began may not be recorded.
    if (!job && request.state === 'lost' && last?.errorClass !== 'recipient') {
      return { status: 'unknown', updatedAt: lastAt }
    }
  }

  const unknown = open.at(-1)
  if (unknown) return { status: 'unknown', updatedAt: endOf(unknown) }
  const reportedAt = Math.max(...sent.map(({ report }) => report?.at ?? 0))
  if (sent.length > 0) return { status: 'failed', updatedAt: reportedAt }
  if (job) return { status: job.state === 'unknown' ? 'unknown' : 'failed', updatedAt: job.updatedAt }
  if (last) return { status: 'failed', updatedAt: endOf(last) }
  return { status: request.state === 'succeeded' ? 'accepted' : 'failed', updatedAt: request.at }
}

/** In `to`, from 0. @param position from 1; null: the only recipient */
export function recipientIndex(position: number | null): number {
  return (position ?? 1) - 1
}

function isAccepted({ outcome }: MessageAttempt): boolean {
  return outcome === 'accepted'
}

function endOf({ at, durationMs }: MessageAttempt): EpochMs {
  return at + durationMs
}
