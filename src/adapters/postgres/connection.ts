import { Client, type CustomTypesConfig, type QueryConfig, types } from 'pg'
import {
  brokenOff,
  connectProblem,
  type DatabaseUnavailable,
  endsConnection,
  type Place,
  silence,
  statementProblem,
} from './errors.ts'
import { storable } from './text.ts'
import { type PostgresTls, tlsOptions } from './tls.ts'

/** What one connection is made with. */
export interface ConnectionTarget {
  readonly place: Place
  readonly password: string
  readonly tls: PostgresTls
  readonly connectTimeoutMs: number
  /** What the server is told at the start; a pooler would refuse it. Undefined: nothing. */
  readonly session:
    | {
        readonly statementTimeoutMs: number
        readonly idleInTransactionTimeoutMs: number
        /** From the first statement to the commit, as far as the server knows such a limit: PostgreSQL 17 and newer. */
        readonly transactionTimeoutMs: number
      }
    | undefined
}

/** One statement as it is sent. */
export interface Question {
  /** Under which it is prepared, once for each connection. Undefined: it is not. */
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
  /** Whether rows are arrays. */
  readonly asArrays?: boolean
}

export interface Reply {
  /** SELECT, INSERT, COMMIT and so on, as the server calls what it has done. */
  readonly command: string
  readonly rows: unknown[]
}

/** An answer that is waited for. */
interface Awaited {
  /** When it was asked, or the one before it was answered. */
  sinceMs: number
  readonly limitMs: number
  /** What the server has not done when it is late. */
  readonly what: string
  readonly reject: (problem: Error) => void
}

/** How long the network may be silent before the system asks whether the other side is still there. */
const keepAliveMs = 10_000
const farewellMs = 1000

const int8 = 20
const int8Array = 1016

/** Times in milliseconds and counts are int8, and far below 2^53. */
const parsers: CustomTypesConfig = {
  getTypeParser: (oid: number, format) => {
    const parse = types.getTypeParser(oid, format)
    if (oid === int8) return Number
    if (oid !== int8Array) return parse
    return (text: string) => (parse(text) as (string | null)[]).map((it) => (it === null ? null : Number(it)))
  },
}

/** One connection. What it is asked is sent at once, and answered in turn. Once broken it stays so. */
export class Connection {
  private readonly client: Client
  /** In the order of the questions. */
  private readonly awaited: Awaited[] = []
  /** What has broken it, or that it was closed. */
  private end: DatabaseUnavailable | undefined

  /**
   * @param broke is called once when it has broken, whatever it was doing
   * @throws DatabaseUnavailable when a file of certificates can't be read
   */
  constructor(
    private readonly target: ConnectionTarget,
    private readonly broke: (link: Connection, problem: DatabaseUnavailable) => void,
  ) {
    const { place, password, session } = target
    // Each is given, as the driver would look for what is missing in the environment.
    this.client = new Client({
      host: place.host,
      port: place.port,
      user: place.user,
      database: place.database,
      password: () => password,
      ssl: readTls(target),
      sslnegotiation: 'postgres',
      application_name: 'otpost',
      pipeline: true,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      types: parsers,
      ...(session && {
        statement_timeout: session.statementTimeoutMs,
        idle_in_transaction_session_timeout: session.idleInTransactionTimeoutMs,
        options: '-c client_encoding=UTF8 -c default_transaction_isolation=read\\ committed',
      }),
    })
    // Also when it has been cut off or has ended; without a listener each would end the process.
    this.client.on('error', (error) => this.destroy(brokenOff(place, error)))
    this.client.on('end', () => this.destroy(brokenOff(place, 'it was closed')))
  }

  /** Connects, and readies the session. @throws DatabaseUnavailable */
  async open(): Promise<void> {
    const { place, session, connectTimeoutMs } = this.target
    const startedAt = performance.now()
    await this.connect()
    if (!session) return
    const leftMs = Math.max(1, connectTimeoutMs - (performance.now() - startedAt))
    try {
      await this.ask({ text: limitsOf(session.transactionTimeoutMs), values: [] }, leftMs)
    } catch (error) {
      const problem = this.end ?? connectProblem(place, error)
      this.destroy(problem)
      throw problem
    }
  }

  private connect(): Promise<void> {
    const { place, connectTimeoutMs } = this.target
    return this.awaiting('took no connection', connectTimeoutMs, (done) => {
      this.client.connect((error: Error | null) => {
        if (!error) return done(undefined, undefined)
        const problem = connectProblem(place, error)
        done(problem)
        this.destroy(problem)
      })
    })
  }

  /** @throws StatementError, or DatabaseUnavailable when it breaks meanwhile or takes longer than that */
  ask(question: Question, limitMs: number): Promise<Reply> {
    const { name, text, values, asArrays } = question
    const config: QueryConfig & { rowMode?: 'array' } = {
      name,
      text,
      values: values.map(storable),
      ...(asArrays && { rowMode: 'array' }),
    }
    if (this.end) return Promise.reject(this.end)
    return this.awaiting('did not answer', limitMs, (done) => {
      this.client.query(config, (error: Error | null, result: Reply | readonly Reply[]) => {
        if (!error) return done(undefined, lastOf(result))
        if (this.end) return done(this.end)
        const problem = statementProblem(this.target.place, name ?? 'a statement', error)
        done(problem)
        if (endsConnection(error)) this.destroy(brokenOff(this.target.place, error))
      })
    })
  }

  /** Whether an answer is overdue at this time. */
  isOverdue(now: number): boolean {
    const [next] = this.awaited
    return next !== undefined && now - next.sinceMs > next.limitMs
  }

  /** Since when an answer is waited for; undefined when none is. */
  get waitingSinceMs(): number | undefined {
    return this.awaited[0]?.sinceMs
  }

  get isBroken(): boolean {
    return this.end !== undefined
  }

  /** Whether it is fit for what comes next: not in the middle of a transaction that somebody has left open. */
  get isReady(): boolean {
    return !this.isBroken && this.client.getTransactionStatus() === 'I'
  }

  /** Gives up an answer that is overdue, and with it the connection: it could come when another is waited for. */
  giveUp(): void {
    const [next] = this.awaited
    if (!next) return
    const { what, limitMs } = next
    this.destroy(silence(this.target.place, what, limitMs))
  }

  /** Cuts it at once; whatever was asked fails with that. */
  destroy(problem: DatabaseUnavailable): void {
    if (this.end) return
    this.end = problem
    for (const { reject } of this.awaited) reject(problem)
    this.client.connection.stream.destroy()
    this.broke(this, problem)
  }

  /** Says farewell to the server, and closes. */
  async close(): Promise<void> {
    if (this.end) return
    this.end = brokenOff(this.target.place, 'it was closed')
    const late = setTimeout(() => this.client.connection.stream.destroy(), farewellMs)
    await this.client.end()
    clearTimeout(late)
  }

  private awaiting<T>(
    what: string,
    limitMs: number,
    begin: (done: (...outcome: [error: Error] | [error: undefined, value: T]) => void) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      this.awaited.push({ sinceMs: performance.now(), limitMs, what, reject })
      begin((...outcome) => {
        this.awaited.shift()
        const [next] = this.awaited
        if (next) next.sinceMs = performance.now()
        if (outcome[0]) reject(outcome[0])
        else resolve(outcome[1] as T)
      })
    })
  }
}

/**
 * Sets what frees the locks of a statement whose end is lost on the way: the server has run it by then, waits for a message
 * of five bytes, and neither its time-out of statements nor that of idle transactions counts there. A server that does not
 * know a setting goes without.
 */
function limitsOf(transactionTimeoutMs: number): string {
  const settings = {
    transaction_timeout: transactionTimeoutMs,
    // In seconds. The system would begin to ask after two hours.
    tcp_keepalives_idle: 10,
    tcp_keepalives_interval: 5,
    tcp_keepalives_count: 3,
  }
  const rows = Object.entries(settings).map(([name, value]) => `('${name}', '${value}')`)
  return `SELECT set_config(name, setting, false) FROM (VALUES ${rows.join(', ')}) AS wanted (name, setting)
    WHERE current_setting(name, true) IS NOT NULL`
}

function readTls(target: ConnectionTarget) {
  try {
    return tlsOptions(target.tls)
  } catch (error) {
    throw connectProblem(target.place, error)
  }
}

/** A text of several statements has several results. */
function lastOf(result: Reply | readonly Reply[]): Reply {
  const last = Array.isArray(result) ? result.at(-1) : result
  return last ?? { command: '', rows: [] }
}
