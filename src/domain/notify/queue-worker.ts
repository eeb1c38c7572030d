import { type DeliveryPorts, deliverMail, deliverSms, longestDeliveryMs } from '../delivery/delivery.ts'
import { messageFailed } from '../delivery/message-events.ts'
import { smsWay, type WayPorts } from '../delivery/way.ts'
import { Failure } from '../ground/failures.ts'
import { clockToleranceMs, type Log, type Sealing, type Secrets } from '../ground/ports.ts'
import type { Outcome, Segments } from '../ground/providers.ts'
import { type EpochMs, minuteMs, type Stopwatch } from '../ground/time.ts'
import type { NewEvent } from '../ground/webhook-events.ts'
import type { ClaimStore } from '../limits/claim-store.ts'
import { admitting, pass, settling } from '../limits/gates.ts'
import { type Claim, waitingJobs } from '../limits/limits.ts'
import { Charge } from '../money/charge.ts'
import type { ReadPolicy } from '../policy/policy.ts'
import { newRequestContext, type RequestContext } from '../request/request-context.ts'
import type { EventLog } from '../request/request-trace.ts'
import type { Brand, Brands } from '../texts/brand.ts'
import { type MailContent, mailOf } from '../texts/emails.ts'
import { type SmsContent, smsOf } from '../texts/sms.ts'
import {
  attemptsPerJob,
  type DueJob,
  type JobChange,
  type JobInFlight,
  type JobQueue,
  keptAfterEndMs,
  type NotifyJobStore,
} from './queue.ts'
import { openedJob } from './queued.ts'
import { type WatchedPorts, watchedJob } from './watched.ts'

export interface QueuePorts extends DeliveryPorts, WayPorts, WatchedPorts {
  readonly segmentsOf: (text: string) => Segments
  readonly jobs: NotifyJobStore
  readonly store: ClaimStore
  readonly brands: Brands
  readonly policy: ReadPolicy
  readonly eventLog: EventLog
  readonly stopwatch: Stopwatch
  /** Names this process. */
  readonly owner: string
  /** Whether a process has certainly ended. */
  readonly hasEnded: (owner: string) => boolean
  readonly secrets: Pick<Secrets, 'newEventId'>
  readonly sealing: Sealing
  /** Called after each try. */
  readonly tried: (context: RequestContext) => void
  readonly log: Log
  readonly mostWaiting: number
}

/** Jobs in flight in a process. */
const concurrency = 8

const firstDelayMs = 5000
const longestDelayMs = 5 * minuteMs

/** What a try takes beyond its delivery, also on a busy machine. */
const leaseMarginMs = minuteMs

const recoveryIntervalMs = 10_000

/** Ends of jobs, for the metrics. */
export const jobResults = ['accepted', 'failed', 'unknown'] as const
type JobResult = (typeof jobResults)[number]

type TryResult =
  | { readonly kind: 'accepted' }
  /** `isFinal`: a retry would not help. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isFinal?: boolean }
  /** The message may have been sent, so there is no retry. */
  | { readonly kind: 'unknown'; readonly reason: string }

/**
 * Sends the jobs of asynchronous notifications (design D46). A job is stored as `sending` before a provider is called. If the
 * process ends then, it becomes `unknown`, so that no recipient gets the message twice.
 */
export class QueueWorker implements JobQueue {
  /** Jobs that this process ended. */
  readonly counts = new Map<JobResult, number>(jobResults.map((result) => [result, 0]))
  private readonly inFlight = new Set<Promise<void>>()
  private readonly keys = new Set<string>()
  private run: Promise<void> | undefined
  private isWoken = false
  private isStopped = false
  private recovery: Promise<void> | undefined
  private recoveredAt = Number.NEGATIVE_INFINITY
  /** Those that may have due jobs. The first is next. */
  private apps: string[] = []
  private hasReadApps = false
  /** Resolves at the next tick. */
  private nextTick = Promise.withResolvers<void>()

  constructor(private readonly ports: QueuePorts) {}

  /** Call it at start and every second. */
  readonly tick = (): void => {
    if (this.isStopped) return
    this.nextTick.resolve()
    this.nextTick = Promise.withResolvers()
    const at = this.ports.stopwatch()
    if (!this.recovery && at - this.recoveredAt >= recoveryIntervalMs) {
      this.recoveredAt = at
      this.recovery = this.recover().finally(() => {
        this.recovery = undefined
        this.hasReadApps = false
        this.resume()
      })
    }
    this.hasReadApps = false
    this.resume()
  }

  readonly wake = (appId: string): void => {
    if (!this.apps.includes(appId)) this.apps.push(appId)
    this.resume()
  }

  private resume(): void {
    this.isWoken = true
    if (this.isStopped) return
    this.run ??= this.takeDue().finally(() => {
      this.run = undefined
      // Woken after the last step.
      if (this.isWoken) this.resume()
    })
  }

  async claimOf(appId: string, jobs: number): Promise<Claim> {
    return waitingJobs(appId, jobs, await this.ports.jobs.counts(appId), this.ports.mostWaiting)
  }

  /** Resolves when no job is due or in flight. */
  async idle(): Promise<void> {
    while (this.run || this.recovery || this.inFlight.size > 0) {
      await Promise.all([this.run, this.recovery, ...this.inFlight])
    }
  }

  /** Ends what is in flight, and takes no other job. */
  async stop(): Promise<void> {
    this.isStopped = true
    this.nextTick.resolve()
    await this.idle()
  }

  private async takeDue(): Promise<void> {
    const { jobs, owner, now, providerTimeoutMs, log } = this.ports
    const leaseMs = longestDeliveryMs(providerTimeoutMs) + leaseMarginMs
    try {
      while (this.isWoken && !this.isStopped) {
        this.isWoken = false
        const limit = concurrency - this.inFlight.size
        if (limit <= 0) return
        if (!this.hasReadApps) await this.readApps()
        const apps = this.apps.splice(0, limit)
        if (apps.length === 0) return
        const due = await jobs.take({ apps, owner, now: now(), leaseMs, limit })
        for (const job of due) this.begin(job)
        this.endTurns(apps, due)
        this.isWoken = true
      }
    } catch (err) {
      log.error({ err }, 'asynchronous notifications could not be read; otpost will try again')
    }
  }

  private async readApps(): Promise<void> {
    this.hasReadApps = true
    const due = await this.ports.jobs.dueApps(this.ports.now())
    this.apps = [...new Set([...this.apps, ...due])]
  }

  /** Those with due jobs come last, and of these the ones that had fewer jobs in this turn first. */
  private endTurns(apps: readonly string[], due: readonly DueJob[]): void {
    const begun = Map.groupBy(due, ({ job }) => job.appId)
    const jobsOf = (appId: string) => begun.get(appId)?.length ?? 0
    const others = apps.filter((appId) => jobsOf(appId) > 0 && !this.apps.includes(appId))
    this.apps.push(...others.toSorted((a, b) => jobsOf(a) - jobsOf(b)))
  }

  private begin(due: DueJob): void {
    const key = keyOf(due.job)
    this.keys.add(key)
    const work = this.process(due).finally(() => {
      this.inFlight.delete(work)
      this.keys.delete(key)
      this.resume()
    })
    this.inFlight.add(work)
  }

  private async recover(): Promise<void> {
    const { jobs, owner, hasEnded, now, policy, log } = this.ports
    try {
      const { webhooks } = await policy()
      const at = now()
      const stateOf = (job: JobInFlight) => {
        const isLeaseOver = job.dueAt <= at
        // This process took it, but did not learn of the commit.
        if (job.owner === owner) return isLeaseOver && !this.keys.has(keyOf(job)) ? 'queued' : 'sending'
        return job.owner === null || isLeaseOver || hasEnded(job.owner) ? 'unknown' : 'sending'
      }
      const lost = await jobs.recover(
        stateOf,
        { now: at, latestDueAt: at + longestDelayMs + clockToleranceMs },
        (job) => (webhooks.size === 0 ? undefined : this.failedEvent(job, 'unknown', 'process ended')),
      )
      this.counts.set('unknown', (this.counts.get('unknown') ?? 0) + lost)
      if (lost > 0) {
        log.warn(
          { jobs: lost },
          'a process ended while it sent asynchronous notifications; their results are unknown',
        )
      }
    } catch (err) {
      log.error({ err }, 'asynchronous notifications in flight could not be checked; otpost will try again')
    }
  }

  private async process(due: DueJob): Promise<void> {
    const { job, order } = due
    const { tried, now } = this.ports
    const at = now()
    const context = contextOf(due, at)
    if (at >= order.expiresAt) {
      // `take` counted a try.
      await this.save({ order, job: { ...job, tries: job.tries - 1 } }, context, expired(job.reason))
      return
    }
    const result = await this.send(context, due)
    tried(context)
    await this.save(due, context, result)
  }

  private async send(context: RequestContext, due: DueJob): Promise<TryResult> {
    const opened = openedJob(this.ports.sealing, due)
    if (!opened) return { kind: 'failed', reason: 'cannot be decrypted', isFinal: true }
    const job = { ...due.job, recipient: opened.recipient }
    const order = { ...due.order, content: opened.content }
    try {
      const outcome = await this.deliver(context, job, order)
      return typeof outcome === 'string' ? { kind: 'failed', reason: outcome } : resultOf(context, outcome)
    } catch (error) {
      if (error instanceof Failure) {
        const { kind, details } = error
        const spent = details.reason === 'guard' ? 'limit of new countries reached' : 'budget exhausted'
        return { kind: 'failed', reason: kind === 'rate_limited' ? spent : 'destination blocked' }
      }
      const { requestId, position } = job
      this.ports.log.error(
        { err: error, requestId, position },
        'an asynchronous notification could not be sent; otpost will try again',
      )
      return resultOf(context, { kind: 'retryable', reason: 'internal error' })
    }
  }

  /** A text: why no provider was called. */
  private async deliver(
    context: RequestContext,
    { requestId, position, recipient: to, recipientHash }: DueJob['job'],
    { appId, channel, brandSlug, content }: DueJob['order'],
  ): Promise<Outcome | string> {
    const { ports } = this
    const brand = await this.activeBrand(brandSlug)
    const addressed = { requestId, to, recipientHash, position }
    if (channel === 'EMAIL') {
      const mail: MailContent = JSON.parse(content)
      return deliverMail(ports, context, mailOf(brand, mail, { ...addressed, template: null }))
    }
    if (!brand) return 'brand not active'
    const sms: SmsContent = JSON.parse(content)
    const policy = await ports.policy()
    const about = { field: 'to', brand, policy, isTemplate: sms.template !== null }
    const way = smsWay(ports, context, { channel, to }, about)
    const message = smsOf(ports, brand, sms, way, addressed)
    const charged = { app: appId, brand: brand.slug, of: 'notifications' } as const
    const charge = new Charge(policy, charged, context, ports, [message])
    const limit = await watchedJob(ports, context, { app: policy.scopeOf(appId), messages: [message] })
    const { settle } = await pass(ports, context, [limit, charge], admitting(ports))
    return settling(context, settle, () => deliverSms(ports, context, message, { charging: charge }))
  }

  private async activeBrand(slug: string | null): Promise<Brand | undefined> {
    const brand = slug === null ? undefined : await this.ports.brands.bySlug(slug)
    return brand?.status === 'active' ? brand : undefined
  }

  /** Repeats until the result is stored, since the message may have been sent. */
  private async save(due: DueJob, context: RequestContext, result: TryResult): Promise<void> {
    const { jobs, policy, eventLog, log, now } = this.ports
    const { job, order } = due
    for (;;) {
      try {
        const change = changeOf(due, context, result, now())
        const { state } = change
        let event: NewEvent | undefined
        if ((state === 'failed' || state === 'unknown') && (await policy()).webhooks.has(order.appId)) {
          // Deliveries of events read the event log.
          await eventLog.flush()
          event = this.failedEvent(job, state, change.reason)
        }
        const isOwn = await jobs.end(job, change, event)
        if (isOwn) this.noteEnd(job, change)
        return
      } catch (err) {
        const { requestId, position } = job
        const about = { err, requestId, position, result: result.kind }
        log.error(
          about,
          'the result of an asynchronous notification could not be stored; otpost will try again',
        )
        if (this.isStopped) return
        await this.nextTick.promise
      }
    }
  }

  private noteEnd({ requestId, position }: DueJob['job'], { state, reason }: JobChange): void {
    const result = jobResults.find((each) => each === state)
    if (!result) return
    this.counts.set(result, (this.counts.get(result) ?? 0) + 1)
    if (result === 'accepted') return
    const words = result === 'failed' ? 'was not sent' : 'may or may not have been sent'
    this.ports.log.warn({ requestId, position, reason }, `an asynchronous notification ${words}`)
  }

  private failedEvent(
    { requestId, position }: Pick<DueJob['job'], 'requestId' | 'position'>,
    status: 'failed' | 'unknown',
    reason: string | null,
  ): NewEvent {
    const at = this.ports.now()
    return messageFailed({ id: this.ports.secrets.newEventId(at), at, requestId, position }, status, reason)
  }
}

function keyOf({ requestId, position }: Pick<JobInFlight, 'requestId' | 'position'>): string {
  return `${requestId} ${position}`
}

function contextOf({ job, order }: DueJob, at: EpochMs): RequestContext {
  const context = newRequestContext({ requestId: job.requestId, at, clientIp: '' })
  context.isJob = true
  context.operation = 'notify'
  context.app = order.appId
  if (order.brandSlug !== null) context.brand = order.brandSlug
  context.channel = order.channel
  context.recipient = job.masked
  context.recipientHash = job.recipientHash
  context.attemptsBegun = job.position * attemptsPerJob + job.attempts
  return context
}

/** An attempt before the last one may have been sent (design D26). */
function resultOf({ attempts }: RequestContext, outcome: Outcome): TryResult {
  if (attempts.some((attempt) => attempt.outcome === 'accepted')) return { kind: 'accepted' }
  const unknown = attempts.find((attempt) => attempt.outcome === 'unknown')
  if (unknown) return { kind: 'unknown', reason: unknown.reason ?? 'unknown' }
  if (outcome.kind === 'accepted') return { kind: 'accepted' }
  const { kind, reason } = outcome
  if (kind === 'unknown') return { kind, reason }
  return { kind: 'failed', reason, isFinal: kind === 'rejected' && outcome.scope === 'recipient' }
}

function expired(reason: string | null): TryResult {
  return { kind: 'failed', reason: reason === null ? 'expired' : `expired: ${reason}`, isFinal: true }
}

function changeOf(
  { job, order }: DueJob,
  { attemptsBegun }: RequestContext,
  result: TryResult,
  now: EpochMs,
): JobChange {
  const attempts = attemptsBegun - job.position * attemptsPerJob
  const { tries } = job
  if (result.kind === 'accepted') {
    return { state: 'accepted', recipient: null, tries, attempts, dueAt: now, updatedAt: now, reason: null }
  }
  const { kind, reason } = result
  const about = { recipient: job.recipient, tries, attempts, updatedAt: now, reason }
  if (kind === 'unknown' || result.isFinal) return { ...about, state: kind, dueAt: now + keptAfterEndMs }
  const delayMs = Math.min(firstDelayMs * 2 ** (tries - 1), longestDelayMs)
  return { ...about, state: 'queued', dueAt: Math.min(now + delayMs, order.expiresAt) }
}
