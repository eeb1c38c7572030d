import type { Actor } from '../../domain/ground/audit.ts'
import type { Recipient } from '../../domain/ground/contact.ts'
import type { Clock } from '../../domain/ground/time.ts'
import type { Distribution } from '../../domain/log/distribution.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import type { EventLogStore } from './event-log.ts'
import type { Forgotten } from './forget.ts'
import type { createStatistics } from './statistics.ts'
import type { createStores } from './stores.ts'

export interface Storage extends ReturnType<typeof createStores> {
  /** The time that codes and limits use: this machine's, or the database server's. */
  readonly now: Clock
  readonly store: OtpStore
  readonly eventLog: EventLogStore
  readonly statistics: ReturnType<typeof createStatistics>
  sweep(now: number, retainAfter: RetainAfter): Promise<SweepStep>
  /** Repeatable. `subjects`: hashes of the recipient under every secret key. */
  forget(
    recipient: Recipient,
    subjects: readonly string[],
    by: { readonly now: number; readonly actor: Actor },
  ): Promise<Forgotten>
  /** For a process that serves no requests: all writes until the work ends are one transaction. Rolls back if the work throws. */
  atomically<T>(work: () => Promise<T>): Promise<T>
  /** Rejects if the database can't be read and written. */
  checkDatabase(): Promise<void>
  /** Without asking the database. Undefined: nothing is known. */
  trouble(): Trouble | undefined
  /** Undefined: the database has only one server. */
  readonly openCircuits: OpenCircuits | undefined
  readonly stats: StorageStats
  close(): Promise<void>
}

/** Rows older than these instants are deleted. */
export interface RetainAfter {
  readonly eventLog: number
  readonly audit: number
  /** By the time of the decision or, if pending, of creation. */
  readonly requests: number
}

export interface SweepStep {
  /** Whether the end of the table was reached; the next step starts again. */
  readonly isRound: boolean
  /** Whether the next step should follow soon. */
  readonly isBusy: boolean
}

export interface OpenCircuit {
  readonly provider: string
  readonly failures: number
  readonly openMs: number
  readonly openUntil: number
}

export interface OpenCircuits {
  /** Undefined: the circuit is closed. */
  share(provider: string, openCircuits: Omit<OpenCircuit, 'provider'> | undefined): Promise<void>
  /** Calls the listener after every possible change. */
  listen(changed: (openCircuits: readonly OpenCircuit[]) => void): void
}

export interface KeyFingerprints {
  noted(): Promise<readonly string[]>
  /** Atomic. `check` receives the fingerprints noted so far, and may throw. */
  replace(own: readonly string[], check?: (noted: readonly string[]) => void): Promise<void>
}

/** The database must exist, but there is none, or none of otpost (design D51). */
export class NoDatabase extends Error {
  override readonly name = 'NoDatabase'
}

export interface OpenStore {
  readonly storage: Storage
  /** Whether it had no schema before. */
  readonly isNew: boolean
  readonly fingerprints: KeyFingerprints
}

export interface StorageStats {
  version(): string
  queueLength(): number
  /** Undefined: the database has no writer here. */
  writer(): WriterStats | undefined
  /** Undefined: the database has no files here. Rejects if they are missing. */
  files(): Promise<FileStats | undefined>
  /** Undefined: the database is not a server. */
  pool(): PoolStats | undefined
  /** Of the database, in bytes. */
  size(): Promise<number>
  /** Of PostgreSQL. */
  nodes(): Promise<readonly NodeStats[]>
  /** Of the database before that of this machine. Undefined: they are the same. */
  clockAheadMs(): number | undefined
}

/** Why the latest work failed, or why work waits now. */
export interface Trouble {
  readonly error: unknown
  readonly isNow: boolean
}

export interface WriterStats {
  readonly queue: number
  readonly batchSizes: Distribution
  readonly commitSeconds: Distribution
  readonly lost: number
}

/** In bytes. */
export interface FileStats {
  readonly main: number
  readonly wal: number
  readonly diskFree: number
}

/** A process of otpost with connections to the database. */
export interface NodeStats {
  /** Its IP address. Null: on the machine of the database. */
  readonly address: string | null
  readonly connections: number
  readonly since: number
}

export interface PoolStats {
  readonly size: number
  readonly idle: number
  readonly waiting: number
}
