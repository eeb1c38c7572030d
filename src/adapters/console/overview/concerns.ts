import { countryName } from '../../../domain/delivery/destination.ts'
import type { AlertChannel } from '../../../domain/ground/alert.ts'
import type { ClockStep } from '../../../domain/ground/clock-watch.ts'
import { ago, count, counted, duration, percent, utc } from '../../../domain/ground/format.ts'
import { dayMs, hourMs, minuteMs } from '../../../domain/ground/time.ts'
import type { Webhook } from '../../../domain/ground/webhook-events.ts'
import { unknownCountry } from '../../../domain/guard/bucket.ts'
import { type PumpingState, pumpingState } from '../../../domain/guard/pumping.ts'
import type { FailingAlerts } from '../../../domain/health/alerts.ts'
import { diskCondition, isExhausted, leastFreeBytes } from '../../../domain/health/conditions.ts'
import type { FailingEvents } from '../../../domain/integration/event-store.ts'
import { type CallFilter, type DeliveryFilter, errorClasses } from '../../../domain/log/log-search.ts'
import { type RejectionRate, rejectionWords } from '../../../domain/log/rejections.ts'
import { lateWords } from '../../../domain/log/report-problems.ts'
import {
  type ActiveLimit,
  isTrouble,
  type LastFailures,
  type LastHour,
  type Period,
  type Point,
  type ProviderHealth,
  type Statistics,
  type Stretch,
  type Tries,
  worstStretch,
} from '../../../domain/log/statistics.ts'
import { formatMicros } from '../../../domain/money/amounts.ts'
import { type BudgetStatus, percentSpent } from '../../../domain/money/budgets.ts'
import { isLate, type QueueStatus } from '../../../domain/notify/queue.ts'
import type { GuardWarnings } from '../../../domain/operator/guard.ts'
import type { LimitName } from '../../../domain/request/limit-names.ts'
import { channelNames, logUrl } from '../deliveries/query.ts'
import { testPath } from '../test-send/page.tsx'
import { webhookPath } from '../webhooks/page.tsx'
import { rowsOf, spanOf } from './counts.tsx'

export interface OverviewModel {
  readonly store: {
    readonly isUsable: boolean
    /** Not in the event log and the figures. */
    readonly lostRequests: number
    /** Of the disk of the database. Undefined: the database has no files here. */
    readonly freeBytes: number | undefined
  }
  readonly statistics: Statistics
  /** What is not in it has had no failure for 10 minutes. */
  readonly lastFailures: LastFailures
  readonly limited: readonly ActiveLimit[]
  readonly budgets: readonly BudgetStatus[]
  readonly providers: readonly ProviderHealth[]
  readonly guard: GuardWarnings
  readonly rejections: readonly RejectionRate[]
  readonly providerTimeoutMs: number
  readonly queue: QueueStatus & { readonly failed: number }
  readonly webhooks: readonly (Pick<Webhook, 'appId' | 'disabledAt'> & {
    readonly failing: FailingEvents | undefined
  })[]
  readonly failingAlerts: readonly FailingAlerts[]
  /** Active ones. */
  readonly reviewNumbers: number
  /** Undefined: none since the server started. */
  readonly clockStep: ClockStep | undefined
}

export interface Concern {
  readonly tone: 'bad' | 'warn'
  readonly text: string
  /** Where to see more and act. */
  readonly pages: readonly [PageLink, ...PageLink[]]
}

interface PageLink {
  readonly title: string
  readonly href: string
}

export const periodWords: Readonly<Record<Period, string>> = {
  hour: 'in the last hour',
  day: 'in the last 24 hours',
  month: 'in the last 30 days',
}

export const limitNames: Readonly<Record<LimitName, string>> = {
  'app-minute': 'Calls per minute for an app',
  'status-minute': 'Status requests per minute for an app',
  cooldown: 'Cooldown between codes',
  'phone-minute': 'Codes per minute to a phone number',
  'recipient-hour': 'Codes per hour to a recipient',
  failures: 'Wrong codes in 24 hours for a recipient',
  credentials: 'Failed credentials per minute',
  'integration-requests': 'Integration requests per hour',
  'console-logins': 'Console sign-in attempts',
  budget: 'Budget',
  queue: 'Waiting asynchronous notifications of an app',
}

const alertPlaces: Readonly<Record<AlertChannel, readonly [place: string, setting: string]>> = {
  email: ['e-mail', 'ALERT_EMAIL'],
  webhook: ['webhook', 'ALERT_WEBHOOK_URL'],
}

const settingsPage = { title: 'Settings', href: '/admin/settings' }
const deliveriesPage = (filter: DeliveryFilter): PageLink => ({
  title: 'Deliveries',
  href: logUrl('deliveries', filter),
})
const callsPage = (filter: CallFilter): PageLink => ({ title: 'Calls', href: logUrl('calls', filter) })
const guardPage = { title: 'Guard', href: '/admin/guard' }
const queuePage = { title: 'Queue', href: '/admin/queue' }

/** Of failed sends: no provider has accepted them, as far as otpost knows. */
const { statuses: notAccepted } = rowsOf.failedOrUnknown

/** Bad ones first, in the order of this function. */
export function concernsOf(model: OverviewModel): Concern[] {
  const { store, statistics, lastFailures, limited, budgets, guard, rejections, reviewNumbers } = model
  const { totals, period, from: since, until: now } = statistics
  const concerns: Concern[] = []
  const add = (isBad: boolean, text: string, ...pages: Concern['pages']) =>
    void concerns.push({ tone: isBad ? 'bad' : 'warn', text, pages })
  if (!store.isUsable) {
    add(
      true,
      'The database is not available, so requests to send or verify fail. Check the server log, or run `otpost doctor` on the server.',
      settingsPage,
    )
  }
  if (store.freeBytes !== undefined && store.freeBytes < leastFreeBytes) {
    const { problem, remedy } = diskCondition(store.freeBytes)
    add(true, `${problem} ${remedy}`, settingsPage)
  }
  concerns.push(...pumpingConcerns(guard, now))
  for (const [noun, success, failure] of [
    ['code', 'sends', 'sendsFailed'],
    ['notification', 'notified', 'notifyFailed'],
  ] as const) {
    const [failed, all] = [totals[failure], totals[success] + totals[failure]]
    if (failed === 0) continue
    const tries = statistics.points.map(({ at, ...figures }) => {
      return { at, failed: figures[failure], all: figures[success] + figures[failure] }
    })
    const latest = lastFailures.get(failure)
    const text = `Sending failed for ${partOf(failed, all, noun)} ${periodWords[period]}. ${whenWords(tries, statistics, latest)}`
    const isBad = latest !== undefined && isTroubleNow(tries, statistics)
    add(isBad, text, callsPage({ ...spanOf(statistics), ...rowsOf[failure] }))
  }
  concerns.push(...providerConcerns(model))
  for (const status of budgets) {
    const isRejecting = limited.some(({ budget }) => budget === status.budget.scope)
    const concern = budgetConcernOf(status, isRejecting)
    if (concern) concerns.push(concern)
  }
  concerns.push(...webhookConcerns(model, now))
  if (model.clockStep && now - model.clockStep.at < dayMs)
    add(false, clockWords(model.clockStep, now), settingsPage)
  for (const { channel, alerts } of model.failingAlerts) {
    const [place, setting] = alertPlaces[channel]
    add(
      true,
      `Alerts by ${place} fail: ${counted(alerts, 'alert')} will be tried again. The server log has the reason. Check \`${setting}\`.`,
      { title: 'Latest alerts', href: '/admin/money' },
    )
  }
  concerns.push(...queueConcerns(model, now))
  for (const rate of rejections) {
    const { problem, remedy } = rejectionWords(rate)
    const texts = {
      title: `Texts of ${rate.brand}`,
      href: `/admin/brands/${encodeURIComponent(rate.brand)}/texts`,
    }
    const { brand, template } = rate
    add(true, `${problem} ${remedy}`, deliveriesPage({ brand, template, statuses: ['failed'] }), texts)
  }
  for (const codes of statistics.late) {
    const { problem, remedy } = lateWords(codes, periodWords[period], model.providerTimeoutMs)
    const { provider } = codes
    add(
      true,
      `${problem} ${remedy}`,
      deliveriesPage({ provider, since, statuses: ['delivered'] }),
      settingsPage,
    )
  }
  if (store.lostRequests > 0) {
    add(
      !store.isUsable,
      `${counted(store.lostRequests, 'request')} could not be written to the event log since this server started. The figures do not include them.`,
      settingsPage,
    )
  }
  const { delivered, undelivered } = totals
  if (undelivered > 0) {
    const all = delivered + undelivered
    const verb = undelivered === 1 ? 'was' : 'were'
    add(
      isTrouble(undelivered, all),
      `${partOf(undelivered, all, 'message')} ${verb} not delivered ${periodWords[period]}, according to delivery reports.`,
      deliveriesPage({ since, statuses: ['failed'] }),
    )
  }
  const due = codesDue(statistics)
  if (due > 0 && totals.verified === 0) {
    add(
      false,
      `No code was verified ${periodWords[period]}. ${counted(due, 'sent code')} can no longer be verified. The messages may not arrive.`,
      deliveriesPage({ since }),
    )
  }
  for (const text of guardConcerns(guard)) add(false, text, guardPage)
  if (totals.refused > 0) {
    add(
      false,
      `${counted(totals.refused, 'request')} ${periodWords[period]} ${totals.refused === 1 ? 'was' : 'were'} rejected because of the brand: it is suspended, pending or unknown, or the template is not enabled for it.`,
      { title: 'Brands', href: '/admin/brands' },
    )
  }
  if (totals.blocked > 0) {
    add(
      false,
      `${counted(totals.blocked, 'request')} ${periodWords[period]} ${totals.blocked === 1 ? 'was' : 'were'} rejected because of the destination: a rule or \`SMS_COUNTRIES\` blocks the number.`,
      callsPage({ ...spanOf(statistics), ...rowsOf.blocked }),
      { title: 'Destinations', href: '/admin/destinations' },
    )
  }
  const limitedApps = limited.filter(({ limit }) => limit === 'app-minute').map(({ app }) => app)
  for (const app of new Set(limitedApps)) {
    if (app === null) continue
    const href = `/admin/apps/scope?${new URLSearchParams({ app })}`
    add(false, `App ${app} has reached its limit of calls per minute. Further calls are rejected.`, {
      title: 'Change the limit',
      href,
    })
  }
  if (reviewNumbers > 0) {
    add(false, `A fixed code verifies for ${counted(reviewNumbers, 'review number')}.`, {
      title: 'Review numbers',
      href: '/admin/review-numbers',
    })
  }
  return concerns.sort((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'))
}

function clockWords({ at, byMs }: ClockStep, now: number): string {
  const step = `The clock of this server was set ${byMs < 0 ? 'back' : 'forward'} by ${duration(Math.abs(byMs))}, ${ago(at, now)}.`
  return byMs < 0
    ? `${step} Codes that were sent earlier do not verify. Stored times may be in the future. If the clock is correct now, do nothing: limits, blocks and retries last at most their own length. If not, synchronize the clock.`
    : `${step} The machine may have been suspended. Codes, limits and blocks expired earlier by this time. If the clock is correct now, do nothing. If not, synchronize the clock.`
}

/** In UTC. Minutes of hours and days, or whole days. */
function spanWords({ from, until }: Pick<Stretch, 'from' | 'until'>): string {
  const [day, time] = minuteWords(from)
  const [lastDay, lastTime] = minuteWords(until)
  if (time === '00:00' && lastTime === '00:00') {
    const [last] = minuteWords(until - dayMs)
    return day === last ? `on ${day} (UTC)` : `from ${day} to ${last} (UTC)`
  }
  return `from ${day} ${time} to ${day === lastDay ? '' : `${lastDay} `}${lastTime} UTC`
}

function minuteWords(at: number): readonly [day: string, time: string] {
  return [utc(at).slice(0, 10), utc(at).slice(11, 16)]
}

/** When, and whether it goes on. @param latest undefined: not in the last 10 minutes. `worst`: the text says it already */
function whenWords(
  tries: readonly Tries[],
  statistics: Statistics,
  latest: number | undefined,
  worst?: Stretch,
): string {
  const { stepMs, until: now } = statistics
  if (latest !== undefined)
    return `${isTroubleNow(tries, statistics) ? 'It goes on: the' : 'The'} latest failure was ${ago(latest, now)}.`
  const failing = tries.filter(({ failed }) => failed > 0)
  const [from, last] = [failing[0]?.at ?? now, failing.at(-1)?.at ?? now]
  const until = Math.min(last + stepMs, now - 10 * minuteMs)
  if (!worst && from < until) return `They failed ${spanWords({ from, until })}.`
  return `None failed since ${utc(until).slice(0, 16)} UTC.`
}

/** In this step and the one before, or in the last minutes. */
function isTroubleNow(tries: readonly Tries[], { stepMs, until }: Statistics): boolean {
  const recent = tries.filter(({ at }) => at + stepMs + Math.max(stepMs, 10 * minuteMs) > until)
  const sum = (of: (each: Tries) => number) => recent.reduce((total, each) => total + of(each), 0)
  return isTrouble(
    sum(({ failed }) => failed),
    sum(({ all }) => all),
  )
}

/** OTP_TTL_SECONDS is at most 600. */
const longestCodeMs = 600_000

/** Sent codes that have expired for certain. */
function codesDue({ points, stepMs, until }: Statistics): number {
  const isOver = ({ at }: Point) => at + stepMs + longestCodeMs <= until
  return points.filter(isOver).reduce((sum, { sends }) => sum + sends, 0)
}

function webhookConcerns({ webhooks }: OverviewModel, now: number): Concern[] {
  return webhooks.flatMap(({ appId, disabledAt, failing }): Concern[] => {
    const pages: Concern['pages'] = [{ title: `Webhook of ${appId}`, href: webhookPath(appId) }]
    if (disabledAt !== null) {
      const text = `The webhook of app ${appId} was switched off ${ago(disabledAt, now)}, because an event failed at its last try or the receiver answered 410. Correct the receiver, then set the webhook again.`
      return [{ tone: 'bad', text, pages }]
    }
    if (!failing) return []
    const text = `The webhook of app ${appId} fails: ${counted(failing.events, 'event')} will be tried again. Latest error: ${failing.error}.`
    return [{ tone: 'bad', text, pages }]
  })
}

function queueConcerns({ queue: { waiting, oldestAt, failed } }: OverviewModel, now: number): Concern[] {
  const concerns: Concern[] = []
  if (isLate(oldestAt, now)) {
    const text = `${counted(waiting, 'asynchronous notification')} ${waiting === 1 ? 'waits' : 'wait'}, the oldest for ${duration(now - oldestAt)}.`
    concerns.push({ tone: 'warn', text, pages: [queuePage] })
  }
  if (failed > 0) {
    const text = `${counted(failed, 'asynchronous notification')} failed or ${failed === 1 ? 'has' : 'have'} an unknown result in the last 24 hours.`
    concerns.push({ tone: 'warn', text, pages: [queuePage] })
  }
  return concerns
}

/** Of a budget that rejects, whose first alert is due, or which has less than a fifth left. */
function budgetConcernOf(status: BudgetStatus, isRejecting: boolean): Concern | undefined {
  const { budget, spentMicros, resetsAt } = status
  const { scope, period, amountMicros, currency, alertAt } = budget
  const share = percentSpent(budget, spentMicros)
  const rejects = isExhausted(status, isRejecting)
  if (!rejects && share < Math.min(80, ...alertAt)) return undefined
  const amount = formatMicros(amountMicros, currency)
  const spent = `Budget ${scope}: ${percent(share / 100)} of ${amount} for ${period === 'day' ? 'today' : 'this month'} spent.`
  const pages: Concern['pages'] = [{ title: 'Money', href: '/admin/money' }]
  if (!rejects) return { tone: 'warn', text: spent, pages }
  return {
    tone: 'bad',
    pages,
    text: `${spent} SMS that cost more than what is left are rejected until ${utc(resetsAt)}. To send more before, lift the budget.`,
  }
}

/** Those with the most failures first. */
function providerConcerns({ providers, statistics, lastFailures }: OverviewModel): Concern[] {
  const { byProvider, failures, period, from: since, stepMs } = statistics
  const failedBy = (name: string) => attemptsOf(byProvider.find((share) => share.name === name)).failed
  const removed = byProvider.filter(({ name }) => providers.every((provider) => provider.name !== name))
  const all = [...providers, ...removed].sort((one, other) => failedBy(other.name) - failedBy(one.name))
  return all.flatMap((provider): Concern[] => {
    const { name } = provider
    const circuit = 'state' in provider ? circuitOf(provider, providers) : undefined
    const inHour = 'lastHour' in provider ? attemptsOf(provider.lastHour) : none
    const inPeriod = attemptsOf(byProvider.find((share) => share.name === name))
    const tries = statistics.tries.get(name) ?? []
    const latest = lastFailures.get(name)
    const worst = worstStretch(tries, stepMs)
    const isPart = worst !== undefined && worst.all < inPeriod.all && isTrouble(worst.failed, inPeriod.failed)
    const cause = failures.find((failure) => failure.provider === name)?.errorClass
    const parts = [
      circuit?.text,
      inPeriod.failed > 0 &&
        `${shareOf(inPeriod)} failed or ${inPeriod.failed === 1 ? 'has' : 'have'} an unknown result ${periodWords[period]}${cause ? `, most often: ${errorClasses[cause]}` : ''}.`,
      isPart && `The worst time: ${shareOf(worst)} ${spanWords(worst)}.`,
      inPeriod.failed > 0 && whenWords(tries, statistics, latest, isPart ? worst : undefined),
      isFailing(inHour) && inHour.all !== inPeriod.all && `${shareOf(inHour)} in the last hour.`,
    ].filter(Boolean)
    const rows = deliveriesPage({ provider: name, since, statuses: notAccepted })
    const span = isPart && spanOf({ from: worst.from, until: worst.until - 1 })
    const pages: Concern['pages'] = span
      ? [
          {
            ...deliveriesPage({ provider: name, ...span, statuses: notAccepted }),
            title: 'Failures of that time',
          },
          { ...rows, title: 'All failures' },
        ]
      : [rows]
    const test = { title: 'Send a test', href: testPath({ provider: name }) }
    const isUntested = 'hasAccepted' in provider && !provider.hasAccepted
    if (parts.length === 0) {
      const text = `Provider ${name} has never accepted a message.`
      return isUntested ? [{ tone: 'warn', text, pages: [test] }] : []
    }
    if (isUntested) parts.push('It has never accepted a message.')
    const isOngoing = latest !== undefined && (isTroubleNow(tries, statistics) || isFailing(inHour))
    const isBad = circuit?.isBad || isOngoing
    const text = `Provider ${name}: ${parts.join(' ')}`
    return [{ tone: isBad ? 'bad' : 'warn', text, pages: isUntested ? [...pages, test] : pages }]
  })
}

export function isIdle({ lastHour }: ProviderHealth): boolean {
  return attemptsOf(lastHour).all === 0
}

const none = { failed: 0, all: 0 }

/** Unknown results count as failed. */
function attemptsOf(figures: LastHour | undefined): typeof none {
  if (!figures) return none
  const failed = figures.failed + figures.unknown
  return { failed, all: figures.accepted + failed }
}

function isFailing({ failed, all }: typeof none): boolean {
  return isTrouble(failed, all)
}

function shareOf({ failed, all }: typeof none): string {
  return partOf(failed, all, 'attempt')
}

function partOf(some: number, all: number, noun: string): string {
  return `${count(some)} of ${counted(all, noun)} (${percent(some / all)})`
}

function circuitOf(
  provider: ProviderHealth,
  all: readonly ProviderHealth[],
): { readonly isBad: boolean; readonly text: string } | undefined {
  const { channel, state, failuresInARow, openMs } = provider
  const inARow = `${counted(failuresInARow, 'failure')} in a row`
  if (state === 'open') {
    const others = all.some((other) => other !== provider && standsIn(other, provider))
    const meanwhile = others
      ? `Other providers send its ${channelNames[channel]}.`
      : `No other provider sends its ${channelNames[channel]}, so otpost still uses it.`
    return { isBad: true, text: `circuit open for ${duration(openMs)} after ${inARow}. ${meanwhile}` }
  }
  if (state === 'half-open') {
    const next = isIdle(provider)
      ? 'It had no attempts in the last hour, so nothing tests it.'
      : 'The next message to it decides whether it closes.'
    return { isBad: true, text: `circuit half-open after ${inARow}. ${next}` }
  }
  return failuresInARow === 0 ? undefined : { isBad: false, text: `${inARow}.` }
}

function standsIn(other: ProviderHealth, { channel, routes }: ProviderHealth): boolean {
  if (other.state !== 'closed' || other.channel !== channel) return false
  return routes.length === 0 || routes.some((route) => other.routes.includes(route))
}

/** A country with fewer codes in an hour may have no attack. */
const manyUnverified = 20

const stateWords: Readonly<Record<PumpingState, string>> = {
  sent: 'This may be SMS pumping. Such codes are still sent until you block their prefix or country.',
  unblocked:
    'This may be SMS pumping. Such codes were denied until a moment ago, and nothing blocks them now.',
  blocked: 'An operator blocked the prefix.',
  denied: 'Such codes are denied now.',
  none: 'In the last 2 minutes, the guard found none.',
}

/** Of the countries with the most codes: what attacks, and whether it goes on. */
function pumpingConcerns({ pumping, mode }: GuardWarnings, now: number): Concern[] {
  return pumping.slice(0, 3).map((status): Concern => {
    const { country, sent, verified, denied, recorded, prefixes, apps } = status
    const numbers = prefixes.map(({ prefix }) => `${prefix}…`).join(', ')
    const place = `${placeOf(country)}${numbers === '' ? '' : ` (${numbers})`}`
    const named = apps.slice(0, 3).map(({ app, brand }) => `app ${app} of brand ${brand}`)
    const byApps = named.length === 0 ? '' : `: ${named.join(', ')}`
    const state = pumpingState(status, mode)
    const isOngoing = state === 'sent' || state === 'unblocked'
    const texts =
      recorded === 0
        ? [
            `${counted(denied, 'code')} to ${place} ${denied === 1 ? 'was' : 'were'} denied in the last hour, because too many codes are not verified${byApps}.`,
          ]
        : [
            `${counted(Math.max(sent, recorded), 'code')} to ${place} in the last hour, ${verified === 0 ? 'none' : count(verified)} verified${byApps}.`,
            ...(denied > 0
              ? [`${counted(denied, 'further code')} ${denied === 1 ? 'was' : 'were'} denied.`]
              : []),
            stateWords[state],
          ]
    const isBad = isOngoing && sent - verified >= manyUnverified && verified <= sent / 3
    const rows = { country: country === unknownCountry ? undefined : country, since: now - hourMs }
    const deliveries = deliveriesPage({ ...rows, channel: 'SMS' })
    const calls = callsPage({ ...rows, result: 'limited' })
    return {
      tone: isBad ? 'bad' : 'warn',
      text: texts.join(' '),
      pages: [
        { title: isBad ? 'Stop it' : 'Guard', href: '/admin/guard' },
        recorded > 0 ? deliveries : calls,
      ],
    }
  })
}

function guardConcerns({ mode, blocked, blockedByOperators, pumping }: GuardWarnings): string[] {
  const isRecord = mode === 'record'
  const concerns: string[] = []
  const prefixes = [...blocked].sort(([, one], [, other]) => other - one)
  if (prefixes.length > 0) {
    const named = prefixes
      .slice(0, 3)
      .map(([country, total]) => `${counted(total, 'prefix', 'prefixes')} of ${placeOf(country)}`)
    const others = prefixes.slice(3).reduce((sum, [, total]) => sum + total, 0)
    const all = [...named, ...(others === 0 ? [] : [`${count(others)} of other countries`])].join(', ')
    const verb = isRecord ? 'would block' : 'blocks'
    concerns.push(`The SMS pumping guard ${verb} ${all}.`)
  }
  if (isRecord && pumping.some(({ recorded }) => recorded > 0)) {
    concerns.push(
      'The SMS pumping guard only records. To deny codes that it finds too many, set `GUARD=deny`.',
    )
  }
  if (blockedByOperators > 0)
    concerns.push(`Operators block ${counted(blockedByOperators, 'prefix', 'prefixes')}.`)
  return concerns
}

function placeOf(country: string | null): string {
  return country === null || country === unknownCountry ? 'no country' : countryName(country)
}
