import type { Migration } from '../../../drizzle/migration.ts'

export interface DatabaseFacts {
  readonly journalMode: string
  readonly damage: readonly string[]
  /** `full`: every page and index; `quick`: every page; `part`: the tables that two seconds allowed. */
  readonly checked: 'full' | 'quick' | 'part'
  readonly schema: 'current' | 'older' | 'newer' | 'unknown'
  readonly logBytes: number
  /** Empty: no server has used the database yet. */
  readonly keyFingerprints: readonly string[]
  readonly lastRequestAt: number | null
  /** The start of the last hour in which X-Forwarded-For was ignored; epoch milliseconds. */
  readonly ignoredForwardedAt: number | null
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
      readonly clock: { readonly at: number; readonly localAt: number }
      readonly lastRequestAt: number | null
      readonly ignoredForwardedAt: number | null
    }

export interface StandbyFacts {
  readonly awaited: number
  /** The greatest possible number if this user may not see it. */
  readonly connected: number
  readonly isHidden: boolean
}

export const ignoredForwardedQuery =
  "SELECT max(at) FROM stats WHERE kind = 'forwarded-ignored' AND step_ms = 3600000"

export function schemaState(
  applied: readonly number[],
  known: readonly Migration[],
): 'newer' | 'current' | 'older' {
  const times = known.map(({ when }) => when)
  if (applied.some((when) => !times.includes(when))) return 'newer'
  return times.every((when) => applied.includes(when)) ? 'current' : 'older'
}
