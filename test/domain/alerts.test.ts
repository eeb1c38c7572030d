import { beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { alertRows } from '../../src/adapters/alerts/targets.ts'
import { type Alert, reviewNumberAlert } from '../../src/domain/ground/alert.ts'
import type { Outcome } from '../../src/domain/ground/providers.ts'
import { periodOf } from '../../src/domain/ground/time.ts'
import {
  type AlertDelivery,
  type AlertStore,
  Alerts,
  type AlertTarget,
  budgetAlertOf,
  type PendingRequest,
  requestAlert,
} from '../../src/domain/health/alerts.ts'
import { ConditionAlerts } from '../../src/domain/health/condition-alerts.ts'
import {
  attemptsWindowMs,
  type MinuteOfAttempts,
  minutesOfAttempts,
} from '../../src/domain/health/conditions.ts'
import { noteLimits } from '../../src/domain/limits/gates.ts'
import { decide } from '../../src/domain/limits/limits.ts'
import { type Budget, budgetClaim } from '../../src/domain/money/budgets.ts'
import { newRequestContext } from '../../src/domain/request/request-context.ts'

const noon = Date.UTC(2026, 10, 22, 12)
const [secondMs, minuteMs, hourMs] = [1000, 60_000, 3_600_000]
const budget: Budget = {
  scope: 'server',
  of: 'all',
  period: 'day',
  amountMicros: 100,
  currency: 'EUR',
  alertAt: [50, 80, 100],
  stops: true,
  liftedUntil: null,
  countsFrom: 0,
}

class StoredAlerts implements AlertStore {
  readonly alerts = new Map<string, Alert>()
  readonly deliveries = new Map<string, AlertDelivery & { dueAt: number }>()
  problem: Error | undefined

  add: AlertStore['add'] = async (alert, channels) => {
    if (this.problem) throw this.problem
    if (this.alerts.has(alert.key)) return false
    this.alerts.set(alert.key, alert)
    for (const channel of channels)
      this.deliveries.set(`${alert.key} ${channel}`, { alert, channel, tries: 0, dueAt: alert.at })
    return true
  }

  take: AlertStore['take'] = async (channels, now, leaseMs) => {
    const due = [...this.deliveries].filter(
      ([, each]) => channels.includes(each.channel) && each.dueAt <= now,
    )
    return due.map(([key, each]) => {
      const taken = { ...each, tries: each.tries + 1, dueAt: now + leaseMs }
      this.deliveries.set(key, taken)
      return taken
    })
  }

  retryAt: AlertStore['retryAt'] = async ({ alert, channel, tries }, dueAt) =>
    void this.deliveries.set(`${alert.key} ${channel}`, { alert, channel, tries, dueAt })

  end: AlertStore['end'] = async ({ alert, channel }) =>
    void this.deliveries.delete(`${alert.key} ${channel}`)

  latest: AlertStore['latest'] = async (limit) => [...this.alerts.values()].reverse().slice(0, limit)

  ofKinds: AlertStore['ofKinds'] = async (kinds, since) =>
    [...this.alerts.values()].filter(({ kind, at }) => kinds.includes(kind) && at >= since)

  failing: AlertStore['failing'] = async () => []
}

class Receiver implements AlertTarget {
  readonly channel = 'webhook'
  readonly received: Alert[] = []
  outcome: Outcome | Promise<Outcome> = { kind: 'accepted' }

  readonly send = async (alert: Alert): Promise<Outcome> => {
    this.received.push(alert)
    return this.outcome
  }
}

let now = noon
let spentMicros = 0
let budgets = [budget]
let store = new StoredAlerts()
let receiver = new Receiver()
let logged: string[] = []
let pending: PendingRequest[] = []
let databaseError: Error | undefined
let freeBytes = 2 ** 40
let attempts: MinuteOfAttempts[] = []
let openCircuits = new Set<string>()

beforeEach(() => {
  now = noon
  spentMicros = 0
  budgets = [budget]
  store = new StoredAlerts()
  receiver = new Receiver()
  logged = []
  pending = []
  databaseError = undefined
  freeBytes = 2 ** 40
  attempts = []
  openCircuits = new Set()
})

const say = (_: object, message: string) => void logged.push(message)

/** A process of a server. */
function started(): Alerts {
  const log = { info: say, warn: say, error: say }
  const conditions = new ConditionAlerts({
    alerts: store,
    targets: [receiver],
    now: () => now,
    log,
    checkDatabase: async () => {
      if (databaseError) throw databaseError
    },
    freeBytes: async () => freeBytes,
    pumping: async () => [],
    silence: async () => [],
    words: () => '',
    attempts: async () => attempts.filter(({ at }) => at >= now - attemptsWindowMs),
    openCircuits: () => openCircuits,
  })
  return new Alerts({
    checkConditions: conditions.check,
    budgets: () => budgets,
    spent: async (some) => some.map((each) => ({ budget: each, micros: spentMicros })),
    alerts: store,
    requests: {
      pendingCount: async () => pending.length,
      list: async ({ limit }) => pending.slice(0, limit),
    },
    ownUrl: () => 'https://otp.example.com',
    targets: [receiver],
    now: () => now,
    log,
  })
}

async function ticked(alerts: Alerts): Promise<void> {
  alerts.tick()
  await alerts.idle()
}

/** A request that claims money from the budget, and what it changes. */
async function requested(alerts: Alerts, micros: number): Promise<void> {
  const context = newRequestContext({ requestId: 'r', at: now, clientIp: '127.0.0.1' })
  const claims = budgets.map((each) => budgetClaim(each, micros, now))
  const open = { count: spentMicros, expiresAt: periodOf('day', now).end }
  const { decision } = decide(claims, () => open, now)
  noteLimits(context, claims, decision)
  if (decision.allowed) spentMicros += micros
  alerts.ended({
    context,
    method: 'POST',
    route: '/otp/send',
    status: 200,
    durationMs: 1,
    error: undefined,
    failure: undefined,
  })
  await alerts.idle()
}

const percentages = (alerts: Iterable<Alert>) => [...alerts].map((alert) => budgetAlertOf(alert).percent)

describe('alerts of a budget', () => {
  test('are stored, logged, counted and sent when a charge reaches a threshold', async () => {
    const alerts = started()
    await ticked(alerts)
    now += secondMs
    await requested(alerts, 49)
    await requested(alerts, 33)
    expect(percentages(receiver.received)).toEqual([50, 80])
    expect(receiver.received.at(-1)?.title).toBe('Budget server: 80% of 0.0001 EUR per day spent')
    expect(store.deliveries.size).toBe(0)
    expect(alerts.counts.get('budget.threshold')).toBe(2)
    expect(logged).toEqual(Array(2).fill('a budget reached a threshold'))
  })

  test('are sent once, by any number of processes and after a restart', async () => {
    const nodes = [started(), started()]
    spentMicros = 85
    await Promise.all(nodes.map(ticked))
    now += hourMs
    await Promise.all([...nodes, started()].map(ticked))
    expect(percentages(receiver.received)).toEqual([50, 80])
  })

  test('are found by the check, if the process ended before it could store them', async () => {
    spentMicros = 50
    await ticked(started())
    expect(percentages(receiver.received)).toEqual([50])
  })

  test('are sent again in the next period, and for another amount', async () => {
    const alerts = started()
    spentMicros = 50
    await ticked(alerts)
    budgets = [{ ...budget, amountMicros: 60 }]
    now += 30 * secondMs
    await ticked(alerts)
    expect(percentages(receiver.received)).toEqual([50, 50, 80])
    now += 12 * hourMs
    await ticked(alerts)
    expect(percentages(receiver.received).slice(3)).toEqual([50, 80])
  })

  test('at 100 % are sent when a message is rejected, though less than its price is left', async () => {
    const alerts = started()
    budgets = [{ ...budget, alertAt: [100] }]
    spentMicros = 97
    await ticked(alerts)
    expect(store.alerts.size).toBe(0)
    now += secondMs
    await requested(alerts, 4)
    expect([...store.alerts.values()].map((alert) => budgetAlertOf(alert))).toMatchObject([
      { percent: 100, spent: 0.000097, resetsAt: '2026-11-23T00:00:00.000Z' },
    ])
  })

  test('are checked every 30 seconds without a charge that reaches a threshold', async () => {
    const alerts = started()
    await ticked(alerts)
    spentMicros = 50
    now += 29 * secondMs
    await ticked(alerts)
    expect(receiver.received.length).toBe(0)
    now += secondMs
    await ticked(alerts)
    expect(receiver.received.length).toBe(1)
  })

  test('of charges and give-backs in any order are stored exactly once for each threshold that was reached', async () => {
    const change = fc.record({ micros: fc.integer({ min: 1, max: 60 }), isGivenBack: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 30 }), async (changes) => {
        store = new StoredAlerts()
        spentMicros = 0
        budgets = [{ ...budget, stops: false }]
        const alerts = started()
        let most = 0
        for (const { micros, isGivenBack } of changes) {
          now += secondMs
          await requested(alerts, micros)
          most = Math.max(most, spentMicros)
          if (isGivenBack) spentMicros -= micros
        }
        const stored = percentages(store.alerts.values()).sort((a, b) => a - b)
        expect(stored).toEqual(budget.alertAt.filter((percent) => most >= percent))
        expect(store.deliveries.size).toBe(0)
      }),
    )
  })
})

describe('the delivery of an alert', () => {
  test('is retried after 5 s, 1 min, 5 min, 30 min and 2 h, then given up', async () => {
    const alerts = started()
    receiver.outcome = { kind: 'retryable', reason: 'HTTP 503' }
    spentMicros = 50
    await ticked(alerts)
    await ticked(alerts)
    const tries = [receiver.received.length]
    for (const delayMs of [5 * secondMs, minuteMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs]) {
      now += delayMs - 1
      await ticked(alerts)
      tries.push(receiver.received.length)
      now += 1
      await ticked(alerts)
      tries.push(receiver.received.length)
    }
    expect(tries).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6])
    expect(logged.at(-1)).toBe('an alert could not be delivered; it will not be retried')
    expect(store.deliveries.size).toBe(0)
  })

  test('goes on in another process after a crash, and not while the first one may be sending', async () => {
    const first = started()
    const sending = Promise.withResolvers<Outcome>()
    receiver.outcome = sending.promise
    spentMicros = 50
    first.tick()
    for (let turn = 0; receiver.received.length === 0 && turn < 100; turn++) await Promise.resolve()
    const second = started()
    now += 30 * secondMs
    second.tick()
    for (let turn = 0; turn < 100; turn++) await Promise.resolve()
    expect(receiver.received.length).toBe(1)
    now += 30 * secondMs
    second.tick()
    for (let turn = 0; turn < 100; turn++) await Promise.resolve()
    expect(receiver.received.length).toBe(2)
    sending.resolve({ kind: 'accepted' })
    await Promise.all([first.idle(), second.idle()])
    expect(store.deliveries.size).toBe(0)
  })

  test('waits for the database, without an error for the request', async () => {
    const alerts = started()
    store.problem = new Error('locked')
    await requested(alerts, 50)
    expect(receiver.received.length).toBe(0)
    store.problem = undefined
    now += 30 * secondMs
    await ticked(alerts)
    expect(percentages(receiver.received)).toEqual([50])
  })
})

describe('an alert that a command stored with its change', () => {
  const added = () =>
    reviewNumberAlert(
      'id',
      { phone: '*******0143', brandId: 'acme', until: '2026-12-31', addedBy: 'ana@example.com' },
      now,
    )

  test('is logged and delivered once by a running server, within seconds', async () => {
    const alerts = started()
    await ticked(alerts)
    now += secondMs
    await store.add(added(), ['email', 'webhook'])
    await ticked(alerts)
    expect(receiver.received).toHaveLength(0)
    now += 5 * secondMs
    await ticked(alerts)
    await ticked(alerts)
    expect(receiver.received.map(({ title }) => title)).toEqual(['A review number of brand acme was added'])
    expect(logged).toEqual(['a review number was added'])
    expect(alerts.counts.get('review-number.added')).toBe(1)
    now += hourMs
    await ticked(alerts)
    expect(receiver.received).toHaveLength(1)
    expect(logged).toHaveLength(1)
  })

  test('is delivered by the next server, which does not log it as new', async () => {
    await store.add(added(), ['webhook'])
    now += hourMs
    await ticked(started())
    expect(receiver.received).toHaveLength(1)
    expect(logged).toEqual([])
  })
})

describe('alerts about integration requests', () => {
  test('are due at once, then at most once in 10 minutes', () => {
    const first = requestAlert(undefined, noon)
    expect(first).toMatchObject({ at: noon, kind: 'integration.requested' })
    const later = requestAlert(first.at, noon + 1)
    expect(later.at).toBe(noon + 10 * minuteMs)
    expect(requestAlert(later.at, noon + 2)).toEqual(later)
    expect(requestAlert(later.at, later.at).at).toBe(noon + 20 * minuteMs)
    expect(requestAlert(later.at, noon + hourMs).at).toBe(noon + hourMs)
  })

  test('of any number of requests in any order are at least 10 minutes apart, and follow each request within 10 minutes', () => {
    const pauses = fc.array(fc.integer({ min: 0, max: 15 * minuteMs }), { maxLength: 50 })
    fc.assert(
      fc.property(pauses, (steps) => {
        const due: number[] = []
        let at = noon
        for (const step of steps) {
          at += step
          const alert = requestAlert(due.at(-1), at)
          if (alert.at !== due.at(-1)) due.push(alert.at)
          expect(due.at(-1)).toBeWithin(at, at + 10 * minuteMs + 1)
        }
        for (const [index, time] of due.slice(1).entries())
          expect(time - (due[index] ?? 0)).toBeGreaterThanOrEqual(10 * minuteMs)
      }),
    )
  })

  test('list what is pending when they are sent, and nothing is sent if that is nothing', async () => {
    const request = (index: number) => {
      const names = { companyName: `{{otp}} <b>${index}`, brandName: 'Globex' }
      return { id: `request ${index}`, createdAt: noon, ...names }
    }
    pending = Array.from({ length: 12 }, (_, index) => request(index))
    const alerts = started()
    const alert = requestAlert(undefined, noon)
    await store.add(alert, ['webhook'])
    alerts.requested(alert)
    await alerts.idle()
    const [sent] = receiver.received
    expect(sent?.title).toBe('12 integration requests are pending')
    expect(sent && JSON.parse(sent.text)).toMatchObject({
      pending: 12,
      url: 'https://otp.example.com/admin/requests',
      requests: pending.slice(0, 10).map(({ id }) => ({ integrationRequestId: id })),
    })
    expect(sent && Object.keys(alertRows(sent))).toHaveLength(11)
    expect(alerts.counts.get('integration.requested')).toBe(1)

    pending = []
    now += hourMs
    await store.add(requestAlert(alert.at, now), ['webhook'])
    await ticked(alerts)
    expect(receiver.received).toHaveLength(1)
    expect(store.deliveries.size).toBe(0)
  })
})

describe('alerts about a problem that lasts', () => {
  const states = () =>
    receiver.received
      .filter(({ kind }) => kind !== 'budget.threshold')
      .map(({ kind, text }) => `${kind} ${JSON.parse(text).state}`)

  /** Checks every 30 seconds, as a server does. */
  async function pass(ms: number, ...nodes: Alerts[]): Promise<void> {
    for (const end = now + ms; now < end; ) {
      now += 30 * secondMs
      await Promise.all(nodes.map(ticked))
    }
  }

  function attempted(provider: string, counts: Pick<MinuteOfAttempts, 'accepted' | 'failed'>): void {
    attempts.push({ at: now - (now % minuteMs), provider, ...counts })
  }

  const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  /** What begins and ends each, and whether the database can store the alerts meanwhile. */
  const problems: readonly {
    readonly kind: string
    readonly title: string
    readonly begin: () => void
    readonly end: () => void
    readonly isDirect?: true
  }[] = [
    {
      kind: 'budget.exhausted',
      title: 'Budget server is exhausted: 0.0001 EUR of 0.0001 EUR per day spent',
      begin: () => {
        budgets = [{ ...budget, alertAt: [50] }]
        spentMicros = 100
      },
      end: () => {
        budgets = [{ ...budget, alertAt: [50], liftedUntil: now + 2 * hourMs }]
      },
    },
    {
      kind: 'budget.exhausted',
      title: 'Budget server is exhausted: 0.0001 EUR of 0.0001 EUR per day spent',
      begin: () => {
        budgets = [{ ...budget, alertAt: [50] }]
        spentMicros = 100
      },
      end: () => {
        budgets = []
      },
    },
    {
      kind: 'provider.failing',
      title: 'Provider smtp fails: the latest 6 attempts failed or have an unknown result',
      begin: () => {
        attempted('smtp', { accepted: 9, failed: 4 })
        now += minuteMs
        attempted('smtp', { accepted: 0, failed: 6 })
      },
      end: () => attempted('smtp', { accepted: 1, failed: 0 }),
    },
    {
      kind: 'provider.failing',
      title: 'Provider twilio fails: the latest 5 attempts failed or have an unknown result',
      begin: () => {
        attempted('twilio', { accepted: 9, failed: 5 })
        openCircuits.add('twilio')
      },
      end: () => {
        openCircuits.clear()
        now += minuteMs
        attempted('twilio', { accepted: 3, failed: 1 })
      },
    },
    {
      kind: 'disk.full',
      title: 'The disk of the database is nearly full: 1.0 MiB free',
      begin: () => {
        freeBytes = 2 ** 20
      },
      end: () => {
        freeBytes = 2 ** 40
      },
    },
    {
      kind: 'disk.full',
      title: 'The disk of the database is full',
      begin: () => {
        store.problem = full
        databaseError = full
      },
      end: () => {
        store.problem = undefined
        databaseError = undefined
      },
      isDirect: true,
    },
    {
      kind: 'database.unavailable',
      title: 'The database is unavailable',
      begin: () => {
        databaseError = new Error('connection refused')
        store.problem = databaseError
      },
      end: () => {
        store.problem = undefined
        databaseError = undefined
      },
      isDirect: true,
    },
  ]

  for (const { kind, title, begin, end, isDirect } of problems) {
    test(`are sent when it starts, at most every 10 minutes, and once at its end: ${title}`, async () => {
      const nodes = [started(), started()]
      await pass(minuteMs, ...nodes)
      expect(receiver.received).toEqual([])
      begin()
      await pass(minuteMs, ...nodes)
      const each = isDirect ? 2 : 1
      const times = (count: number, state: string) => Array(count * each).fill(`${kind} ${state}`)
      expect(states()).toEqual(times(1, 'started'))
      expect(receiver.received.at(-1)?.title).toBe(title)
      await pass(8 * minuteMs, ...nodes)
      expect(states()).toHaveLength(each)
      // A restart knows what was stored.
      if (!isDirect) nodes[0] = started()
      await pass(13 * minuteMs, ...nodes)
      expect(states()).toEqual([...times(1, 'started'), ...times(2, 'lasting')])
      end()
      await pass(hourMs, ...nodes)
      expect(states().slice(3 * each)).toEqual([`${kind} ended`])
      expect(store.deliveries.size).toBe(0)
      expect(logged.filter((line) => line === 'a problem has ended')).toHaveLength(1)
    })
  }

  test('do not repeat that a budget reached 100%, and go on when less is left than a message costs', async () => {
    const alerts = started()
    spentMicros = 97
    await ticked(alerts)
    now += secondMs
    await requested(alerts, 4)
    expect(percentages(receiver.received)).toEqual([50, 80, 100])
    await pass(9 * minuteMs, alerts)
    expect(states()).toEqual([])
    await pass(2 * minuteMs, started())
    expect(states()).toEqual(['budget.exhausted lasting'])
    await pass(12 * hourMs, alerts)
    expect(states().at(-1)).toBe('budget.exhausted ended')
    expect(receiver.received.at(-1)?.at).toBeWithin(periodOf('day', now).start, now)
  })

  test('are not sent for a budget that rejects nothing or sends no alerts, for messages that are rejected, or for one failed check', async () => {
    budgets = [
      { ...budget, alertAt: [] },
      { ...budget, scope: 'app:shop', stops: false },
    ]
    spentMicros = 100
    attempts.push(
      ...minutesOfAttempts([
        { at: now, provider: 'twilio', detail: 'rejected recipient', count: 50 },
        { at: now, provider: 'kannel', detail: 'retryable retryable', count: 4 },
        { at: now, provider: 'sns', detail: 'skipped', count: 9 },
      ]),
    )
    const alerts = started()
    await ticked(alerts)
    databaseError = new Error('restarting')
    now += 30 * secondMs
    await ticked(alerts)
    databaseError = undefined
    await pass(minuteMs, alerts)
    expect(states()).toEqual([])
  })

  test('that no receiver accepts and no database stores are sent again', async () => {
    const alerts = started()
    receiver.outcome = { kind: 'retryable', reason: 'HTTP 503' }
    store.problem = full
    databaseError = full
    await ticked(alerts)
    await pass(minuteMs, alerts)
    expect(states()).toEqual(Array(3).fill('disk.full started'))
    expect(logged.filter((line) => line === 'a problem lasts')).toHaveLength(1)
    receiver.outcome = { kind: 'accepted' }
    await pass(2 * minuteMs, alerts)
    expect(states()).toHaveLength(4)
    expect(alerts.counts.get('disk.full')).toBe(1)
  })

  test('of several about one problem, only the latest is sent again', async () => {
    const alerts = started()
    receiver.outcome = { kind: 'retryable', reason: 'HTTP 503' }
    store.problem = full
    databaseError = full
    await pass(55 * minuteMs, alerts)
    const tried = states().length
    receiver.outcome = { kind: 'accepted' }
    await pass(minuteMs, alerts)
    expect(states().slice(tried)).toEqual(['disk.full lasting'])
  })
})
