import { type AnyTable, sqlName } from '../store/dialect.ts'
import { schema } from '../store/schema.ts'
import type { Queryable } from './pool.ts'

export interface DistributedTable {
  readonly table: string
  readonly column: string
  /** An earlier table of the list, whose rows with the same value are on the same machine. */
  readonly colocateWith: string | undefined
  /** One statement writes many rows: it has a cost for each shard, so there is one shard for each machine. */
  readonly isBatched: boolean
}

/** The other tables stay on the coordinator. */
export const distributedTables: readonly DistributedTable[] = Object.values<AnyTable>(schema).flatMap(
  ({ name, facts: { distributed } }) =>
    distributed === undefined
      ? []
      : [
          {
            table: name,
            column: sqlName(distributed.by),
            colocateWith: distributed.like,
            isBatched: distributed.isBatched ?? false,
          },
        ],
)

/** Whether Citus distributes codes and limits, seen from the coordinator or a worker. */
export async function isDistributed(connection: Queryable): Promise<boolean> {
  const [[catalog] = []] = await connection.rows("SELECT to_regclass('pg_dist_partition')::text", [])
  if (catalog == null) return false
  const rows = await connection.rows(
    "SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass($1) AND partmethod = 'h'",
    [schema.codesAndLimits.name],
  )
  return rows.length > 0
}
