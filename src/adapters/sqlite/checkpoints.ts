import type Driver from 'better-sqlite3'

export interface CheckpointLog {
  warn(fields: object, message: string): void
}

const commitsBetween = 8

/** Pages in the log that start a checkpoint. Repeated pages are copied once. */
const enoughPages = 2000

/** Above this many pages SQLite runs the checkpoint within a commit, which limits the log to 16 MiB. */
export const brakePages = 3500

/** On another thread, which starts with the first checkpoint: within a commit, a checkpoint would block the event loop. */
export class Checkpoints {
  private thread: Worker | undefined
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
  }

  consider(): void {
    this.commits++
    if (this.commits % commitsBetween !== 0 || this.underWay || this.isClosed) return
    const measured = this.logSize()
    if (!measured || measured.log - measured.checkpointed < enoughPages) return
    this.underWay = Promise.withResolvers()
    this.thread ??= this.start()
    this.thread.postMessage(this.driver.name)
  }

  private start(): Worker {
    const thread = new Worker(new URL('./checkpointer.ts', import.meta.url).href)
    // The browser types of the console's pages have no `unref`.
    ;(thread as unknown as Bun.Worker).unref()
    thread.onmessage = ({ data: problem }: MessageEvent<string | undefined>) => {
      if (problem !== undefined) this.log.warn({ problem }, 'a checkpoint failed; it will be retried')
      this.underWay?.resolve()
      this.underWay = undefined
    }
    thread.onerror = ({ message }) => {
      this.log.warn({ problem: message }, 'the checkpoint thread failed; commits checkpoint from now on')
      this.isClosed = true
      this.underWay?.resolve()
    }
    return thread
  }

  private logSize(): { log: number; checkpointed: number } | undefined {
    try {
      return this.measure.get()
    } catch {
      return undefined
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.underWay?.promise
    this.thread?.terminate()
  }
}
