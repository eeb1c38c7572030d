import fs from 'node:fs'
import type Driver from 'better-sqlite3'
import type { Log } from '../../domain/ground/ports.ts'

const commitsBetween = 4

/** Pages that are not in the file yet and start a checkpoint. Few, since syncs of the log wait while the file is synced. */
const enoughPages = 250

/**
 * Pages of a long log. Commits then wait for a checkpoint, after which SQLite writes the log from its beginning. Most pages were
 * copied by checkpoints before, so the wait is short.
 */
const longLog = 2000

const rewriteBytes = 2 ** 20

/** The browser types of the console's pages have no `ref`. */
type Thread = Worker & Pick<Bun.Worker, 'ref' | 'unref'>

const none = { log: 0, checkpointed: 0 }

/**
 * The write-ahead log of a server. Its syncs and checkpoints run on other threads, so that no commit waits for the disk
 * on the event loop. The connection has `synchronous = NORMAL`: a commit is durable after the next `sync`, and not before.
 */
export class WriteAheadLog {
  private readonly fd: number
  private thread: Thread | undefined
  private readonly measure: Driver.Statement<[], { log: number; checkpointed: number }>
  private commits = 0
  private underWay: PromiseWithResolvers<void> | undefined
  private isLong = false
  /** Since a sync failed. */
  private isDamaged = false
  private isClosed = false

  constructor(
    private readonly driver: Driver.Database,
    private readonly log: Pick<Log, 'warn'>,
  ) {
    driver.pragma('synchronous = NORMAL')
    driver.pragma('wal_autocheckpoint = 0')
    this.measure = driver.prepare('PRAGMA wal_checkpoint(NOOP)')
    // SQLite holds no lock on this file, so that closing it releases none.
    this.fd = fs.openSync(`${driver.name}-wal`, 'r+')
  }

  /** Resolves when all commits so far are on the disk. Call it outside of a transaction. */
  async sync(): Promise<void> {
    if (this.isDamaged) this.rewrite()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    fs.fdatasync(this.fd, (error) => (error ? reject(error) : resolve()))
    try {
      await promise
      this.isDamaged = false
    } catch (error) {
      this.isDamaged = true
      throw error
    }
  }

  /**
   * After a failed sync the kernel may call pages clean that it never wrote. If all are written again, the next sync includes them.
   * No other process writes meanwhile.
   */
  private rewrite(): void {
    this.driver.exec('BEGIN IMMEDIATE')
    try {
      const bytes = Buffer.alloc(rewriteBytes)
      for (let at = 0, length = 0; ; at += length) {
        length = fs.readSync(this.fd, bytes, 0, bytes.length, at)
        if (length === 0) break
        for (let done = 0; done < length; )
          done += fs.writeSync(this.fd, bytes, done, length - done, at + done)
      }
    } finally {
      this.driver.exec('ROLLBACK')
    }
  }

  /** Starts a checkpoint if the log is long enough. Call it after each commit. */
  committed(): void {
    this.commits++
    if (this.commits % commitsBetween !== 0 || this.isClosed || this.isDamaged) return
    const { log, checkpointed } = this.size()
    this.isLong = log > longLog
    if (!this.underWay && log - checkpointed > enoughPages) this.checkpoint()
  }

  /** Undefined, unless commits must wait for a checkpoint. */
  room(): Promise<void> | undefined {
    return this.isLong ? this.underWay?.promise : undefined
  }

  private checkpoint(): void {
    this.underWay = Promise.withResolvers()
    this.thread ??= this.start()
    // A stop waits for it.
    this.thread.ref()
    this.thread.postMessage(this.driver.name)
  }

  /** On a thread of its own, which starts with the first checkpoint. */
  private start(): Thread {
    const thread = new Worker(new URL('./checkpointer.ts', import.meta.url).href) as Thread
    const ended = (problem: string | undefined, message: string) => {
      if (problem !== undefined) this.log.warn({ problem }, message)
      this.isLong = false
      thread.unref()
      this.underWay?.resolve()
      this.underWay = undefined
    }
    thread.onmessage = ({ data: problem }: MessageEvent<string | undefined>) =>
      ended(problem, 'a checkpoint failed; it will be retried')
    const failed = (problem: string) => {
      if (this.thread !== thread) return
      this.thread = undefined
      ended(problem, 'the checkpoint thread failed; the next checkpoint starts another')
    }
    thread.onerror = ({ message }) => {
      failed(message)
      thread.terminate()
    }
    thread.addEventListener('close', () => failed('it ended unexpectedly'))
    return thread
  }

  private size(): { log: number; checkpointed: number } {
    try {
      return this.measure.get() ?? none
    } catch {
      return none
    }
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    await this.underWay?.promise
    const { thread } = this
    this.thread = undefined
    thread?.terminate()
    fs.closeSync(this.fd)
  }
}
