import type { Recipient } from '../../domain/contact.ts'
import type { Distribution } from '../../domain/events/distribution.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import type { OtpStore } from '../../domain/otp/store.ts'
import type { Clock } from '../../domain/ports.ts'
import type { EventLogStore } from './event-log.ts'
import type { createStatistics } from './statistics.ts'
import type { createStores } from './stores.ts'

/** All that is kept, in one database: what an adapter for a database implements, and nothing else knows of it. */
export interface Storage extends ReturnType<typeof createStores> {
  /** The time that codes and windows go by: of this machine, or of a database that several share. */
  readonly now: Clock
  readonly otps: OtpStore
  readonly eventLog: EventLogStore
  readonly statistics: ReturnType<typeof createStatistics>
  /**
   * Takes one step of the sweep, which removes what is over (codes and limits, old messages of the outbox, old statistics, sessions of
   * the console, and what the journal, the audit log and the integration requests have from before `keptFrom`).
   */
  sweep(now: number, retainAfter: RetainAfter): Promise<SweepStep>
  /**
   * Erases a person from log and records, beside servers that go on. May be repeated, also after it was interrupted: then
   * it finds what is left.
   *
   * @param subjects the keyed hashes of the recipient under every secret
   */
  forget(
    recipient: Recipient,
    subjects: readonly string[],
    by: { readonly now: number; readonly actor: Actor },
  ): Promise<Forgotten>
  /** Whether the database can be read and written; rejects with what stands against it when not. */
  check(): Promise<void>
  /** What several servers on one database tell each other of providers; undefined where there is one server. */
  readonly openCircuits: OpenCircuits | undefined
  readonly stats: StorageStats
  /** Lets what is under way end, and closes. */
  close(): Promise<void>
}

/** From when on things are kept: instants, epoch milliseconds. */
export interface RetainAfter {
  readonly eventLog: number
  readonly audit: number
  /** Integration requests, by when they were decided or, where nobody has, made. */
  readonly requests: number
}

/** What one step of the sweep did. */
export interface SweepStep {
  /** Whether the end of the table was reached: the next step begins anew. */
  readonly isRound: boolean
  /** Whether it is worth going on at once: there was much to remove, or there is room to give back. */
  readonly isBusy: boolean
}

/** What was erased of a person, in rows. */
export interface Erased {
  /** Requests of /otp/*, and those to this one recipient alone. */
  readonly requests: number
  readonly deliveries: number
  readonly deliveryReports: number
  /** Live codes, and the counters of limits. */
  readonly codesAndLimits: number
  /** Messages in the outbox. */
  readonly messages: number
  readonly integrationRequests: number
}

export interface Forgotten {
  readonly erased: Erased
  /**
   * Requests that may have been this person's, or those of others who look the same when masked: of a /notify that led
   * to no message, and of all requests from before that was kept, nothing tells them apart.
   */
  readonly unclearRequests: number
  /**
   * What may still be read from the files by whoever searches their bytes. `nothing`: they were written anew. `gaps`:
   * what had been overwritten earlier may be left where nothing is stored; `log`: the same, and what was erased now is in
   * the write-ahead log until that begins anew. Both are since another process has the database open. `server`: in the
   * files of a database server, where old versions of rows and its log are its own affair.
   */
  readonly traces: 'nothing' | 'gaps' | 'log' | 'server'
}

/** A provider that keeps failing, and until when it is asked after others. */
export interface OpenCircuit {
  readonly provider: string
  readonly failures: number
  readonly openMs: number
  /** By the clock of the storage. */
  readonly openUntil: number
}

/** What the servers on one database know of failing providers. */
export interface OpenCircuits {
  /** Tells the others that a provider rests, or (`undefined`) works again. */
  tell(provider: string, openCircuits: Omit<OpenCircuit, 'provider'> | undefined): Promise<void>
  /** Has the listener told of all that rest, whenever that may have changed. */
  listen(changed: (openCircuits: readonly OpenCircuit[]) => void): void
}

/** The fingerprints of the secret keys that the servers on a database use, as the database notes them. */
export interface KeyFingerprints {
  /** Empty: none is noted yet. */
  noted(): Promise<readonly string[]>
  /** Replaces them in one atomic step; `check` may throw on those that are noted by then. */
  replace(own: readonly string[], check?: (noted: readonly string[]) => void): Promise<void>
}

/** An open database. */
export interface OpenStore {
  readonly storage: Storage
  /** Whether it had no schema before. */
  readonly isNew: boolean
  readonly fingerprints: KeyFingerprints
}

/** How a storage fares, for whoever watches over it. */
export interface StorageStats {
  /** Its kind and version, such as `SQLite 3.54.1`. */
  version(): string
  /** Calls that wait for their turn. */
  queueLength(): number
  /** What is known of the database's own work; undefined: this kind has no such thing. Rejects where it does not answer. */
  writer(): Promise<WriterStats | undefined>
  /** In bytes; undefined: it has no files of its own here. Rejects where they are gone. */
  files(): Promise<FileStats | undefined>
  /** Connections to a server; undefined where there is none. */
  pool(): PoolStats | undefined
}

export interface WriterStats {
  /** Writes that wait for the next transaction. */
  readonly queue: number
  /** How many writes shared each transaction that was committed. */
  readonly batchSizes: Distribution
  /** How long each COMMIT took, which waits for the disk. */
  readonly commitSeconds: Distribution
  /** Transactions that were lost, with every write in them, and locks that could not be had in time. */
  readonly lost: number
}

/** What the files of a database take and have left, in bytes. */
export interface FileStats {
  readonly main: number
  /** The write-ahead log. */
  readonly wal: number
  /** What this user may still write to the disk they are on. */
  readonly diskFree: number
}

export interface PoolStats {
  /** Open connections. */
  readonly size: number
  readonly idle: number
  /** Statements that wait for one. */
  readonly waiting: number
}
