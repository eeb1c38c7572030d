import type { ReportRejection } from '../delivery/delivery-reports.ts'
import { dltWords } from '../delivery/dlt-codes.ts'
import { see } from '../ground/advice.ts'
import type { AlertChannel } from '../ground/alert.ts'
import { ago, counted, duration, partOf, utc } from '../ground/format.ts'
import { dayMs, type EpochMs, hourMs } from '../ground/time.ts'
import { figureRows, spanOf } from '../log/log-search.ts'
import type { RejectionRate } from '../log/rejections.ts'
import {
  isTrouble,
  type LateCodes,
  type Point,
  periodWords,
  type RejectedReports,
  type Statistics,
} from '../log/statistics.ts'
import { percentSpent, spentWords } from '../money/budgets.ts'
import { isLate } from '../notify/queue.ts'
import { untilWords } from '../policy/review-number.ts'
import { disabledWebhook } from './alerts.ts'
import { budgetCondition, databaseVerdicts, isExhausted } from './conditions.ts'
import type { HealthFacts } from './facts.ts'
import { providerProblems, sendingProblems } from './outages.ts'
import type { LogRows, Problem } from './problem.ts'
import { guardProblems, pumpingProblems } from './pumping-problems.ts'

/** The worst first, then in this order. */
export function problemsOf(facts: HealthFacts): Problem[] {
  const { statistics, guard } = facts
  const { until: now } = statistics
  const all = [
    ...serverConditions(facts),
    ...pumpingProblems(guard, now),
    ...sendingProblems(facts),
    ...providerProblems(facts),
    ...budgetProblems(facts),
    ...facts.webhooks.flatMap((webhook) => webhookProblems(webhook, now)),
    ...clockProblems(statistics),
    ...facts.failingAlerts.map(({ channel, alerts }) => failingAlertsProblem(channel, alerts)),
    ...queueProblems(facts.queue, now),
    ...facts.rejections.map(rejectionProblem),
    ...statistics.late.map((codes) => lateProblem(codes, statistics, facts.providerTimeoutMs)),
    ...statistics.rejectedReports.map((reports) => rejectedReportsProblem(reports, statistics)),
    ...lostRequestProblems(facts),
    ...deliveryProblems(statistics),
    ...guardProblems(guard),
    ...rejectedRequestProblems(statistics),
    ...limitedAppProblems(facts),
    ...forwardedProblems(statistics),
    ...reviewNumberProblems(facts),
  ]
  return all.sort((one, other) => levels.indexOf(one.level) - levels.indexOf(other.level))
}

const levels: readonly Problem['level'][] = ['fail', 'bad', 'warn']

function warning(about: Omit<Problem, 'level' | 'remedy'> & { readonly remedy?: string }): Problem {
  return { level: 'warn', remedy: '', ...about }
}

function serverConditions({ server }: HealthFacts): readonly Problem[] {
  if (!server) return []
  const verdicts = databaseVerdicts(server.databaseError, server.freeBytes, true)
  return verdicts.flatMap(({ condition, lasts }) => (lasts ? [condition] : []))
}

export function budgetProblems({ budgets, reported, server }: HealthFacts): Problem[] {
  return budgets.flatMap((status): Problem[] => {
    const { budget, spentMicros } = status
    const { scope, alertAt } = budget
    const isRejecting = server?.limited.some((limit) => limit.budget === scope) ?? false
    if (isExhausted(status, isRejecting, reported.get(scope))) return [budgetCondition(status)]
    const share = percentSpent(budget, spentMicros)
    if (share < Math.min(80, ...alertAt)) return []
    const text = `${spentWords(budget, share)}.`
    return [warning({ what: 'budgets', text, see: [see('budget list')] })]
  })
}

function webhookProblems(
  { appId, disabledAt, failing }: HealthFacts['webhooks'][number],
  now: EpochMs,
): Problem[] {
  const about = {
    what: 'webhooks',
    level: 'bad',
    see: [see('app webhook', { appId, url: 'URL' }), { docs: 'webhooks' }],
  } as const
  if (disabledAt !== null) {
    return [{ ...about, ...disabledWebhook(appId, ` ${ago(disabledAt, now)}`) }]
  }
  if (!failing) return []
  const text = `The webhook of app ${appId} fails: ${counted(failing.events, 'event')} will be tried again. Latest error: ${failing.error}.`
  return [{ ...about, text, remedy: '' }]
}

function clockProblems({ clockSteps, stepMs }: Statistics): Problem[] {
  const remedy =
    'If the clock is correct now, do nothing: limits, blocks and retries last at most their own length. If not, synchronize the clock.'
  return clockSteps.map(({ at, byMs }) =>
    warning({
      what: 'clock',
      text: `The clock of a server was set ${byMs < 0 ? 'back' : 'forward'} by ${duration(Math.abs(byMs))} ${stepWords(at, stepMs)}. ${
        byMs < 0
          ? 'Codes that were sent earlier do not verify. Stored times may be in the future.'
          : 'The machine may have been suspended. Codes, limits and blocks expired earlier by this time.'
      }`,
      remedy,
      see: [],
    }),
  )
}

/** When, as exactly as a step of the statistics says. */
function stepWords(at: EpochMs, stepMs: number): string {
  if (stepMs === dayMs) return `on ${utc(at).slice(0, 10)} (UTC)`
  const minute = `${utc(at).slice(0, 16)} UTC`
  return stepMs === hourMs ? `in the hour from ${minute}` : `at ${minute}`
}

const alertPlaces: Readonly<Record<AlertChannel, readonly [place: string, setting: string]>> = {
  email: ['e-mail', 'ALERT_EMAIL'],
  webhook: ['webhook', 'ALERT_WEBHOOK_URL'],
}

function failingAlertsProblem(channel: AlertChannel, alerts: number): Problem {
  const [place, setting] = alertPlaces[channel]
  return {
    what: 'alerts',
    level: 'bad',
    text: `Alerts by ${place} fail: ${counted(alerts, 'alert')} will be tried again. The server log has the reason.`,
    remedy: `Check \`${setting}\`.`,
    see: [{ setting }],
  }
}

function queueProblems({ waiting, oldestAt, failed }: HealthFacts['queue'], now: EpochMs): Problem[] {
  const about = { what: 'queue', see: [see('queue list')] }
  const problems: Problem[] = []
  if (isLate(oldestAt, now)) {
    const text = `${counted(waiting, 'asynchronous notification')} ${waiting === 1 ? 'waits' : 'wait'}, the oldest for ${duration(now - oldestAt)}.`
    problems.push(warning({ ...about, text, remedy: 'If no server runs, start one.' }))
  }
  if (failed > 0) {
    const text = `${counted(failed, 'asynchronous notification')} failed or ${failed === 1 ? 'has' : 'have'} an unknown result in the last 24 hours.`
    problems.push(warning({ ...about, text }))
  }
  return problems
}

function rejectionProblem({ brand, template, day, before, provider, reason }: RejectionRate): Problem {
  // A report may arrive the day after its message was sent.
  const allOf = ({ sent, rejected }: RejectionRate['day']) => Math.max(sent, rejected)
  const share = (of: RejectionRate['day']) => `${Math.round((100 * of.rejected) / allOf(of))}%`
  const meaning = reason === null ? undefined : dltWords(reason)
  const why = [reason ?? 'none given', ...(meaning === undefined ? [] : [meaning])].join(', ')
  const earlier =
    before.sent === 0 ? 'none was sent in the 7 days before' : `${share(before)} in the 7 days before`
  return {
    what: 'carriers',
    level: 'bad',
    text: `Carriers did not deliver ${day.rejected} of ${allOf(day)} SMS (${share(day)}) of template ${template} of brand ${brand} in the last 24 hours; ${earlier}. Most frequent reason: ${why} (${provider}).`,
    remedy: 'Compare the text with the registered one.',
    see: [
      { list: 'deliveries', filters: { brand, template, statuses: ['failed'] } },
      see('text lint', { slug: brand, key: template }),
      { docs: 'dlt' },
    ],
  }
}

function lateProblem(
  { provider, count, hasTimedOut }: LateCodes,
  { period, from: since }: Statistics,
  providerTimeoutMs: number,
): Problem {
  const after = hasTimedOut ? `after PROVIDER_TIMEOUT_MS (${providerTimeoutMs} ms)` : 'after an error'
  return {
    what: 'late codes',
    level: 'bad',
    text: `${provider} delivered ${counted(count, 'code')} ${after} ${periodWords[period]}, according to delivery reports. Their sends were answered 502 sms_failed, so the codes do not verify.`,
    remedy: hasTimedOut
      ? `Set PROVIDER_TIMEOUT_MS to more than the response time of ${provider}, or name a faster provider before it in SMS_PLAIN or SMS_TEMPLATE.`
      : `Ask the provider why ${provider} answers an error for messages that it delivers.`,
    see: [
      { list: 'deliveries', filters: { provider, since, statuses: ['delivered'] } },
      { setting: 'PROVIDER_TIMEOUT_MS' },
    ],
  }
}

const reportRemedies: Readonly<Record<ReportRejection, string>> = {
  url: 'Enter the status callback URL of this server at the provider. It changes with the secret key.',
  signature:
    'Compare the secret at the provider with the settings, and PUBLIC_URL with the URL that the provider calls. A third party may have sent them.',
  form: 'Compare the version and the format of the reports at the provider with docs/providers.',
}

const reportCauses: Readonly<Record<ReportRejection, string>> = {
  url: 'their URL is not one of this server',
  signature: 'their signature, key or time is wrong',
  form: 'they are not of the documented form',
}

function rejectedReportsProblem({ provider, why, count }: RejectedReports, { period }: Statistics): Problem {
  const of = provider === '' ? 'no provider of this server' : provider
  return warning({
    what: 'reports',
    text: `otpost rejected ${counted(count, 'delivery report')} of ${of} ${periodWords[period]}: ${reportCauses[why]}.`,
    remedy: reportRemedies[why],
    see: why === 'url' ? [see('callbacks')] : [],
  })
}

function lostRequestProblems({ server }: HealthFacts): Problem[] {
  if (!server || server.lostRequests === 0) return []
  const { lostRequests, databaseError } = server
  return [
    {
      what: 'event log',
      level: databaseError === null ? 'warn' : 'bad',
      text: `${counted(lostRequests, 'request')} could not be written to the event log since this server started. The figures do not include them.`,
      remedy: '',
      see: [],
    },
  ]
}

/** OTP_TTL_SECONDS is at most 600. */
const longestCodeMs = 600_000

/** Sent codes that have expired for certain. */
function codesDue({ points, stepMs, until }: Statistics): number {
  const isOver = ({ at }: Point) => at + stepMs + longestCodeMs <= until
  return points.filter(isOver).reduce((sum, { sends }) => sum + sends, 0)
}

function deliveryProblems(statistics: Statistics): Problem[] {
  const { totals, period, from: since } = statistics
  const { delivered, undelivered } = totals
  const problems: Problem[] = []
  if (undelivered > 0) {
    const all = delivered + undelivered
    problems.push({
      what: 'messages',
      level: isTrouble(undelivered, all) ? 'bad' : 'warn',
      text: `${partOf(undelivered, all, 'message')} ${undelivered === 1 ? 'was' : 'were'} not delivered ${periodWords[period]}, according to delivery reports.`,
      remedy: '',
      see: [{ list: 'deliveries', filters: { since, statuses: ['failed'] } }],
    })
  }
  const due = codesDue(statistics)
  if (due > 0 && totals.verified === 0) {
    const text = `No code was verified ${periodWords[period]}. ${counted(due, 'sent code')} can no longer be verified. The messages may not arrive.`
    problems.push(warning({ what: 'messages', text, see: [{ list: 'deliveries', filters: { since } }] }))
  }
  return problems
}

function rejectedRequestProblems(statistics: Statistics): Problem[] {
  const { totals, period } = statistics
  const were = (number: number) =>
    `${counted(number, 'request')} ${periodWords[period]} ${number === 1 ? 'was' : 'were'} rejected`
  const problems: Problem[] = []
  if (totals.refused > 0) {
    const text = `${were(totals.refused)} because of the brand: it is suspended, pending or unknown, or the template is not enabled for it.`
    problems.push(warning({ what: 'brands', text, see: [see('brand list')] }))
  }
  if (totals.blocked > 0) {
    const text = `${were(totals.blocked)} because of the destination: a rule or \`SMS_COUNTRIES\` blocks the number.`
    const rows: LogRows = { list: 'calls', filters: { ...spanOf(statistics), ...figureRows.blocked } }
    problems.push(warning({ what: 'destinations', text, see: [rows, see('destination list')] }))
  }
  return problems
}

function limitedAppProblems({ server }: HealthFacts): Problem[] {
  const limited = server?.limited.filter(({ limit }) => limit === 'app-minute') ?? []
  return [...new Set(limited.flatMap(({ app }) => app ?? []))].map((appId) =>
    warning({
      what: 'app limits',
      text: `App ${appId} has reached its limit of calls per minute. Further calls are rejected.`,
      see: [see('app set', { appId })],
    }),
  )
}

function forwardedProblems({ forwardedIgnoredAt: at, stepMs }: Statistics): Problem[] {
  if (at === null) return []
  return [
    warning({
      what: 'TRUSTED_PROXIES',
      text: `X-Forwarded-For from an IP address outside TRUSTED_PROXIES was ignored, last ${stepWords(at, stepMs)}. The sender counts as the client of these requests. The log line "X-Forwarded-For was ignored" has the network of the sender.`,
      remedy:
        'If your proxy is in that network, add its IP address to TRUSTED_PROXIES. If not, allow only your proxy to connect to otpost.',
      see: [{ setting: 'TRUSTED_PROXIES' }],
    }),
  ]
}

function reviewNumberProblems({ reviewNumbers }: HealthFacts): Problem[] {
  if (reviewNumbers.length === 0) return []
  const named = reviewNumbers.map((each) => `${each.masked} (${each.brandSlug}, until ${untilWords(each)})`)
  return [
    warning({
      what: 'review',
      text: `A fixed code verifies for ${counted(reviewNumbers.length, 'review number')}: ${named.join(', ')}.`,
      remedy: 'Remove each one after the review.',
      see: [see('review-number remove'), { docs: 'review-numbers' }],
    }),
  ]
}
