import Driver from 'better-sqlite3'
import { newDistribution, observe } from '../../domain/log/distribution.ts'
import type { WriterStats } from '../store/store.ts'

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
  readonly giveUpAt: number
}

/** Group commit: concurrent writes share a transaction. A write that throws fails alone. */
export class Writer {
  private lostBy: unknown
  private committedAt = Number.NEGATIVE_INFINITY
  private queue: Job[] = []
  private scheduled = false
  /** Since a step of the first jobs in the queue threw. */
  private isOneByOne = false
  private readonly units: Unit[] = []
  private readonly waiters: (() => void)[] = []
  private readonly batchSizes = newDistribution(batchBounds)
  private readonly commitSeconds = newDistribution(commitBounds)
  private lost = 0

  private readonly sql: Record<
    'begin' | 'commit' | 'rollback' | 'step' | 'stepDone' | 'stepUndone',
    Driver.Statement
  >

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
  }

  /**
   * Resolves to the step's result after the commit. The step may run twice, so it must have no other effects.
   * @param lockWaitMs how long to wait for another process's lock
   */
  write<T>(step: () => Sync<T>, lockWaitMs = longestLockWaitMs): Promise<T> {
    return new Promise((resolve, reject) => {
      this.queue.push({ step, resolve, reject, giveUpAt: performance.now() + lockWaitMs })
      this.schedule(0)
    })
  }

  /** Whether a transaction was committed within this time, and none has failed since. */
  hasWritten(withinMs: number): boolean {
    return this.lostBy === undefined && performance.now() - this.committedAt <= withinMs
  }

  stats(): WriterStats {
    const { batchSizes, commitSeconds, lost } = this
    return { queue: this.queue.length, batchSizes, commitSeconds, lost }
  }

  idle(): Promise<void> {
    if (this.queue.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.waiters.push(resolve))
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
    if (!this.begin()) return
    const jobs = this.queue
    this.queue = []
    let answers: readonly (() => void)[] | undefined
    try {
      this.reset()
      answers = this.isOneByOne ? jobs.map((job) => this.apart(job)) : this.together(jobs)
      if (answers) this.commit(jobs.length)
    } catch (error) {
      this.lostBy = error
      this.lost++
      // The whole transaction failed, for example on a full disk.
      this.undo()
      for (const job of jobs) job.reject(error)
      answers = []
    }
    if (!answers) {
      this.queue = jobs
      this.isOneByOne = true
      this.flush()
      return
    }
    this.isOneByOne = false
    for (const answer of answers) answer()
    this.wake()
  }

  private commit(jobs: number): void {
    const startedAt = performance.now()
    this.sql.commit.run()
    this.committedAt = performance.now()
    observe(this.commitSeconds, (this.committedAt - startedAt) / 1000)
    observe(this.batchSizes, jobs)
    this.lostBy = undefined
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
      return true
    } catch (error) {
      const now = performance.now()
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
      else this.wake()
      return false
    }
  }

  /**
   * Without a savepoint, for which SQLite would copy each changed page. Returns undefined if a step throws,
   * after a rollback. Throws if the transaction is lost.
   */
  private together(jobs: readonly Job[]): readonly (() => void)[] | undefined {
    try {
      const answers = jobs.map((job) => answerOf(job))
      this.flushUnits()
      return answers
    } catch (error) {
      if (!this.driver.inTransaction) throw error
      this.undo()
      return undefined
    }
  }

  private apart(job: Job): () => void {
    this.sql.step.run()
    try {
      const answer = answerOf(job)
      this.flushUnits()
      this.sql.stepDone.run()
      return answer
    } catch (error) {
      if (!this.driver.inTransaction) throw error
      this.reset()
      this.sql.stepUndone.run()
      this.sql.stepDone.run()
      return () => job.reject(error)
    }
  }

  private wake(): void {
    if (this.queue.length > 0) return
    for (const resolve of this.waiters.splice(0)) resolve()
  }
}

function answerOf(job: Job): () => void {
  const value = job.step()
  if (isThenable(value)) throw new TypeError('a transaction step must be synchronous, but returned a promise')
  return () => job.resolve(value as never)
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

function isBusy(error: unknown): boolean {
  return error instanceof Driver.SqliteError && error.code.startsWith('SQLITE_BUSY')
}

function isThenable(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
