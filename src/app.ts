import { setTimeout as pause } from 'node:timers/promises'
import { createOutboxMailer } from './adapters/email/outbox.ts'
import { createSmtpMailer } from './adapters/email/smtp.ts'
import { textOf } from './adapters/email/text.ts'
import type { Log } from './adapters/http/http-request.ts'
import { listenForMetrics, type MetricsPorts } from './adapters/http/metrics.ts'
import { createHttp, type HttpPorts } from './adapters/http/server.ts'
import { type Metrics, startMetrics } from './adapters/metrics/index.ts'
import type { Demo } from './adapters/outbox/page.tsx'
import { providerNames } from './adapters/sms/index.ts'
import { segmentsOf } from './adapters/sms/segments.ts'
import type { Tracing } from './adapters/tracing/tracing.ts'
import type { Config } from './config/config.ts'
import { ConfigError } from './config/settings.ts'
import { type Context, type ContextOverrides, openContext, silent } from './context.ts'
import { LimitedNow } from './domain/events/active-limits.ts'
import { createEventLog } from './domain/events/event-log.ts'
import type { ProviderHealth } from './domain/events/statistics.ts'
import { type BreakerChange, Breakers } from './domain/messages/breaker.ts'
import { attemptPath, providerPath } from './domain/messages/delivery-reports.ts'
import { longestNotifyMs } from './domain/messages/notify.ts'
import type { DeliveryReportReader, SmsProvider } from './domain/messages/providers.ts'
import { OperatorError } from './domain/operator/operator.ts'
import type { Clock } from './domain/ports.ts'
import { version } from './version.ts'

/** Parts that a test may put in the place of the real ones, and what only the demo has. */
export interface Overrides extends ContextOverrides {
  /** Monotonic milliseconds. */
  readonly stopwatch?: () => number
  readonly demo?: Demo
  /** Has every request traced; it is closed with the service. */
  readonly tracing?: Tracing | undefined
}

/** What traces requests as the settings say, if they do: only then it is loaded. */
export async function openTracing({ tracing }: Config, log: Log): Promise<Tracing | undefined> {
  if (!tracing) return undefined
  const { createTracing } = await import('./adapters/tracing/tracing.ts')
  return createTracing(tracing, { version, log })
}

/** How long the sweep rests after it has been through everything, and between steps that found little. */
const sweepRestMs = { round: 5000, step: 20 } as const

/** What an operator has to learn of a provider that keeps failing, when it happens. */
function noteBreaker(log: Log, { provider, state, ...details }: BreakerChange): void {
  if (state === 'works') log.info({ provider }, 'the provider works again')
  else
    log.warn(
      { provider, ...details },
      'the provider keeps failing, and is asked after the others of its route',
    )
}

/** Tells the other servers on the database, where there may be some. It is a hint: who misses it finds out by itself. */
function tellOthers({ openCircuits, now }: Context, change: BreakerChange): void {
  const { provider } = change
  const rest =
    change.state === 'rests'
      ? { failures: change.failures, openMs: change.openMs, openUntil: now() + change.openMs }
      : undefined
  void openCircuits?.tell(provider, rest).catch(() => undefined)
}

/** How every provider in use stands, SMS first. */
function providerStates({ smsRoutes, mailer, breakers }: HttpPorts): Omit<ProviderHealth, 'lastHour'>[] {
  const failing = new Map(breakers.states().map((state) => [state.provider, state]))
  const stateOf = (name: string) => {
    const { state, failuresInARow, openMs } = failing.get(name) ?? well
    return { name, state, failuresInARow, openMs }
  }
  const names = new Set([...smsRoutes.plain, ...smsRoutes.template].map(({ name }) => name))
  const ways = (name: string) =>
    (['plain', 'template'] as const).filter((route) => smsRoutes[route].some((each) => each.name === name))
  return [
    ...Array.from(names, (name) => ({ ...stateOf(name), channel: 'SMS' as const, routes: ways(name) })),
    // Mail has one way, and so no breaker.
    { name: mailer.name, ...well, channel: 'EMAIL' as const, routes: [] },
  ]
}

const well = { state: 'works', failuresInARow: 0, openMs: 0 } as const

/** The whole service, wired but not yet listening. */
export type App = Awaited<ReturnType<typeof createApp>>

/** Opens what is kept and wires the service around it. */
export async function createApp(config: Config, overrides: Overrides = {}) {
  const context = await openContext(config, { serves: true, ...overrides })
  const log = overrides.log ?? silent
  const { tracing } = overrides
  const stopping = new AbortController()
  let isStopping = false
  const smtp = config.smtp && createSmtpMailer(config.smtp, config.providerTimeoutMs)
  const tools = { now: context.now, outbox: context.outbox }
  const smsRoutes = {
    plain: config.smsRoutes.plain.map((make) => make(tools)),
    template: config.smsRoutes.template.map((make) => make(tools)),
  }
  const { publicUrl } = config
  const { stopwatch = () => performance.now() } = overrides
  const limited = new LimitedNow()
  const eventLog = createEventLog(context.eventLog.add, context.eventLog.count)
  const breakers = new Breakers(stopwatch, (change) => {
    noteBreaker(log, change)
    tellOthers(context, change)
  })
  context.openCircuits?.listen((openCircuits) =>
    breakers.hear(
      openCircuits.map(({ openUntil, ...rest }) => ({ ...rest, leftMs: openUntil - context.now() })),
    ),
  )
  const ports: HttpPorts = {
    ...context,
    mailer: smtp ?? createOutboxMailer(context.outbox),
    smsRoutes,
    breakers,
    segmentsOf,
    callbackUrl: (provider, requestId, attempt) =>
      publicUrl === undefined ? null : publicUrl + attemptPath(context.secrets, provider, requestId, attempt),
    // One of a name will do: what reports on a message does not depend on its route.
    providers: [...smsRoutes.plain, ...smsRoutes.template],
    deliveryReports: context.eventLog,
    eventLog: {
      note: eventLog.note,
      end: (call, end) => {
        limited.note(call)
        eventLog.end(call, end)
      },
    },
    lastProviderOf: context.eventLog.lastProviderOf,
    textOf,
    stopwatch,
    smsMode: config.smsMode,
    limits: config.limits,
    otpTtlSeconds: config.otpTtlSeconds,
    providerTimeoutMs: config.providerTimeoutMs,
    ...(config.nationalize ? { nationalize: config.nationalize } : {}),
  }
  const metrics = config.metrics && openMetrics(context, ports)
  const counted = metrics ? countingReports(ports, metrics) : ports
  let metricsListener: ReturnType<typeof listenForMetrics> | undefined
  const { app: http, httpRequests } = createHttp(counted, {
    version,
    trustedProxies: config.trustedProxies,
    publicUrl: config.publicUrl,
    log,
    outbox: config.usesOutbox
      ? {
          messages: context.outbox,
          now: context.now,
          publicUrl,
          demo: overrides.demo,
          stopping: stopping.signal,
          nationalize: config.nationalize,
        }
      : undefined,
    console: {
      ports: {
        ...context,
        passwordHash: config.adminPasswordHash,
        limited,
        providerStates: () => providerStates(ports),
      },
      settings: {
        version,
        bun: Bun.version,
        databaseName: config.database.name,
        publicUrl,
        hasOutbox: config.usesOutbox,
        inForce: config.inForce,
        providerNames: providerNames,
        nationalize: config.nationalize,
        segmentsOf,
        otpTtlSeconds: config.otpTtlSeconds,
        log,
      },
    },
    metrics: metrics && { ...metrics, token: config.metrics?.token },
    tracing,
    isStopping: () => isStopping,
  })

  return {
    context,
    /** Answers one request without a socket. */
    handle: (request: Request): Promise<Response> => http.handle(request),
    /** What an operator enters at each vendor, or need not; in words, a line each. */
    callbackUrls(): string[] {
      if (publicUrl === undefined) {
        throw new OperatorError(
          'PUBLIC_URL is not set: vendors report to the address that they reach this server by, such as https://otp.example.com',
        )
      }
      context.requireSecret()
      const reporting = new Map(
        ports.providers.map(({ name, deliveryReports }) => [name, deliveryReports?.namedBy]),
      )
      return Array.from(reporting, ([name, namedBy]) => {
        if (namedBy === 'attempt') return `${name}: nothing to enter, each message names its own`
        return namedBy
          ? `${name}: ${publicUrl}${providerPath(context.secrets, name)}`
          : `${name}: reports nothing here`
      })
    },
    /**
     * Starts to listen; returns the address.
     *
     * @throws when the port is taken or not allowed
     */
    listen(): URL {
      const { host: hostname, port, reusePort } = config
      if (metrics && config.metrics?.listener) {
        metricsListener = listenOnMetricsPort(
          { ...metrics, token: config.metrics.token },
          { ...config.metrics.listener, reusePort },
          context.now,
          log,
        )
      }
      http.listen({
        hostname,
        port,
        reusePort,
        development: false,
        idleTimeout: 30,
        // The body reader has a limit of its own, which answers with an envelope; the server's answers with nothing.
        maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      })
      void sweepOnAndOn()
      // On a full disk it fails; then the server answers that it is unwell, too.
      context
        .noteSecret()
        .catch((error: unknown) =>
          log.error({ err: error }, 'it could not be noted which secret this server works with'),
        )
      if (!http.server) throw new Error('the server did not start')
      return http.server.url
    },
    /**
     * Goes on serving for SHUTDOWN_DELAY_SECONDS, while it says that it is not ready, so that load balancers learn of it;
     * but for a fault, since what is faulty had better end. Then takes leave of its clients, ends waiting readers, lets
     * requests under way finish, and closes what is open. New connections are refused from the end of the leave on.
     */
    async close({ isFault = false } = {}): Promise<void> {
      isStopping = true
      const delayMs = http.server && !isFault ? config.shutdownDelaySeconds * 1000 : 0
      if (delayMs > 0) await pause(delayMs)
      if (http.server) await takeLeave(http.server)
      stopping.abort()
      if (http.server) await drain(http.server)
      await metricsListener?.stop()
      metrics?.stop()
      smtp?.close()
      try {
        await context.close()
      } finally {
        await tracing?.close()
      }
    },
  }

  /**
   * Tells clients to leave, and returns in a lull of their requests. A stop resets what it finds unread: connections that
   * nobody has accepted yet, and a request that a client wrote on a kept connection a moment ago. So every answer says
   * beforehand that its connection ends with it, and a client sends its next request elsewhere. Where the requests go on,
   * because others connect meanwhile, an ever shorter lull will do.
   */
  async function takeLeave(server: NonNullable<typeof http.server>): Promise<void> {
    const startedAt = performance.now()
    let requests = 0
    server.reload({
      routes: {},
      fetch: async (request) => {
        requests++
        const answer = await http.fetch(request)
        answer.headers.set('connection', 'close')
        return answer
      },
    })
    let [seen, quietTurns] = [0, 0]
    while (quietTurns < lullTurns * (1 - (performance.now() - startedAt) / longestLeaveMs)) {
      // Turns tell more than a span of time does: on a busy machine the clients are as slow as this loop.
      await pause(1)
      quietTurns = requests === seen ? quietTurns + 1 : 0
      seen = requests
    }
  }

  /** Refuses what is new, waits for what is under way, and hangs up on clients that have not sent their request yet. */
  async function drain(server: NonNullable<typeof http.server>): Promise<void> {
    const done = new AbortController()
    const waitMs = (ms: number) => pause(ms, undefined, { signal: done.signal }).catch(() => undefined)
    const giveUpAt = performance.now() + longestNotifyMs(config.providerTimeoutMs) + drainMarginMs
    const closed = server.stop()
    // Again where a request came as a whole in the meantime: it had been begun before the stop.
    do {
      await Promise.race([httpRequests.idle(), waitMs(giveUpAt - performance.now())])
      await Promise.race([closed, waitMs(farewellMs)])
    } while (httpRequests.busy && performance.now() < giveUpAt)
    await server.stop(true)
    done.abort()
  }

  async function sweepOnAndOn(): Promise<void> {
    const { signal } = stopping
    while (!signal.aborted) {
      let openMs: number = sweepRestMs.round
      try {
        const { isRound, isBusy } = await context.sweep(config.retentionDays)
        if (!isRound) openMs = isBusy ? 0 : sweepRestMs.step
      } catch (error) {
        log.error({ err: error }, 'expired rows could not be removed; it is tried again')
      }
      await pause(openMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }
}

/** The metrics of a service, which are asked of its parts when they are scraped. */
function openMetrics(context: Context, { smsRoutes, mailer, breakers, providers }: HttpPorts): Metrics {
  const { version: databaseVersion, queueLength, eventLog, writer, files, pool } = context.stats
  const names = (providers: readonly SmsProvider[]) => providers.map(({ name }) => name)
  return startMetrics({
    build: { version, bun: Bun.version, database: databaseVersion() },
    smsRoutes: { plain: names(smsRoutes.plain), template: names(smsRoutes.template) },
    mailer: mailer.name,
    reporting: names(providers.filter(({ deliveryReports }) => deliveryReports !== undefined)),
    breakerStates: () => breakers.states(),
    store: { queueLength, eventLog, check: context.checkDatabase, writer, files, pool },
  })
}

/** The same ports, but each receipt that is read is counted. */
function countingReports(ports: HttpPorts, metrics: Metrics): HttpPorts {
  const providers = ports.providers.map((provider): SmsProvider => {
    const { name, deliveryReports } = provider
    if (!deliveryReports) return provider
    const read: DeliveryReportReader['read'] = (call) => {
      const news = deliveryReports.read(call)
      for (const { status } of news) metrics.observeReport(name, status)
      return news
    }
    return { ...provider, deliveryReports: { ...deliveryReports, read } }
  })
  return { ...ports, providers }
}

/** Listens where METRICS_HOST and METRICS_PORT say; tells in words what stands against it. */
function listenOnMetricsPort(
  metrics: MetricsPorts,
  address: { readonly host: string; readonly port: number; readonly reusePort: boolean },
  now: Clock,
  log: Log,
): ReturnType<typeof listenForMetrics> {
  const { host, port } = address
  try {
    const listener = listenForMetrics(metrics, address, now, log)
    log.info({ url: String(listener.url) }, 'listening for scrapes of metrics')
    return listener
  } catch (error) {
    switch ((error as { code?: unknown } | null)?.code) {
      case 'EADDRINUSE':
        throw new OperatorError(
          `METRICS_PORT ${port} on ${host} is in use. Stop what listens there, choose another METRICS_PORT, or set REUSE_PORT=1 on both servers to hand over without downtime`,
        )
      case 'EACCES':
        throw new OperatorError(
          `METRICS_PORT ${port} is not allowed to this user: choose a METRICS_PORT above 1023`,
        )
      case 'EADDRNOTAVAIL':
      case 'EINVAL':
      case 'ENOTFOUND':
        throw new ConfigError([`METRICS_HOST is ${host}, but this machine has no such address`])
      default:
        throw error
    }
  }
}

/** For how many turns of a millisecond no request has come when a stop disturbs nobody: some round trips. */
const lullTurns = 40

/** How long such a lull is waited for. */
const longestLeaveMs = 1000

/** What requests under way may take to end beyond the time of their deliveries. */
const drainMarginMs = 3000

/** What an answer may take to leave once it has been given. */
const farewellMs = 300
