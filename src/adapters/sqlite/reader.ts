import { drizzle } from 'drizzle-orm/sqlite-proxy'
import type { Orm } from '../store/statements.ts'

export type Rows = unknown[][]

/** JSON text costs a fraction of transferring objects. */
export type Read = readonly [file: string, sql: string, params: readonly unknown[]]
export type Answer = readonly [rows: Rows, error?: ReadError]

export interface ReadError {
  readonly name: string
  readonly message: string
  readonly code: unknown
}

interface Waiting extends PromiseWithResolvers<Rows> {
  readonly read: Read
}

/** While the server writes, an answer and what follows from it take a tenth of the event loop. */
const pauseFactor = 9
const longestPauseMs = 20

const readerThread = () => new Worker(new URL('./reader-main.ts', import.meta.url).href)

/**
 * Reads of many rows, on a thread with a connection of its own, so that no request waits for them. The thread starts with the first
 * read. A read sees what was committed before it, and each statement is a transaction of its own.
 */
export class Reader {
  readonly orm = drizzle(async (sql, params) => ({ rows: await this.read(sql, params) })) as unknown as Orm
  private thread: Worker | undefined
  private readonly waiting: Waiting[] = []
  /** The thread has one at a time. */
  private current: Waiting | undefined
  private timer: Timer | undefined

  /**
   * @param isBusy whether requests are being answered
   * @param longestMs the thread ends after this time without a read; a read that takes longer is rejected
   */
  constructor(
    private readonly file: string,
    private readonly isBusy: () => boolean,
    private readonly longestMs = 30_000,
    private readonly startThread = readerThread,
  ) {}

  private read(sql: string, params: readonly unknown[]): Promise<Rows> {
    const reading = { read: [this.file, sql, params] as const, ...Promise.withResolvers<Rows>() }
    this.waiting.push(reading)
    if (!this.current) this.next()
    return reading.promise
  }

  private next(): void {
    this.current ??= this.waiting.shift()
    if (!this.current) return
    this.thread ??= this.start()
    this.timer?.refresh()
    this.thread.postMessage(JSON.stringify(this.current.read))
  }

  private start(): Worker {
    const thread = this.startThread()
    const late = `It took longer than ${this.longestMs / 1000} seconds. Use more filters or a shorter time.`
    this.timer = setTimeout(() => this.end(late), this.longestMs).unref()
    thread.onmessage = ({ data }: MessageEvent<string>) => {
      if (this.thread !== thread) return
      const [rows, error] = JSON.parse(data) as Answer
      const { current } = this
      const at = performance.now()
      const proceed = () => {
        if (this.current !== current) return
        this.current = undefined
        this.next()
      }
      // One answer in each turn of the event loop, so that requests come between.
      setImmediate(() => {
        const pauseMs = Math.min(pauseFactor * (performance.now() - at), longestPauseMs)
        if (pauseMs >= 1 && this.isBusy()) setTimeout(proceed, pauseMs)
        else proceed()
      })
      if (error) current?.reject(Object.assign(new Error(error.message), error))
      else current?.resolve(rows)
    }
    thread.onerror = ({ message }) => this.thread === thread && this.end(message)
    thread.addEventListener('close', () => this.thread === thread && this.end('Its thread ended.'))
    return thread
  }

  /** The next read starts another thread. */
  private end(problem: string): Worker | undefined {
    clearTimeout(this.timer)
    const { thread } = this
    this.thread = undefined
    thread?.terminate()
    const lost = new Error(`The database was not read. ${problem}`)
    this.current?.reject(lost)
    this.current = undefined
    for (const { reject } of this.waiting.splice(0)) reject(lost)
    return thread
  }

  /** Resolves when the connection is closed. */
  async close(): Promise<void> {
    const thread = this.end('The server stops.')
    if (thread) await new Promise((resolve) => thread.addEventListener('close', resolve))
  }
}
