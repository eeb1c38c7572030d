import { setTimeout as pause } from 'node:timers/promises'
import packageJson from '../package.json'
import { createOutboxMailer } from './adapters/email/outbox.ts'
import { createSmtpMailer } from './adapters/email/smtp.ts'
import { textOf } from './adapters/email/text.ts'
import type { Log } from './adapters/http/exchange.ts'
import type { Demo } from './adapters/http/outbox.ts'
import { createHttp, type HttpPorts } from './adapters/http/server.ts'
import { segmentsOf } from './adapters/sms/segments.ts'
import { type BookOverrides, openBooks, silent } from './books.ts'
import type { Config } from './config.ts'
import { type BreakerChange, Breakers } from './domain/breaker.ts'
import { createJournal } from './domain/journal.ts'
import { longestNotifyMs } from './domain/notify.ts'
import { OperatorError } from './domain/operator.ts'
import { attemptPath, providerPath } from './domain/receipts.ts'

export const version = packageJson.version

/** Parts that a test may put in the place of the real ones, and what only the demo has. */
export interface Overrides extends BookOverrides {
  /** Monotonic milliseconds. */
  readonly stopwatch?: () => number
  readonly demo?: Demo
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

/** The whole service, wired but not yet listening. */
export function createApp(config: Config, overrides: Overrides = {}) {
  const books = openBooks(config, overrides)
  const log = overrides.log ?? silent
  const stopping = new AbortController()
  const smtp = config.smtp && createSmtpMailer(config.smtp, config.providerTimeoutMs)
  const tools = { now: books.now, outbox: books.outbox }
  const smsRoutes = {
    plain: config.smsRoutes.plain.map((make) => make(tools)),
    template: config.smsRoutes.template.map((make) => make(tools)),
  }
  const { publicUrl } = config
  const { stopwatch = () => performance.now() } = overrides
  const ports: HttpPorts = {
    ...books,
    mailer: smtp ?? createOutboxMailer(books.outbox),
    smsRoutes,
    breakers: new Breakers(stopwatch, (change) => noteBreaker(log, change)),
    segmentsOf,
    receiptUrl: (provider, requestId, attempt) =>
      publicUrl === undefined ? null : publicUrl + attemptPath(books.secrets, provider, requestId, attempt),
    // One of a name will do: what reports on a message does not depend on its route.
    providers: [...smsRoutes.plain, ...smsRoutes.template],
    receipts: books.journal,
    journal: createJournal(books.journal.add),
    lastProviderOf: books.journal.lastProviderOf,
    textOf,
    stopwatch,
    smsMode: config.smsMode,
    limits: config.limits,
    otpTtlSeconds: config.otpTtlSeconds,
    providerTimeoutMs: config.providerTimeoutMs,
    ...(config.nationalize ? { nationalize: config.nationalize } : {}),
  }
  const { app: http, exchanges } = createHttp(ports, {
    version,
    trustedProxies: config.trustedProxies,
    publicUrl: config.publicUrl,
    log,
    outbox: config.usesOutbox
      ? {
          messages: books.outbox,
          demo: overrides.demo,
          stopping: stopping.signal,
          nationalize: config.nationalize,
        }
      : undefined,
  })

  return {
    books,
    /** Answers one request without a socket. */
    handle: (request: Request): Promise<Response> => http.handle(request),
    /** What an operator enters at each vendor, or need not; in words, a line each. */
    receiptUrls(): string[] {
      if (publicUrl === undefined) {
        throw new OperatorError(
          'PUBLIC_URL is not set: vendors report to the address that they reach this server by, such as https://otp.example.com',
        )
      }
      const reporting = new Map(ports.providers.map(({ name, receipts }) => [name, receipts?.namedBy]))
      return Array.from(reporting, ([name, namedBy]) => {
        if (namedBy === 'attempt') return `${name}: nothing to enter, each message names its own`
        return namedBy
          ? `${name}: ${publicUrl}${providerPath(books.secrets, name)}`
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
      if (!http.server) throw new Error('the server did not start')
      return http.server.url
    },
    /**
     * Takes leave of its clients, ends waiting readers, lets requests under way finish, then closes what is open. New
     * connections are refused from the end of the leave on.
     */
    async close(): Promise<void> {
      if (http.server) await takeLeave(http.server)
      stopping.abort()
      if (http.server) await drain(http.server)
      smtp?.close()
      await books.close()
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
      await Promise.race([exchanges.idle(), waitMs(giveUpAt - performance.now())])
      await Promise.race([closed, waitMs(farewellMs)])
    } while (exchanges.busy && performance.now() < giveUpAt)
    await server.stop(true)
    done.abort()
  }

  async function sweepOnAndOn(): Promise<void> {
    const { signal } = stopping
    while (!signal.aborted) {
      let restMs: number = sweepRestMs.round
      try {
        const { isRound, isBusy } = await books.sweep(config.deliveryLogDays)
        if (!isRound) restMs = isBusy ? 0 : sweepRestMs.step
      } catch (error) {
        log.error({ err: error }, 'expired rows could not be removed; it is tried again')
      }
      await pause(restMs, undefined, { signal, ref: false }).catch(() => undefined)
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
