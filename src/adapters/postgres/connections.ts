import { Connection, type Query, type Reply } from './connection.ts'
import { DatabaseUnavailable, noneFree, type Place, silence } from './errors.ts'
import { answers } from './probe.ts'
import { ReconnectBackoff } from './reconnect-backoff.ts'
import type { PostgresTls } from './tls.ts'

export interface PostgresTarget {
  /** `postgres://user:password@host:port/database`; parameters are ignored. */
  readonly url: string
  readonly tls: PostgresTls
  readonly poolSize: number
  /** Also the longest wait for a free connection. */
  readonly connectTimeoutMs: number
  /** Enforced by the server, and by this side `graceMs` later. */
  readonly statementTimeoutMs: number
  /** The server ends a transaction that is idle for longer. */
  readonly idleInTransactionTimeoutMs: number
  /** Behind a pooler in transaction mode: no prepared statements and no session settings. */
  readonly isPooled: boolean
}

/** This side's time-out of a statement is later than the server's by this. */
const graceMs = 500

interface Waiting {
  readonly sinceMs: number
  readonly resolve: (connection: Connection) => void
  readonly reject: (problem: DatabaseUnavailable) => void
}

/** Opens connections while callers wait for one, and detects a dead server before the connect time-out. */
export class Connections {
  private readonly place: Place
  private readonly connectionTarget: ConstructorParameters<typeof Connection>[0]
  /** Probes after this silence. */
  private readonly suspicionMs: number
  private readonly pollMs: number
  private readonly polling: Timer
  private readonly backoff = new ReconnectBackoff(Math.random)
  private readonly all = new Set<Connection>()
  private readonly opening = new Set<Connection>()
  /** The most recently used is last and is used next. */
  private readonly idle: Connection[] = []
  private readonly waiting: Waiting[] = []
  private problem: DatabaseUnavailable | undefined
  private heardAt = performance.now()
  private isProbing = false
  private polledAt = performance.now()
  private wasHeldUp = false
  private closed: Promise<void> | undefined
  private drained: (() => void) | undefined

  /** @param log receives a problem when it begins and when it ends */
  constructor(
    private readonly target: PostgresTarget,
    private readonly log: (problem: string) => void,
  ) {
    const { connectTimeoutMs, statementTimeoutMs, idleInTransactionTimeoutMs, isPooled, tls } = target
    const { place, password } = readUrl(target.url)
    const transactionTimeoutMs = statementTimeoutMs + 2 * graceMs
    const limits = { statementTimeoutMs, idleInTransactionTimeoutMs, transactionTimeoutMs }
    const session = isPooled ? undefined : limits
    this.place = place
    this.connectionTarget = { place, password, tls, connectTimeoutMs, session }
    this.suspicionMs = connectTimeoutMs * 0.4
    this.pollMs = Math.min(250, Math.max(10, connectTimeoutMs / 10))
    this.polling = setInterval(() => this.poll(), this.pollMs)
    this.polling.unref()
  }

  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.acquire()
    try {
      return await work(connection)
    } finally {
      this.release(connection)
    }
  }

  async execute(
    connection: Connection,
    query: Query,
    limitMs = this.target.statementTimeoutMs,
  ): Promise<Reply> {
    try {
      return await connection.execute(query, limitMs + graceMs)
    } finally {
      if (!connection.isBroken) this.heardAt = performance.now()
    }
  }

  get trouble(): DatabaseUnavailable | undefined {
    return this.problem
  }

  stats() {
    return { size: this.all.size, idle: this.idle.length, waiting: this.waiting.length }
  }

  /** Waits for work in progress, which the statement time-out limits. */
  close(): Promise<void> {
    this.closed ??= this.drain()
    return this.closed
  }

  private async acquire(): Promise<Connection> {
    if (this.closed) throw new DatabaseUnavailable('the connections to PostgreSQL have been closed')
    const free = this.idle.pop()
    if (free) return free
    const now = performance.now()
    if (this.all.size === this.opening.size && this.backoff.isShut(now)) throw fresh(this.problem)
    const { promise, resolve, reject } = Promise.withResolvers<Connection>()
    this.waiting.push({ sinceMs: now, resolve, reject })
    this.grow()
    return promise
  }

  private release(connection: Connection): void {
    if (!connection.isReady) {
      connection.destroy(new DatabaseUnavailable('the caller did not end its transaction'))
    } else {
      const next = this.waiting.shift()
      if (next) next.resolve(connection)
      else this.idle.push(connection)
    }
    this.settle()
  }

  private grow(): void {
    while (
      this.waiting.length > this.opening.size &&
      this.all.size < this.target.poolSize &&
      !this.backoff.isShut(performance.now())
    ) {
      if (!this.open()) return
    }
  }

  private open(): boolean {
    let connection: Connection
    try {
      connection = new Connection(this.connectionTarget, (...broken) => this.broke(...broken))
    } catch (error) {
      this.failed(error as DatabaseUnavailable)
      return false
    }
    this.backoff.enter()
    this.all.add(connection)
    this.opening.add(connection)
    connection.open().then(
      () => this.opened(connection),
      () => {},
    )
    return true
  }

  private opened(connection: Connection): void {
    this.opening.delete(connection)
    this.heardAt = performance.now()
    const { host, port } = this.place
    if (this.backoff.succeeded()) this.log(`PostgreSQL at ${host}:${port} can be reached again.`)
    this.problem = undefined
    this.release(connection)
    this.grow()
  }

  private failed(error: DatabaseUnavailable): void {
    this.backoff.failed(performance.now())
    if (error.message !== this.problem?.message) this.log(error.message)
    this.problem = error
    this.settle()
  }

  private broke(connection: Connection, error: DatabaseUnavailable): void {
    this.all.delete(connection)
    const position = this.idle.indexOf(connection)
    if (position >= 0) this.idle.splice(position, 1)
    if (this.opening.delete(connection)) this.failed(error)
    else this.grow()
    this.settle()
  }

  private settle(): void {
    const { all, waiting, opening, idle } = this
    if (all.size === 0 && waiting.length > 0) {
      this.grow()
      if (all.size === 0) for (const { reject } of waiting.splice(0)) reject(fresh(this.problem))
    }
    if (waiting.length === 0 && opening.size === 0 && idle.length === all.size) this.drained?.()
  }

  private poll(): void {
    const { waiting, target } = this
    const now = performance.now()
    // After a blocked event loop, replies may have arrived unread.
    const isHeldUp = now - this.polledAt > 2 * this.pollMs && !this.wasHeldUp
    this.polledAt = now
    this.wasHeldUp = isHeldUp
    if (isHeldUp) return
    for (const connection of this.all) if (connection.isOverdue(now)) connection.giveUp()
    while (waiting[0] && now - waiting[0].sinceMs > target.connectTimeoutMs) {
      const none = () => noneFree(this.place, target.poolSize, target.connectTimeoutMs)
      waiting.shift()?.reject(this.problem ? fresh(this.problem) : none())
    }
    if (this.isSilent(now) && !this.isProbing) void this.probe()
    this.grow()
    this.settle()
  }

  private isSilent(now: number): boolean {
    return this.all.values().some((connection) => {
      if (this.opening.has(connection)) return false
      return now - Math.max(connection.waitingSinceMs ?? now, this.heardAt) > this.suspicionMs
    })
  }

  /** Checks whether the server answers at all; if not, everything pending fails. */
  private async probe(): Promise<void> {
    this.isProbing = true
    const before = this.heardAt
    const isThere = await answers(this.place.host, this.place.port, this.suspicionMs)
    this.isProbing = false
    if (isThere) this.heardAt = performance.now()
    if (this.heardAt !== before) return
    const away = silence(this.place, 'did not answer', Math.round(2 * this.suspicionMs))
    this.failed(away)
    for (const connection of [...this.all]) connection.destroy(away)
    this.settle()
  }

  private async drain(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.drained = resolve
    const late = setTimeout(resolve, this.target.statementTimeoutMs + this.target.connectTimeoutMs)
    this.settle()
    await promise
    clearTimeout(late)
    clearInterval(this.polling)
    const end = new DatabaseUnavailable('the connections to PostgreSQL have been closed')
    this.problem = end
    for (const { reject } of this.waiting.splice(0)) reject(end)
    const unused = this.idle.splice(0)
    for (const connection of unused) this.all.delete(connection)
    for (const connection of [...this.all]) connection.destroy(end)
    await Promise.all(unused.map((connection) => connection.close()))
  }
}

/** A new error for each caller, with its own stack. */
function fresh(problem: DatabaseUnavailable | undefined): DatabaseUnavailable {
  return new DatabaseUnavailable(problem?.message ?? 'PostgreSQL cannot be reached.', problem?.code)
}

function readUrl(text: string): { place: Place; password: string } {
  const { hostname, port, pathname, username, password } = new URL(text)
  const user = decodeURIComponent(username) || 'otpost'
  return {
    place: {
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? 5432 : Number(port),
      database: decodeURIComponent(pathname.slice(1)) || user,
      user,
    },
    password: decodeURIComponent(password),
  }
}
