import { type Alert, type AlertChannel, budgetKind, reviewNumberKind } from '../ground/alert.ts'
import { withoutPoint } from '../ground/format.ts'
import type { Log } from '../ground/ports.ts'
import type { Outcome } from '../ground/providers.ts'
import { type Clock, dayMs, type EpochMs, hourMs, minuteMs, periodOf } from '../ground/time.ts'
import type { Surge } from '../guard/notify-watch.ts'
import type { Micros } from '../money/amounts.ts'
import {
  addRefused,
  type Budget,
  type BudgetCounters,
  type BudgetStatus,
  budgetName,
  budgetStatuses,
  percentagesReached,
  type Refused,
  spentWords,
} from '../money/budgets.ts'
import type { BudgetName } from '../request/limit-names.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { RequestListener } from '../request/request-ended.ts'
import { conditionKinds } from './conditions.ts'
import type { Problem } from './problem.ts'
import { isAlertOf, type SurgeAlert, surgeAlert, surgeKind } from './surges.ts'

// Alerts: when one is stored, and its deliveries until a receiver accepts it.

export const requestKind = 'integration.requested'

/** About the webhook of an app (design D45). */
export interface WebhookAlert {
  readonly appId: string
  /** Without its query. */
  readonly url: string
  /** Why the last try failed. Null: events are dropped, since too many wait. */
  readonly reason: string | null
}

/** Amounts in the currency, as in JSON for receivers. */
export interface BudgetAlert extends Pick<BudgetName, 'scope' | 'of' | 'country'> {
  readonly period: Budget['period']
  readonly percent: number
  readonly amount: number
  readonly spent: number
  readonly currency: string
  /** ISO 8601 */
  readonly resetsAt: string
  /** Whether messages are rejected once the amount is spent. */
  readonly stops: boolean
}

/** As requesters entered it, without the contact. */
export interface PendingRequest {
  readonly id: string
  readonly createdAt: EpochMs
  readonly companyName: string
  readonly brandName: string
}

/** All integration requests that are pending when it is sent. */
export interface RequestAlert {
  readonly pending: number
  /** Of the console. */
  readonly url: string
  /** Newest first, at most 10. */
  readonly requests: readonly {
    readonly integrationRequestId: string
    /** ISO 8601 */
    readonly receivedAt: string
    readonly companyName: string
    readonly brandName: string
  }[]
}

const mostListed = 10

/** However many integration requests arrive. */
export const requestIntervalMs = 10 * minuteMs

/**
 * The alert for an integration request that arrives at `now`. It is due at once, or when the interval after the latest one ends.
 * @param latestAt of the latest alert of this kind, which may not be due yet
 */
export function requestAlert(latestAt: EpochMs | undefined, now: EpochMs): Alert {
  const isPending = latestAt !== undefined && latestAt > now && latestAt <= now + requestIntervalMs
  // A later one is from before the clock was set back.
  const nextAt = latestAt === undefined || latestAt > now ? now : Math.max(now, latestAt + requestIntervalMs)
  const at = isPending ? latestAt : nextAt
  const key = `${requestKind} ${new Date(at).toISOString()}`
  return { key, at, kind: requestKind, title: 'New integration request', text: '{}' }
}

export interface AlertDelivery {
  readonly alert: Alert
  readonly channel: AlertChannel
  /** With the present one. */
  readonly tries: number
}

export interface AlertStore {
  /** Stores an alert and a delivery for each channel. False: an alert with this key exists. */
  add(alert: Alert, channels: readonly AlertChannel[]): Promise<boolean>
  /**
   * The deliveries that are due at `now`, or that wait longer than they should, since the clock was set back. Counts a try of each, and
   * makes it due again after `leaseMs`, so that no other process takes it.
   */
  take(channels: readonly AlertChannel[], now: number, leaseMs: number): Promise<readonly AlertDelivery[]>
  retryAt(delivery: AlertDelivery, dueAt: EpochMs): Promise<void>
  /** It was accepted or given up. */
  end(delivery: AlertDelivery): Promise<void>
  /** Newest first. */
  latest(limit: number): Promise<readonly Alert[]>
  /** Oldest first. */
  ofKinds(kinds: readonly string[], since: EpochMs): Promise<readonly Alert[]>
  /** Deliveries that failed and will be tried again, by channel. */
  failing(now: EpochMs): Promise<readonly FailingAlerts[]>
}

export interface FailingAlerts {
  readonly channel: AlertChannel
  readonly alerts: number
}

/** `send` never throws, and resolves within `alertTimeoutMs`. */
export interface AlertTarget {
  readonly channel: AlertChannel
  send(alert: Alert, tries: number): Promise<Outcome>
}

export const alertTimeoutMs = 10_000

/** After a crash, another process tries again. A delivery that is due for longer is of a channel without a setting. */
export const leaseMs = 60_000

/** Between tries. */
export const retryDelaysMs = [5000, minuteMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs]

const checkIntervalMs = 30_000
/** For alerts that a command stored. */
const pollIntervalMs = 5000
/** After a request that may have reached a threshold. */
const shortestIntervalMs = 1000

export interface AlertPorts {
  /** As `ConditionAlerts.check`. */
  readonly checkConditions: (budgets: readonly BudgetStatus[] | undefined) => Promise<readonly Alert[]>
  readonly budgets: () => Promise<readonly Budget[]> | readonly Budget[]
  readonly spent: BudgetCounters['spent']
  readonly alerts: AlertStore
  readonly requests: {
    pendingCount(): Promise<number>
    list(query: { readonly isPending: true; readonly limit: number }): Promise<readonly PendingRequest[]>
  }
  readonly ownUrl: () => string
  readonly targets: readonly AlertTarget[]
  readonly now: Clock
  readonly log: Log
}

/**
 * Sends an alert once for each threshold of a budget and period (design D42). Everything runs after the requests: alerts are stored
 * first, so that a restart continues with their deliveries. Thresholds that a crash hid are found by a check of all budgets.
 */
export class Alerts {
  /** Alerts stored by this process, by kind. */
  readonly counts = new Map<Alert['kind'], number>([
    [budgetKind, 0],
    ['webhook.disabled', 0],
    ['webhook.dropping', 0],
    [requestKind, 0],
    [reviewNumberKind, 0],
    [surgeKind, 0],
    ...conditionKinds.map((kind): [string, number] => [kind, 0]),
  ])
  /** Of the latest check. */
  shares: readonly { readonly name: string; readonly ratio: number }[] = []
  /** Keys of stored alerts. */
  private readonly known = new Set<string>()
  private run: Promise<void> | undefined
  private checkedAt: EpochMs = 0
  private nextCheckAt: EpochMs = 0
  private polledAt: EpochMs = 0
  private readonly startedAt: EpochMs
  private retriesAt: readonly EpochMs[] = []
  /** By the name of the counter, as of the latest check. A new one is checked at its first charge. */
  private nextThresholds: ReadonlyMap<string, Micros> = new Map()
  /** Single messages that budgets rejected, by the name of the counter. */
  readonly refused = new Map<string, Refused>()

  readonly channels: readonly AlertChannel[]

  constructor(private readonly ports: AlertPorts) {
    this.channels = ports.targets.map(({ channel }) => channel)
    this.startedAt = ports.now()
  }

  /** For each request: a claim of a budget may have reached a threshold, which a check then finds. */
  readonly ended: RequestListener = ({ context }) => this.charged(context)

  /** After a request, or a try of a job. */
  readonly charged = (context: RequestContext): void => {
    for (const { budget, used, refused, endsAt, refusedMicros: micros } of context.limits) {
      if (!budget) continue
      const name = budgetName(budget)
      // A request with many messages may cost more than is left of a budget that still allows one.
      if (micros !== undefined && endsAt !== null && (context.recipients ?? 1) === 1)
        addRefused(this.refused, name, { micros, until: endsAt })
      const mayBeReached = used !== null && used >= (this.nextThresholds.get(name) ?? 0)
      if (refused || mayBeReached)
        this.nextCheckAt = Math.min(this.nextCheckAt, this.checkedAt + shortestIntervalMs)
    }
    this.tick()
  }

  /** Call it at start, after requests and every second. It compares numbers, and works in the background if something is due. */
  readonly tick = (): void => {
    const now = this.ports.now()
    // The clock may have been set back.
    const isWaiting = now < this.nextCheckAt && now >= this.checkedAt
    const isCheck = !isWaiting || this.retriesAt.some((at) => at <= now)
    if (this.run || !(isCheck || now - this.polledAt >= pollIntervalMs)) return
    this.polledAt = now
    if (isCheck) {
      this.checkedAt = now
      this.nextCheckAt = now + checkIntervalMs
      this.retriesAt = this.retriesAt.filter((at) => at > now)
    }
    this.run = (isCheck ? this.checkAll(now) : Promise.resolve())
      .then(() => this.announce())
      .then(() => this.deliver())
      .catch((err: unknown) =>
        this.ports.log.error({ err }, 'alerts could not be checked or delivered; otpost will try again'),
      )
      .finally(() => {
        this.run = undefined
      })
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await this.run
  }

  private async checkAll(now: number): Promise<void> {
    // Without a database only the conditions can be checked.
    const checked = await this.check(now).catch((err: unknown) => {
      this.ports.log.error(
        { err },
        'budgets could not be compared with their thresholds; otpost will try again',
      )
      return undefined
    })
    for (const { kind } of await this.ports.checkConditions(checked)) this.count(kind)
  }

  private async check(now: number): Promise<readonly BudgetStatus[]> {
    const { ports } = this
    const budgets = await ports.budgets()
    const statuses = budgets.length === 0 ? [] : await budgetStatuses(ports, budgets, now, this.refused)
    const thresholds = new Map<string, Micros>()
    const counters = statuses.flatMap((status) => status.counters)
    const reached = counters.map(({ budget, spentMicros, isExhausted }) => {
      const { amountMicros, alertAt } = budget
      const name = budgetName(budget)
      const percentages = percentagesReached(budget, spentMicros)
      // Less is left than a message costs, so the amount itself may never be reached.
      if (isExhausted && alertAt.includes(100) && !percentages.includes(100)) percentages.push(100)
      const next = alertAt.find((percent) => !percentages.includes(percent)) ?? Number.POSITIVE_INFINITY
      thresholds.set(name, (amountMicros / 100) * next)
      return { budget, spentMicros, percentages }
    })
    this.nextThresholds = thresholds
    this.shares = reached.map(({ budget, spentMicros }) => ({
      name: budgetName(budget),
      ratio: spentMicros / budget.amountMicros,
    }))
    for (const { budget, spentMicros, percentages } of reached)
      for (const percent of percentages) await this.add(budget, percent, spentMicros, now)
    return statuses
  }

  /** Unless it is stored. */
  private async add(budget: Budget, percent: number, spentMicros: Micros, at: number): Promise<void> {
    const key = keyOf(budget, percent, at)
    if (this.known.has(key)) return
    const data = alertOf(budget, percent, spentMicros, at)
    await this.store(
      key,
      budgetKind,
      spentWords(budget, percent, spentMicros),
      data,
      'a budget reached a threshold',
    )
  }

  /**
   * Sends an alert about a webhook, unless one with this key was sent.
   * @param kind `webhook.disabled` or `webhook.dropping`
   */
  async webhook(key: string, kind: string, data: WebhookAlert): Promise<void> {
    const [title, message] =
      data.reason === null
        ? [
            `Events of app ${data.appId} are dropped`,
            'too many events wait for a webhook; later ones are dropped',
          ]
        : [withoutPoint(disabledWebhook(data.appId).text), 'a webhook was switched off']
    await this.store(key, kind, title, data, message)
    this.wake()
  }

  /** An app sends SMS notifications unlike before. */
  readonly surged = async (appId: string, surges: readonly Surge[]): Promise<void> => {
    const { alerts, now } = this.ports
    const at = now()
    // Those of other servers.
    const known = await alerts.ofKinds([surgeKind], at - (at % dayMs))
    const isNew = ({ country }: Surge) => !known.some((alert) => isAlertOf(alert, appId, country))
    const found = surges.filter(isNew)
    if (found.length === 0) return
    const { key, title, data } = surgeAlert(appId, found, at)
    await this.store(key, surgeKind, title, data, 'an app sends more SMS notifications than before')
    this.wake()
  }

  /** After an integration request was stored with an alert. */
  readonly requested = ({ kind, at }: Alert): void => {
    this.count(kind)
    this.ports.log.warn({ alertAt: new Date(at).toISOString() }, 'a new integration request is pending')
    this.wake(at)
  }

  private wake(at = this.ports.now()): void {
    this.retriesAt = [...this.retriesAt, at]
    this.tick()
  }

  private async store(
    key: string,
    kind: string,
    title: string,
    data: BudgetAlert | WebhookAlert | SurgeAlert,
    message: string,
  ): Promise<void> {
    if (this.known.has(key)) return
    const { alerts, now, log } = this.ports
    const alert = { key, at: now(), kind, title, text: JSON.stringify(data) }
    const isNew = await alerts.add(alert, this.channels)
    if (this.known.size >= mostKnown) this.known.clear()
    this.known.add(key)
    if (!isNew) return
    this.count(alert.kind)
    log.warn(data, message)
  }

  /** Logs alerts that were stored with the change of an operator, by this process or by a command. */
  private async announce(): Promise<void> {
    for (const alert of await this.ports.alerts.ofKinds([reviewNumberKind], this.startedAt)) {
      if (this.known.has(alert.key)) continue
      this.known.add(alert.key)
      this.count(alert.kind)
      this.ports.log.warn(alertData(alert), 'a review number was added')
    }
  }

  private count(kind: Alert['kind']): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
  }

  private async deliver(): Promise<void> {
    const { alerts, targets, now } = this.ports
    if (targets.length === 0) return
    const due = await alerts.take(this.channels, now(), leaseMs)
    await Promise.all(
      due.map(async (delivery) => {
        const target = targets.find(({ channel }) => channel === delivery.channel)
        if (target) await this.try(target, delivery)
      }),
    )
  }

  private async try(target: AlertTarget, delivery: AlertDelivery): Promise<void> {
    const { alerts, now, log } = this.ports
    const { channel, tries } = delivery
    const alert = await this.current(delivery.alert)
    if (!alert) return alerts.end(delivery)
    const outcome = await target.send(alert, tries)
    if (outcome.kind === 'accepted') return alerts.end(delivery)
    const about = { channel, alert: alert.key, tries, reason: outcome.reason }
    const delayMs = retryDelaysMs[tries - 1]
    if (delayMs === undefined) {
      log.error(about, 'an alert could not be delivered; it will not be retried')
      return alerts.end(delivery)
    }
    log.warn(about, 'an alert could not be delivered; it will be retried')
    const dueAt = now() + delayMs
    await alerts.retryAt(delivery, dueAt)
    this.retriesAt = [...this.retriesAt, dueAt]
  }

  /**
   * An alert about integration requests gets its content when it is sent, so that `otpost forget` needs to delete no copy of it.
   * Undefined: all requests are decided.
   */
  private async current(alert: Alert): Promise<Alert | undefined> {
    if (alert.kind !== requestKind) return alert
    const { requests, ownUrl } = this.ports
    const [pending, latest] = await Promise.all([
      requests.pendingCount(),
      requests.list({ isPending: true, limit: mostListed }),
    ])
    if (latest.length === 0) return undefined
    const data: RequestAlert = {
      pending,
      url: `${ownUrl()}/admin/requests`,
      requests: latest.map(({ id, createdAt, companyName, brandName }) => ({
        integrationRequestId: id,
        receivedAt: new Date(createdAt).toISOString(),
        companyName,
        brandName,
      })),
    }
    // No words of requesters: mail programs show the subject as the words of otpost.
    const title =
      pending === 1 ? 'A new integration request is pending' : `${pending} integration requests are pending`
    return { ...alert, title, text: JSON.stringify(data) }
  }
}

/** Older keys are still in the store. */
const mostKnown = 10_000

/** A budget with another amount or counter has other thresholds. */
function keyOf(budget: Budget, percent: number, at: number): string {
  const { period, countsFrom, amountMicros } = budget
  const name = new Date(at).toISOString().slice(0, period === 'day' ? 10 : 7)
  return `budget ${budgetName(budget)} ${period}:${name} ${percent} of ${amountMicros} since ${countsFrom}`
}

function alertOf(budget: Budget, percent: number, spentMicros: Micros, at: number): BudgetAlert {
  const { scope, of, country, period, amountMicros, currency, stops } = budget
  return {
    scope,
    of,
    ...(country !== undefined && { country }),
    period,
    percent,
    amount: amountMicros / 1e6,
    spent: spentMicros / 1e6,
    currency,
    resetsAt: new Date(periodOf(period, at).end).toISOString(),
    stops,
  }
}

export function budgetAlertOf({ text }: Pick<Alert, 'text'>): BudgetAlert {
  return JSON.parse(text)
}

/** What the `data` of the webhook has. */
export function alertData({ text }: Alert): Readonly<Record<string, unknown>> {
  return JSON.parse(text)
}

/** Also on the overview and for doctor. @param when such as ` 2 h ago` */
export function disabledWebhook(appId: string, when = ''): Pick<Problem, 'text' | 'remedy'> {
  return {
    text: `The webhook of app ${appId} was switched off${when}.`,
    remedy:
      'An event failed at its last try, or the receiver answered 410. Correct the receiver, then set the webhook again. The events of the last 7 days wait until then.',
  }
}
