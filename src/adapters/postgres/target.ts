import type { PostgresTarget } from './pool.ts'

/** How a database is reached, and used. */
export interface DatabaseTarget extends PostgresTarget {
  /** Steps that share a transaction at most; 1 where the rows of a transaction had better be on one node. */
  readonly batchSize?: number
}

export const usualBatchSize = 32
