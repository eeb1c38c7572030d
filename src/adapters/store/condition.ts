import type { Migration } from '../../../drizzle/migration.ts'

// Facts about a database, for `otpost doctor`.

export interface DatabaseFacts {
  readonly journalMode: string
  readonly damage: readonly string[]
  /** `full`: every page and index; `quick`: every page; `part`: the tables that two seconds allowed. */
  readonly checked: 'full' | 'quick' | 'part'
  readonly schema: 'current' | 'older' | 'newer' | 'unknown'
  readonly logBytes: number
  /** Empty: no server has used the database yet. */
  readonly keyFingerprints: readonly string[]
  /** Null: no requests. */
  readonly lastRequestAt: number | null
  /** Networks outside TRUSTED_PROXIES whose X-Forwarded-For was ignored in the last day. */
  readonly ignoredForwarders: readonly string[]
}

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
      readonly keyFingerprints: readonly string[]
      readonly hasTls: boolean
      readonly isLocal: boolean
      /** `max_connections`, and the open connections of all users. */
      readonly mostConnections: number
      readonly connections: number
      readonly poolSize: number
      /** The clocks of server and client at the same moment, in epoch milliseconds. */
      readonly clock: { readonly at: number; readonly askedAt: number }
      readonly lastRequestAt: number | null
      readonly ignoredForwarders: readonly string[]
    }

export interface StandbyFacts {
  readonly awaited: number
  /** The greatest possible number if this user may not see it. */
  readonly connected: number
  readonly isHidden: boolean
}

/** The parameter is the time a day ago, in epoch milliseconds. */
export const ignoredForwardersQuery = (parameter: '?' | '$1') =>
  `SELECT DISTINCT detail FROM stats WHERE kind = 'forwarded-ignored' AND step_ms = 3600000 AND at >= ${parameter} ORDER BY detail LIMIT 10`

export function schemaState(
  applied: readonly number[],
  known: readonly Migration[],
): 'newer' | 'current' | 'older' {
  const times = known.map(({ when }) => when)
  if (applied.some((when) => !times.includes(when))) return 'newer'
  return times.every((when) => applied.includes(when)) ? 'current' : 'older'
}
