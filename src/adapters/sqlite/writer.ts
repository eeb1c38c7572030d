import Driver from 'better-sqlite3'
import { newDistribution, observe } from '../../domain/log/distribution.ts'
import type { Trouble, WriterStats } from '../store/store.ts'
import type { WriteAheadLog } from './write-ahead-log.ts'

/** A transaction can't wait for a promise. */
export type Sync<T> = T extends PromiseLike<unknown> ? never : T

const longestLockWaitMs = 5000

export interface Unit {
  /** Called when a transaction begins or is rolled back. */
  reset(): void
  /** Writes the changes before the commit. */
  flush(): void
}

const batchBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

interface Job {
  readonly step: () => unknown
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
  /** For the lock of another process. */
  readonly giveUpAt: number
  readonly timeoutAt: number
}

/** Jobs of a transaction that was committed, and their results, which their promises become when it is durable. */
interface Committed {
  readonly startedAt: number
  readonly jobs: readonly Job[]
  readonly results: readonly unknown[]
}

/** The result of a job that failed alone. */
class Failed {
  constructor(readonly error: unknown) {}
}

export type DurableLog = Pick<WriteAheadLog, 'sync' | 'committed' | 'room'>

/** How long a write may take, with the wait for the disk. */
const longestWriteMs = 10_000
const pollMs = 250

/** A write that waits for so many polls has a cause that an operator should know. A process that is late polls less often. */
const troublePolls = 4

/**
 * Group commit: concurrent writes share a transaction, and concurrent transactions a sync. A write that throws fails alone.
 * Without a `DurableLog` a commit itself waits for the disk, as in commands.
 */
export class Writer {
  private lostBy: unknown
  private writtenAt = Number.NEGATIVE_INFINITY
  private queue: Job[] = []
  private scheduled = false
  /** Since a step of the first jobs in the queue threw. */
  private isOneByOne = false
  /** Within `atomically`. */
  private isWhole = false
  private log: DurableLog | undefined
  private polling: ReturnType<typeof setInterval> | undefined
  /** Those of the sync under way; empty: none is. */
  private syncing: readonly Committed[] = []
  private unsynced: Committed[] = []
  private pollsOfSync = 0
  /** Why the jobs in the queue wait. Undefined: no other process has the lock. */
  private blockedBy: { polls: number; readonly error: unknown } | undefined
  /** Since a sync failed: what was committed may not be on the disk. */
  private isSyncLost = false
  private readonly units: Unit[] = []
  private readonly waiters: (() => void)[] = []
  private readonly batchSizes = newDistribution(batchBounds)
  private readonly commitSeconds = newDistribution(commitBounds)
  private lost = 0

  private readonly sql: Record<
    'begin' | 'commit' | 'rollback' | 'step' | 'stepDone' | 'stepUndone',
    Driver.Statement
  >
  /** Of rows, since the connection was opened. */
  private readonly changes: Driver.Statement<[], number>
  private changesSoFar = 0

  constructor(
    private readonly driver: Driver.Database,
    private readonly guard: () => void,
  ) {
    this.sql = {
      begin: driver.prepare('BEGIN IMMEDIATE'),
      commit: driver.prepare('COMMIT'),
      rollback: driver.prepare('ROLLBACK'),
      step: driver.prepare('SAVEPOINT step'),
      stepDone: driver.prepare('RELEASE step'),
      stepUndone: driver.prepare('ROLLBACK TO step'),
    }
    this.changes = driver.prepare<[], number>('SELECT total_changes()').pluck()
  }

  /** From now on a write resolves after a sync of the log, on which the event loop does not wait. */
  syncWith(log: DurableLog): void {
    this.log = log
    this.polling = setInterval(() => this.timeOut(), pollMs)
    this.polling.unref()
  }

  /**
   * Resolves to the step's result when it is on the disk. The step may run twice, so it must have no other effects.
   * @param lockWaitMs how long to wait for another process's lock
   * @param timeoutMs how long to wait for the disk too; what was written may then still take effect
   */
  write<T>(step: () => Sync<T>, lockWaitMs = longestLockWaitMs, timeoutMs = longestWriteMs): Promise<T> {
    return new Promise((resolve, reject) => {
      const now = performance.now()
      this.queue.push({ step, resolve, reject, giveUpAt: now + lockWaitMs, timeoutAt: now + timeoutMs })
      this.schedule(0)
    })
  }

  /**
   * For a process that serves no requests: all writes until the work ends are one transaction. It is rolled back if the work throws.
   * @throws SQLITE_BUSY if another process keeps the lock
   */
  async atomically<T>(work: () => Promise<T>): Promise<T> {
    withBusyRetry(() => this.sql.begin.run())
    this.isWhole = true
    try {
      const result = await work()
      this.sql.commit.run()
      return result
    } catch (error) {
      this.undo()
      throw error
    } finally {
      this.isWhole = false
    }
  }

  /** Undefined: what this connection reads is on the disk. */
  durable(): Promise<void> | undefined {
    return this.isDurable() ? undefined : this.write(() => undefined)
  }

  private isDurable(): boolean {
    return this.syncing.length === 0 && !this.isSyncLost
  }

  /** Whether something was written to the disk within this time, and nothing has failed or waited since. */
  hasWritten(withinMs: number): boolean {
    if (this.lostBy !== undefined || this.syncing.length > 0) return false
    return performance.now() - this.writtenAt <= withinMs
  }

  /** Whether something is being written, or was within this time. */
  isBusy(withinMs: number): boolean {
    return !this.isIdle() || performance.now() - this.writtenAt <= withinMs
  }

  trouble(): Trouble | undefined {
    const { blockedBy, syncing, pollsOfSync, lostBy } = this
    if (blockedBy && blockedBy.polls >= troublePolls) return { error: blockedBy.error, isNow: true }
    if (syncing.length > 0 && pollsOfSync >= troublePolls) return { error: diskHangs(), isNow: true }
    return lostBy === undefined ? undefined : { error: lostBy, isNow: false }
  }

  stats(): WriterStats {
    const { batchSizes, commitSeconds, lost } = this
    const committed = [...this.syncing, ...this.unsynced]
    const queue = committed.reduce((sum, { jobs }) => sum + jobs.length, this.queue.length)
    return { queue, batchSizes, commitSeconds, lost }
  }

  idle(): Promise<void> {
    if (this.isIdle()) return Promise.resolve()
    return new Promise((resolve) => this.waiters.push(resolve))
  }

  close(): void {
    clearInterval(this.polling)
  }

  attach(unit: Unit): void {
    this.units.push(unit)
  }

  private reset(): void {
    for (const unit of this.units) unit.reset()
  }

  private flushUnits(): void {
    for (const unit of this.units) unit.flush()
  }

  private schedule(delayMs: number): void {
    if (this.scheduled) return
    this.scheduled = true
    const run = () => {
      this.scheduled = false
      this.flush()
    }
    if (delayMs === 0) setImmediate(run)
    else setTimeout(run, delayMs)
  }

  private flush(): void {
    const room = this.log?.room()
    if (room) {
      void room.then(() => this.schedule(0))
      return
    }
    const startedAt = performance.now()
    if (!this.isWhole && !this.begin()) return
    const jobs = this.queue
    this.queue = []
    let results: readonly unknown[] | undefined
    try {
      this.reset()
      results = this.isOneByOne || this.isWhole ? jobs.map((job) => this.apart(job)) : this.together(jobs)
      if (results && !this.isWhole) this.sql.commit.run()
    } catch (error) {
      // The whole transaction failed, for example on a full disk.
      this.undo()
      this.lose(error, jobs)
      this.wake()
      return
    }
    if (!results) {
      this.queue = jobs
      this.isOneByOne = true
      this.flush()
      return
    }
    this.isOneByOne = false
    observe(this.batchSizes, jobs.length)
    this.unsynced.push({ startedAt, jobs, results })
    this.log?.committed()
    const changesBefore = this.changesSoFar
    this.changesSoFar = this.changes.get() ?? 0
    // What it read may not be on the disk yet.
    if (this.changesSoFar === changesBefore && this.isDurable()) this.answer(this.unsynced.splice(0))
    else if (!this.log) this.written(this.unsynced.splice(0))
    else if (this.syncing.length === 0) void this.sync(this.log)
  }

  /** A transaction that is committed meanwhile waits for the next sync. */
  private async sync(log: DurableLog): Promise<void> {
    while (this.unsynced.length > 0) {
      this.syncing = this.unsynced
      this.unsynced = []
      this.pollsOfSync = 0
      try {
        await log.sync()
        this.isSyncLost = false
        this.written(this.syncing)
      } catch (error) {
        this.isSyncLost = true
        const jobs = this.syncing.flatMap((each) => each.jobs)
        this.lose(error, jobs)
      }
      this.syncing = []
    }
    this.wake()
  }

  private written(committed: readonly Committed[]): void {
    this.writtenAt = performance.now()
    this.lostBy = undefined
    for (const { startedAt } of committed) observe(this.commitSeconds, (this.writtenAt - startedAt) / 1000)
    this.answer(committed)
  }

  private answer(committed: readonly Committed[]): void {
    for (const { jobs, results } of committed) {
      jobs.forEach(({ resolve, reject }, index) => {
        const result = results[index]
        if (result instanceof Failed) reject(result.error)
        else resolve(result as never)
      })
    }
    this.wake()
  }

  private lose(error: unknown, jobs: readonly Job[]): void {
    this.lostBy = error
    this.lost++
    for (const job of jobs) job.reject(error)
  }

  /** Jobs whose disk hangs. */
  private timeOut(): void {
    this.pollsOfSync++
    if (this.blockedBy) this.blockedBy.polls++
    const now = performance.now()
    const late = ({ timeoutAt }: Job) => timeoutAt <= now
    const error = diskHangs()
    for (const { jobs } of [...this.syncing, ...this.unsynced])
      for (const job of jobs.filter(late)) job.reject(error)
    for (const job of this.queue.filter(late)) job.reject(error)
    this.queue = this.queue.filter((job) => !late(job))
  }

  private undo(): void {
    this.reset()
    try {
      if (this.driver.inTransaction) this.sql.rollback.run()
    } catch {}
  }

  /** If another process has the lock, tries again later and rejects jobs that waited too long. */
  private begin(): boolean {
    try {
      this.guard()
      this.sql.begin.run()
      this.blockedBy = undefined
      return true
    } catch (error) {
      const now = performance.now()
      this.blockedBy ??= { polls: 0, error }
      const queue = this.queue
      this.queue = []
      for (const job of queue) {
        if (isBusy(error) && job.giveUpAt > now) {
          this.queue.push(job)
        } else {
          this.lostBy = error
          job.reject(error)
        }
      }
      if (this.queue.length < queue.length) this.lost++
      if (this.queue.length > 0) this.schedule(1 + Math.random() * 9)
      else {
        this.blockedBy = undefined
        this.wake()
      }
      return false
    }
  }

  /**
   * Without a savepoint, for which SQLite would copy each changed page. Returns undefined if a step throws,
   * after a rollback. Throws if the transaction is lost.
   */
  private together(jobs: readonly Job[]): readonly unknown[] | undefined {
    try {
      const results = jobs.map(resultOf)
      this.flushUnits()
      return results
    } catch (error) {
      if (!this.driver.inTransaction) throw error
      this.undo()
      return undefined
    }
  }

  private apart(job: Job): unknown {
    this.sql.step.run()
    try {
      const result = resultOf(job)
      this.flushUnits()
      this.sql.stepDone.run()
      return result
    } catch (error) {
      if (!this.driver.inTransaction) throw error
      this.reset()
      this.sql.stepUndone.run()
      this.sql.stepDone.run()
      return new Failed(error)
    }
  }

  private isIdle(): boolean {
    return this.queue.length + this.syncing.length + this.unsynced.length === 0
  }

  private wake(): void {
    if (!this.isIdle()) return
    for (const resolve of this.waiters.splice(0)) resolve()
  }
}

function resultOf(job: Job): unknown {
  const value = job.step()
  if (isThenable(value)) throw new TypeError('a transaction step must be synchronous, but returned a promise')
  return value
}

export function withBusyRetry(work: () => void): void {
  const giveUpAt = performance.now() + 2 * longestLockWaitMs
  for (;;) {
    try {
      work()
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() > giveUpAt) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    }
  }
}

/** `databaseFault` in the domain has the words of this code. */
function diskHangs(): Error {
  return Object.assign(new Error('The disk of the database did not answer in time. Check it.'), {
    code: 'DISK_TIMEOUT',
  })
}

function isBusy(error: unknown): boolean {
  return error instanceof Driver.SqliteError && error.code.startsWith('SQLITE_BUSY')
}

function isThenable(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
