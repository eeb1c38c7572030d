// What a store says of its own condition, for `otpost doctor`.

/** The inside of an SQLite file. */
export interface DatabaseFacts {
  readonly journalMode: string
  /** Empty: no damage was found. */
  readonly damage: readonly string[]
  /** `full`: every page, every index; `quick`: every page; `part`: those tables that there was time for. */
  readonly checked: 'full' | 'quick' | 'part'
  readonly schema: 'current' | 'older' | 'newer' | 'unknown'
  readonly logBytes: number
  /** A hash of each secret key of its server; empty: no server has used it yet. */
  readonly keyFingerprints: readonly string[]
  /** The latest request in the event log, epoch milliseconds; null: none. */
  readonly lastRequestAt: number | null
}

/** A database server; `silent`: it did not answer, and why. */
export type ServerDatabaseFacts =
  | { readonly kind: 'silent'; readonly reason: string }
  | {
      readonly kind: 'answered'
      readonly version: string
      readonly schema: DatabaseFacts['schema'] | 'none'
      /** A standby, or made read-only. */
      readonly isReadOnly: boolean
      /** Settings of the server on which durability depends. */
      readonly fsync: boolean
      readonly fullPageWrites: boolean
      readonly synchronousCommit: string
      readonly standbys: StandbyFacts
      /** A hash of each secret key of its servers; empty: no server has used it yet. */
      readonly keyFingerprints: readonly string[]
      readonly hasTls: boolean
      readonly isLocal: boolean
      /** Connections that it accepts, and that are open, of all its users. */
      readonly mostConnections: number
      readonly connections: number
      /** Connections of one otpost server. */
      readonly poolSize: number
      /** Its clock, and that of this machine at the same moment; epoch milliseconds. */
      readonly clock: { readonly at: number; readonly askedAt: number }
      readonly lastRequestAt: number | null
    }

/** Standbys by synchronous_standby_names, for which a commit waits unless synchronous_commit says otherwise. */
export interface StandbyFacts {
  /** How many of them a commit waits for; 0: there are none. */
  readonly awaited: number
  /** Where this user may not see it, the greatest possible number. */
  readonly connected: number
  readonly isHidden: boolean
}
