import { getTableName } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import type { Queryable } from './pool.ts'
import {
  attempts,
  codesAndLimits,
  deliveryReports,
  idempotencyKeys,
  notifyJobs,
  notifyOrders,
  requests,
  stats,
} from './schema.ts'

export interface DistributedTable {
  readonly table: string
  readonly column: string
  /** An earlier table of the list, whose rows with the same value are on the same machine. */
  readonly colocateWith: string | undefined
  /** One statement writes many rows: it has a cost for each shard, so there is one shard for each machine. */
  readonly isBatched: boolean
}

/** The other tables stay on the coordinator. */
export const distributedTables: readonly DistributedTable[] = [
  by(codesAndLimits.subject),
  { ...by(requests.requestId), isBatched: true },
  by(attempts.requestId, requests.requestId),
  by(notifyOrders.requestId, requests.requestId),
  by(notifyJobs.requestId, requests.requestId),
  by(idempotencyKeys.hash, codesAndLimits.subject),
  by(deliveryReports.key),
  by(stats.part),
]

function by(column: PgColumn, colocated?: PgColumn): DistributedTable {
  return {
    table: getTableName(column.table),
    column: column.name,
    colocateWith: colocated && getTableName(colocated.table),
    isBatched: false,
  }
}

/** Whether Citus distributes codes and limits, seen from the coordinator or a worker. */
export async function isDistributed(connection: Queryable): Promise<boolean> {
  const [[catalog] = []] = await connection.rows("SELECT to_regclass('pg_dist_partition')::text", [])
  if (catalog == null) return false
  const rows = await connection.rows(
    "SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass($1) AND partmethod = 'h'",
    [getTableName(codesAndLimits)],
  )
  return rows.length > 0
}
