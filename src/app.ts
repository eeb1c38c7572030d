import { setTimeout as pause } from 'node:timers/promises'
import { LiveStreams } from './adapters/console/live.ts'
import type { HttpPorts } from './adapters/http/endpoint.ts'
import { knownHosts } from './adapters/http/known-hosts.ts'
import { createListener } from './adapters/http/listen.ts'
import { createHttp } from './adapters/http/server.ts'
import { startMetrics } from './adapters/metrics/index.ts'
import type { Demo } from './adapters/outbox/page.tsx'
import { createExpiryCleanup } from './adapters/store/expiry-cleanup.ts'
import type { Tracing } from './adapters/tracing/tracing.ts'
import { type Config, localUrl } from './config/config.ts'
import type { Env } from './config/setting-source.ts'
import { type ContextOverrides, openContext, silent } from './context.ts'
import { checksOn } from './doctor/thread.ts'
import { Guard } from './domain/guard/guard.ts'
import { NotifyWatch } from './domain/guard/notify-watch.ts'
import { longestNotifyMs } from './domain/notify/notify.ts'
import { mostWaitingJobs } from './domain/notify/queue.ts'
import { QueueWorker } from './domain/notify/queue-worker.ts'
import { storeFirstMode } from './domain/operator/guard.ts'
import { storeReportsVerified } from './domain/operator/relays.ts'
import { Ladders } from './domain/otp/ladders.ts'
import { createAlerts, createEvents } from './parts/alerts.ts'
import {
  createClockWatch,
  createHttpRequests,
  createObservers,
  createProofIssuer,
} from './parts/observers.ts'
import { createOperatorSends } from './parts/operator-sends.ts'
import { createPages, createScraping } from './parts/pages.ts'
import { everySecond, type Part, startParts, stopParts } from './parts/part.ts'
import { createShared } from './parts/shared.ts'

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
  /** Where the settings come from, for the checks of the health page. */
  readonly env?: Env
}

export type App = Awaited<ReturnType<typeof createApp>>

/** The parts of a server, and in which order they start and stop. */
export async function createApp(config: Config, overrides: Overrides = {}) {
  const context = await openContext(config, { serves: true, ...overrides })
  const { now, secrets, eventLog } = context
  const { tracing, demo, log = silent, env } = overrides
  const stopping = new AbortController()
  let isStopping = false
  const port = () => http.server?.port ?? config.port
  const ownUrl = () => config.publicUrl ?? localUrl(config.host, port())

  const shared = createShared(config, context, { ...overrides, log, ownUrl })
  await storeFirstMode(context.acting({ by: 'command', name: 'serve' }), config.guard).catch((err: unknown) =>
    log.error({ err }, 'the mode of the SMS pumping guard could not be stored; GUARD applies'),
  )
  await shared.policy()
  const guard = new Guard({ store: context.guard, now, log, mode: shared.guardMode, node: secrets.newId() })
  await guard.sync()
  const alerts = createAlerts(config, context, shared)
  const notifyWatch = new NotifyWatch({ history: eventLog.notifiedHistory, report: alerts.surged, now, log })
  const events = createEvents(context, shared, alerts, overrides.random)
  const jobs = { counts: () => queue.counts, status: context.jobs.status, now }
  const sources = { ...shared, alerts, events, lateCodes: eventLog.lateCodes, queue: jobs }
  const metrics = config.metrics && startMetrics(sources)
  const observers = createObservers(shared, { alerts, metrics, tracing })
  const { limited, listeners, conversionFeedback, jobTried, testEnded } = observers
  const mostWaiting = overrides.mostWaitingJobs ?? mostWaitingJobs
  const queue = new QueueWorker({ ...shared, notifyWatch, tried: jobTried, mostWaiting })
  const ladderPorts = { ...shared, guard, conversionFeedback, tried: jobTried }
  const ladders = config.ladder.ways.length > 1 ? new Ladders(ladderPorts) : undefined
  if (!ladders)
    await context.ladderStore
      .endAll('the server has no LADDER')
      .catch((err: unknown) => log.error({ err }, 'codes that wait for a further way could not be ended'))
  const clockWatch = createClockWatch(context, shared)
  // Open pages are updated too when the database begins or ends to fail, although nothing is written then.
  const mark = async (at: number) => ((await context.databaseTrouble()) ? 'trouble' : eventLog.mark(at))
  const live = new LiveStreams({ mark, now, stopping: stopping.signal })
  const byOperators = createOperatorSends(shared, testEnded)
  const httpRequests = createHttpRequests(context, shared)
  const contextOf = (request: Request) => httpRequests.of(request)
  const ports: HttpPorts = {
    ...shared,
    alerts,
    queue,
    guard,
    ladders,
    notifyWatch,
    conversionFeedback,
    proofIssuer: createProofIssuer(context, shared),
    relayReports: (name) => storeReportsVerified(context.acting({ by: 'command', name: 'serve' }), name),
    runningRequest: (requestId) => httpRequests.find(requestId),
    pause: overrides.pause ?? ((ms) => pause(ms)),
    reportReceived: metrics?.reportReceived,
  }
  const runChecks = env && checksOn(env)
  const { refused } = alerts
  const own = {
    ...byOperators,
    limited,
    refused,
    live,
    contextOf,
    port,
    demo,
    runChecks,
    stopping: stopping.signal,
  }
  const scraping = createScraping(config, shared, metrics)
  const http = createHttp(ports, {
    ...shared,
    ...shared.build,
    httpRequests,
    listeners,
    tracing,
    added: [...createPages(config, context, shared, own), ...scraping.routes],
    isStopping: () => isStopping,
    isKnownHost: knownHosts([config.host], config.publicUrl),
  })

  const longestMs = longestNotifyMs(config.providerTimeoutMs)
  const listener = createListener(http, httpRequests, { ...config, longestMs }, stopping)
  const cleanup = createExpiryCleanup(() => context.sweep(config.retentionDays), stopping.signal, log)
  // Loaded on demand: ACME takes long to load.
  const tls =
    config.tls &&
    (await import('./adapters/http/tls-listener.ts')).tlsListener(config.tls, listener, now, log)
  const parts: readonly Part[] = [
    { stop: () => tracing?.close() },
    { stop: () => context.close() },
    { stop: () => cleanup.stop() },
    { stop: () => guard.sync() },
    { stop: () => shared.closeMailer() },
    { stop: () => alerts.idle() },
    { stop: () => events.stop() },
    { stop: () => metrics?.stop() },
    { start: () => scraping.listener?.listen(config.reusePort), stop: () => scraping.listener?.stop() },
    { start: () => listener.start(), finish: () => listener.finish() },
    { start: () => tls?.start(), finish: async () => tls?.stop() },
    { start: () => alerts.tick() },
    // It takes no job while requests end.
    { start: () => queue.tick(), finish: () => queue.stop() },
    { start: () => ladders?.tick(), finish: async () => ladders?.stop() },
    everySecond([clockWatch, alerts, events, guard, notifyWatch, queue, live], stopping.signal),
    ...[tls, ladders].map((part) => everySecond(part ? [part] : [], stopping.signal)),
    { start: () => cleanup.start() },
    { start: () => void context.noteSecret() },
  ]

  return {
    context,
    providers: shared.providers,
    alerts,
    events,
    guard,
    ladders,
    notifyWatch,
    queue,
    live,
    ...byOperators,
    handle: (request: Request): Promise<Response> => http.handle(request),

    /** @throws if a port is in use or not permitted */
    listen(): URL {
      startParts(parts)
      return listener.url
    },

    /** /health/ready answers `draining` for SHUTDOWN_DELAY_SECONDS, except after a fault. */
    async close({ isFault = false } = {}): Promise<void> {
      isStopping = true
      const delayMs = isFault || !http.server ? 0 : config.shutdownDelaySeconds * 1000
      if (delayMs > 0) await pause(delayMs)
      await stopParts(parts)
    },
  }
}
