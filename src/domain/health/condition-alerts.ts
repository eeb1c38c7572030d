import type { Advice } from '../ground/advice.ts'
import { type Alert, budgetKind } from '../ground/alert.ts'
import { withoutPoint } from '../ground/format.ts'
import type { Log } from '../ground/ports.ts'
import { type Clock, type EpochMs, minuteMs } from '../ground/time.ts'
import { type BudgetStatus, budgetName, exhaustedCounters, type Refused } from '../money/budgets.ts'
import { type AlertStore, type AlertTarget, budgetAlertOf } from './alerts.ts'
import {
  budgetAbout,
  budgetCondition,
  type ConditionVerdict,
  conditionKinds,
  databaseVerdicts,
  type MinuteOfAttempts,
  providerVerdicts,
  type Reported,
  refusedByAlerts,
  removedBudget,
} from './conditions.ts'

export interface ConditionPorts {
  readonly alerts: Pick<AlertStore, 'add' | 'ofKinds'>
  readonly targets: readonly AlertTarget[]
  readonly now: Clock
  readonly log: Log
  /** Rejects if the database cannot be read or written. */
  readonly checkDatabase: () => Promise<void>
  /** Of the disk of the database. Undefined: the database has no files here. */
  readonly freeBytes: () => Promise<number | undefined>
  /** Of `attemptsWindowMs`. */
  readonly attempts: () => Promise<readonly MinuteOfAttempts[]>
  /** What the guard finds. */
  readonly pumping: () => Promise<readonly ConditionVerdict[]>
  /** Of calls and delivery reports. */
  readonly silence: (attempts: readonly MinuteOfAttempts[]) => Promise<readonly ConditionVerdict[]>
  readonly words: (advice: Advice) => string
  /** Of this server, half-open ones included. */
  readonly openCircuits: () => ReadonlySet<string>
}

type State = 'started' | 'lasting' | 'ended'

interface Latest extends Reported {
  readonly state: State
  /** When the condition started. */
  readonly since: EpochMs
  /** Of the alerts about the same, counted from 1. Their keys have it, so of several servers one stores each. */
  readonly number: number
}

/** Between two alerts about the same, except its end. */
const intervalMs = 10 * minuteMs

/**
 * Sends an alert when a condition starts, at most every 10 minutes while it lasts, and when it has ended. The store has the alerts, so
 * several servers send each once. If the database cannot be written, each server sends its own directly.
 */
export class ConditionAlerts {
  /** By `about`. */
  private readonly latest = new Map<string, Latest>()
  /** By `about`: the latest alert that a budget reached 100%, which is the first alert about its exhaustion. */
  private readonly announced = new Map<string, Reported>()
  /** By the name of the counter, from alerts. */
  private readonly refused = new Map<string, Refused>()
  /** By `about`: the latest alert that is neither stored nor accepted by a receiver. */
  private readonly unsent = new Map<string, Alert>()
  private readUpTo: EpochMs = 0
  private hasFailed = false

  constructor(private readonly ports: ConditionPorts) {}

  /**
   * @param budgets undefined: they could not be read
   * @returns the alerts that this server stored or sent
   */
  readonly check = async (budgets: readonly BudgetStatus[] | undefined): Promise<readonly Alert[]> => {
    const { checkDatabase, freeBytes, attempts, openCircuits } = this.ports
    const error: unknown = await checkDatabase().then(
      () => null,
      (problem: unknown) => problem ?? new Error('unknown'),
    )
    const isUsable = error === null
    if (isUsable) await this.read()
    const free = await freeBytes().catch(() => undefined)
    const verdicts = databaseVerdicts(error, free, this.hasFailed)
    this.hasFailed = !isUsable
    const pumping = isUsable ? await this.ports.pumping().catch(() => []) : []
    const isAttacked = pumping.some(({ lasts }) => lasts)
    if (isUsable && budgets) verdicts.push(...this.budgetVerdicts(budgets, isAttacked))
    verdicts.push(...pumping)
    const minutes = isUsable ? await attempts().catch(() => []) : []
    if (isUsable) verdicts.push(...(await this.ports.silence(minutes).catch(() => [])))
    verdicts.push(...providerVerdicts(minutes, openCircuits(), this.open()))
    const unsent = [...this.unsent]
    this.unsent.clear()
    for (const [about, alert] of unsent) await this.storeOrSend(about, alert, isUsable)
    const alerts: Alert[] = []
    for (const verdict of verdicts) {
      const alert = await this.note(verdict, isUsable)
      if (alert) alerts.push(alert)
    }
    return alerts
  }

  private open(): ReadonlyMap<string, Latest> {
    return new Map([...this.latest].filter(([, { state }]) => state !== 'ended'))
  }

  /** Budgets with `--alert ''` send no alerts. A removed budget is no longer exhausted. */
  private budgetVerdicts(budgets: readonly BudgetStatus[], isAttacked: boolean): ConditionVerdict[] {
    const now = this.ports.now()
    const known = budgets.flatMap((status): ConditionVerdict[] => {
      if (status.budget.alertAt.length === 0) return []
      const exhausted = exhaustedCounters(status, this.refused, now)
      return [{ condition: budgetCondition(status, exhausted, isAttacked), lasts: exhausted.length > 0 }]
    })
    const names = new Set(budgets.map(({ budget }) => budgetAbout(budgetName(budget))))
    const removed = [...this.open()].flatMap(([about, { data }]): ConditionVerdict[] =>
      data.scope === undefined || names.has(about)
        ? []
        : [{ condition: removedBudget(about, data), lasts: false }],
    )
    return [...known, ...removed]
  }

  /** What other servers sent, and this one before its start. */
  private async read(): Promise<void> {
    const alerts = await this.ports.alerts.ofKinds([...conditionKinds, budgetKind], this.readUpTo)
    for (const alert of alerts) this.learn(alert)
    // Clocks of servers differ.
    this.readUpTo = this.ports.now() - minuteMs
  }

  private learn({ key, kind, at, text }: Alert): void {
    if (kind === budgetKind || kind === 'budget.exhausted') refusedByAlerts([{ text }], this.refused)
    if (kind === budgetKind) {
      const data = budgetAlertOf({ text })
      const about = budgetAbout(budgetName({ ...data, country: undefined }))
      if (data.percent >= 100) this.announced.set(about, { at, data: { ...data } })
      return
    }
    const data: Record<string, unknown> = JSON.parse(text)
    const [, about = '', digits = ''] = /^(.*) #(\d+)$/.exec(key) ?? []
    const number = Number(digits)
    if ((this.latest.get(about)?.number ?? 0) >= number) return
    const state = data.state === 'ended' ? 'ended' : data.state === 'lasting' ? 'lasting' : 'started'
    this.latest.set(about, { at, data, state, since: Date.parse(String(data.since)), number })
  }

  private async note({ condition, lasts }: ConditionVerdict, isUsable: boolean): Promise<Alert | undefined> {
    const { about, kind, text, ended, remedy, advice = [] } = condition
    const now = this.ports.now()
    const isRecent = (reported: Reported | undefined) =>
      reported !== undefined && now >= reported.at && now - reported.at < intervalMs
    const latest = this.latest.get(about)
    const isOpen = latest !== undefined && latest.state !== 'ended'
    if (lasts ? isRecent(latest) : !isOpen) return undefined
    const announced = this.announced.get(about)
    const number = latest?.number ?? 0
    if (announced && lasts && !isOpen && isRecent(announced)) {
      this.latest.set(about, { ...announced, state: 'started', since: announced.at, number })
      return undefined
    }
    const state = !lasts ? 'ended' : isOpen ? 'lasting' : 'started'
    const since = isOpen ? latest.since : now
    const message = lasts ? text : ended
    const data = {
      ...condition.data,
      state,
      since: new Date(since).toISOString(),
      message,
      ...(lasts ? { remedy: `${remedy} ${this.ports.words(advice)}`.trim() } : {}),
    }
    this.latest.set(about, { at: now, data, state, since, number: number + 1 })
    const alert: Alert = {
      key: `${about} #${number + 1}`,
      at: now,
      kind,
      title: withoutPoint(message),
      text: JSON.stringify(data),
    }
    if (!(await this.storeOrSend(about, alert, isUsable))) {
      // Another server has stored one, which the next check reads.
      this.latest.delete(about)
      this.readUpTo = 0
      return undefined
    }
    const { log } = this.ports
    if (lasts) log.error(data, 'a problem lasts')
    else log.info(data, 'a problem has ended')
    return alert
  }

  /** False: another server has stored it. */
  private async storeOrSend(about: string, alert: Alert, isUsable: boolean): Promise<boolean> {
    const { alerts, targets } = this.ports
    const channels = targets.map(({ channel }) => channel)
    const isNew = isUsable ? await alerts.add(alert, channels).catch(() => undefined) : undefined
    if (isNew !== undefined) return isNew
    const outcomes = await Promise.all(
      targets.map(({ send }) => send(alert, 1).catch(() => ({ kind: 'unknown' as const }))),
    )
    if (targets.length > 0 && !outcomes.some(({ kind }) => kind === 'accepted')) this.unsent.set(about, alert)
    return true
  }
}
