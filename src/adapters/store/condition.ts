// Facts about a database, for `otpost doctor`.

export interface DatabaseFacts {
  readonly journalMode: string
  /** Empty: no damage found. */
  readonly damage: readonly string[]
  /** `full`: every page and index; `quick`: every page; `part`: the tables that two seconds allowed. */
  readonly checked: 'full' | 'quick' | 'part'
  readonly schema: 'current' | 'older' | 'newer' | 'unknown'
  readonly logBytes: number
  /** Empty: no server has used the database yet. */
  readonly keyFingerprints: readonly string[]
  /** Epoch milliseconds; null: no requests. */
  readonly lastRequestAt: number | null
}

/** `silent`: the server did not answer. */
export type ServerDatabaseFacts =
  | { readonly kind: 'silent'; readonly reason: string }
  | {
      readonly kind: 'answered'
      readonly version: string
      readonly schema: DatabaseFacts['schema'] | 'none'
      readonly isReadOnly: boolean
      readonly fsync: boolean
      readonly fullPageWrites: boolean
      readonly synchronousCommit: string
      readonly standbys: StandbyFacts
      /** Empty: no server has used the database yet. */
      readonly keyFingerprints: readonly string[]
      readonly hasTls: boolean
      readonly isLocal: boolean
      /** `max_connections`, and the open connections of all users. */
      readonly mostConnections: number
      readonly connections: number
      readonly poolSize: number
      /** The server's clock and this machine's at the same moment; epoch milliseconds. */
      readonly clock: { readonly at: number; readonly askedAt: number }
      readonly lastRequestAt: number | null
    }

/** Standbys in synchronous_standby_names. */
export interface StandbyFacts {
  /** The number of standbys that a commit waits for. */
  readonly awaited: number
  /** The greatest possible number if this user may not see it. */
  readonly connected: number
  readonly isHidden: boolean
}
