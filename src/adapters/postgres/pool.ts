import { Connection, type Question, type Reply } from './connection.ts'
import { DatabaseUnavailable, noneFree, type Place, StatementError, silence } from './errors.ts'
import { answers } from './probe.ts'
import { ReconnectBackoff } from './reconnect-backoff.ts'
import type { PostgresTls } from './tls.ts'

export { DatabaseUnavailable, StatementError }

/** How a database is reached. */
export interface PostgresTarget {
  /** `postgres://user:password@host:port/database`; parameters count for nothing here. */
  readonly url: string
  readonly tls: PostgresTls
  /** Connections at most. */
  readonly poolSize: number
  /** How long a connection may take to be made, and how long a free one is waited for. */
  readonly connectTimeoutMs: number
  /** How long a statement may take: kept by the server, and a little later by this side. */
  readonly statementTimeoutMs: number
  /** How long a transaction may wait for this side before the server ends it. */
  readonly idleInTransactionTimeoutMs: number
  /**
   * Behind a pooler in transaction mode: nothing is prepared under a name and no session has settings, as the next
   * statement may go to another session. Statements alone are then timed by this side only.
   */
  readonly isPooled: boolean
}

/** A statement with a name of its own under which it is prepared. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/**
 * What runs statements: the pool, or one transaction. int8 comes as number, jsonb parsed; a parameter of type jsonb is to
 * be given as JSON text. Rejects with a StatementError, or with DatabaseUnavailable.
 */
export interface Queryable {
  query<Row extends object>(statement: Statement, values?: readonly unknown[]): Promise<readonly Row[]>
  /** Rows as arrays of their values; nothing is prepared. */
  rows(text: string, values: readonly unknown[]): Promise<unknown[][]>
}

/** One transaction. Statements that nobody awaits in between are sent together, and run one after another. */
export interface Transaction extends Queryable {
  /** Sends a statement, whose answer is awaited with that of the commit. */
  send(statement: Statement, values: readonly unknown[]): void
}

export interface TransactionLimits {
  /** Instead of that of the target, for work that takes long, such as migrations. */
  readonly statementTimeoutMs: number
}

export interface Pool extends Queryable {
  /**
   * BEGIN, work and COMMIT on one connection, at READ COMMITTED; rolled back when work throws. Where the server says that
   * it may be tried again, it is, all of it: so work may run up to four times, and must leave no trace elsewhere. Its
   * connection is of no use after that.
   */
  transaction<T>(work: (connection: Transaction) => Promise<T>, limits?: TransactionLimits): Promise<T>
  /** Connections, those that are made included; those that nobody uses; and how many wait for one. */
  stats(): { readonly size: number; readonly idle: number; readonly waiting: number }
  /** Lets what is under way end, within the time that a statement may take, and closes. Nothing new is taken. */
  close(): Promise<void>
}

/** How often something is tried again, and the pause before the first time; later ones are longer. */
const retries = 3
const retryPauseMs = 10

/** What the server's own time-out of a statement is ahead of the one of this side. */
const graceMs = 500

interface Waiting {
  readonly sinceMs: number
  readonly resolve: (link: Connection) => void
  readonly reject: (problem: DatabaseUnavailable) => void
}

/**
 * Connections to one server; they are made when they are needed, and kept. While the server can't be reached everything
 * fails at once, but for one that tries from time to time, so that it heals by itself.
 *
 * @param log is told what stands against the database when that begins, and when it is over
 */
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
  // When nothing at all has been heard for so long, it is asked whether the server is there, for as long again: before
  // the time-out of connecting is over, all know.
  const suspicionMs = connectTimeoutMs * 0.4
  const pollMs = Math.min(250, Math.max(10, connectTimeoutMs / 10))

  const backoff = new ReconnectBackoff(Math.random)
  const links = new Set<Connection>()
  /** Those of them that are being made. */
  const opening = new Set<Connection>()
  /** Those of them that nobody uses; the one used last comes first, so that few are in use when little is to do. */
  const idle: Connection[] = []
  /** In the order in which they came. */
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
    if (links.size === opening.size && backoff.isShut(now)) throw fresh(problem)
    const { promise, resolve, reject } = Promise.withResolvers<Connection>()
    waiting.push({ sinceMs: now, resolve, reject })
    grow()
    return promise
  }

  function release(link: Connection): void {
    if (!link.isReady) {
      link.destroy(new DatabaseUnavailable('a transaction was left open'))
    } else {
      const next = waiting.shift()
      if (next) next.resolve(link)
      else idle.push(link)
    }
    settle()
  }

  /** Makes connections for those that wait, as far as that may be. */
  function grow(): void {
    while (waiting.length > opening.size && links.size < poolSize && !backoff.isShut(performance.now())) {
      if (!open()) return
    }
  }

  /** Returns whether a connection is being made. */
  function open(): boolean {
    let link: Connection
    try {
      link = new Connection(connectionTarget, broke)
    } catch (error) {
      failed(error as DatabaseUnavailable)
      return false
    }
    backoff.enter()
    links.add(link)
    opening.add(link)
    link.open().then(
      () => {
        opening.delete(link)
        heardAt = performance.now()
        if (backoff.succeeded()) log(`PostgreSQL at ${place.host}:${place.port} can be reached again`)
        problem = undefined
        release(link)
        grow()
      },
      // It has broken, and so has been told.
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

  function broke(link: Connection, error: DatabaseUnavailable): void {
    links.delete(link)
    const position = idle.indexOf(link)
    if (position >= 0) idle.splice(position, 1)
    if (opening.delete(link)) failed(error)
    else grow()
    settle()
  }

  /** Lets those fail at once who wait for nothing, and sees whether all is done when it is to close. */
  function settle(): void {
    if (links.size === 0 && waiting.length > 0) {
      grow()
      if (links.size === 0) for (const { reject } of waiting.splice(0)) reject(fresh(problem))
    }
    if (waiting.length === 0 && opening.size === 0 && idle.length === links.size) drained?.()
  }

  function poll(): void {
    const now = performance.now()
    // Where this process was held up, answers that have come in time may not have been read yet.
    const isHeldUp = now - polledAt > 2 * pollMs && !wasHeldUp
    polledAt = now
    wasHeldUp = isHeldUp
    if (isHeldUp) return
    for (const link of links) if (link.isOverdue(now)) link.giveUp()
    while (waiting[0] && now - waiting[0].sinceMs > connectTimeoutMs) {
      waiting.shift()?.reject(problem ? fresh(problem) : noneFree(place, poolSize, connectTimeoutMs))
    }
    const isSilent = links.values().some((link) => {
      return !opening.has(link) && now - Math.max(link.waitingSinceMs ?? now, heardAt) > suspicionMs
    })
    if (isSilent && !isProbing) void probe()
    grow()
    settle()
  }

  /** Finds out whether the server is there at all; where it is not, nobody needs to wait for an answer any longer. */
  async function probe(): Promise<void> {
    isProbing = true
    const before = heardAt
    const isThere = await answers(place.host, place.port, suspicionMs)
    isProbing = false
    if (isThere) heardAt = performance.now()
    if (heardAt !== before) return
    const away = silence(place, 'has not answered', Math.round(2 * suspicionMs))
    failed(away)
    for (const link of [...links]) link.destroy(away)
    settle()
  }

  async function onConnection<T>(work: (link: Connection) => Promise<T>): Promise<T> {
    const link = await acquire()
    try {
      return await work(link)
    } finally {
      release(link)
    }
  }

  async function ask(link: Connection, question: Question, limitMs = statementTimeoutMs): Promise<Reply> {
    try {
      return await link.ask(question, limitMs + graceMs)
    } finally {
      if (!link.isBroken) heardAt = performance.now()
    }
  }

  const prepared = ({ name, text }: Statement, values: readonly unknown[]): Question =>
    isPooled ? { text, values } : { name, text, values }
  const askAlone = (question: Question) => persistently(() => onConnection((link) => ask(link, question)))

  /** How a transaction begins, in one round trip. The limits of the session are those of a transaction as well. */
  function beginning(limits: TransactionLimits | undefined): Question {
    const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'
    if (!limits && !isPooled) return plain(begin)
    const settings = [
      ...(limits || isPooled
        ? [`statement_timeout = ${limits?.statementTimeoutMs ?? statementTimeoutMs}`]
        : []),
      ...(isPooled ? [`idle_in_transaction_session_timeout = ${idleInTransactionTimeoutMs}`] : []),
    ]
    // Work that may take long has no end that is known.
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
    link: Connection,
    work: (connection: Transaction) => Promise<T>,
    limits: TransactionLimits | undefined,
  ): Promise<T> {
    const replies: Promise<Reply>[] = []
    let isOver = false
    /** What work may have caught, or wrapped in an error of its own. */
    let passing: StatementError | undefined
    const sent = (question: Question): Promise<Reply> => {
      const reply = ask(link, question, limits?.statementTimeoutMs)
      reply.catch((error) => {
        if (mayPass(error)) passing = error
      })
      replies.push(reply)
      return reply
    }
    const inside = (question: Question): Promise<Reply> =>
      isOver ? Promise.reject(new Error('a statement came after its transaction was over')) : sent(question)
    try {
      sent(beginning(limits))
      const result = await work({
        query: async <Row extends object>(statement: Statement, values: readonly unknown[] = []) =>
          (await inside(prepared(statement, values))).rows as Row[],
        rows: async (text, values) => (await inside({ text, values, asArrays: true })).rows as unknown[][],
        send: (statement, values) => void inside(prepared(statement, values)),
      })
      isOver = true
      const { command } = await sent(plain('COMMIT'))
      // So the server answers where a statement has failed: one that nobody has awaited, or work did not mind.
      if (command !== 'COMMIT') {
        await Promise.all(replies)
        throw new Error('the transaction was rolled back, as one of its statements failed')
      }
      return result
    } catch (error) {
      isOver = true
      if (!link.isBroken) await sent(plain('ROLLBACK')).catch(() => {})
      throw passing ?? error
    }
  }

  return {
    query: async <Row extends object>(statement: Statement, values: readonly unknown[] = []) =>
      (await askAlone(prepared(statement, values))).rows as Row[],
    rows: async (text, values) => (await askAlone({ text, values, asArrays: true })).rows as unknown[][],
    transaction: (work, limits) =>
      persistently(() => onConnection((link) => transactionOn(link, work, limits))),
    stats: () => ({ size: links.size, idle: idle.length, waiting: waiting.length }),
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
        for (const link of unused) links.delete(link)
        for (const link of [...links]) link.destroy(end)
        await Promise.all(unused.map((link) => link.close()))
      })()
      return closed
    },
  }
}

function plain(text: string): Question {
  return { text, values: [] }
}

/** Tries again, after a short pause, what the server says has not been done and may be done the next time. */
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

/** An error of its own for each who gets it, with a stack that leads to them. */
function fresh(problem: DatabaseUnavailable | undefined): DatabaseUnavailable {
  return new DatabaseUnavailable(problem?.message ?? 'PostgreSQL can not be reached', problem?.code)
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
