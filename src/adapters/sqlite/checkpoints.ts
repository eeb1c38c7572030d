import type Driver from 'better-sqlite3'

/** The part of a logger that is used here. */
export interface CheckpointLog {
  warn(fields: object, message: string): void
}

/** After how many commits the log is measured. */
const commitsBetween = 8

/**
 * How many pages of the log that are not in the file yet make a checkpoint worth while: the more, the more often a page is
 * in it several times, of which the last is copied. Half of what the log may grow to, since writing goes on meanwhile.
 */
const enoughPages = 2000

/**
 * How many pages of the log make SQLite fold it back by itself within a commit: a brake, which keeps the log at some
 * 16 MiB where the other thread is late or has failed.
 */
export const brakePages = 3500

/**
 * Folds the write-ahead log back into the file on another thread. SQLite does so by itself within some unlucky commit,
 * which then waits until every page has reached the disk, and the event loop with it.
 */
export class Checkpoints {
  private readonly thread = new Worker(new URL('./checkpointer.ts', import.meta.url).href)
  private readonly measure: Driver.Statement<[], { log: number; checkpointed: number }>
  private commits = 0
  private underWay: PromiseWithResolvers<void> | undefined
  private isClosed = false

  constructor(
    private readonly driver: Driver.Database,
    private readonly log: CheckpointLog,
  ) {
    this.measure = driver.prepare('PRAGMA wal_checkpoint(NOOP)')
    driver.pragma(`wal_autocheckpoint = ${brakePages}`)
    // The types of a browser, which the console's pages bring along, know no such thing.
    ;(this.thread as unknown as Bun.Worker).unref()
    this.thread.onmessage = ({ data: problem }: MessageEvent<string | undefined>) => {
      // Nothing is lost: what is not folded back stays in the log, and the next time may go better.
      if (problem !== undefined) this.log.warn({ problem }, 'a checkpoint failed; it is tried again')
      this.underWay?.resolve()
      this.underWay = undefined
    }
    this.thread.onerror = ({ message }) => {
      this.log.warn(
        { problem: message },
        'the thread for checkpoints has failed; commits do its work from now on',
      )
      this.isClosed = true
      this.underWay?.resolve()
    }
  }

  /** To be called after each commit: has the log folded back when that is worth while. */
  consider(): void {
    this.commits++
    if (this.commits % commitsBetween !== 0 || this.underWay || this.isClosed) return
    const measured = this.logSize()
    if (!measured || measured.log - measured.checkpointed < enoughPages) return
    this.underWay = Promise.withResolvers()
    this.thread.postMessage(this.driver.name)
  }

  private logSize(): { log: number; checkpointed: number } | undefined {
    try {
      return this.measure.get()
    } catch {
      // Whatever is wrong with the database, the next write tells it to whoever waits for that.
      return undefined
    }
  }

  /** Waits for the checkpoint under way and ends the thread. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.underWay?.promise
    this.thread.terminate()
  }
}
