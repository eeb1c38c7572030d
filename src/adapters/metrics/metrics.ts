import { Counter, Gauge, Registry } from 'prom-client'
import type { BreakerState } from '../../domain/delivery/breaker.ts'
import type { FeedbackResult } from '../../domain/delivery/conversion-feedback.ts'
import type { DeliveryReportState } from '../../domain/delivery/delivery-reports.ts'
import { guardReasons } from '../../domain/guard/guard.ts'
import { type Distribution, newDistribution, observe } from '../../domain/log/distribution.ts'
import { limitNames } from '../../domain/request/limit-names.ts'
import { type Attempt, guardDecision, isReview, mayBeSent } from '../../domain/request/request-context.ts'
import type { RequestEnded } from '../../domain/request/request-ended.ts'
import { DistributionHistogram } from './distribution-histogram.ts'
import { LabelledCounter, LabelledHistogram } from './labelled.ts'
import { watchLag } from './lag.ts'
import type { MetricSources, Metrics, Scrape } from './ports.ts'
import { registerResources } from './resources.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const verdicts = ['verified', 'mismatch', 'locked', 'absent', 'rate-limited', 'rejected', 'failed'] as const
const circuitStates: readonly BreakerState['state'][] = ['closed', 'open', 'half-open']
const reportStatuses: readonly DeliveryReportState['status'][] = ['delivered', 'failed', 'pending']
const feedbackOutcomes: readonly FeedbackResult['outcome'][] = [
  'accepted',
  'rejected',
  'retryable',
  'unknown',
  'dropped',
]
const attemptEnds: readonly Pick<Attempt, 'outcome' | 'errorClass'>[] = [
  { outcome: 'accepted', errorClass: null },
  { outcome: 'rejected', errorClass: 'recipient' },
  { outcome: 'rejected', errorClass: 'content' },
  { outcome: 'rejected', errorClass: 'account' },
  { outcome: 'retryable', errorClass: 'retryable' },
  { outcome: 'unknown', errorClass: 'unknown' },
  { outcome: 'skipped', errorClass: null },
]

const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const deliverySeconds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 10, 30, 60]
const lagSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** An empty label is the same as none in Prometheus. */
const none = 'none'

export function createMetrics(sources: MetricSources): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const { build, smsRoutes, mailer, breakers, checkDatabase, stats } = sources

  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new LabelledCounter(registry, { name, help, labelNames })
  const total = (name: string, help: string) => new Counter({ name, help, registers })
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers })

  const requests = counter(
    'otpost_http_requests_total',
    'HTTP requests answered, by route pattern, method, status and error code.',
    'route',
    'method',
    'status',
    'error',
  )
  const requestDuration = new LabelledHistogram(registry, {
    name: 'otpost_http_request_duration_seconds',
    help: 'Time from the headers of a request to its answer, by route pattern.',
    labelNames: ['route'],
    bounds: requestSeconds,
  })

  const codesSent = counter(
    'otpost_codes_sent_total',
    'Codes sent, by operation and channel.',
    'operation',
    'channel',
  )
  const verifications = counter(
    'otpost_verifications_total',
    'Requests to verify a code, by channel and outcome.',
    'channel',
    'outcome',
  )
  const deliveries = counter(
    'otpost_deliveries_total',
    'Delivery attempts, by outcome and error class.',
    'channel',
    'route',
    'provider',
    'outcome',
    'error',
  )
  const deliveryDuration = new LabelledHistogram(registry, {
    name: 'otpost_delivery_duration_seconds',
    help: 'Response time of providers.',
    labelNames: ['channel', 'route', 'provider'],
    bounds: deliverySeconds,
  })
  const segments = counter(
    'otpost_sms_segments_total',
    'Segments of the SMS that providers accepted. Most providers charge by segment.',
    'route',
    'provider',
  )
  const deliveryReports = counter(
    'otpost_delivery_reports_total',
    'Delivery reports received, by status.',
    'provider',
    'status',
  )
  const lateCodes = new Counter({
    name: 'otpost_late_codes_total',
    help: 'Codes that were delivered although their send had failed, according to delivery reports. They do not verify.',
    labelNames: ['provider'],
    registers,
  })
  const feedback = counter(
    'otpost_conversion_feedback_total',
    'Verified codes to report to their provider, by outcome.',
    'provider',
    'outcome',
  )
  const smsByCountry = counter(
    'otpost_sms_sent_total',
    'SMS that providers accepted or may have sent, by country.',
    'country',
  )
  const destinations = counter(
    'otpost_destinations_total',
    'Requests that a destination rule blocked, or sent with the action monitor, by country.',
    'country',
    'action',
  )
  const limited = counter('otpost_rate_limited_total', 'Requests rejected by a limit.', 'limit')
  const guarded = counter(
    'otpost_guard_total',
    'Codes that the SMS pumping guard denied, or recorded with GUARD=record, by bucket.',
    'bucket',
    'verdict',
  )

  const alertsTotal = new Counter({
    name: 'otpost_alerts_total',
    help: 'Alerts that this server stored, by kind.',
    labelNames: ['kind'],
    registers,
  })
  const spentRatio = gauge(
    'otpost_budget_spent_ratio',
    'Spent part of a budget in its present period: 1 is the whole amount. At most 30 seconds old.',
    'scope',
  )
  const eventsTotal = new Counter({
    name: 'otpost_events_total',
    help: 'Tries to deliver events to webhooks, and events that were dropped, by result.',
    labelNames: ['result'],
    registers,
  })
  const eventsWaiting = gauge(
    'otpost_events_waiting',
    'Events that wait for their delivery to a webhook. At most 30 seconds old.',
  )

  const queueWaiting = gauge(
    'otpost_queue_waiting',
    'Jobs of asynchronous notifications that are queued or in flight, of all servers.',
  )
  const queueOldest = gauge(
    'otpost_queue_oldest_seconds',
    'Age of the oldest queued job of an asynchronous notification. 0: none.',
  )
  const queueEnded = new Counter({
    name: 'otpost_queue_jobs_total',
    help: 'Jobs of asynchronous notifications that this server ended, by result.',
    labelNames: ['result'],
    registers,
  })

  const inUse = Object.values(smsRoutes).flat()
  const providers = new Set(inUse.map(({ name }) => name))
  const breaker = gauge(
    'otpost_provider_breaker_state',
    '1 for the circuit state of an SMS provider, else 0. The states are closed, open and half-open.',
    'provider',
    'state',
  )
  const failuresInARow = gauge(
    'otpost_provider_failures_in_a_row',
    'Consecutive failures of an SMS provider.',
    'provider',
  )

  const databaseUp = gauge('otpost_database_up', '1 if the database can be read and written, else 0.')
  const queueLength = gauge('otpost_store_queue_length', 'Calls that wait for the database thread.')
  let writer: Awaited<ReturnType<typeof stats.writer>> | undefined
  const histogram = (name: string, help: string, distribution: () => Distribution | undefined) =>
    new DistributionHistogram(registry, { name, help }, () => {
      const present = distribution()
      return present ? [[{}, present]] : []
    })
  histogram('otpost_store_commit_batch_size', 'Writes in one transaction.', () => writer?.batchSizes)
  histogram(
    'otpost_store_commit_duration_seconds',
    'Duration of commits, with the fsync.',
    () => writer?.commitSeconds,
  )
  const lostTransactions = total(
    'otpost_store_lost_transactions_total',
    'Transactions that failed, and locks that timed out.',
  )
  const eventLogWaiting = gauge('otpost_event_log_waiting', 'Event log entries that wait to be written.')
  const eventLogLost = total(
    'otpost_event_log_lost_requests_total',
    'Requests whose event log entries could not be written.',
  )
  const databaseBytes = gauge(
    'otpost_database_bytes',
    'Size of the database file and its write-ahead log.',
    'file',
  )
  const diskFree = gauge('otpost_database_disk_free_bytes', 'Free space on the disk of the database.')
  const connections = gauge(
    'otpost_database_connections',
    'Connections to PostgreSQL, by state. Absent with SQLite.',
    'state',
  )
  const statementsWaiting = gauge(
    'otpost_database_statements_waiting',
    'Statements that wait for a connection to PostgreSQL. Absent with SQLite.',
  )

  const lag = newDistribution(lagSeconds)
  const stopLag = watchLag((seconds) => observe(lag, seconds))
  histogram('otpost_event_loop_lag_seconds', 'Delay of the event loop.', () => lag)
  const buildInfo = gauge(
    'otpost_build_info',
    'Always 1. The labels are the versions of otpost and Bun, and the database.',
    'version',
    'bun',
    'database',
  )
  buildInfo.set({ ...build }, 1)
  registerResources(registry)

  // Known label values start at 0, so that a first failure is an increase.
  for (const [route, names] of Object.entries(smsRoutes)) {
    for (const { name } of names) beginDeliveries('SMS', route, name)
  }
  beginDeliveries('EMAIL', none, mailer.name)
  for (const channel of ['SMS', 'EMAIL']) {
    for (const operation of ['send', 'resend']) codesSent.inc({ operation, channel }, 0)
    for (const outcome of verdicts) verifications.inc({ channel, outcome }, 0)
  }
  const reporting = new Set(inUse.filter(({ deliveryReports }) => deliveryReports).map(({ name }) => name))
  for (const { name, deliveryReports: reader, reportConversion } of inUse) {
    for (const status of reader ? reportStatuses : []) deliveryReports.inc({ provider: name, status }, 0)
    for (const outcome of sources.usesConversionFeedback && reportConversion ? feedbackOutcomes : []) {
      feedback.inc({ provider: name, outcome }, 0)
    }
  }
  for (const limit of limitNames) limited.inc({ limit }, 0)
  for (const bucket of guardReasons) {
    for (const verdict of ['denied', 'recorded']) guarded.inc({ bucket, verdict }, 0)
  }

  let scraping: Promise<Scrape> | undefined
  return {
    ended: (ended) => {
      const { context, method, route = 'unmatched', status, error, durationMs } = ended
      // An unknown method must not become a label.
      const known = methods.includes(method) ? method : 'other'
      requests.inc({ route, method: known, status, error: error ?? none })
      requestDuration.observe({ route }, durationMs / 1000)
      for (const attempt of context.attempts) observeAttempt(attempt)
      for (const limitStatus of context.limits)
        if (limitStatus.refused) limited.inc({ limit: limitStatus.limit })
      const decision = guardDecision(context, error)
      if (decision) guarded.inc({ ...decision })
      const { operation, channel = none, country = none, replayOf } = context
      const isNewSuccess = error === undefined && replayOf === undefined && !isReview(context)
      if (context.flags?.includes('destination')) {
        destinations.inc({ country, action: error === 'validation_error' ? 'block' : 'monitor' })
      }
      if (operation === 'verify') {
        if (replayOf === undefined) verifications.inc({ channel, outcome: verdictOf(ended) })
      } else if (operation !== undefined && operation !== 'notify' && isNewSuccess) {
        codesSent.inc({ operation, channel })
      }
    },
    tried: ({ attempts }) => attempts.forEach(observeAttempt),
    reportReceived: (provider, status) => deliveryReports.inc({ provider, status }),
    feedbackReported: ({ provider, outcome }) => feedback.inc({ provider, outcome }),
    // Simultaneous scrapes share a result.
    scrape: () => {
      scraping ??= scrape().finally(() => {
        scraping = undefined
      })
      return scraping
    },
    stop: stopLag,
  }

  function beginDeliveries(channel: string, route: string, provider: string): void {
    for (const { outcome, errorClass } of attemptEnds) {
      deliveries.inc({ channel, route, provider, outcome, error: errorClass ?? none }, 0)
    }
    deliveryDuration.zero({ channel, route, provider })
    if (channel === 'SMS') segments.inc({ route, provider }, 0)
  }

  function observeAttempt(attempt: Attempt): void {
    const { channel, provider, outcome, errorClass, durationMs } = attempt
    const labels = { channel, route: attempt.route ?? none, provider }
    deliveries.inc({ ...labels, outcome, error: errorClass ?? none })
    if (channel === 'SMS' && mayBeSent(attempt)) smsByCountry.inc({ country: attempt.country ?? none })
    if (outcome === 'skipped') return
    deliveryDuration.observe(labels, durationMs / 1000)
    if (outcome === 'accepted' && attempt.segments) {
      segments.inc({ route: labels.route, provider }, attempt.segments.count)
    }
  }

  async function scrape(): Promise<Scrape> {
    // Before the database check, which is a call too.
    queueLength.set(stats.queueLength())
    const eventLog = stats.eventLog()
    eventLogWaiting.set(eventLog.waiting)
    eventLogLost.reset()
    eventLogLost.inc(eventLog.lost)
    setBreakers()
    lateCodes.reset()
    for (const name of reporting) lateCodes.inc({ provider: name }, sources.lateCodes.get(name) ?? 0)
    alertsTotal.reset()
    for (const [kind, count] of sources.alerts.counts) alertsTotal.inc({ kind }, count)
    eventsTotal.reset()
    for (const [result, count] of sources.events.counts) eventsTotal.inc({ result }, count)
    eventsWaiting.set(sources.events.waiting)
    spentRatio.reset()
    for (const { scope, ratio } of sources.alerts.shares) spentRatio.set({ scope }, ratio)
    const pool = stats.pool()
    if (pool) {
      connections.set({ state: 'busy' }, pool.size - pool.idle)
      connections.set({ state: 'idle' }, pool.idle)
      statementsWaiting.set(pool.waiting)
    } else {
      statementsWaiting.remove()
    }

    queueEnded.reset()
    for (const [result, count] of sources.queue.counts()) queueEnded.inc({ result }, count)

    const [check, written, files, queue] = await Promise.allSettled([
      checkDatabase(),
      stats.writer(),
      stats.files(),
      sources.queue.status(),
    ])
    if (queue.status === 'fulfilled') {
      const { waiting, oldestAt } = queue.value
      queueWaiting.set(waiting)
      queueOldest.set(oldestAt === null ? 0 : Math.max(0, sources.queue.now() - oldestAt) / 1000)
    } else {
      queueWaiting.remove()
      queueOldest.remove()
    }
    databaseUp.set(check.status === 'fulfilled' ? 1 : 0)
    // Unknown values are left out, not repeated.
    writer = written.status === 'fulfilled' ? written.value : undefined
    lostTransactions.reset()
    if (writer) lostTransactions.inc(writer.lost)
    else lostTransactions.remove()
    const bytes = files.status === 'fulfilled' ? files.value : undefined
    if (bytes) {
      databaseBytes.set({ file: 'main' }, bytes.main)
      databaseBytes.set({ file: 'wal' }, bytes.wal)
      diskFree.set(bytes.diskFree)
    } else {
      databaseBytes.reset()
      diskFree.remove()
    }
    return { contentType: registry.contentType, text: await registry.metrics() }
  }

  function setBreakers(): void {
    const known = new Map(breakers.states().map((state) => [state.provider, state]))
    for (const provider of providers) {
      const { state = 'closed', failuresInARow: failures = 0 } = known.get(provider) ?? {}
      for (const each of circuitStates) breaker.set({ provider, state: each }, each === state ? 1 : 0)
      failuresInARow.set({ provider }, failures)
    }
  }
}

function verdictOf({ error, status }: RequestEnded): (typeof verdicts)[number] {
  if (error === undefined) return 'verified'
  if (error === 'mismatch') return 'mismatch'
  if (error === 'max_attempts') return 'locked'
  if (error === 'not_found') return 'absent'
  if (error === 'rate_limited') return 'rate-limited'
  return status >= 500 ? 'failed' : 'rejected'
}
