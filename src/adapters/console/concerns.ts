import { countryName } from '../../domain/destinations/destination.ts'
import { rejectionWords } from '../../domain/events/rejections.ts'
import type { Period, ProviderHealth } from '../../domain/events/statistics.ts'
import { unknownCountry } from '../../domain/guard/bucket.ts'
import { formatMicros } from '../../domain/money/amounts.ts'
import { type BudgetStatus, percentSpent } from '../../domain/money/budgets.ts'
import type { GuardWarnings } from '../../domain/operator/guard.ts'
import type { LimitName } from '../../domain/otp/limits.ts'
import { count, counted, duration, percent, utc } from '../pages/words.ts'
import { channelNames, logUrl } from './log-query.ts'
import type { OverviewModel } from './models.ts'

export interface Concern {
  readonly tone: 'bad' | 'warn'
  readonly text: string
  /** The pages that have more. */
  readonly pages?: readonly { readonly title: string; readonly href: string }[]
}

/** Carriers and wrong numbers cause fewer failures than this on a normal day. */
const failureShare = 0.1

/** Fewer events are too few for a share. */
const fewest = 10

export function isTrouble(failures: number, tries: number): boolean {
  return tries >= fewest && failures / tries >= failureShare
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
}

export function concernsOf(model: OverviewModel): Concern[] {
  const { store, statistics, limited, budgets, providers, guard, rejections } = model
  const { totals, period } = statistics
  const concerns: Concern[] = []
  const add = (tone: Concern['tone'], text: string) => void concerns.push({ tone, text })
  if (!store.isUsable) {
    add(
      'bad',
      'The database is not available, so requests to send or verify fail. Check the server log, or run `otpost doctor` on the server.',
    )
  }
  if (store.lostRequests > 0) {
    add(
      store.isUsable ? 'warn' : 'bad',
      `${counted(store.lostRequests, 'request')} could not be written to the event log since this server started. The figures do not include them.`,
    )
  }
  for (const status of budgets) {
    const isRejecting = limited.some(({ budget }) => budget === status.budget.scope)
    const concern = budgetConcernOf(status, isRejecting)
    if (concern) concerns.push(concern)
  }
  for (const provider of providers) {
    const concern = concernOf(provider, providers)
    if (concern) concerns.push(concern)
  }
  const codes = totals.sends + totals.sendsFailed
  if (isTrouble(totals.sendsFailed, codes)) {
    const share = percent(totals.sendsFailed / codes)
    add(
      'bad',
      `Sending failed for ${count(totals.sendsFailed)} of ${counted(codes, 'code')} (${share}) ${periodWords[period]}.`,
    )
  }
  if (isTrouble(totals.refused, totals.refused + totals.sends + totals.notified)) {
    add(
      'warn',
      `${counted(totals.refused, 'request')} ${periodWords[period]} were rejected because of the brand: it is suspended, pending or unknown, or the template is not enabled for it.`,
    )
  }
  if (totals.sends >= fewest && totals.verified === 0) {
    add(
      'warn',
      `None of the ${count(totals.sends)} codes sent ${periodWords[period]} were verified. The messages may not arrive.`,
    )
  }
  const deliveryReports = totals.delivered + totals.undelivered
  if (isTrouble(totals.undelivered, deliveryReports)) {
    const share = percent(totals.undelivered / deliveryReports)
    add(
      'warn',
      `${count(totals.undelivered)} of ${counted(deliveryReports, 'message')} (${share}) were not delivered, according to delivery reports.`,
    )
  }
  const limitedApps = limited.filter(({ limit }) => limit === 'app-minute').map(({ app }) => app)
  for (const app of new Set(limitedApps)) {
    if (app === null) continue
    add('warn', `App ${app} has reached its limit of calls per minute. Further calls are rejected.`)
  }
  for (const text of guardConcerns(guard)) {
    concerns.push({ tone: 'warn', text, pages: [{ title: 'Guard', href: '/admin/guard' }] })
  }
  for (const rate of rejections) {
    const { brand, template } = rate
    const { problem, remedy } = rejectionWords(rate)
    const pages = [
      { title: 'Deliveries', href: logUrl('deliveries', { brand, template, statuses: ['failed'] }) },
      { title: `Texts of ${brand}`, href: `/admin/brands/${encodeURIComponent(brand)}/texts` },
    ]
    concerns.push({ tone: 'bad', text: `${problem} ${remedy}`, pages })
  }
  return concerns.sort((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'))
}

/** Of a budget that rejects, whose first alert is due, or which has less than a fifth left. */
function budgetConcernOf(status: BudgetStatus, isRejecting: boolean): Concern | undefined {
  const { budget, spentMicros, remainingMicros, resetsAt, isStopping } = status
  const { scope, period, amountMicros, currency, alertAt } = budget
  const share = percentSpent(budget, spentMicros)
  const isExhausted = isStopping && (remainingMicros === 0 || isRejecting)
  if (!isExhausted && share < Math.min(80, ...alertAt)) return undefined
  const amount = formatMicros(amountMicros, currency)
  const spent = `Budget ${scope}: ${share} % of ${amount} for ${period === 'day' ? 'today' : 'this month'} spent.`
  if (!isExhausted) return { tone: 'warn', text: spent }
  return {
    tone: 'bad',
    text: `${spent} SMS that cost more than what is left are rejected until ${utc(resetsAt)}. To send more before, lift the budget on the page Money.`,
  }
}

function concernOf(provider: ProviderHealth, all: readonly ProviderHealth[]): Concern | undefined {
  const { name, channel, state, failuresInARow, openMs, lastHour } = provider
  const inARow = `after ${counted(failuresInARow, 'failure')} in a row`
  if (state === 'open') {
    const others = all.some((other) => other !== provider && standsIn(other, provider))
    const meanwhile = others
      ? `Other providers send its ${channelNames[channel]}.`
      : `No other provider sends its ${channelNames[channel]}, so otpost still uses it.`
    const text = `Provider ${name}: circuit open for ${duration(openMs)} ${inARow}. ${meanwhile}`
    return { tone: 'bad', text }
  }
  if (state === 'half-open') {
    return {
      tone: 'bad',
      text: `Provider ${name}: circuit half-open ${inARow}. One message decides whether it closes.`,
    }
  }
  const failed = lastHour.failed + lastHour.unknown
  const attempts = lastHour.accepted + failed
  if (!isTrouble(failed, attempts)) return undefined
  const share = percent(failed / attempts)
  return {
    tone: 'warn',
    text: `Provider ${name}: ${count(failed)} of ${counted(attempts, 'attempt')} (${share}) failed in the last hour.`,
  }
}

function standsIn(other: ProviderHealth, { channel, routes }: ProviderHealth): boolean {
  if (other.state !== 'closed' || other.channel !== channel) return false
  return routes.length === 0 || routes.some((route) => other.routes.includes(route))
}

function guardConcerns({ mode, blocked, countries }: GuardWarnings): string[] {
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
  const codes = new Map<string, number>()
  for (const { country, count } of countries) codes.set(country, (codes.get(country) ?? 0) + count)
  for (const [country, total] of [...codes].sort(([, one], [, other]) => other - one).slice(0, 3)) {
    const verb = isRecord ? 'would have been denied' : total === 1 ? 'was denied' : 'were denied'
    concerns.push(
      `${counted(total, 'code')} to ${placeOf(country)} ${verb} in the last hour, because too many codes to it are not verified.`,
    )
  }
  const last = concerns.pop()
  if (last === undefined) return []
  return [...concerns, isRecord ? `${last} To deny such codes, set \`GUARD=deny\`.` : last]
}

function placeOf(country: string | null): string {
  return country === null || country === unknownCountry ? 'no country' : countryName(country)
}
