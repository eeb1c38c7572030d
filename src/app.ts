import { setTimeout as pause } from 'node:timers/promises'
import packageJson from '../package.json'
import { secretFrom } from './adapters/crypto/secret-file.ts'
import { createSecrets, newSecretKey, sha256 } from './adapters/crypto/secrets.ts'
import { createOutboxMailer } from './adapters/email/outbox.ts'
import { createSmtpMailer } from './adapters/email/smtp.ts'
import { textOf } from './adapters/email/text.ts'
import type { Log } from './adapters/http/exchange.ts'
import type { Demo } from './adapters/http/outbox.ts'
import { createHttp, type HttpPorts } from './adapters/http/server.ts'
import { createAppBook } from './adapters/sqlite/apps.ts'
import { createBrandBook } from './adapters/sqlite/brands.ts'
import { type Database, openDatabase } from './adapters/sqlite/database.ts'
import { createIntegrationRequests } from './adapters/sqlite/integration-requests.ts'
import { createOtpStore } from './adapters/sqlite/otps.ts'
import { createOutbox } from './adapters/sqlite/outbox.ts'
import { sweep } from './adapters/sqlite/sweep.ts'
import type { BooksConfig, Config } from './config.ts'
import { longestDeliveryMs } from './domain/delivery.ts'

export const version = packageJson.version

/** Parts that a test may put in the place of the real ones, and what only the demo has. */
export interface Overrides {
  readonly now?: () => number
  readonly log?: Log
  readonly demo?: Demo
}

/** How often rows that are over are looked for. */
const sweepMs = 5000

/** Opens the store and what is kept in it, for the server and for commands alike. */
export function openBooks(config: BooksConfig, { now = Date.now, log = silent }: Overrides = {}) {
  const database = openDatabase(config.databaseFile)
  const secretKey = config.secretKey ?? secretBeside(config.databaseFile, database, log)
  return {
    now,
    secrets: createSecrets(secretKey),
    store: createOtpStore(database),
    brands: createBrandBook(database),
    apps: createAppBook(database, sha256, config.appCredentials),
    requests: createIntegrationRequests(database),
    outbox: createOutbox(database, now),
    checkDatabase: () => database.check(),
    sweep: () => sweep(database, now()),
    close: () => database.close(),
  }
}

/** The secret that is kept beside a database. */
function secretBeside(databaseFile: string, database: Database, log: Log): string {
  if (databaseFile === ':memory:') return newSecretKey()
  const file = `${databaseFile}.key`
  const { secret, isNew } = secretFrom(file)
  if (isNew && !database.isNew) {
    log.warn(
      { file },
      'the secret of this database was missing, and a new one was made: codes sent before do not verify',
    )
  }
  return secret
}

/** The whole service, wired but not yet listening. */
export function createApp(config: Config, overrides: Overrides = {}) {
  const books = openBooks(config, overrides)
  const log = overrides.log ?? silent
  const stopping = new AbortController()
  const smtp = config.smtp && createSmtpMailer(config.smtp, config.providerTimeoutMs)
  const tools = { now: books.now, outbox: books.outbox }
  const ports: HttpPorts = {
    ...books,
    mailer: smtp ?? createOutboxMailer(books.outbox),
    smsRoutes: {
      plain: config.smsRoutes.plain.map((make) => make(tools)),
      template: config.smsRoutes.template.map((make) => make(tools)),
    },
    textOf,
    stopwatch: () => performance.now(),
    smsMode: config.smsMode,
    limits: config.limits,
    otpTtlSeconds: config.otpTtlSeconds,
    providerTimeoutMs: config.providerTimeoutMs,
    ...(config.nationalize ? { nationalize: config.nationalize } : {}),
  }
  const { app: http, exchanges } = createHttp(ports, {
    version,
    trustedProxies: config.trustedProxies,
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
  let sweeper: ReturnType<typeof setInterval> | undefined

  return {
    books,
    /** Answers one request without a socket. */
    handle: (request: Request): Promise<Response> => http.handle(request),
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
      sweeper = setInterval(() => void sweepAll(), sweepMs)
      if (!http.server) throw new Error('the server did not start')
      return http.server.url
    },
    /** Ends waiting readers, lets requests under way finish, then closes what is open; refuses new requests at once. */
    async close(): Promise<void> {
      clearInterval(sweeper)
      stopping.abort()
      if (http.server) await drain(http.server)
      smtp?.close()
      await books.close()
    },
  }

  /** Refuses what is new, waits for what is under way, and hangs up on clients that have not sent their request yet. */
  async function drain(server: NonNullable<typeof http.server>): Promise<void> {
    const done = new AbortController()
    const waitMs = (ms: number) => pause(ms, undefined, { signal: done.signal }).catch(() => undefined)
    const giveUpAt = performance.now() + longestDeliveryMs(config.providerTimeoutMs) + drainMarginMs
    const closed = server.stop()
    // Again where a request came as a whole in the meantime: it had been begun before the stop.
    do {
      await Promise.race([exchanges.idle(), waitMs(giveUpAt - performance.now())])
      await Promise.race([closed, waitMs(farewellMs)])
    } while (exchanges.busy && performance.now() < giveUpAt)
    await server.stop(true)
    done.abort()
  }

  async function sweepAll(): Promise<void> {
    try {
      while (!stopping.signal.aborted && (await books.sweep()));
    } catch (error) {
      log.error({ err: error }, 'expired rows could not be removed; it is tried again')
    }
  }
}

/** What requests under way may take to end beyond the time of a delivery. */
const drainMarginMs = 3000

/** What an answer may take to leave once it has been given. */
const farewellMs = 300

const silent: Log = { info: () => {}, warn: () => {}, error: () => {} }
