import { failuresToOpen } from '../delivery/breaker.ts'
import { countryName } from '../delivery/destination.ts'
import { type Advice, see } from '../ground/advice.ts'
import { type Alert, budgetKind } from '../ground/alert.ts'
import { bytesWords, capitalized, count, utc, withoutPoint } from '../ground/format.ts'
import { type EpochMs, minuteMs } from '../ground/time.ts'
import { unknownCountry } from '../guard/thresholds.ts'
import type { CallFilter } from '../log/log-search.ts'
import type { StatKey } from '../log/stats.ts'
import { formatMicros, sumWords } from '../money/amounts.ts'
import {
  addRefused,
  anyCountry,
  type Budget,
  type BudgetStatus,
  budgetName,
  type CounterStatus,
  type Refused,
} from '../money/budgets.ts'
import type { BudgetName } from '../request/limit-names.ts'
import { databaseFault } from './database-fault.ts'
import type { Problem } from './problem.ts'

// Problems that last: alerts are sent when they start, while they last, and when they have ended.

/** The `type` of the webhook. */
export const conditionKinds = [
  'budget.exhausted',
  'guard.pumping',
  'provider.failing',
  'disk.full',
  'database.unavailable',
  'calls.silent',
  'reports.silent',
] as const

type ConditionKind = (typeof conditionKinds)[number]

export interface Condition extends Problem {
  readonly kind: ConditionKind
  /** What it is about, such as `budget server`: each has one condition at a time. */
  readonly about: string
  /** The figures of the alert. */
  readonly data: Readonly<Record<string, string | number | readonly object[]>>
  /** Follows the remedy in alerts, with commands. */
  readonly advice?: Advice
  /** That it has ended, in one sentence. */
  readonly ended: string
}

/** A rule finds that the condition lasts or has ended. What it does not know, it leaves out. */
export interface ConditionVerdict {
  readonly condition: Condition
  readonly lasts: boolean
}

export function lasting(verdicts: readonly ConditionVerdict[]): readonly Condition[] {
  return verdicts.flatMap(({ condition, lasts }) => (lasts ? [condition] : []))
}

/** The latest alert about a condition. */
export interface Reported {
  readonly at: EpochMs
  readonly data: Readonly<Record<string, unknown>>
}

/** @param name of the budget, without a country */
export const budgetAbout = (name: string) => `budget ${name}`

/** Of an alert about a budget. */
interface BudgetReport extends Pick<BudgetName, 'scope' | 'of' | 'country'> {
  readonly amount: number
  readonly spent: number
  readonly resetsAt: string
  readonly percent?: number
  readonly state?: string
  /** Of `country:*`, the exhausted ones. */
  readonly countries?: readonly { readonly country: string; readonly spent: number }[]
}

/** The messages that budgets rejected, by the name of the counter, as alerts say that budgets are exhausted. */
export function refusedByAlerts(
  alerts: readonly Pick<Alert, 'text'>[],
  all = new Map<string, Refused>(),
): ReadonlyMap<string, Refused> {
  for (const { text } of alerts) {
    const data: BudgetReport = JSON.parse(text)
    if (data.state === 'ended' || (data.percent ?? 100) < 100) continue
    const until = Date.parse(data.resetsAt)
    for (const { country, spent } of data.countries ?? [data]) {
      const left = Math.round((data.amount - spent) * 1e6)
      addRefused(all, budgetName({ ...data, country }), { micros: left + 1, until })
    }
  }
  return all
}

const mostNamed = 10

/**
 * @param exhausted counters of the budget. None: the condition has ended
 * @param isAttacked whether a lift would send the codes of an attack
 */
export function budgetCondition(
  { budget, spentMicros, resetsAt }: BudgetStatus,
  exhausted: readonly CounterStatus[],
  isAttacked = false,
): Condition {
  const { scope, of, period, amountMicros, currency } = budget
  const name = budgetName(budget)
  const countries = exhausted.flatMap(({ budget: { country }, spentMicros }) =>
    country === undefined ? [] : { country, spent: spentMicros / 1e6 },
  )
  return {
    kind: 'budget.exhausted',
    about: budgetAbout(name),
    data: {
      scope,
      of,
      period,
      amount: amountMicros / 1e6,
      spent: spentMicros / 1e6,
      currency,
      resetsAt: new Date(resetsAt).toISOString(),
      ...(scope === anyCountry && { countries }),
    },
    what: 'budgets',
    level: 'fail',
    text: exhaustedWords(budget, exhausted),
    remedy: `SMS that cost more than what is left are rejected with 429 rate_limited until ${utc(resetsAt)}. ${isAttacked ? 'Do not lift the budget before you have stopped the SMS pumping.' : 'To send more before, lift the budget or set a larger amount.'}`,
    see: [isAttacked ? see('guard block') : see('budget lift', { scope, ...(of !== 'all' && { of }) })],
    ended: `Budget ${name} is no longer exhausted.`,
    ongoing: {
      title:
        exhausted.length > 1
          ? `The budgets of ${count(exhausted.length)} countries are used up`
          : `${budgetTitle(exhausted[0]?.budget ?? budget)} is used up`,
      advice: 'Lift the budget, or set a larger amount.',
      hit: { ...rowsOf(scope), result: 'budget' },
      cost: { micros: spentMicros, currency, period },
    },
  }
}

/** In a sentence on the overview. */
export function budgetTitle({ scope, of, country }: Pick<BudgetName, 'scope' | 'of' | 'country'>): string {
  const [kind = '', name = ''] = scope.split(':')
  const place = country ?? (kind === 'country' && scope !== anyCountry ? name : undefined)
  const placed = (country: string) =>
    country === unknownCountry ? 'numbers of no country' : countryName(country)
  const whose = place === undefined ? `${kind} ${name}` : placed(place)
  const title = kind === 'server' ? "The server's budget" : `The budget of ${whose}`
  return of === 'all' ? title : `${title} for ${of}`
}

/** The requests of a scope. */
function rowsOf(scope: string): CallFilter {
  const [kind = '', name = ''] = scope.split(':')
  if (kind === 'brand') return { brand: name }
  if (kind === 'app') return { app: name }
  return kind === 'country' && name !== '*' ? { country: name } : {}
}

function exhaustedWords(budget: Budget, exhausted: readonly CounterStatus[]): string {
  const [first = { budget, spentMicros: 0 }] = exhausted
  const { period, amountMicros, currency } = budget
  const amount = `${formatMicros(amountMicros, currency)} per ${period}`
  if (exhausted.length > 1) {
    const countries = exhausted.map((each) => each.budget.country)
    const others = countries.length > mostNamed ? `, and ${countries.length - mostNamed} more` : ''
    const named = `${countries.slice(0, mostNamed).join(', ')}${others}`
    return `Budget ${budgetName(budget)} is exhausted for ${countries.length} countries: ${named}. Each has ${amount}.`
  }
  return `Budget ${budgetName(first.budget)} is exhausted: ${sumWords(first.spentMicros, currency)} of ${amount} spent.`
}

export function removedBudget(about: string, { scope = '', of = '' }: Reported['data']): Condition {
  return {
    kind: 'budget.exhausted',
    about,
    data: { scope: String(scope), of: String(of) },
    what: 'budgets',
    level: 'fail',
    text: '',
    remedy: '',
    see: [],
    ended: `${capitalized(about)} was removed.`,
  }
}

/** When what goes on began, by `about`. @param alerts of conditions and budgets, oldest first */
export function openSince(alerts: readonly Alert[]): ReadonlyMap<string, EpochMs> {
  const open = new Map<string, EpochMs>()
  for (const { key, kind, at, text } of alerts) {
    const data: Partial<BudgetReport> & { readonly since?: string } = JSON.parse(text)
    const { state, since, percent = 0, scope = '', of = 'all' } = data
    const [, about = ''] = /^(.*) #\d+$/.exec(key) ?? []
    if (kind !== budgetKind && state === 'ended') open.delete(about)
    else if (kind !== budgetKind) open.set(about, since === undefined ? at : Date.parse(since))
    else if (percent >= 100) open.set(budgetAbout(budgetName({ scope, of, country: undefined })), at)
  }
  return open
}

/** Attempts of a minute. `failed`: without those that were rejected because of the recipient or the message. */
export interface MinuteOfAttempts {
  readonly at: EpochMs
  readonly provider: string
  readonly accepted: number
  readonly failed: number
}

/** The attempts that decide whether a provider fails. */
export const attemptsWindowMs = 30 * minuteMs

export function minutesOfAttempts(
  counted: readonly (Pick<StatKey, 'provider' | 'detail'> & {
    readonly at: number
    readonly count: number
  })[],
): readonly MinuteOfAttempts[] {
  return counted.map(({ at, provider, detail, count }) => {
    const [outcome, errorClass] = detail.split(' ')
    const isFailure =
      outcome === 'unknown' || outcome === 'retryable' || (outcome === 'rejected' && errorClass === 'account')
    return { at, provider, accepted: outcome === 'accepted' ? count : 0, failed: isFailure ? count : 0 }
  })
}

/** The failures since the latest minute with an accepted message. */
function failuresInARow(minutes: readonly MinuteOfAttempts[]): number {
  const acceptedAt = Math.max(...minutes.filter(({ accepted }) => accepted > 0).map(({ at }) => at))
  return sumOf(
    minutes.filter(({ at }) => at > acceptedAt),
    'failed',
  )
}

function providerCondition(provider: string, failures: number): Condition {
  return {
    kind: 'provider.failing',
    about: `provider ${provider}`,
    data: { provider, failures },
    what: 'providers',
    level: 'fail',
    text: `Provider ${provider} fails: the latest ${failures} attempts failed or have an unknown result.`,
    remedy: 'Check the credentials, the balance and the status page of the provider.',
    see: [{ list: 'deliveries', filters: { provider } }],
    ended: `Provider ${provider} accepts messages again.`,
    ongoing: { title: `Provider ${provider} fails`, hit: { provider, result: 'failed' } },
  }
}

/**
 * @param minutes of `attemptsWindowMs`
 * @param openCircuits of this server
 * @param reported by `about`: the alerts about what has not ended
 */
export function providerVerdicts(
  minutes: readonly MinuteOfAttempts[],
  openCircuits: ReadonlySet<string>,
  reported: ReadonlyMap<string, Reported>,
): ConditionVerdict[] {
  return [...Map.groupBy(minutes, ({ provider }) => provider)].flatMap(
    ([provider, own]): ConditionVerdict[] => {
      const failures = failuresInARow(own)
      const isOpen = openCircuits.has(provider) && own.some(({ failed }) => failed > 0)
      const condition = providerCondition(provider, Math.max(failures, failuresToOpen))
      // Fewer may be chance. As many open a circuit.
      if (failures >= failuresToOpen || isOpen) return [{ condition, lasts: true }]
      // In the minute of the alert both may have happened, and another server may have found it.
      const since = reported.get(condition.about)?.at ?? 0
      const later = own.filter(({ at }) => at > since)
      const works = sumOf(later, 'accepted') > sumOf(later, 'failed')
      return works ? [{ condition, lasts: false }] : []
    },
  )
}

function sumOf(minutes: readonly MinuteOfAttempts[], of: 'accepted' | 'failed'): number {
  return minutes.reduce((sum, minute) => sum + minute[of], 0)
}

/** With less, writes of the database may fail. */
export const leastFreeBytes = 64 * 2 ** 20

/**
 * @param freeBytes undefined: a server of PostgreSQL has the disk
 * @param isFull whether writes fail
 */
function diskCondition(freeBytes: number | undefined, isFull: boolean): Condition {
  const [title, free] =
    isFull || freeBytes === undefined
      ? ['The disk of the database is full', '']
      : ['The disk of the database is nearly full', `: ${bytesWords(freeBytes)} free`]
  return {
    kind: 'disk.full',
    about: 'disk',
    data: freeBytes === undefined ? {} : { freeBytes },
    what: 'disk',
    level: 'fail',
    text: `${title}${free}.`,
    remedy:
      'On a full disk, requests to send and verify fail. Free disk space, move the database to a larger disk, or lower DELIVERY_LOG_DAYS.',
    see: [{ setting: 'DELIVERY_LOG_DAYS' }],
    ended: 'The disk of the database has free space again.',
    ongoing: { title },
  }
}

function databaseCondition(error: unknown): Condition {
  const reason = error instanceof Error ? error.message : ''
  const fault = databaseFault(error)
  return {
    kind: 'database.unavailable',
    about: 'database',
    data: { reason },
    what: 'database',
    level: 'fail',
    text: ['The database is unavailable.', fault?.text].filter(Boolean).join(' '),
    remedy: `Requests to send and verify fail. ${fault?.remedy ?? 'Check the server log.'}`,
    see: [see('doctor')],
    ended: 'The database is available again.',
    ongoing: { title: withoutPoint(fault?.text ?? 'The database is unavailable.') },
  }
}

/** SQLite, and PostgreSQL. */
const diskFullCodes = ['SQLITE_FULL', '53100']

/**
 * @param error of the check of the database. Null: it can be read and written
 * @param isLasting the check before failed too
 */
export function databaseVerdicts(
  error: unknown,
  freeBytes: number | undefined,
  isLasting: boolean,
): ConditionVerdict[] {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const hasFailed = diskFullCodes.some((each) => each === code)
  const isFull = hasFailed || (freeBytes !== undefined && freeBytes < leastFreeBytes)
  const disk: ConditionVerdict[] =
    isFull || error === null ? [{ condition: diskCondition(freeBytes, hasFailed), lasts: isFull }] : []
  const isAway = error !== null && !isFull
  // A restart of PostgreSQL fails one check.
  if (isAway && !isLasting) return disk
  const database: ConditionVerdict[] =
    isAway || error === null ? [{ condition: databaseCondition(error), lasts: isAway }] : []
  return [...disk, ...database]
}
