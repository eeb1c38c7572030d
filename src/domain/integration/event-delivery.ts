import { eventBody } from '../delivery/message-events.ts'
import type { Log } from '../ground/ports.ts'
import { type Clock, type EpochMs, hourMs, minuteMs } from '../ground/time.ts'
import { firstDueAt, type NewEvent, type StoredEvent, type Webhook } from '../ground/webhook-events.ts'
import { statusOf } from '../log/event-log.ts'
import type { ReadPolicy } from '../policy/policy.ts'
import { mayBeSent } from '../request/request-context.ts'
import type { EventMessage, EventStore, Resolution, ResolvedEvent, TryResult } from './event-store.ts'

/** Between tries, a tenth more or less (design D45). */
export const eventRetryDelaysMs: readonly number[] = [
  5000,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  5 * hourMs,
  10 * hourMs,
  10 * hourMs,
]

export const eventTimeoutMs = 20_000

/** A receiver can ask for this much with Retry-After. */
const longestRetryAfterMs = 10 * hourMs

/** After a crash, another process tries again. */
const leaseMs = minuteMs

/** For each app. Later events are dropped. */
export const mostWaiting = 100_000

/** In flight to one webhook. One if its latest try failed, and one while the shared turns are in use. */
const turnsOfOne = 4

/**
 * In flight to all webhooks whose latest try succeeded, and apart from these to those whose latest try failed. As many again are for the
 * first event of each webhook, so that slow webhooks with many events do not delay it.
 */
const sharedTurns = 32

const resolveBatch = 200

/** An event whose message does not appear in the event log is dropped. */
export const resolveWithinMs = minuteMs

/** Between counts of the events that wait. Once more when the clock was set back by as much. */
const countEveryMs = 30_000

const eventResults = ['delivered', 'retried', 'failed', 'dropped'] as const
type EventResult = (typeof eventResults)[number]

export interface SentEvent extends TryResult {
  /** Of an answer 429 or 503 that has Retry-After. */
  readonly retryAfterMs?: number
}

export interface EventDeliveryPorts {
  readonly events: EventStore
  readonly policy: ReadPolicy
  /** One signed POST. Never throws, and resolves within `eventTimeoutMs`. An error of null: accepted. */
  readonly send: (webhook: Webhook, id: string, body: string) => Promise<SentEvent>
  /** From 0 to 1, uniform. */
  readonly random: () => number
  /** Switches off this webhook and sends an alert, unless it was set again. */
  readonly switchOff: (webhook: Webhook, reason: string) => Promise<void>
  /** `mostWaiting` events of its app wait, and a later one is dropped. */
  readonly dropping: (webhook: Webhook) => Promise<void>
  readonly now: Clock
  readonly log: Log
}

/**
 * Delivers events to webhooks (design D45): gives each new event its app and recipient from the event log, then tries it until it is
 * accepted. Everything is stored first, so that a restart or another process continues.
 */
export class EventDelivery {
  /** Of this process. */
  readonly counts = new Map<EventResult, number>(eventResults.map((result) => [result, 0]))
  /** As of the latest count, and of what this process did since. */
  private waitingByApp = new Map<string, number>()
  private countedAt = Number.NEGATIVE_INFINITY
  /** By app. */
  private readonly inFlight = new Map<string, number>()
  private readonly failing = new Set<string>()
  private readonly tries = new Set<Promise<void>>()
  private run: Promise<void> | undefined
  /** Whether a step must follow the present one. */
  private isAwaited = false
  private isStopped = false
  /** The latest step. */
  private hasFailed = false

  constructor(private readonly ports: EventDeliveryPorts) {}

  get waiting(): number {
    return sum(this.waitingByApp.values())
  }

  /** Call it at start and every second. It works in the background if an app has a webhook. */
  readonly tick = (): void => {
    this.isAwaited = this.run !== undefined
    if (this.run || this.isStopped) return
    this.run = this.step()
      .then(() => {
        this.hasFailed = false
      })
      .catch((err: unknown) => {
        // Once, since a step follows every second.
        if (!this.hasFailed)
          this.ports.log.error({ err }, 'events could not be read or delivered; otpost will try again')
        this.hasFailed = true
      })
      .finally(() => {
        this.run = undefined
        if (this.isAwaited) this.tick()
      })
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.run || this.tries.size > 0) await Promise.all([this.run, ...this.tries])
  }

  /** Starts no further try, and waits for those under way. */
  async stop(): Promise<void> {
    this.isStopped = true
    await this.idle()
  }

  private async step(): Promise<void> {
    const { webhooks } = await this.ports.policy()
    if (webhooks.size === 0) {
      this.waitingByApp.clear()
      return
    }
    await this.count()
    await this.resolveAll(webhooks)
    await this.startAll(webhooks)
  }

  private async count(): Promise<void> {
    const now = this.ports.now()
    if (Math.abs(now - this.countedAt) < countEveryMs) return
    this.countedAt = now
    await this.ports.events.recover(now)
    this.waitingByApp = new Map(await this.ports.events.waiting())
  }

  private async resolveAll(webhooks: ReadonlyMap<string, Webhook>): Promise<void> {
    const { events, now } = this.ports
    for (let isFull = true; isFull && !this.isStopped; ) {
      const fresh = await events.unresolved(now(), resolveBatch)
      isFull = fresh.length === resolveBatch
      if (fresh.length === 0) return
      const messages = await events.messagesOf(fresh, now())
      const full = new Set<Webhook>()
      const resolution = this.decide(fresh, messages, webhooks, full)
      await events.resolve(resolution)
      for (const { app } of resolution.resolved) this.changeWaiting(app, 1)
      for (const webhook of full) await this.ports.dropping(webhook)
    }
  }

  /** @param full receives the webhooks for which too many events wait */
  private decide(
    fresh: readonly NewEvent[],
    messages: ReadonlyMap<string, EventMessage>,
    webhooks: ReadonlyMap<string, Webhook>,
    full: Set<Webhook>,
  ): Resolution {
    const now = this.ports.now()
    const resolved: ResolvedEvent[] = []
    const dropped: string[] = []
    const later: { id: string; dueAt: EpochMs }[] = []
    const room = new Map<string, number>()
    for (const event of fresh) {
      const { id, type, at } = event
      const message = messages.get(id)
      if (!message) {
        const ageMs = now - at
        if (ageMs > resolveWithinMs) dropped.push(id)
        else later.push({ id, dueAt: now + Math.max(1000, ageMs) })
        continue
      }
      const { app } = message
      const webhook = webhooks.get(app)
      if (!webhook || !isSubscribed(webhook, event) || isSuperseded(event, message)) {
        dropped.push(id)
        continue
      }
      if (type === 'message.failed' && message.isClimbing) {
        later.push({ id, dueAt: now + 1000 })
        continue
      }
      const left = room.get(app) ?? mostWaiting - (this.waitingByApp.get(app) ?? 0)
      room.set(app, left - 1)
      if (left <= 0) {
        dropped.push(id)
        full.add(webhook)
        this.countResult('dropped')
        continue
      }
      const { requestId, brand, channel, position, recipient, reference } = message
      const dueAt = firstDueAt(webhook, now)
      resolved.push({ id, type, requestId, app, brand, channel, position, recipient, reference, dueAt })
    }
    return { resolved, dropped, later }
  }

  /** Takes turns until nothing is due or every turn is in use. */
  private async startAll(webhooks: ReadonlyMap<string, Webhook>): Promise<void> {
    const { events, now } = this.ports
    for (const ofFailing of [false, true]) {
      while (!this.isStopped) {
        const used = this.inFlightOf(ofFailing)
        const isShared = used < sharedTurns
        if (ofFailing && !isShared) break
        const turns = this.freeTurns(webhooks, ofFailing, ofFailing || !isShared ? 1 : turnsOfOne)
        const most = (isShared ? 1 : 2) * sharedTurns - used
        if (turns.size === 0 || most <= 0) break
        const taken = await events.take(turns, most, now(), leaseMs)
        if (taken.length === 0) break
        for (const event of taken) this.start(event, webhooks)
      }
    }
  }

  /** By app, of the webhooks that fail or of the others. */
  private freeTurns(
    webhooks: ReadonlyMap<string, Webhook>,
    ofFailing: boolean,
    mostOfOne: number,
  ): ReadonlyMap<string, number> {
    const turns = new Map<string, number>()
    for (const [appId, { disabledAt }] of webhooks) {
      if (disabledAt !== null || this.failing.has(appId) !== ofFailing) continue
      const free = mostOfOne - (this.inFlight.get(appId) ?? 0)
      if (free > 0) turns.set(appId, free)
    }
    return turns
  }

  private inFlightOf(ofFailing: boolean): number {
    const counts = this.inFlight.entries().filter(([appId]) => this.failing.has(appId) === ofFailing)
    return sum(counts.map(([, count]) => count))
  }

  private start(event: StoredEvent, webhooks: ReadonlyMap<string, Webhook>): void {
    const webhook = webhooks.get(event.appId ?? '')
    if (!webhook) return
    const { appId } = webhook
    this.inFlight.set(appId, (this.inFlight.get(appId) ?? 0) + 1)
    const trying = this.try(webhook, event)
      .catch((err: unknown) =>
        this.ports.log.error({ err, event: event.id }, 'the result of an event could not be stored'),
      )
      .finally(() => {
        this.tries.delete(trying)
        const left = (this.inFlight.get(appId) ?? 1) - 1
        if (left > 0) this.inFlight.set(appId, left)
        else this.inFlight.delete(appId)
        this.tick()
      })
    this.tries.add(trying)
  }

  private async try(webhook: Webhook, event: StoredEvent): Promise<void> {
    const { events, now, log } = this.ports
    const { appId } = webhook
    const { retryAfterMs = 0, ...result } = await this.ports.send(webhook, event.id, eventBody(event))
    if (result.error === null) {
      if (this.failing.delete(appId)) log.info({ app: appId }, 'a webhook accepts events again')
      await events.end(event, 'delivered', now(), result)
      this.ended(appId, 'delivered')
      return
    }
    const about = { app: appId, event: event.id, tries: event.tries, reason: result.error }
    if (!this.failing.has(appId)) log.warn(about, 'a webhook did not accept an event; otpost will try again')
    this.failing.add(appId)
    const delayMs = this.retryDelayMs(event, retryAfterMs)
    if (delayMs === undefined) {
      await events.end(event, 'failed', now(), result)
      this.ended(appId, 'failed')
      log.error(about, 'an event could not be delivered; its webhook is switched off')
    } else {
      await events.retryAt(event, now() + delayMs, result)
      this.countResult('retried')
      if (result.httpStatus !== gone) return
      log.error(about, 'a receiver of events is gone; its webhook is switched off')
    }
    await this.ports.switchOff(webhook, result.error)
  }

  /** Undefined: that was the last try. */
  private retryDelayMs({ tries }: StoredEvent, retryAfterMs: number): number | undefined {
    const delayMs = eventRetryDelaysMs[tries - 1]
    if (delayMs === undefined) return undefined
    // So that the retries of many events do not arrive at once.
    const varied = delayMs * (0.9 + 0.2 * this.ports.random())
    return Math.round(Math.max(varied, Math.min(retryAfterMs, longestRetryAfterMs)))
  }

  private ended(appId: string, result: 'delivered' | 'failed'): void {
    this.changeWaiting(appId, -1)
    this.countResult(result)
  }

  private changeWaiting(appId: string, by: number): void {
    this.waitingByApp.set(appId, Math.max(0, (this.waitingByApp.get(appId) ?? 0) + by))
  }

  private countResult(result: EventResult): void {
    this.counts.set(result, (this.counts.get(result) ?? 0) + 1)
  }
}

/** HTTP status 410: the receiver wants no further events. The event waits until the webhook is set again. */
const gone = 410

function sum(counts: IteratorObject<number>): number {
  return counts.reduce((total, count) => total + count, 0)
}

function isSubscribed({ eventTypes }: Webhook, { type }: NewEvent): boolean {
  return eventTypes.length === 0 || eventTypes.includes(type)
}

/** A report that an attempt failed says nothing about a message that another attempt may have delivered. */
function isSuperseded({ type, reportKey }: NewEvent, { attempts }: EventMessage): boolean {
  if (type !== 'message.failed' || reportKey === null) return false
  return attempts.some(
    (other) => other.reportKey !== reportKey && mayBeSent(other) && statusOf(other) !== 'failed',
  )
}
