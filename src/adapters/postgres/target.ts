import type { PostgresTarget } from './pool.ts'

export interface DatabaseTarget extends PostgresTarget {
  /** Steps per transaction; 1 if the rows of a transaction should be on one node. */
  readonly batchSize?: number
}

export const usualBatchSize = 32
