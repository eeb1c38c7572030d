import type { ReportRejection } from '../delivery/delivery-reports.ts'
import { dltWords } from '../delivery/dlt-codes.ts'
import { see } from '../ground/advice.ts'
import type { ClockStep } from '../ground/clock-watch.ts'
import { docsAt } from '../ground/docs.ts'
import { ago, counted, duration, partOf, utc } from '../ground/format.ts'
import { dayMs, type EpochMs, hourMs, minuteMs } from '../ground/time.ts'
import type { PumpingStatus } from '../guard/pumping.ts'
import { figureRows, spanOf } from '../log/log-search.ts'
import { periodWords } from '../log/ranges.ts'
import type { RejectionRate } from '../log/rejections.ts'
import { isTrouble, type LateCodes, type RejectedReports, type Statistics } from '../log/statistics.ts'
import { budgetName, type CounterStatus, nearPercent, spentWords, usedUpWords } from '../money/budgets.ts'
import { isLate } from '../notify/queue.ts'
import { untilWords } from '../policy/review-number.ts'
import { disabledWebhook, type FailingAlerts } from './alerts.ts'
import { clockProblems } from './clock.ts'
import { budgetCondition, budgetTitle, type Condition, databaseVerdicts, lasting } from './conditions.ts'
import { outageWords } from './database-fault.ts'
import type { HealthFacts } from './facts.ts'
import { pauseProblems, providerProblems, sendingProblems } from './outages.ts'
import { bad, found, noHarm, type Problem, warn } from './problem.ts'
import { blockOf, guardProblems, largeAttack, placeOf, pumpingProblems } from './pumping-problems.ts'
import { silenceVerdicts } from './silence.ts'
import { surgeProblems } from './surges.ts'
import { unverifiedProblems } from './unverified.ts'

// What can be wrong with a server and its traffic, and its words for doctor and the overview. Each follows from facts alone.

/** The worst first, then in this order. */
export function problemsOf(facts: HealthFacts): Problem[] {
  const { statistics, guard, server, traffic, attempts, thresholds } = facts
  const { until: now } = statistics
  const database = server ? lasting(databaseVerdicts(server.databaseError, server.freeBytes, true)) : []
  const outage = server?.databaseError ? server.databaseOutage : undefined
  const all: Problem[] = [
    ...database.map((problem) => {
      const { ongoing } = problem
      return ongoing && outage
        ? { ...problem, ongoing: { ...ongoing, since: outage.since, outage } }
        : problem
    }),
    // Calls are not in the event log while the database cannot be written.
    ...(database.length > 0
      ? []
      : lasting(silenceVerdicts(traffic, attempts, thresholds.silentMinutes, now))),
    ...pumpingProblems(guard, now),
    ...surgeProblems(facts.surges, now),
    ...sendingProblems(facts),
    ...pauseProblems(facts),
    ...providerProblems(facts),
    ...budgetProblems(facts),
    ...facts.webhooks.flatMap((webhook) => webhookProblem(webhook, now) ?? []),
    ...(server?.clock ? clockProblems(server.clock, now) : []),
    ...statistics.clockSteps.map((step) => clockProblem(step, statistics)),
    ...facts.failingAlerts.map(failingAlertsProblem),
    ...queueProblems(facts.queue, now),
    // A provider that does not deliver is the more frequent cause of rejected templates.
    ...deliveryProblems(facts),
    ...unverifiedProblems(facts),
    ...facts.rejections.map(rejectionProblem),
    ...statistics.late.map((codes) => lateProblem(codes, statistics, facts.providerTimeoutMs)),
    ...statistics.rejectedReports.map((reports) => rejectedReportsProblem(reports, statistics)),
    ...lostRequestProblems(facts),
    ...guardProblems(guard),
    ...rejectedRequestProblems(statistics),
    ...limitedAppProblems(facts),
    ...forwardedProblems(statistics),
    ...proofProblems(statistics),
    ...reviewNumberProblems(facts),
  ]
  return all.sort((one, other) => levels.indexOf(one.level) - levels.indexOf(other.level))
}

const levels: readonly Problem['level'][] = ['fail', 'bad', 'warn']

export function budgetProblems({
  budgets,
  guard,
  statistics: { until: now },
}: Pick<HealthFacts, 'budgets' | 'guard' | 'statistics'>): Problem[] {
  const attack = largeAttack(guard)
  return budgets.flatMap((status) => {
    const { budget, counters } = status
    const exhausted = counters.filter(({ isExhausted }) => isExhausted)
    const [nearest, ...also] = counters.filter(
      ({ isExhausted, isNear, usedUpAt }) => !isExhausted && (isNear || usedUpAt !== null),
    )
    const near = also.filter(({ isNear }) => isNear).length
    const have = counted(near, 'more country has', 'more countries have')
    const sentences = nearest && [
      spentWords(nearest.budget, nearest.percent, nearest.spentMicros),
      nearest.usedUpAt !== null && `If spending goes on as so far, it is ${usedUpWords(nearest)}`,
      near > 0 && `${have} spent at least ${nearPercent(budget)}%`,
    ]
    return found<Problem>(
      exhausted.length > 0 &&
        attackedBudget(budgetCondition(status, exhausted, attack !== undefined), attack),
      sentences && {
        ...warn('budgets', `${sentences.filter(Boolean).join('. ')}.`, '', see('budget list')),
        ...usedUpSoon(nearest, now),
      },
    )
  })
}

/** What stops the attack comes before a lift. */
function attackedBudget(problem: Condition, attack: PumpingStatus | undefined): Problem {
  const { ongoing } = problem
  if (!attack || !ongoing) return problem
  const detail = `SMS pumping to ${placeOf(attack.country)} spends it`
  const advice = 'Block that before you lift the budget.'
  return { ...problem, ongoing: { ...ongoing, detail, advice, act: blockOf(attack) } }
}

/** An incident, since SMS will be rejected within a day. */
function usedUpSoon(
  counter: CounterStatus,
  now: EpochMs,
): Pick<Problem, 'about' | 'ongoing' | 'remedy'> | undefined {
  const { budget, usedUpAt, isStopping, spentMicros } = counter
  if (usedUpAt === null || !isStopping || usedUpAt > now + dayMs) return undefined
  const { currency, period } = budget
  return {
    about: `forecast of budget ${budgetName(budget)}`,
    remedy: 'SMS are rejected from then on. To send more, set a larger amount.',
    ongoing: {
      advice: 'To send more, set a larger amount.',
      title: `${budgetTitle(budget)} will be ${usedUpWords(counter)}`,
      cost: { micros: spentMicros, currency, period },
    },
  }
}

function webhookProblem(
  { appId, disabledAt, failing }: HealthFacts['webhooks'][number],
  now: EpochMs,
): Problem | undefined {
  const sees = [see('app webhook', { appId, url: 'URL' }), { docs: 'webhooks' }]
  if (disabledAt !== null) {
    const { text, remedy } = disabledWebhook(appId, ` ${ago(disabledAt, now)}`)
    const [title, advice] = [
      `The webhook of app ${appId} is switched off`,
      'Correct the receiver, then set it again.',
    ]
    const ongoing = { title, since: disabledAt, advice, harm: noHarm }
    return { ...bad('webhooks', text, remedy, ...sees), about: `webhook ${appId}`, ongoing }
  }
  if (!failing) return undefined
  const text = `The webhook of app ${appId} fails: ${counted(failing.events, 'event')} will be tried again. Latest error: ${failing.error}.`
  const ongoing = {
    title: `The webhook of app ${appId} fails`,
    detail: `${counted(failing.events, 'event')} ${failing.events === 1 ? 'waits' : 'wait'} for another try after ${failing.error}`,
    since: failing.since,
    harm: noHarm,
  }
  const remedy = 'Check the receiver: otpost sends them again by itself.'
  return { ...bad('webhooks', text, remedy, ...sees), about: `webhook ${appId}`, ongoing }
}

function clockProblem({ at, byMs }: ClockStep, { stepMs }: Statistics): Problem {
  const [direction, effect] =
    byMs < 0
      ? ['back', 'Codes that were sent earlier do not verify. Stored times may be in the future.']
      : [
          'forward',
          'The machine may have been suspended. Codes, limits and blocks expired earlier by this time.',
        ]
  return warn(
    'clock',
    `The clock of a server was set ${direction} by ${duration(Math.abs(byMs))} ${stepWords(at, stepMs)}. ${effect}`,
    'If the clock is correct now, do nothing: limits, blocks and retries last at most their own length. If not, synchronize the clock.',
  )
}

/** When, as exactly as a step of the statistics says. */
function stepWords(at: EpochMs, stepMs: number): string {
  const minute = `${utc(at).slice(0, 16)} UTC`
  if (stepMs === minuteMs) return `at ${minute}`
  return `in the ${stepMs === hourMs ? 'hour' : 'day'} from ${minute}`
}

function failingAlertsProblem({ channel, alerts }: FailingAlerts): Problem {
  const [place, setting] = channel === 'email' ? ['e-mail', 'ALERT_EMAIL'] : ['webhook', 'ALERT_WEBHOOK_URL']
  const text = `Alerts by ${place} fail: ${counted(alerts, 'alert')} will be tried again. The server log has the reason.`
  const ongoing = { title: `Alerts by ${place} fail` }
  return {
    ...bad('alerts', text, `Check \`${setting}\`.`, { setting }),
    about: `alerts ${channel}`,
    ongoing,
  }
}

function queueProblems({ waiting, oldestAt, failed }: HealthFacts['queue'], now: EpochMs): Problem[] {
  const jobs = (count: number) => counted(count, 'asynchronous notification')
  return found(
    isLate(oldestAt, now) && {
      ...warn(
        'queue',
        `${jobs(waiting)} ${waiting === 1 ? 'waits' : 'wait'}, the oldest for ${duration(now - oldestAt)}.`,
        'If no server runs, start one.',
        see('queue list'),
      ),
      about: 'queue',
      ongoing: { title: 'Asynchronous notifications wait', since: oldestAt },
    },
    failed > 0 &&
      warn(
        'queue',
        `${jobs(failed)} failed or ${failed === 1 ? 'has' : 'have'} an unknown result in the last 24 hours.`,
        '',
        see('queue list'),
      ),
  )
}

function rejectionProblem({ brand, template, day, before, provider, reason }: RejectionRate): Problem {
  // A report may arrive the day after its message was sent.
  const allOf = ({ sent, rejected }: RejectionRate['day']) => Math.max(sent, rejected)
  const share = (of: RejectionRate['day']) => `${Math.round((100 * of.rejected) / allOf(of))}%`
  const why = [reason ?? 'none given', reason && dltWords(reason)].filter(Boolean).join(', ')
  const earlier =
    before.sent === 0 ? 'none was sent in the 7 days before' : `${share(before)} in the 7 days before`
  const problem = bad(
    'carriers',
    `Carriers did not deliver ${day.rejected} of ${allOf(day)} SMS (${share(day)}) of template ${template} of brand ${brand} in the last 24 hours; ${earlier}. Most frequent reason: ${why} (${provider}).`,
    'Compare the text with the registered one.',
    { list: 'deliveries', filters: { brand, template, statuses: ['failed'] } },
    see('text lint', { slug: brand, key: template }),
    { docs: 'dlt' },
  )
  const ongoing = { title: `Carriers reject template ${template} of brand ${brand}` }
  return { ...problem, about: `carriers ${brand} ${template}`, ongoing }
}

function lateProblem(
  { provider, count, hasTimedOut }: LateCodes,
  { period, from: since }: Statistics,
  providerTimeoutMs: number,
): Problem {
  const after = hasTimedOut ? `after PROVIDER_TIMEOUT_MS (${providerTimeoutMs} ms)` : 'after an error'
  return bad(
    'late codes',
    `${provider} delivered ${counted(count, 'code')} ${after} ${periodWords[period]}, according to delivery reports. Their sends were answered 502 sms_failed, so the codes do not verify.`,
    hasTimedOut
      ? `Set PROVIDER_TIMEOUT_MS to more than the response time of ${provider}, or name a faster provider before it in SMS_PLAIN or SMS_TEMPLATE.`
      : `Ask the provider why ${provider} answers an error for messages that it delivers.`,
    { list: 'deliveries', filters: { provider, since, statuses: ['delivered'] } },
    { setting: 'PROVIDER_TIMEOUT_MS' },
  )
}

const rejectedReports: Readonly<Record<ReportRejection, readonly [cause: string, remedy: string]>> = {
  url: [
    'their URL is not one of this server',
    'Enter the status callback URL of this server at the provider. It changes with the secret key.',
  ],
  signature: [
    'their signature, key or time is wrong',
    'Compare the secret at the provider with the settings, and PUBLIC_URL with the URL that the provider calls. A third party may have sent them.',
  ],
  form: [
    'they are not of the documented form',
    `Compare the version and the format of the reports at the provider with ${docsAt('providers')}.`,
  ],
}

function rejectedReportsProblem({ provider, why, count }: RejectedReports, { period }: Statistics): Problem {
  const of = provider === '' ? 'no provider of this server' : provider
  const [cause, remedy] = rejectedReports[why]
  const text = `otpost rejected ${counted(count, 'delivery report')} of ${of} ${periodWords[period]}: ${cause}.`
  return warn('reports', text, remedy, ...(why === 'url' ? [see('callbacks')] : []))
}

function lostRequestProblems({ server }: HealthFacts): Problem[] {
  if (!server || server.lostRequests === 0) return []
  const { lostRequests, databaseError, databaseOutage: outage } = server
  const past = outage && databaseError === null && outageWords(outage)
  const text = [
    `${counted(lostRequests, 'request')} could not be written to the event log since this server started. The figures do not include them.`,
    past && `While the database failed from ${utc(outage.since).slice(0, 16)} UTC, ${past}.`,
  ]
  return [(databaseError === null ? warn : bad)('event log', text.filter(Boolean).join(' '), '')]
}

/** OTP_TTL_SECONDS is at most 600. */
const longestCodeMs = 10 * minuteMs

function deliveryProblems({ statistics, thresholds }: HealthFacts): Problem[] {
  const { totals, period, from: since, points, stepMs, until } = statistics
  const { delivered, undelivered } = totals
  const all = delivered + undelivered
  const isDue = points.some(({ at, sends }) => sends > 0 && at + stepMs + longestCodeMs <= until)
  const isLost = isTrouble(undelivered, all, thresholds.failedPercent / 100)
  const lost = partOf(undelivered, all, 'message')
  return found<Problem>(
    undelivered > 0 && {
      ...(isLost ? bad : warn)(
        'messages',
        `${lost} ${undelivered === 1 ? 'was' : 'were'} not delivered ${periodWords[period]}, according to delivery reports.`,
        '',
        { list: 'deliveries', filters: { since, statuses: ['failed'] } },
      ),
      about: 'undelivered',
      ...(isLost && {
        ongoing: {
          title: 'Carriers do not deliver',
          harm: `${lost} ${periodWords[period]}`,
          advice: 'Delivery reports say so. Check the status pages of the providers.',
        },
      }),
    },
    isDue &&
      totals.verified === 0 &&
      warn('messages', `No code was verified ${periodWords[period]}. The messages may not arrive.`, '', {
        list: 'deliveries',
        filters: { since },
      }),
  )
}

function rejectedRequestProblems(statistics: Statistics): Problem[] {
  const { refused, blocked } = statistics.totals
  const were = (number: number) =>
    `${counted(number, 'request')} ${periodWords[statistics.period]} ${number === 1 ? 'was' : 'were'} rejected`
  return found(
    refused > 0 &&
      warn(
        'brands',
        `${were(refused)} because of the brand: it is suspended, pending or unknown, or the template is not enabled for it.`,
        '',
        see('brand list'),
      ),
    blocked > 0 &&
      warn(
        'destinations',
        `${were(blocked)} because of the destination: a rule or \`SMS_COUNTRIES\` blocks the number.`,
        '',
        { list: 'calls', filters: { ...spanOf(statistics), ...figureRows.blocked } },
        see('destination list'),
      ),
  )
}

function limitedAppProblems({ server }: HealthFacts): Problem[] {
  const limited = server?.limited.filter(({ limit }) => limit === 'app-minute') ?? []
  return [...new Set(limited.flatMap(({ app }) => app ?? []))].map((appId) => {
    const text = `App ${appId} has reached its limit of calls per minute. Further calls are rejected.`
    return warn('app limits', text, '', see('app set', { appId }))
  })
}

function forwardedProblems({ forwardedIgnoredAt: at, stepMs }: Statistics): Problem[] {
  return found(
    at !== null &&
      warn(
        'TRUSTED_PROXIES',
        `X-Forwarded-For from an IP address outside TRUSTED_PROXIES was ignored, last ${stepWords(at, stepMs)}. The sender counts as the client of these requests. The log line "X-Forwarded-For was ignored" has the network of the sender.`,
        'If your proxy is in that network, add its IP address to TRUSTED_PROXIES. If not, allow only your proxy to connect to otpost.',
        { setting: 'TRUSTED_PROXIES' },
      ),
  )
}

function proofProblems({ unnamedProofAt: at, stepMs }: Statistics): Problem[] {
  return found(
    at !== null &&
      warn(
        'PUBLIC_URL',
        `Proofs of verifications have the issuer otpost, since PUBLIC_URL is not set, last ${stepWords(at, stepMs)}. Services cannot distinguish them from those of another server by issuer.`,
        'Set PUBLIC_URL, and let the services that check proofs expect it as the issuer.',
        { setting: 'PUBLIC_URL' },
        { docs: 'proofs' },
      ),
  )
}

function reviewNumberProblems({ reviewNumbers }: HealthFacts): Problem[] {
  const named = reviewNumbers.map((each) => `${each.masked} (${each.brandSlug}, until ${untilWords(each)})`)
  return found(
    named.length > 0 &&
      warn(
        'review',
        `A fixed code verifies for ${counted(named.length, 'review number')}: ${named.join(', ')}.`,
        'Remove each one after the review.',
        see('review-number remove'),
        { docs: 'review-numbers' },
      ),
  )
}
