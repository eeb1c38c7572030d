import type { Registry } from 'prom-client'
import type { FeedbackResult } from '../../domain/delivery/conversion-feedback.ts'
import type { DeliveryReportState } from '../../domain/delivery/delivery-reports.ts'
import { guardReasons } from '../../domain/guard/guard.ts'
import { limitNames } from '../../domain/request/limit-names.ts'
import { type Attempt, guardDecision, isReview, mayBeSent } from '../../domain/request/request-context.ts'
import type { RequestEnded } from '../../domain/request/request-ended.ts'
import { LabelledCounter, LabelledHistogram } from './labelled.ts'
import type { MetricSources, Metrics } from './ports.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const verdicts = ['verified', 'mismatch', 'locked', 'absent', 'rate-limited', 'rejected', 'failed'] as const
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

/** An empty label is the same as none in Prometheus. */
const none = 'none'

type Observed = Pick<Metrics, 'ended' | 'tried' | 'reportReceived' | 'feedbackReported'>

/** What is counted as it happens: requests, deliveries, delivery reports and feedback. */
export function createRequestMetrics(registry: Registry, sources: MetricSources): Observed {
  const counters = countersIn(registry)
  const histograms = histogramsIn(registry)
  beginCounters(counters, sources)
  for (const labels of waysOf(sources)) histograms.deliveries.zero(labels)
  const attempted = (attempt: Attempt): void => {
    const { channel, provider, outcome, errorClass, durationMs, segments } = attempt
    const labels = { channel, route: attempt.route ?? none, provider }
    counters.deliveries.inc({ ...labels, outcome, error: errorClass ?? none })
    if (channel === 'SMS' && mayBeSent(attempt))
      counters.smsByCountry.inc({ country: attempt.country ?? none })
    if (outcome === 'skipped') return
    histograms.deliveries.observe(labels, durationMs / 1000)
    if (outcome === 'accepted' && segments) {
      counters.segments.inc({ route: labels.route, provider }, segments.count)
    }
  }
  return {
    ended(ended) {
      const { context, method, route = 'unmatched', status, error, durationMs } = ended
      // An unknown method must not become a label.
      const known = methods.includes(method) ? method : 'other'
      counters.requests.inc({ route, method: known, status, error: error ?? none })
      histograms.requests.observe({ route }, durationMs / 1000)
      context.attempts.forEach(attempted)
      countRejection(counters, ended)
      countCode(counters, ended)
    },
    tried: ({ attempts }) => attempts.forEach(attempted),
    reportReceived: (provider, status) => counters.deliveryReports.inc({ provider, status }),
    feedbackReported: ({ provider, outcome }) => counters.feedback.inc({ provider, outcome }),
  }
}

type Counters = ReturnType<typeof countersIn>

function countersIn(registry: Registry) {
  const counter = <Label extends string>(name: string, labelNames: Label[], help: string) =>
    new LabelledCounter(registry, { name, help, labelNames })
  return {
    requests: counter(
      'otpost_http_requests_total',
      ['route', 'method', 'status', 'error'],
      'HTTP requests answered, by route pattern, method, status and error code.',
    ),
    codesSent: counter(
      'otpost_codes_sent_total',
      ['operation', 'channel'],
      'Codes sent, by operation and channel.',
    ),
    verifications: counter(
      'otpost_verifications_total',
      ['channel', 'outcome'],
      'Requests to verify a code, by channel and outcome.',
    ),
    deliveries: counter(
      'otpost_deliveries_total',
      ['channel', 'route', 'provider', 'outcome', 'error'],
      'Delivery attempts, by outcome and error class.',
    ),
    segments: counter(
      'otpost_sms_segments_total',
      ['route', 'provider'],
      'Segments of the SMS that providers accepted. Most providers charge by segment.',
    ),
    deliveryReports: counter(
      'otpost_delivery_reports_total',
      ['provider', 'status'],
      'Delivery reports received, by status.',
    ),
    feedback: counter(
      'otpost_conversion_feedback_total',
      ['provider', 'outcome'],
      'Verified codes to report to their provider, by outcome.',
    ),
    smsByCountry: counter(
      'otpost_sms_sent_total',
      ['country'],
      'SMS that providers accepted or may have sent, by country.',
    ),
    destinations: counter(
      'otpost_destinations_total',
      ['country', 'action'],
      'Requests that a destination rule blocked, or sent with the action monitor, by country.',
    ),
    limited: counter('otpost_rate_limited_total', ['limit'], 'Requests rejected by a limit.'),
    guarded: counter(
      'otpost_guard_total',
      ['bucket', 'verdict'],
      'Codes that the SMS pumping guard denied, or recorded in mode record, by bucket.',
    ),
  }
}

function histogramsIn(registry: Registry) {
  return {
    requests: new LabelledHistogram(registry, {
      name: 'otpost_http_request_duration_seconds',
      help: 'Time from the headers of a request to its answer, by route pattern.',
      labelNames: ['route'],
      bounds: requestSeconds,
    }),
    deliveries: new LabelledHistogram(registry, {
      name: 'otpost_delivery_duration_seconds',
      help: 'Response time of providers.',
      labelNames: ['channel', 'route', 'provider'],
      bounds: deliverySeconds,
    }),
  }
}

/** The labels of all deliveries that are possible. */
function waysOf({ phoneRoutes, mailer }: MetricSources) {
  const bySms = Object.entries(phoneRoutes).flatMap(([route, providers]) =>
    providers.map(({ name }) => ({ channel: 'SMS', route, provider: name })),
  )
  return [...bySms, { channel: 'EMAIL', route: none, provider: mailer.name }]
}

/** Known label values start at 0, so that a first failure is an increase. */
function beginCounters(counters: Counters, sources: MetricSources): void {
  for (const labels of waysOf(sources)) {
    const { channel, route, provider } = labels
    for (const { outcome, errorClass } of attemptEnds) {
      counters.deliveries.inc({ ...labels, outcome, error: errorClass ?? none }, 0)
    }
    if (channel === 'SMS') counters.segments.inc({ route, provider }, 0)
  }
  for (const channel of ['SMS', 'EMAIL']) {
    for (const operation of ['send', 'resend', 'relay']) counters.codesSent.inc({ operation, channel }, 0)
    for (const outcome of verdicts) counters.verifications.inc({ channel, outcome }, 0)
  }
  for (const { name, deliveryReports, reportConversion } of Object.values(sources.phoneRoutes).flat()) {
    const statuses = deliveryReports ? reportStatuses : []
    for (const status of statuses) counters.deliveryReports.inc({ provider: name, status }, 0)
    const outcomes = sources.usesConversionFeedback && reportConversion ? feedbackOutcomes : []
    for (const outcome of outcomes) counters.feedback.inc({ provider: name, outcome }, 0)
  }
  for (const limit of limitNames) counters.limited.inc({ limit }, 0)
  for (const bucket of guardReasons) {
    for (const verdict of ['denied', 'recorded', 'budget']) counters.guarded.inc({ bucket, verdict }, 0)
  }
}

/** By a limit, the guard or a destination rule; the last two also record without a rejection. */
function countRejection(
  { limited, guarded, destinations }: Counters,
  { context, error }: RequestEnded,
): void {
  for (const { limit, refused } of context.limits) if (refused) limited.inc({ limit })
  const decision = guardDecision(context, error)
  if (decision) guarded.inc({ ...decision })
  if (context.flags?.includes('destination')) {
    const action = error === 'validation_error' ? 'block' : 'monitor'
    destinations.inc({ country: context.country ?? none, action })
  }
}

function countCode({ codesSent, verifications }: Counters, ended: RequestEnded): void {
  const { context, error } = ended
  const { operation, channel = none, replayOf } = context
  if (replayOf !== undefined || operation === undefined || operation === 'notify') return
  if (operation === 'verify') verifications.inc({ channel, outcome: verdictOf(ended) })
  else if (error === undefined && !isReview(context)) codesSent.inc({ operation, channel })
}

function verdictOf({ error, status }: RequestEnded): (typeof verdicts)[number] {
  if (error === undefined) return 'verified'
  if (error === 'mismatch') return 'mismatch'
  if (error === 'max_attempts') return 'locked'
  if (error === 'not_found') return 'absent'
  if (error === 'rate_limited') return 'rate-limited'
  return status >= 500 ? 'failed' : 'rejected'
}
