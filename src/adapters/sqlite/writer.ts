import Driver from 'better-sqlite3'
import { newDistribution, observe } from '../../domain/events/distribution.ts'
import type { WriterStats } from '../store/store.ts'

/** What a synchronous step may return: anything but a promise, since a transaction can't wait for one. */
type Sync<T> = T extends PromiseLike<unknown> ? never : T

/** How long a write waits for another process's lock before it fails. */
const lockPatienceMs = 5000

/** What the steps of a transaction keep in memory. */
export interface Unit {
  /** Forgets everything: a transaction begins, or is undone. */
  reset(): void
  /** Writes what has changed; part of the transaction. */
  flush(): void
}

const batchBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

interface Job {
  readonly step: () => unknown
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
  /** When the job fails if the lock has still not been had. */
  readonly giveUpAt: number
}

/**
 * Group commit: the writes of concurrent requests share one `BEGIN IMMEDIATE … COMMIT` and are answered after it, so that
 * a commit that waits for the disk costs one wait for all of them. One that throws is undone and fails alone. Another
 * process's lock is waited for without holding up the event loop.
 */
export class Writer {
  private lostBy: unknown
  private committedAt = Number.NEGATIVE_INFINITY
  private queue: Job[] = []
  private scheduled = false
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
   * Runs a synchronous step within the next transaction and resolves to what it returned, once that is committed.
   * Rejects with what it threw, or with the error of the transaction. The step may be run twice, the first time undone: it
   * must leave no trace but in the database and in the unit.
   *
   * @param patienceMs how long another process's lock is waited for
   */
  write<T>(step: () => Sync<T>, patienceMs = lockPatienceMs): Promise<T> {
    return new Promise((resolve, reject) => {
      this.queue.push({ step, resolve, reject, giveUpAt: performance.now() + patienceMs })
      this.schedule(0)
    })
  }

  /** Whether a transaction was committed within the last so many milliseconds, and none was lost since. */
  hasWritten(withinMs: number): boolean {
    return this.lostBy === undefined && performance.now() - this.committedAt <= withinMs
  }

  stats(): WriterStats {
    const { batchSizes, commitSeconds, lost } = this
    return { queue: this.queue.length, batchSizes, commitSeconds, lost }
  }

  /** Resolves when nothing is waiting to be written. */
  idle(): Promise<void> {
    if (this.queue.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.waiters.push(resolve))
  }

  /** Has a unit written with every transaction from now on. */
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
    // The end of this turn of the event loop: whatever other requests write until then joins the transaction.
    if (delayMs === 0) setImmediate(run)
    else setTimeout(run, delayMs)
  }

  private flush(): void {
    if (!this.begin()) return
    const jobs = this.queue
    this.queue = []
    let answers: readonly (() => void)[]
    try {
      this.reset()
      answers = this.together(jobs) ?? jobs.map((job) => this.apart(job))
      const startedAt = performance.now()
      this.sql.commit.run()
      this.committedAt = performance.now()
      observe(this.commitSeconds, (this.committedAt - startedAt) / 1000)
      observe(this.batchSizes, jobs.length)
    } catch (error) {
      this.lostBy = error
      this.lost++
      // The transaction as a whole is lost (disk full, file gone), and every step of it with it.
      this.undo()
      for (const job of jobs) job.reject(error)
      this.wake()
      return
    }
    this.lostBy = undefined
    for (const answer of answers) answer()
    this.wake()
  }

  /** Ends a transaction that is lost; where even that fails, SQLite has ended it, or will by the next `BEGIN` failing. */
  private undo(): void {
    this.reset()
    try {
      if (this.driver.inTransaction) this.sql.rollback.run()
    } catch {
      // The error that lost the transaction is the one to tell.
    }
  }

  /** Takes the write lock; while another process holds it, tries again later and fails what has waited too long. */
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
   * Runs all steps in one savepoint, as goes well nearly always; when one throws, undoes all and returns nothing. Throws
   * when the transaction is lost.
   */
  private together(jobs: readonly Job[]): readonly (() => void)[] | undefined {
    return this.inSavepoint(
      () => {
        const answers = jobs.map((job) => answerOf(job))
        this.flushUnits()
        return answers
      },
      () => undefined,
    )
  }

  /** Runs one step in a savepoint of its own; returns how to answer it after the commit. */
  private apart(job: Job): () => void {
    return this.inSavepoint(
      () => {
        const answer = answerOf(job)
        this.flushUnits()
        return answer
      },
      (error) => () => job.reject(error),
    )
  }

  private inSavepoint<T>(work: () => T, undone: (error: unknown) => T): T {
    this.sql.step.run()
    try {
      const result = work()
      this.sql.stepDone.run()
      return result
    } catch (error) {
      if (!this.driver.inTransaction) throw error
      this.reset()
      this.sql.stepUndone.run()
      this.sql.stepDone.run()
      return undone(error)
    }
  }

  private wake(): void {
    if (this.queue.length > 0) return
    for (const resolve of this.waiters.splice(0)) resolve()
  }
}

/** Runs a step; returns how to answer it. */
function answerOf(job: Job): () => void {
  const value = job.step()
  if (isThenable(value)) throw new TypeError('a transaction step must be synchronous, but returned a promise')
  return () => job.resolve(value as never)
}

/**
 * Runs what may meet another process's lock, again and again until it is had; for start-up, where nobody else waits. What
 * is run must be harmless to repeat.
 */
export function withBusyRetry(work: () => void): void {
  const giveUpAt = performance.now() + 2 * lockPatienceMs
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
