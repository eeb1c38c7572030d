import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PostgresServer } from '../../test/support/postgres.ts'
import type { Storage } from './results.ts'

/** What the server has done for one kind of statement. */
export interface StatementUse {
  readonly calls: number
  readonly blocksHit: number
  readonly blocksDirtied: number
  readonly ms: number
  readonly rows: number
}

/** By what a statement is for. */
export interface Statements {
  /** Locks of codes and limits: one for each transaction of steps. */
  readonly locks: StatementUse
  readonly reads: StatementUse
  readonly writes: StatementUse
  /** BEGIN and COMMIT. */
  readonly transactions: StatementUse
  readonly look: StatementUse
  readonly eventLog: StatementUse
  readonly other: StatementUse
}

const nothing: StatementUse = { calls: 0, blocksHit: 0, blocksDirtied: 0, ms: 0, rows: 0 }

/**
 * Observes a server over connections to another database than the measured one. It uses counters without a delay:
 * pg_stat_statements and the position of the write-ahead log. Other counters lag by up to a second.
 */
export class Observer {
  readonly postmaster: number

  constructor(
    private readonly server: PostgresServer,
    private readonly database: string,
  ) {
    this.postmaster = Number(readFileSync(join(server.dataFolder, 'postmaster.pid'), 'utf8').split('\n')[0])
  }

  /** Begins to count statements anew. */
  async begin(): Promise<void> {
    await this.server.query(
      'SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = $1',
      [this.database],
    )
  }

  async walBytes(): Promise<number> {
    const [row] = await this.server.query(`SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes`)
    return Number(row?.bytes)
  }

  /** Since it began to count. */
  async statements(): Promise<Statements> {
    const rows = await this.server.query(
      `SELECT query, calls::float8, rows::float8, shared_blks_hit::float8 AS hit,
          shared_blks_dirtied::float8 AS dirtied, total_exec_time AS ms
        FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1)`,
      [this.database],
    )
    const found: Record<keyof Statements, StatementUse> = {
      locks: nothing,
      reads: nothing,
      writes: nothing,
      transactions: nothing,
      look: nothing,
      eventLog: nothing,
      other: nothing,
    }
    for (const row of rows) {
      const kind = kindOf(String(row.query))
      const before = found[kind]
      found[kind] = {
        calls: before.calls + Number(row.calls),
        blocksHit: before.blocksHit + Number(row.hit),
        blocksDirtied: before.blocksDirtied + Number(row.dirtied),
        ms: before.ms + Number(row.ms),
        rows: before.rows + Number(row.rows),
      }
    }
    return found
  }
}

function kindOf(query: string): keyof Statements {
  if (query.includes('"codes_and_limits"')) {
    if (!/^select/i.test(query)) return 'writes'
    return query.includes('for update') ? 'locks' : 'reads'
  }
  if (/^(?:BEGIN|COMMIT)/.test(query)) return 'transactions'
  if (query.includes('"revision"')) return 'look'
  return /"(?:requests|attempts|tallies)"/.test(query) ? 'eventLog' : 'other'
}

/**
 * What a row takes in its table and indexes, as they are after the load. Of tables with few rows the figure would be that
 * of their first pages: undefined then.
 */
export async function storageIn(
  query: (text: string) => Promise<Record<string, unknown>[]>,
): Promise<Storage | undefined> {
  const bytesOf = async (table: string, counted = '*') => {
    const [row] = await query(
      `SELECT pg_total_relation_size('${table}')::float8 AS bytes, (SELECT count(${counted}) FROM ${table})::float8 AS rows`,
    )
    return Number(row?.rows) < 100 ? undefined : Number(row?.bytes) / Number(row?.rows)
  }
  const recipientBytes = await bytesOf('codes_and_limits', 'DISTINCT subject')
  const traceBytes = await bytesOf('requests')
  if (recipientBytes === undefined || traceBytes === undefined) return undefined
  // A delivery is part of its request's row, but for further attempts.
  return { recipientBytes, traceBytes, deliveryBytes: 0 }
}
