import { join } from 'node:path'

/** What the part `postgres` measured, as it is kept for the plan. */
export interface PostgresResults {
  /** Such as `18.4`. */
  readonly serverVersion: string
  readonly cores: number
  /** How long one write waits for the disk. */
  readonly syncMs: number
  /** Whether it was a short run, whose figures are rough. */
  readonly isQuick: boolean
  readonly limit: Limit
  readonly points: readonly Point[]
  readonly work: readonly Work[]
  readonly storage: Storage
}

/** How often one row was updated by one statement. */
export interface Limit {
  /** What measured it, such as `pgbench`. */
  readonly by: string
  readonly oneClientPerSecond: number
  readonly eightClientsPerSecond: number
}

export type Kind = 'send' | 'wrong' | 'absent'

/** One kind of request at saturation. */
export interface Point {
  readonly kind: Kind
  readonly processes: number
  readonly applications: number
  readonly batchSize: number
  /** Of the clients, which ask again as soon as they are answered. */
  readonly connections: number
  readonly perSecond: number
  readonly barePerSecond: number
  /** Of the bare route's rate; the median of the rounds. */
  readonly share: number
  readonly p50Ms: number
  /** The greatest of those of the processes. */
  readonly p99Ms: number
  /** Statements sent to the server, a request: all; and of them those of steps, and those that look for changes. */
  readonly roundTrips: number
  readonly stepTrips: number
  readonly pollTrips: number
  /** Transactions that write, a request. */
  readonly transactions: number
  readonly walBytes: number
  /** Processor time, microseconds a request. */
  readonly otpostUs: number
  readonly databaseUs: number
  readonly clientUs: number
  /** Share of the machine's processors in which nothing ran. */
  readonly unused: number
}

/** What the server does for one request, a transaction each. */
export interface Work {
  readonly kind: Kind
  /** Rows of codes and limits that were locked, and that were written. */
  readonly rowsLocked: number
  readonly rowsWritten: number
  /** Of the step: pages found in memory and pages changed, of 8 KiB, and time. */
  readonly blocksHit: number
  readonly blocksDirtied: number
  readonly stepMs: number
  /** The step's share of the time of all statements. */
  readonly stepShare: number
}

/** Bytes of a row with its places in indexes and the room between rows. */
export interface Storage {
  /** All rows of a recipient. */
  readonly recipientBytes: number
  readonly traceBytes: number
  readonly deliveryBytes: number
}

export const resultsFile = join(import.meta.dir, '../results-postgres.json')
