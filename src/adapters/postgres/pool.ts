import type { Connection, Query, Reply } from './connection.ts'
import { Connections, type PostgresTarget } from './connections.ts'
import { DatabaseUnavailable, StatementError } from './errors.ts'

export type { PostgresTarget }
export { DatabaseUnavailable, StatementError }

export interface PreparedStatement {
  readonly name: string
  readonly text: string
}

/** int8 is returned as number, jsonb parsed. Rejects with StatementError or DatabaseUnavailable. */
export interface Queryable {
  query<Row extends object>(
    statement: PreparedStatement,
    values?: readonly unknown[],
  ): Promise<readonly Row[]>
  rows(text: string, values: readonly unknown[]): Promise<unknown[][]>
}

/** Statements sent without an await in between are pipelined. */
export interface Transaction extends Queryable {
  /** A failure of the statement fails the commit. */
  send(statement: PreparedStatement, values: readonly unknown[]): void
}

export interface TransactionLimits {
  readonly statementTimeoutMs: number
}

export interface Pool extends Queryable {
  /** READ COMMITTED. May be retried, so `work` must have no other effects. Rolls back if `work` throws. */
  transaction<T>(work: (connection: Transaction) => Promise<T>, limits?: TransactionLimits): Promise<T>
  /** For a process that serves no requests: all that the work reads and writes is in one transaction. */
  atomically<T>(work: () => Promise<T>): Promise<T>
  stats(): { readonly size: number; readonly idle: number; readonly waiting: number }
  /** Why PostgreSQL cannot be reached. */
  trouble(): DatabaseUnavailable | undefined
  /** Rejects new work, waits for work in progress (limited by the statement time-out), and closes. */
  close(): Promise<void>
}

const retries = 3
const retryPauseMs = 10

/** @param log receives a problem when it begins and when it ends */
export function openPool(target: PostgresTarget, log: (problem: string) => void): Pool {
  const connections = new Connections(target, log)
  let whole: Transaction | undefined
  const alone = (query: Query) =>
    persistently(() => connections.use((connection) => connections.execute(connection, query)))
  return {
    query: async <Row extends object>(statement: PreparedStatement, values: readonly unknown[] = []) =>
      whole
        ? whole.query<Row>(statement, values)
        : ((await alone(prepared(target, statement, values))).rows as Row[]),
    rows: async (text, values) =>
      whole
        ? whole.rows(text, values)
        : ((await alone({ text, values, asArrays: true })).rows as unknown[][]),
    transaction: (work, limits) =>
      whole ? savepoint(whole, work) : persistently(() => inTransaction(work, limits)),
    atomically: (work) =>
      inTransaction(async (connection) => {
        whole = connection
        try {
          return await work()
        } finally {
          whole = undefined
        }
      }),
    stats: () => connections.stats(),
    trouble: () => connections.trouble,
    close: () => connections.close(),
  }

  function inTransaction<T>(work: (connection: Transaction) => Promise<T>, limits?: TransactionLimits) {
    return connections.use((connection) => {
      const execute = (query: Query) => connections.execute(connection, query, limits?.statementTimeoutMs)
      return transactionOn(connection, execute, target, work, limits)
    })
  }
}

/** A part of a transaction, which is undone alone if it throws. */
async function savepoint<T>(whole: Transaction, work: (connection: Transaction) => Promise<T>): Promise<T> {
  await whole.rows('SAVEPOINT step', [])
  try {
    const result = await work(whole)
    await whole.rows('RELEASE SAVEPOINT step', [])
    return result
  } catch (error) {
    await whole.rows('ROLLBACK TO SAVEPOINT step', [])
    throw error
  }
}

async function transactionOn<T>(
  connection: Connection,
  execute: (query: Query) => Promise<Reply>,
  target: PostgresTarget,
  work: (connection: Transaction) => Promise<T>,
  limits: TransactionLimits | undefined,
): Promise<T> {
  const replies: Promise<Reply>[] = []
  let isOver = false
  /** The last error that permits a retry; `work` may have caught or wrapped it. */
  let passing: StatementError | undefined
  let first: unknown
  const sent = (query: Query): Promise<Reply> => {
    const reply = execute(query)
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
    sent(beginning(target, limits))
    const result = await work({
      query: async <Row extends object>(statement: PreparedStatement, values: readonly unknown[] = []) =>
        (await inside(prepared(target, statement, values))).rows as Row[],
      rows: async (text, values) => (await inside({ text, values, asArrays: true })).rows as unknown[][],
      send: (statement, values) => void inside(prepared(target, statement, values)),
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

/** BEGIN with its settings, in one round trip. Session limits apply to transactions too. */
function beginning(target: PostgresTarget, limits: TransactionLimits | undefined): Query {
  const { statementTimeoutMs, idleInTransactionTimeoutMs, isPooled } = target
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

function prepared(
  { isPooled }: PostgresTarget,
  { name, text }: PreparedStatement,
  values: readonly unknown[],
): Query {
  return isPooled ? { text, values } : { name, text, values }
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
