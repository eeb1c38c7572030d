import { closeSync, fdatasync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import type Driver from 'better-sqlite3'

export interface WriteAheadLogLog {
  warn(fields: object, message: string): void
}

const commitsBetween = 8

/** Pages in the log that start a checkpoint. Repeated pages are copied once. */
const enoughPages = 2000

/** Above this many pages commits wait for the checkpoint, which limits the log to 16 MiB. */
const mostPages = 3500

/**
 * The write-ahead log of a server. Its syncs and checkpoints run on other threads, so that the event loop never waits for the
 * disk. The connection has `synchronous = NORMAL`: a commit is durable after the next `sync`, and not before.
 */
export class WriteAheadLog {
  private readonly fd: number
  private thread: Worker | undefined
  private readonly measure: Driver.Statement<[], { log: number; checkpointed: number }>
  private commits = 0
  private underWay: PromiseWithResolvers<void> | undefined
  private isFull = false
  private isClosed = false

  constructor(
    private readonly driver: Driver.Database,
    private readonly log: WriteAheadLogLog,
  ) {
    driver.pragma('synchronous = NORMAL')
    driver.pragma('wal_autocheckpoint = 0')
    this.measure = driver.prepare('PRAGMA wal_checkpoint(NOOP)')
    // SQLite holds no lock on this file, so that closing it releases none.
    this.fd = openSync(`${driver.name}-wal`, 'r+')
  }

  /** Resolves when all commits so far are on the disk. */
  sync(): Promise<void> {
    return new Promise((resolve, reject) =>
      fdatasync(this.fd, (error) => (error ? reject(error) : resolve())),
    )
  }

  /**
   * After a failed sync, whose pages the kernel may have dropped or may call clean: writes the log again, so that the next
   * sync writes all of it. Call it inside a transaction, which keeps other processes from writing.
   */
  rewrite(): void {
    const bytes = Buffer.alloc(fstatSync(this.fd).size)
    const length = readSync(this.fd, bytes, 0, bytes.length, 0)
    writeSync(this.fd, bytes, 0, length, 0)
  }

  /** Starts a checkpoint if the log is long enough. Call it after each commit. */
  committed(): void {
    this.commits++
    if (this.commits % commitsBetween !== 0 || this.isClosed) return
    const pages = this.pagesToCopy()
    this.isFull = pages > mostPages
    if (this.underWay || pages < enoughPages) return
    this.underWay = Promise.withResolvers()
    this.thread ??= this.start()
    this.thread.postMessage(this.driver.name)
  }

  /** Undefined, unless commits must wait for a checkpoint. */
  room(): Promise<void> | undefined {
    return this.isFull ? this.underWay?.promise : undefined
  }

  /** On a thread of its own, which starts with the first checkpoint. */
  private start(): Worker {
    const thread = new Worker(new URL('./checkpointer.ts', import.meta.url).href)
    // The browser types of the console's pages have no `unref`.
    ;(thread as unknown as Bun.Worker).unref()
    const ended = (problem: string | undefined, message: string) => {
      if (problem !== undefined) this.log.warn({ problem }, message)
      this.isFull = false
      this.underWay?.resolve()
      this.underWay = undefined
    }
    thread.onmessage = ({ data: problem }: MessageEvent<string | undefined>) =>
      ended(problem, 'a checkpoint failed; it will be retried')
    thread.onerror = ({ message }) => {
      thread.terminate()
      this.thread = undefined
      ended(message, 'the checkpoint thread failed; the next checkpoint starts another')
    }
    return thread
  }

  private pagesToCopy(): number {
    try {
      const measured = this.measure.get()
      return measured ? measured.log - measured.checkpointed : 0
    } catch {
      return 0
    }
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    await this.underWay?.promise
    this.thread?.terminate()
    closeSync(this.fd)
  }
}
