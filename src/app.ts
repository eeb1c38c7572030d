import { setTimeout as pause } from 'node:timers/promises'
import { alertMail, alertWebhook } from './adapters/alerts/targets.ts'
import { LiveStreams } from './adapters/console/live.ts'
import { consoleRoutes } from './adapters/console/routes.ts'
import { createPasskeys, relyingParties } from './adapters/crypto/passkeys.ts'
import { createOutboxMailer } from './adapters/email/outbox.ts'
import { createSmtpMailer } from './adapters/email/smtp.ts'
import { textOf } from './adapters/email/text.ts'
import { createEventSender } from './adapters/events/sender.ts'
import { ipIdentity } from './adapters/http/client-ip.ts'
import type { HttpPorts } from './adapters/http/endpoint.ts'
import { MetricsListener, metricsRoutes } from './adapters/http/endpoints/metrics.ts'
import { rootRoutes } from './adapters/http/endpoints/root.tsx'
import { HttpRequests } from './adapters/http/http-request.ts'
import { knownHosts, scrapedHosts } from './adapters/http/known-hosts.ts'
import { listen } from './adapters/http/listen.ts'
import { type AddedRoutes, createHttp } from './adapters/http/server.ts'
import { closeConnections, drain } from './adapters/http/shutdown.ts'
import { breakerLog } from './adapters/log/breaker-log.ts'
import { feedbackLog } from './adapters/log/feedback-log.ts'
import { requestLog } from './adapters/log/request-log.ts'
import { startMetrics } from './adapters/metrics/index.ts'
import type { Demo } from './adapters/outbox/page.tsx'
import { outboxRoutes } from './adapters/outbox/routes.ts'
import { countryOfPrefix, destinationOf } from './adapters/phone/destination.ts'
import { isRegion } from './adapters/phone/e164.ts'
import { formatPhone, formatPrefix } from './adapters/phone/format.ts'
import { post } from './adapters/sms/http.ts'
import { developmentOnly, providerNames } from './adapters/sms/index.ts'
import { segmentsOf } from './adapters/sms/segments.ts'
import { isTopLevelDomain } from './adapters/sms/top-level-domains.ts'
import { runExpiryCleanup } from './adapters/store/expiry-cleanup.ts'
import { shareCircuits } from './adapters/store/shared-circuits.ts'
import type { Tracing } from './adapters/tracing/tracing.ts'
import { type Config, localUrl } from './config/config.ts'
import { type ContextOverrides, openContext, silent } from './context.ts'
import { isSetUp } from './domain/accounts/accounts.ts'
import { Breakers } from './domain/delivery/breaker.ts'
import { ConversionFeedback } from './domain/delivery/conversion-feedback.ts'
import { callbackUrls } from './domain/delivery/delivery-reports.ts'
import { Turns } from './domain/delivery/turns.ts'
import type { Actor } from './domain/ground/audit.ts'
import { ClockWatch } from './domain/ground/clock-watch.ts'
import { Guard } from './domain/guard/guard.ts'
import { Alerts } from './domain/health/alerts.ts'
import { ConditionAlerts } from './domain/health/condition-alerts.ts'
import { EventDelivery, eventTimeoutMs } from './domain/integration/event-delivery.ts'
import { CredentialRejections } from './domain/limits/credentials.ts'
import { ActiveLimits } from './domain/log/active-limits.ts'
import { createEventLog } from './domain/log/event-log-writer.ts'
import { providerHealth } from './domain/log/provider-health.ts'
import { clockStat, ignoredForwardedStat, rejectedReportStat } from './domain/log/stats.ts'
import { longestNotifyMs } from './domain/notify/notify.ts'
import { mostWaitingJobs } from './domain/notify/queue.ts'
import { QueueWorker } from './domain/notify/queue-worker.ts'
import { routeSettings } from './domain/operator/destinations.ts'
import { mailRequester, type RequestMail } from './domain/operator/request-mail.ts'
import { sendTest, type TestSend } from './domain/operator/test-send.ts'
import { webhookSwitch } from './domain/operator/webhooks.ts'
import type { RequestEnded } from './domain/request/request-ended.ts'
import { hasEnded, processOwner } from './process-owner.ts'
import { version } from './version.ts'

export interface Overrides extends ContextOverrides {
  /** Monotonic milliseconds. */
  readonly stopwatch?: () => number
  readonly demo?: Demo
  readonly pause?: (ms: number) => Promise<void>
  /** From 0 to 1, uniform. */
  readonly random?: () => number
  /** Of requests and jobs in progress. */
  readonly owner?: string
  /** Of asynchronous notifications. */
  readonly mostWaitingJobs?: number
  readonly tracing?: Tracing | undefined
}

export type App = Awaited<ReturnType<typeof createApp>>

export async function createApp(config: Config, overrides: Overrides = {}) {
  const context = await openContext(config, { serves: true, ...overrides })
  const { now, secrets, stats, checkDatabase, openCircuits } = context
  const { publicUrl, providerTimeoutMs, outboxAccess } = config
  const usesOutbox = config.outboxSettings.length > 0
  const hasOutbox = usesOutbox && outboxAccess.isOpen
  const {
    tracing,
    demo,
    log = silent,
    stopwatch = () => performance.now(),
    owner = processOwner(),
  } = overrides
  const stopping = new AbortController()
  let isStopping = false
  let cleanup: Promise<void> | undefined

  const smtp = config.smtp && createSmtpMailer(config.smtp, providerTimeoutMs)
  const mailer = smtp ?? createOutboxMailer(context.outbox)
  const tools = { now, outbox: context.outbox }
  const plain = config.smsRoutes.plain.map((make) => make(tools))
  const template = config.smsRoutes.template.map((make) => make(tools))
  const smsRoutes = { plain, template }
  const breakers = new Breakers(stopwatch)
  breakers.onChange(breakerLog(log))
  if (openCircuits) shareCircuits(openCircuits, breakers, now)

  const limited = new ActiveLimits()
  const eventLog = createEventLog(context.eventLog)
  const build = { version, bun: Bun.version, database: stats.version() }
  const policy = context.policy.cached(config.smsCountries)
  const { email, webhook } = config.alerts
  const targets = [
    ...(email === undefined ? [] : [alertMail(mailer, email)]),
    ...(webhook ? [alertWebhook(webhook, post, now)] : []),
  ]
  const conditions = new ConditionAlerts({
    alerts: context.alerts,
    targets,
    checkDatabase,
    freeBytes: async () => (await stats.files())?.diskFree,
    attempts: () => context.eventLog.recentAttempts(now()),
    openCircuits: () => breakers.openCircuits(),
    now,
    log,
  })
  const alerts = new Alerts({
    budgets: async () => (await policy()).budgets,
    spent: context.budgets.spent,
    alerts: context.alerts,
    requests: context.requests,
    ownUrl: () => ownUrl(),
    targets,
    checkConditions: conditions.check,
    now,
    log,
  })
  const sendEvent = createEventSender({ ...config, timeoutMs: eventTimeoutMs })
  const events = new EventDelivery({
    events: context.events,
    policy,
    send: (webhook, id, body) => sendEvent(webhook, id, body, now()),
    random: overrides.random ?? Math.random,
    ...webhookSwitch({ policy: context.policy, alerts, now }),
    now,
    log,
  })
  const metrics =
    config.metrics &&
    startMetrics({
      ...config,
      alerts,
      events,
      build,
      smsRoutes,
      mailer,
      breakers,
      lateCodes: context.eventLog.lateCodes,
      checkDatabase,
      stats,
      queue: { counts: () => queue.counts, status: context.jobs.status, now },
    })
  const listeners = [requestLog(log), limited.ended, eventLog.ended, alerts.ended]
  if (metrics) listeners.push(metrics.ended)
  if (tracing) listeners.push(tracing.ended)
  // Of two providers with the same name either works: delivery reports and feedback do not depend on the route.
  const providers = [...plain, ...template]
  const logFeedback = feedbackLog(log, stopwatch)
  const conversionFeedback = config.usesConversionFeedback
    ? new ConversionFeedback(providers, providerTimeoutMs, (result) => {
        logFeedback(result)
        metrics?.feedbackReported(result)
      })
    : undefined
  if (conversionFeedback) listeners.push(conversionFeedback.ended)

  const guard = new Guard({ store: context.guardStore, now, log, mode: config.guard, node: secrets.newId() })
  await guard.sync()

  const delivery = {
    ...context,
    ...config,
    mailer,
    smsRoutes,
    breakers,
    turns: new Turns(after),
    segmentsOf,
    callbackUrl: callbackUrls(secrets, publicUrl),
    eventLog,
    policy,
    destinationOf,
    stopwatch,
    owner,
    hasEnded: (other: string) => hasEnded(other, { isLocal: config.database.kind === 'sqlite' }),
  }
  const queue = new QueueWorker({
    ...delivery,
    tried: (tried) => {
      eventLog.tried(tried)
      alerts.charged(tried)
      metrics?.tried(tried)
    },
    log,
    mostWaiting: overrides.mostWaitingJobs ?? mostWaitingJobs,
  })
  const ports: HttpPorts = {
    ...delivery,
    alerts,
    queue,
    rejections: new CredentialRejections(),
    providers,
    conversionFeedback,
    deliveryReports: context.eventLog,
    messages: context.eventLog.messages,
    runningRequest: (requestId) => httpRequests.find(requestId),
    pause: overrides.pause ?? ((ms) => pause(ms)),
    reportReceived: metrics?.reportReceived,
    reportRejected: (provider, why) => context.eventLog.count(now(), rejectedReportStat(provider, why)),
    guard,
    ipIdentity,
    textOf,
    isTopLevelDomain,
  }

  const httpRequests = new HttpRequests(config.trustedProxies, now, (network) => {
    log.warn(
      { network },
      'X-Forwarded-For was ignored, because its sender is not in TRUSTED_PROXIES; the sender counts as the client',
    )
    context.eventLog.count(now(), ignoredForwardedStat)
  })
  const clockWatch = new ClockWatch(now, stopwatch, ({ at, byMs }) => {
    log.warn({ bySeconds: Math.round(byMs / 1000) }, `the clock was set ${byMs < 0 ? 'back' : 'forward'}`)
    context.eventLog.count(at, clockStat(byMs), Math.round(Math.abs(byMs) / 1000))
  })
  const contextOf = (request: Request) => httpRequests.of(request)
  const testPorts = {
    ...delivery,
    isTopLevelDomain,
    ended: (ended: RequestEnded) => {
      eventLog.ended(ended)
      alerts.charged(ended.context)
      metrics?.tried(ended.context)
    },
  }
  const passwordHash = config.adminPasswordHash
  const live = new LiveStreams({ mark: context.eventLog.mark, now, stopping: stopping.signal })
  const consolePorts = {
    ...context,
    sendTest: (actor: Actor, test: TestSend) => sendTest(testPorts, actor, test),
    mailRequester: (actor: Actor, id: string, mail: RequestMail, after: number | null) =>
      mailRequester({ ...delivery, ownUrl, actor }, id, mail, after),
    guard: context.guardReader,
    passwordHash,
    limited,
    live,
    priceCurrency: async () => (await policy()).prices.currency,
    activeReviewNumbers: async () => (await policy()).activeReviewNumbers(now()),
    providerStates: () => providerHealth(ports),
    latestClockStep: () => clockWatch.latest,
    passkeys: createPasskeys(() => relyingParties(publicUrl, http.server?.port ?? config.port)),
  }
  const databaseName = config.database.name
  const ownUrl = () => publicUrl ?? localUrl(config.host, http.server?.port ?? config.port)
  const settings = {
    ...config,
    ...build,
    ownUrl,
    databaseName,
    hasOutbox,
    mailerName: mailer.name,
    providerNames,
    developmentOnly,
    routes: routeSettings(config.smsMode, smsRoutes),
    isCountry: isRegion,
    destinationOf,
    formatPhone,
    formatPrefix,
    countryOfPrefix,
    segmentsOf,
    isTopLevelDomain,
    textBeforeCode: context.textBeforeCode,
    log,
  }
  const root = {
    version,
    hasOutbox,
    hasConsole: async () => passwordHash !== undefined || (await context.sessions.accounts()).some(isSetUp),
  }
  const outbox = {
    ...config,
    ownUrl,
    messages: context.outbox,
    now,
    demo,
    stopping: stopping.signal,
    access: outboxAccess,
    formatPhone,
  }
  const added: AddedRoutes[] = [
    { routes: rootRoutes(root, contextOf) },
    { routes: consoleRoutes(consolePorts, settings, contextOf), under: '/admin' },
  ]
  if (usesOutbox) added.push({ routes: outboxRoutes(outbox, contextOf), under: '/outbox' })
  const scrapes = metrics && { scrape: metrics.scrape, token: config.metrics?.token }
  if (scrapes?.token !== undefined) added.push({ routes: metricsRoutes(scrapes) })
  const http = createHttp(ports, {
    version,
    publicUrl,
    log,
    httpRequests,
    listeners,
    tracing,
    added,
    hasOutbox,
    ownUrl,
    isStopping: () => isStopping,
    isKnownHost: knownHosts([config.host], publicUrl),
  })
  const own = config.metrics?.listener
  const metricsListener =
    scrapes &&
    own &&
    new MetricsListener(scrapes, own, scrapedHosts(knownHosts([config.host, own.host], publicUrl)), now, log)

  return {
    context,
    providers: ports.providers,
    alerts,
    events,
    guard,
    queue,
    live,
    handle: (request: Request): Promise<Response> => http.handle(request),
    sendTest: consolePorts.sendTest,
    mailRequester: consolePorts.mailRequester,

    /** @throws if the port is in use or not permitted */
    listen(): URL {
      metricsListener?.listen(config.reusePort)
      const url = listen(http, config)
      alerts.tick()
      queue.tick()
      const ticking = setInterval(() => {
        clockWatch.tick()
        alerts.tick()
        events.tick()
        guard.tick()
        queue.tick()
        void live.tick()
      }, 1000)
      stopping.signal.addEventListener('abort', () => clearInterval(ticking))
      cleanup = runExpiryCleanup(() => context.sweep(config.retentionDays), stopping.signal, log)
      // Fails on a full disk, which /health reports too.
      context
        .noteSecret()
        .catch((err: unknown) => log.error({ err }, 'the fingerprint of the secret key could not be stored'))
      return url
    },

    /** /health/ready answers `draining` for SHUTDOWN_DELAY_SECONDS, except after a fault. */
    async close({ isFault = false } = {}): Promise<void> {
      isStopping = true
      const delayMs = isFault || !http.server ? 0 : config.shutdownDelaySeconds * 1000
      if (delayMs > 0) await pause(delayMs)
      // It takes no job while requests end.
      const queueStopped = queue.stop()
      await closeConnections(http, httpRequests)
      stopping.abort()
      await drain(http, httpRequests, longestNotifyMs(providerTimeoutMs))
      await queueStopped
      await metricsListener?.stop()
      metrics?.stop()
      await events.stop()
      await alerts.idle()
      smtp?.close()
      await guard.sync()
      await cleanup
      await context.close().finally(() => tracing?.close())
    },
  }
}

function after(ms: number, act: () => void): () => void {
  const timer = setTimeout(act, ms)
  return () => clearTimeout(timer)
}
