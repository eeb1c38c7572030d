import { budgetKind } from '../ground/alert.ts'
import { dayMs, type EpochMs } from '../ground/time.ts'
import type { GuardMode } from '../guard/guard.ts'
import { modeInForce } from '../guard/mode.ts'
import type { PumpingPorts } from '../guard/status.ts'
import type { EventReader } from '../integration/event-store.ts'
import type { Period } from '../log/ranges.ts'
import type { RejectionRate } from '../log/rejections.ts'
import {
  type ActiveLimit,
  type Lately,
  lastFailuresOf,
  type ProviderCircuit,
  type ProviderHealth,
  type Statistics,
  wayName,
} from '../log/statistics.ts'
import {
  type Budget,
  type BudgetCounters,
  type BudgetStatus,
  budgetStatuses,
  type Refused,
  withCallCap,
} from '../money/budgets.ts'
import type { NotifyJobStore } from '../notify/queue.ts'
import type { PolicyStore } from '../policy/policy-store.ts'
import { activeReviewNumbers } from '../policy/review-number.ts'
import type { AlertStore } from './alerts.ts'
import type { ClockFacts } from './clock.ts'
import { conditionKinds, type MinuteOfAttempts, openSince, refusedByAlerts } from './conditions.ts'
import type { DatabaseOutage } from './database-fault.ts'
import { failingSince, withoutAccepted } from './outages.ts'
import { readGuardWarnings } from './pumping-problems.ts'
import { hoursBefore, type TrafficCount } from './silence.ts'
import { surgeKind } from './surges.ts'

/** What the problems follow from, at the end of the period of the statistics. */
export type HealthFacts = Awaited<ReturnType<typeof readHealth>> & {
  /** What only a running server knows of itself. */
  readonly server?: ServerFacts
}

export interface ServerFacts {
  /** Of a check of the database. Null: it can be read and written. */
  readonly databaseError: unknown
  /** Its latest failure. */
  readonly databaseOutage?: DatabaseOutage | undefined
  /** Of the disk of the database. Undefined: the database has no files here. */
  readonly freeBytes: number | undefined
  /** Not in the event log and the figures. */
  readonly lostRequests: number
  readonly limited: readonly ActiveLimit[]
  readonly clock?: ClockFacts
}

export interface HealthPorts extends PumpingPorts {
  readonly eventLog: {
    statistics(period: Period, now: EpochMs): Promise<Statistics>
    lately(now: EpochMs): Promise<Lately>
    /** @param names of providers: also before the latest minutes */
    recentAttempts(now: EpochMs, names?: readonly string[]): Promise<readonly MinuteOfAttempts[]>
    /** The ways (`wayName`) that have accepted a message. */
    accepted(now: EpochMs): Promise<ReadonlySet<string>>
    risingRejections(now: EpochMs): Promise<readonly RejectionRate[]>
    /** Of the last minutes, and of these hours. */
    traffic(now: EpochMs, hours: readonly EpochMs[]): Promise<readonly TrafficCount[]>
  }
  readonly policy: Pick<PolicyStore, 'rows'>
  readonly budgets: BudgetCounters
  /** Of a running server. */
  readonly refused?: ReadonlyMap<string, Refused>
  readonly alerts: Pick<AlertStore, 'ofKinds' | 'failing'>
  readonly events: Pick<EventReader, 'failing'>
  readonly jobs: Pick<NotifyJobStore, 'status' | 'failed'>
  readonly providerStates: () => readonly ProviderCircuit[]
}

export interface HealthSettings {
  /** GUARD. */
  readonly guard: GuardMode
  readonly providerTimeoutMs: number
  /** Providers that deliver nothing. */
  readonly developmentOnly: readonly string[]
  readonly routes: { readonly others: { readonly voice?: readonly string[] } }
}

/** What this server knows of itself. */
export interface ServerPorts {
  readonly eventLog: { lastRequestAt(): Promise<EpochMs | null> }
  /** Undefined: the database can be used. @param checks also if nothing is known against it */
  readonly databaseTrouble: (checks?: boolean) => Promise<unknown>
  readonly databaseOutage: () => DatabaseOutage | undefined
  readonly stats: {
    /** Requests not written to the event log since the server started. */
    eventLog(): { readonly lost: number; readonly lastLostAt: EpochMs | null }
    /** In bytes. Undefined: the database has no files. Rejects if they are missing. */
    files(): Promise<{ readonly diskFree: number } | undefined>
    /** Undefined: the database has the clock of this machine. */
    clockAheadMs(): number | undefined
  }
  readonly limited: { list(now: EpochMs): readonly ActiveLimit[] }
}

/** Of a running server. */
export async function readServerHealth(
  ports: HealthPorts & ServerPorts,
  settings: HealthSettings,
  period: Period,
  now: EpochMs,
): Promise<HealthFacts> {
  const [databaseError, freeBytes, lastRequestAt, facts] = await Promise.all([
    ports.databaseTrouble(true).then((error) => error ?? null),
    ports.stats.files().then(
      (files) => files?.diskFree,
      () => undefined,
    ),
    ports.eventLog.lastRequestAt(),
    readHealth(ports, settings, period, now),
  ])
  const { lost, lastLostAt } = ports.stats.eventLog()
  const isNews = lastLostAt !== null && lastLostAt >= facts.statistics.from
  const lostRequests = isNews ? lost : 0
  const limited = ports.limited.list(now)
  const clock = { lastRequestAt, databaseAheadMs: ports.stats.clockAheadMs() }
  const databaseOutage = ports.databaseOutage()
  return { ...facts, server: { databaseError, databaseOutage, freeBytes, lostRequests, limited, clock } }
}

/** With what was rejected, as this server and the alerts of the last day know. */
export async function readBudgets(
  { budgets: counters, alerts, refused }: Pick<HealthPorts, 'budgets' | 'alerts' | 'refused'>,
  budgets: readonly Budget[],
  now: EpochMs,
): Promise<readonly BudgetStatus[]> {
  if (budgets.length === 0) return []
  const reports = await alerts.ofKinds([budgetKind, 'budget.exhausted'], now - dayMs)
  return await budgetStatuses(counters, budgets, now, refusedByAlerts(reports, new Map(refused)))
}

export async function readHealth(
  { eventLog, policy, alerts, events, jobs, guard, countryOfPrefix, providerStates, ...money }: HealthPorts,
  settings: HealthSettings,
  period: Period,
  now: EpochMs,
) {
  const { webhooks, budgets, reviewNumbers, pauses, guardMode, thresholds, acknowledgements } =
    await policy.rows()
  const [statistics, lately, attempts, accepted, rejections, traffic] = await Promise.all([
    eventLog.statistics(period, now),
    eventLog.lately(now),
    eventLog.recentAttempts(now),
    eventLog.accepted(now),
    eventLog.risingRejections(now),
    eventLog.traffic(now, hoursBefore(now, thresholds.silentMinutes)),
  ])
  const [warnings, surges, failing, status, failed, failingAlerts, conditions, statuses] = await Promise.all([
    readGuardWarnings({ guard, countryOfPrefix }, modeInForce(guardMode, settings.guard, now).mode, now),
    alerts.ofKinds([surgeKind], now - dayMs),
    events.failing(),
    jobs.status(),
    jobs.failed(),
    alerts.failing(now),
    alerts.ofKinds([...conditionKinds, budgetKind], now - dayMs),
    readBudgets({ ...money, alerts }, withCallCap(budgets, settings.routes.others.voice), now),
  ])
  const dark = withoutAccepted(attempts)
  const earlier = dark.length === 0 ? [] : await eventLog.recentAttempts(now, dark)
  const began = dark.flatMap((name): readonly [string, EpochMs][] => {
    const since = failingSince(earlier, undefined, name)
    return since === undefined ? [] : [[`provider ${name}`, since]]
  })
  const quiet = { accepted: 0, failed: 0, unknown: 0 }
  return {
    statistics,
    lately,
    traffic,
    thresholds,
    acknowledgements,
    /** When what goes on began, as alerts say, and of providers as the figures say. */
    open: new Map([...openSince(conditions), ...began]),
    lastFailures: lastFailuresOf(lately.hour),
    attempts,
    providers: providerStates().map((state): ProviderHealth => {
      const way = wayName(state.channel, state.name)
      const isForDevelopment = settings.developmentOnly.includes(state.name)
      const hasAccepted = accepted.has(way) || isForDevelopment
      const { until = 0 } = pauses.find(({ provider }) => provider === state.name) ?? {}
      const pausedUntil = state.channel === 'SMS' && until > now ? until : null
      const lastHour = lately.ways.get(way) ?? quiet
      return { ...state, lastHour, isForDevelopment, hasAccepted, pausedUntil }
    }),
    budgets: statuses,
    guard: warnings,
    /** Alerts of the last day about SMS notifications of apps, oldest first. */
    surges,
    rejections,
    providerTimeoutMs: settings.providerTimeoutMs,
    queue: { ...status, failed },
    webhooks: webhooks.map(({ appId, disabledAt }) => ({ appId, disabledAt, failing: failing.get(appId) })),
    failingAlerts,
    /** Active ones. */
    reviewNumbers: activeReviewNumbers(reviewNumbers, now),
  }
}
