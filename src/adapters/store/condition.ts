import type { Migration } from '../../../drizzle/migration.ts'

/** Of the integrity. `full`: every page and index; `quick`: every page. */
export type DatabaseCheck = 'full' | 'quick' | 'none'

/** @template Read what is read through the stores */
export interface DatabaseFacts<Read> {
  readonly journalMode: string
  readonly damage: readonly string[]
  /** `part`: the tables that two seconds allowed. */
  readonly checked: DatabaseCheck | 'part'
  readonly schema: 'current' | 'older' | 'newer' | 'unknown'
  readonly logBytes: number
  /** Empty: no server has used the database yet. */
  readonly keyFingerprints: readonly string[]
  readonly lastRequestAt: number | null
  /** Undefined: the schema is of another version. */
  readonly read: Read | undefined
}

export type ServerDatabaseFacts<Read> =
  | { readonly kind: 'silent'; readonly reason: string }
  | {
      readonly kind: 'answered'
      readonly version: string
      readonly schema: DatabaseFacts<unknown>['schema'] | 'none'
      readonly isReadOnly: boolean
      readonly fsync: boolean
      readonly fullPageWrites: boolean
      readonly synchronousCommit: string
      readonly standbys: StandbyFacts
      readonly keyFingerprints: readonly string[]
      readonly hasTls: boolean
      readonly isLocal: boolean
      /** `max_connections`, and the open connections of all users. */
      readonly mostConnections: number
      readonly connections: number
      readonly poolSize: number
      /** The clocks of server and client at the same moment, in epoch milliseconds. */
      readonly clock: { readonly at: number; readonly localAt: number }
      readonly lastRequestAt: number | null
      /** Undefined: the schema is of another version, or a node does not answer. */
      readonly read: Read | undefined
      /** Undefined: the database does not have the extension Citus. */
      readonly cluster: ClusterFacts | undefined
    }

export interface ClusterFacts {
  readonly isCoordinator: boolean
  readonly replicationFactor: number
  /** Empty until the coordinator host is set and workers are added. */
  readonly nodes: readonly ClusterNode[]
  readonly tables: readonly ClusterTable[]
}

export interface ClusterNode {
  readonly host: string
  readonly port: number
  readonly isCoordinator: boolean
  /** Active, and its metadata is current. */
  readonly isActive: boolean
  readonly hasShards: boolean
  readonly state: ClusterNodeState | { readonly problem: string }
}

export interface ClusterNodeState {
  /** Of Citus and of the extension in this database, such as `13.2.2 (13.2-1)`. */
  readonly version: string
  readonly mostPrepared: number
  /** Negative: in-doubt transactions are not recovered. */
  readonly recoveryIntervalMs: number
  /** Prepared transactions in this database that are older than a minute. */
  readonly inDoubt: number
}

/** A table that is to be distributed. */
export interface ClusterTable {
  readonly table: string
  readonly column: string
  readonly colocateWith: string | undefined
  /** `other`: by another column, not colocated, or another kind of table of Citus. */
  readonly state: 'missing' | 'local' | 'distributed' | 'other'
  /** Rows from before the distribution, which queries do not see. */
  readonly hasHiddenRows: boolean
}

export interface StandbyFacts {
  readonly awaited: number
  /** The greatest possible number if this user may not see it. */
  readonly connected: number
  readonly isHidden: boolean
}

export function schemaState(
  applied: readonly number[],
  known: readonly Migration[],
): 'newer' | 'current' | 'older' {
  const times = known.map(({ when }) => when)
  if (applied.some((when) => !times.includes(when))) return 'newer'
  return times.every((when) => applied.includes(when)) ? 'current' : 'older'
}
