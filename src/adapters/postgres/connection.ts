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

export interface ConnectionTarget {
  readonly place: Place
  readonly password: string
  readonly tls: PostgresTls
  readonly connectTimeoutMs: number
  /** Undefined behind a pooler, which rejects session settings. */
  readonly session:
    | {
        readonly statementTimeoutMs: number
        readonly idleInTransactionTimeoutMs: number
        /** From the first statement to the commit; needs PostgreSQL 17 or newer. */
        readonly transactionTimeoutMs: number
      }
    | undefined
}

export interface Query {
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
  readonly asArrays?: boolean
}

export interface Reply {
  readonly command: string
  readonly rows: unknown[]
}

interface Awaited {
  sinceMs: number
  readonly limitMs: number
  readonly what: string
  readonly reject: (problem: Error) => void
}

const keepAliveMs = 10_000
const farewellMs = 1000

const int8 = 20
const int8Array = 1016

/** Times and counts are int8, far below 2^53. */
const parsers: CustomTypesConfig = {
  getTypeParser: (oid: number, format) => {
    const parse = types.getTypeParser(oid, format)
    if (oid === int8) return Number
    if (oid !== int8Array) return parse
    return (text: string) => (parse(text) as (string | null)[]).map((it) => (it === null ? null : Number(it)))
  },
}

/** Statements are sent at once and answered in order. A broken connection is not used again. */
export class Connection {
  private readonly client: Client
  private readonly awaited: Awaited[] = []
  private end: DatabaseUnavailable | undefined
  private isGathering = false

  /**
   * @param broke called once when the connection breaks
   * @throws DatabaseUnavailable if a certificate file can't be read
   */
  constructor(
    private readonly target: ConnectionTarget,
    private readonly broke: (connection: Connection, problem: DatabaseUnavailable) => void,
  ) {
    const { place, password, session } = target
    // All are set, since the driver reads missing ones from the environment.
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
        // A plan made while a table was small stays prepared and would keep scanning the whole table.
        options:
          '-c client_encoding=UTF8 -c default_transaction_isolation=read\\ committed -c enable_seqscan=off',
      }),
    })
    this.client.on('error', (error) => this.destroy(brokenOff(place, error)))
    this.client.on('end', () => this.destroy(brokenOff(place, 'it was closed')))
  }

  /** Connects and sets the session limits. Throws DatabaseUnavailable. */
  async open(): Promise<void> {
    const { place, session, connectTimeoutMs } = this.target
    const startedAt = performance.now()
    await this.connect()
    if (!session) return
    const leftMs = Math.max(1, connectTimeoutMs - (performance.now() - startedAt))
    try {
      await this.execute({ text: limitsOf(session.transactionTimeoutMs), values: [] }, leftMs)
    } catch (error) {
      const problem = this.end ?? connectProblem(place, error)
      this.destroy(problem)
      throw problem
    }
  }

  private connect(): Promise<void> {
    const { place, connectTimeoutMs } = this.target
    return this.awaiting('accepted no connection', connectTimeoutMs, (done) => {
      this.client.connect((error: Error | null) => {
        if (!error) return done(undefined, undefined)
        const problem = connectProblem(place, error)
        done(problem)
        this.destroy(problem)
      })
    })
  }

  /** @throws StatementError; DatabaseUnavailable if the connection breaks or `limitMs` is exceeded */
  execute(query: Query, limitMs: number): Promise<Reply> {
    const { name, text, values, asArrays } = query
    const config: QueryConfig & { rowMode?: 'array' } = {
      name,
      text,
      values: values.map(storable),
      ...(asArrays && { rowMode: 'array' }),
    }
    if (this.end) return Promise.reject(this.end)
    this.gather()
    return this.awaiting('did not answer', limitMs, (done) => {
      this.client.query(config, (error: Error | null, result: Reply | readonly Reply[]) => {
        if (!error) return done(undefined, lastOf(result))
        if (this.end) return done(this.end)
        const problem = statementProblem(this.target.place, name ?? 'a statement', error)
        done(problem)
        const isInFailedTransaction = this.client.getTransactionStatus() === 'E'
        if (endsConnection(error, isInFailedTransaction)) this.destroy(brokenOff(this.target.place, error))
      })
    })
  }

  isOverdue(now: number): boolean {
    const [next] = this.awaited
    return next !== undefined && now - next.sinceMs > next.limitMs
  }

  get waitingSinceMs(): number | undefined {
    return this.awaited[0]?.sinceMs
  }

  get isBroken(): boolean {
    return this.end !== undefined
  }

  get isReady(): boolean {
    return !this.isBroken && this.client.getTransactionStatus() === 'I'
  }

  /** A late reply could be matched to another statement. */
  giveUp(): void {
    const [next] = this.awaited
    if (!next) return
    const { what, limitMs } = next
    this.destroy(silence(this.target.place, what, limitMs))
  }

  destroy(problem: DatabaseUnavailable): void {
    if (this.end) return
    this.end = problem
    for (const { reject } of this.awaited) reject(problem)
    this.client.connection.stream.destroy()
    this.broke(this, problem)
  }

  async close(): Promise<void> {
    if (this.end) return
    this.end = brokenOff(this.target.place, 'it was closed')
    const late = setTimeout(() => this.client.connection.stream.destroy(), farewellMs)
    await this.client.end()
    clearTimeout(late)
  }

  /** Statements of one turn leave in one write. */
  private gather(): void {
    if (this.isGathering) return
    this.isGathering = true
    const { stream } = this.client.connection
    stream.cork()
    process.nextTick(() => {
      this.isGathering = false
      stream.uncork()
    })
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

/** Other time-outs do not apply to a partly received COMMIT. Skips unknown settings. */
function limitsOf(transactionTimeoutMs: number): string {
  const settings = {
    transaction_timeout: transactionTimeoutMs,
    // In seconds; the default is two hours.
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

function lastOf(result: Reply | readonly Reply[]): Reply {
  const last = Array.isArray(result) ? result.at(-1) : result
  return last ?? { command: '', rows: [] }
}
