import type { Actor, AuditEntry } from '../ground/audit.ts'
import { instant, type Listing } from '../ground/listing.ts'
import type { NotifyJob, NotifyOrder } from '../ground/notify-job.ts'
import { dayMs, type EpochMs, minuteMs } from '../ground/time.ts'
import type { NewEvent } from '../ground/webhook-events.ts'
import type { Claim } from '../limits/limits.ts'

/** How long recipient and content of a failed or unknown job are kept for `otpost queue retry`. */
export const keptAfterEndMs = dayMs

/** `dueAt` of a job without recipient and content. */
export const erasedAt = Date.UTC(9999, 0, 1)

/** Attempt numbers of a recipient, so that the jobs of a request do not share numbers. */
export const attemptsPerJob = 10_000

/** A crash may leave attempts of a try in the event log that its job does not count. */
export const attemptsOfLostTry = 50

/** Of an app (design D46). */
export const mostWaitingJobs = 20_000

/** What /notify needs of the queue. */
export interface JobQueue {
  /** The claim of this many further jobs of an app. */
  claimOf(appId: string, jobs: number): Promise<Claim>
  /** Jobs of the app are due. Never throws. */
  wake(appId: string): void
}

/** Jobs of an app. */
export interface JobCounts {
  /** Ever, also those that ended. */
  readonly accepted: number
  /** Queued or in flight, at that time or later. */
  readonly waiting: number
}

export interface DueJob {
  readonly order: NotifyOrder
  readonly job: NotifyJob & { readonly recipient: string; readonly owner: string }
}

export type JobChange = Pick<
  NotifyJob,
  'state' | 'recipient' | 'tries' | 'attempts' | 'dueAt' | 'updatedAt' | 'reason'
>

export type ListedJob = Omit<NotifyJob, 'appId' | 'recipient' | 'recipientHash' | 'owner'> &
  Pick<NotifyOrder, 'appId' | 'brandSlug' | 'channel' | 'reference' | 'createdAt' | 'expiresAt'> & {
    /** Whether it can be sent again. */
    readonly hasContent: boolean
  }

export interface QueueStatus {
  /** Queued or in flight. */
  readonly waiting: number
  /** When the oldest of them was accepted. Null: none. */
  readonly oldestAt: EpochMs | null
}

/** Without a backlog or failures, each job is sent within seconds. */
export function isLate(oldestAt: EpochMs | null, now: EpochMs): oldestAt is EpochMs {
  return oldestAt !== null && now - oldestAt >= minuteMs
}

/** What an operator changes in a job of a request. */
export interface OperatorChange extends Pick<NotifyJob, 'position'> {
  readonly change: Partial<NotifyJob>
  readonly event?: NewEvent | undefined
}

export interface JobsDecision {
  readonly changes: readonly OperatorChange[]
  /** Of the order. Undefined: as before. */
  readonly expiresAt?: EpochMs | undefined
  readonly action: AuditEntry['action']
}

export type JobInFlight = Pick<NotifyJob, 'requestId' | 'position' | 'owner' | 'dueAt'>

export interface NotifyJobStore {
  status(): Promise<QueueStatus>
  /** Jobs that failed or are unknown, and can be sent again. */
  failed(): Promise<number>
  counts(appId: string): Promise<JobCounts>
  /** Apps with due jobs. */
  dueApps(now: EpochMs): Promise<readonly string[]>
  /**
   * Marks due jobs as `sending` by `owner`, and counts a try of each. No other process gets them. The apps take turns in this
   * order, each with its oldest job.
   */
  take(by: {
    readonly apps: readonly string[]
    readonly owner: string
    readonly now: EpochMs
    readonly leaseMs: number
    readonly limit: number
  }): Promise<readonly DueJob[]>
  /** Ends a try. False: the job is not in flight by this owner any more. Then nothing is written. */
  end(
    job: Pick<DueJob['job'], 'requestId' | 'position' | 'owner'>,
    change: JobChange,
    event: NewEvent | undefined,
  ): Promise<boolean>
  /**
   * Ends tries whose owner ended or lost its lease. Returns how many jobs became `unknown`.
   * @param latestDueAt queued jobs that are due later become due now: the clock was set back
   */
  recover(
    stateOf: (job: JobInFlight) => 'queued' | 'unknown' | 'sending',
    { now, latestDueAt }: { readonly now: EpochMs; readonly latestDueAt: EpochMs },
    eventOf: (job: JobInFlight) => NewEvent | undefined,
  ): Promise<number>
  /** By position. */
  ofRequest(requestId: string): Promise<readonly ListedJob[]>
  /** Not accepted and not erased, oldest request first. */
  list(query: { readonly appId?: string | undefined; readonly limit: number }): Promise<readonly ListedJob[]>
  /**
   * Atomic. Changes the jobs that nothing else changed meanwhile, and returns how many. `decide` must be synchronous and may
   * run twice; if it throws, nothing is stored.
   */
  change(
    requestId: string,
    by: { readonly actor: Actor; readonly now: number },
    decide: (jobs: readonly ListedJob[]) => JobsDecision,
  ): Promise<number>
}

export const jobListing = {
  requestId: { title: 'Request', value: ({ requestId }) => requestId },
  index: { title: 'Index', value: ({ position }) => position - 1 },
  app: { title: 'App', value: ({ appId }) => appId },
  brandId: { value: ({ brandSlug }) => brandSlug },
  channel: { title: 'Channel', value: ({ channel }) => channel },
  to: { title: 'To', value: ({ masked }) => masked },
  reference: { value: ({ reference }) => reference },
  state: { title: 'State', value: ({ state }) => state },
  tries: { title: 'Tries', value: ({ tries }) => tries },
  reason: { title: 'Reason', value: ({ reason }) => reason },
  createdAt: { value: ({ createdAt }) => instant(createdAt) },
  updatedAt: { value: ({ updatedAt }) => instant(updatedAt) },
  nextTryAt: { title: 'Next try', value: ({ state, dueAt }) => (state === 'queued' ? instant(dueAt) : null) },
  expiresAt: { title: 'Expires', value: ({ expiresAt }) => instant(expiresAt) },
} satisfies Listing<ListedJob>
