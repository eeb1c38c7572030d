import { Connection, type Query, type Reply } from './connection.ts'
import { DatabaseUnavailable, noneFree, type Place, StatementError, silence } from './errors.ts'
import { answers } from './probe.ts'
import { ReconnectBackoff } from './reconnect-backoff.ts'
import type { PostgresTls } from './tls.ts'

export { DatabaseUnavailable, StatementError }

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

export interface Statement {
  readonly name: string
  readonly text: string
}

/** int8 is returned as number, jsonb parsed. Rejects with StatementError or DatabaseUnavailable. */
export interface Queryable {
  query<Row extends object>(statement: Statement, values?: readonly unknown[]): Promise<readonly Row[]>
  rows(text: string, values: readonly unknown[]): Promise<unknown[][]>
}

/** Statements sent without an await in between are pipelined. */
export interface Transaction extends Queryable {
  /** A failure of the statement fails the commit. */
  send(statement: Statement, values: readonly unknown[]): void
}

export interface TransactionLimits {
  readonly statementTimeoutMs: number
}

export interface Pool extends Queryable {
  /** READ COMMITTED. May be retried, so `work` must have no other effects. Rolls back if `work` throws. */
  transaction<T>(work: (connection: Transaction) => Promise<T>, limits?: TransactionLimits): Promise<T>
  stats(): { readonly size: number; readonly idle: number; readonly waiting: number }
  /** Rejects new work, waits for work in progress (limited by the statement time-out), and closes. */
  close(): Promise<void>
}

const retries = 3
const retryPauseMs = 10

/** This side's time-out of a statement is later than the server's by this. */
const graceMs = 500

interface Waiting {
  readonly sinceMs: number
  readonly resolve: (connection: Connection) => void
  readonly reject: (problem: DatabaseUnavailable) => void
}

/** @param log receives a problem when it begins and when it ends */
export function openPool(target: PostgresTarget, log: (problem: string) => void): Pool {
  const { poolSize, connectTimeoutMs, statementTimeoutMs, idleInTransactionTimeoutMs, isPooled } = target
  const { place, password } = readUrl(target.url)
  const connectionTarget = {
    place,
    password,
    tls: target.tls,
    connectTimeoutMs,
    session: isPooled
      ? undefined
      : {
          statementTimeoutMs,
          idleInTransactionTimeoutMs,
          transactionTimeoutMs: statementTimeoutMs + 2 * graceMs,
        },
  }
  // Probes after this silence, so that a dead server is detected before the connect time-out.
  const suspicionMs = connectTimeoutMs * 0.4
  const pollMs = Math.min(250, Math.max(10, connectTimeoutMs / 10))

  const backoff = new ReconnectBackoff(Math.random)
  const connections = new Set<Connection>()
  const opening = new Set<Connection>()
  /** The most recently used is last and is used next. */
  const idle: Connection[] = []
  const waiting: Waiting[] = []
  let problem: DatabaseUnavailable | undefined
  let heardAt = performance.now()
  let isProbing = false
  let closed: Promise<void> | undefined
  let drained: (() => void) | undefined

  let polledAt = performance.now()
  let wasHeldUp = false
  const polling = setInterval(poll, pollMs)
  polling.unref()

  async function acquire(): Promise<Connection> {
    if (closed) throw new DatabaseUnavailable('the connections to PostgreSQL have been closed')
    const free = idle.pop()
    if (free) return free
    const now = performance.now()
    if (connections.size === opening.size && backoff.isShut(now)) throw fresh(problem)
    const { promise, resolve, reject } = Promise.withResolvers<Connection>()
    waiting.push({ sinceMs: now, resolve, reject })
    grow()
    return promise
  }

  function release(connection: Connection): void {
    if (!connection.isReady) {
      connection.destroy(new DatabaseUnavailable('the caller did not end its transaction'))
    } else {
      const next = waiting.shift()
      if (next) next.resolve(connection)
      else idle.push(connection)
    }
    settle()
  }

  function grow(): void {
    while (
      waiting.length > opening.size &&
      connections.size < poolSize &&
      !backoff.isShut(performance.now())
    ) {
      if (!open()) return
    }
  }

  function open(): boolean {
    let connection: Connection
    try {
      connection = new Connection(connectionTarget, broke)
    } catch (error) {
      failed(error as DatabaseUnavailable)
      return false
    }
    backoff.enter()
    connections.add(connection)
    opening.add(connection)
    connection.open().then(
      () => {
        opening.delete(connection)
        heardAt = performance.now()
        if (backoff.succeeded()) log(`PostgreSQL at ${place.host}:${place.port} can be reached again.`)
        problem = undefined
        release(connection)
        grow()
      },
      () => {},
    )
    return true
  }

  function failed(error: DatabaseUnavailable): void {
    backoff.failed(performance.now())
    if (error.message !== problem?.message) log(error.message)
    problem = error
    settle()
  }

  function broke(connection: Connection, error: DatabaseUnavailable): void {
    connections.delete(connection)
    const position = idle.indexOf(connection)
    if (position >= 0) idle.splice(position, 1)
    if (opening.delete(connection)) failed(error)
    else grow()
    settle()
  }

  function settle(): void {
    if (connections.size === 0 && waiting.length > 0) {
      grow()
      if (connections.size === 0) for (const { reject } of waiting.splice(0)) reject(fresh(problem))
    }
    if (waiting.length === 0 && opening.size === 0 && idle.length === connections.size) drained?.()
  }

  function poll(): void {
    const now = performance.now()
    // After a blocked event loop, replies may have arrived unread.
    const isHeldUp = now - polledAt > 2 * pollMs && !wasHeldUp
    polledAt = now
    wasHeldUp = isHeldUp
    if (isHeldUp) return
    for (const connection of connections) if (connection.isOverdue(now)) connection.giveUp()
    while (waiting[0] && now - waiting[0].sinceMs > connectTimeoutMs) {
      waiting.shift()?.reject(problem ? fresh(problem) : noneFree(place, poolSize, connectTimeoutMs))
    }
    const isSilent = connections.values().some((connection) => {
      return (
        !opening.has(connection) && now - Math.max(connection.waitingSinceMs ?? now, heardAt) > suspicionMs
      )
    })
    if (isSilent && !isProbing) void probe()
    grow()
    settle()
  }

  /** Checks whether the server answers at all; if not, everything pending fails. */
  async function probe(): Promise<void> {
    isProbing = true
    const before = heardAt
    const isThere = await answers(place.host, place.port, suspicionMs)
    isProbing = false
    if (isThere) heardAt = performance.now()
    if (heardAt !== before) return
    const away = silence(place, 'did not answer', Math.round(2 * suspicionMs))
    failed(away)
    for (const connection of [...connections]) connection.destroy(away)
    settle()
  }

  async function onConnection<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await acquire()
    try {
      return await work(connection)
    } finally {
      release(connection)
    }
  }

  async function execute(connection: Connection, query: Query, limitMs = statementTimeoutMs): Promise<Reply> {
    try {
      return await connection.execute(query, limitMs + graceMs)
    } finally {
      if (!connection.isBroken) heardAt = performance.now()
    }
  }

  const prepared = ({ name, text }: Statement, values: readonly unknown[]): Query =>
    isPooled ? { text, values } : { name, text, values }
  const executeAlone = (query: Query) =>
    persistently(() => onConnection((connection) => execute(connection, query)))

  /** BEGIN with its settings, in one round trip. Session limits apply to transactions too. */
  function beginning(limits: TransactionLimits | undefined): Query {
    const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'
    if (!limits && !isPooled) return plain(begin)
    const settings = [
      ...(limits || isPooled
        ? [`statement_timeout = ${limits?.statementTimeoutMs ?? statementTimeoutMs}`]
        : []),
      ...(isPooled ? [`idle_in_transaction_session_timeout = ${idleInTransactionTimeoutMs}`] : []),
    ]
    const wholeMs = limits ? 0 : statementTimeoutMs + idleInTransactionTimeoutMs
    return plain(
      [
        begin,
        ...settings.map((it) => `SET LOCAL ${it}`),
        `SELECT set_config('transaction_timeout', '${wholeMs}', true) WHERE current_setting('transaction_timeout', true) IS NOT NULL`,
      ].join('; '),
    )
  }

  async function transactionOn<T>(
    connection: Connection,
    work: (connection: Transaction) => Promise<T>,
    limits: TransactionLimits | undefined,
  ): Promise<T> {
    const replies: Promise<Reply>[] = []
    let isOver = false
    /** The last error that permits a retry; `work` may have caught or wrapped it. */
    let passing: StatementError | undefined
    let first: unknown
    const sent = (query: Query): Promise<Reply> => {
      const reply = execute(connection, query, limits?.statementTimeoutMs)
      reply.catch((error) => {
        first ??= error
        if (mayPass(error)) passing = error
      })
      replies.push(reply)
      return reply
    }
    const inside = (query: Query): Promise<Reply> =>
      isOver ? Promise.reject(new Error('a statement came after its transaction was over')) : sent(query)
    try {
      sent(beginning(limits))
      const result = await work({
        query: async <Row extends object>(statement: Statement, values: readonly unknown[] = []) =>
          (await inside(prepared(statement, values))).rows as Row[],
        rows: async (text, values) => (await inside({ text, values, asArrays: true })).rows as unknown[][],
        send: (statement, values) => void inside(prepared(statement, values)),
      })
      isOver = true
      const { command } = await sent(plain('COMMIT')).catch(rejectUncertain)
      // The server replies ROLLBACK if a statement failed and `work` ignored that.
      if (command !== 'COMMIT') {
        await Promise.all(replies)
        throw new Error('The transaction was rolled back, because one of its statements failed.')
      }
      return result
    } catch (error) {
      isOver = true
      if (!connection.isBroken) await sent(plain('ROLLBACK')).catch(() => {})
      // The statements after the first error only report that the transaction has failed.
      throw passing ?? (error instanceof StatementError && error.code === '25P02' ? first : error)
    }
  }

  return {
    query: async <Row extends object>(statement: Statement, values: readonly unknown[] = []) =>
      (await executeAlone(prepared(statement, values))).rows as Row[],
    rows: async (text, values) => (await executeAlone({ text, values, asArrays: true })).rows as unknown[][],
    transaction: (work, limits) =>
      persistently(() => onConnection((connection) => transactionOn(connection, work, limits))),
    stats: () => ({ size: connections.size, idle: idle.length, waiting: waiting.length }),
    close: () => {
      closed ??= (async () => {
        const { promise, resolve } = Promise.withResolvers<void>()
        drained = resolve
        const late = setTimeout(resolve, statementTimeoutMs + connectTimeoutMs)
        settle()
        await promise
        clearTimeout(late)
        clearInterval(polling)
        const end = new DatabaseUnavailable('the connections to PostgreSQL have been closed')
        problem = end
        for (const { reject } of waiting.splice(0)) reject(end)
        const unused = idle.splice(0)
        for (const connection of unused) connections.delete(connection)
        for (const connection of [...connections]) connection.destroy(end)
        await Promise.all(unused.map((connection) => connection.close()))
      })()
      return closed
    },
  }
}

function plain(text: string): Query {
  return { text, values: [] }
}

async function persistently<T>(attempt: () => Promise<T>): Promise<T> {
  for (let failures = 0; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (!mayPass(error) || failures === retries) throw error
      failures++
      await Bun.sleep(retryPauseMs * failures * (0.5 + Math.random()))
    }
  }
}

function mayPass(error: unknown): error is StatementError {
  return error instanceof StatementError && error.isPassing
}

/** A COMMIT that failed on another server of a distributed database may have changed rows there. */
function rejectUncertain(error: unknown): never {
  if (!(error instanceof StatementError) || error.isPassing) throw error
  throw new DatabaseUnavailable(`The outcome of a transaction is unknown: ${error.message}`, error.code)
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
