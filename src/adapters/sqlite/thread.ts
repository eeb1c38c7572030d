import type { OtpStore } from '../../domain/otp/store.ts'
import type { EventLogStore } from '../store/event-log.ts'
import type { RetainAfter, SweepStep, WriterStats } from '../store/store.ts'
import type { FileIdentity } from './database.ts'

/** All writes of requests. Arguments and results are plain data, since they may cross to a thread. */
export interface DatabaseWork extends OtpStore {
  /** In one transaction. Resolves to the number of rows that each statement returns. */
  write(
    statements: readonly { readonly sql: string; readonly params: readonly unknown[] }[],
  ): Promise<readonly number[]>
  saveEntries: EventLogStore['saveEntries']
  saveReports: EventLogStore['saveReports']
  sweep(now: number, retainAfter: RetainAfter): Promise<SweepStep>
  checkDatabase(): Promise<void>
  stats(): Promise<WriterStats>
}

// JSON text in batches costs a fraction of transferring objects.

type Call = readonly [id: number, name: keyof DatabaseWork, args: readonly unknown[]]
type Answer = readonly [id: number, value: unknown, error?: ThrownError]

interface ThrownError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code?: unknown
}

export interface ThreadDatabase {
  readonly file: string
  readonly identity: FileIdentity
}

const ending = 'end'

/** Runs in the thread. `open` opens the database; the other side waits for `close`. */
export function serveThread(
  port: Pick<Worker, 'postMessage' | 'onmessage'>,
  open: (database: ThreadDatabase) => { work: DatabaseWork; close: () => Promise<void> },
): void {
  port.onmessage = ({ data: database }: MessageEvent<string>) => {
    const { work, close } = open(JSON.parse(database))
    const answer = batched((answers) => port.postMessage(answers))
    port.onmessage = ({ data }: MessageEvent<string>) => {
      if (data === ending) {
        void close().finally(() => setImmediate(() => port.postMessage(ending)))
        return
      }
      for (const [id, name, args] of JSON.parse(data) as readonly Call[]) {
        const doing = (work[name] as (...given: readonly unknown[]) => Promise<unknown>)(...args)
        doing.then(
          (value) => answer(JSON.stringify([id, value ?? null] satisfies Answer)),
          (error: unknown) => answer(JSON.stringify([id, null, thrown(error)] satisfies Answer)),
        )
      }
    }
  }
}

/** The other thread can begin before the turn ends. */
const enough = 16

function batched(deliver: (together: string) => void): (json: string) => void {
  let together: string[] = []
  const handOnNow = () => {
    if (together.length === 0) return
    const ready = `[${together.join()}]`
    together = []
    deliver(ready)
  }
  return (json) => {
    if (together.length === 0) setImmediate(handOnNow)
    together.push(json)
    if (together.length === enough) handOnNow()
  }
}

const callTimeoutMs = 10_000
const checkTimeoutMs = 2000

const pollMs = 500
const farewellMs = 15_000

interface Waiting extends PromiseWithResolvers<unknown> {
  readonly giveUpAt: number
}

/**
 * A call that is rejected because the thread failed may have been done.
 * @param start starts the thread, at the first call and again after a failure
 * @param failed called with the reason why the thread ended
 */
export function startThread(
  database: ThreadDatabase,
  start: () => Worker,
  answered: () => void,
  failed: (problem: string) => void,
) {
  const waiting = new Map<number, Waiting>()
  let lastId = 0
  let thread: Worker | undefined
  let ended: (() => void) | undefined

  const send = batched((calls) => {
    thread ??= begin()
    thread.postMessage(calls)
  })
  const call =
    (name: keyof DatabaseWork, waitMs = callTimeoutMs) =>
    (...args: readonly unknown[]): Promise<never> => {
      lastId++
      // JSON turns undefined into null, for which a step has no default.
      const given = args.at(-1) === undefined ? args.slice(0, -1) : args
      send(JSON.stringify([lastId, name, given] satisfies Call))
      const answer = { ...Promise.withResolvers<unknown>(), giveUpAt: performance.now() + waitMs }
      waiting.set(lastId, answer)
      return answer.promise as Promise<never>
    }
  const polling = setInterval(giveUp, pollMs)
  polling.unref()

  return {
    work: workBy(call),
    queueLength: () => waiting.size,
    /** Waits for pending calls; throws if that takes too long. */
    async close(): Promise<void> {
      clearInterval(polling)
      if (!thread && waiting.size === 0) return
      const { promise, resolve } = Promise.withResolvers<'ended' | 'late'>()
      ended = () => resolve('ended')
      setImmediate(() => thread?.postMessage(ending))
      const late = setTimeout(() => resolve('late'), farewellMs)
      const outcome = await promise
      clearTimeout(late)
      if (outcome === 'late')
        throw new Error('The database thread does not answer. Check the disk of the database.')
      thread?.terminate()
    },
  }

  function begin(): Worker {
    const begun = start()
    const end = (problem: string) => {
      if (thread !== begun) return
      thread = undefined
      if (ended) ended()
      else failed(problem)
      const lost = new Error(`The database thread failed: ${problem}`)
      for (const { reject } of waiting.values()) reject(lost)
      waiting.clear()
    }
    begun.postMessage(JSON.stringify(database))
    begun.onmessage = ({ data }: MessageEvent<string>) => {
      if (data === ending) ended?.()
      else receive(JSON.parse(data) as readonly Answer[])
    }
    begun.onerror = ({ message }) => {
      end(message)
      begun.terminate()
    }
    begun.addEventListener('close', () => end('it ended unexpectedly'))
    return begun
  }

  function receive(answers: readonly Answer[]): void {
    for (const [id, value, error] of answers) {
      const answer = waiting.get(id)
      waiting.delete(id)
      if (error) answer?.reject(Object.assign(new Error(error.message), error))
      else answer?.resolve(value)
    }
    answered()
  }

  function giveUp(): void {
    const now = performance.now()
    for (const [id, { giveUpAt, reject }] of waiting) {
      if (giveUpAt > now) continue
      waiting.delete(id)
      reject(new Error('The database thread did not answer in time. Check the disk of the database.'))
    }
  }
}

type Caller = (name: keyof DatabaseWork, waitMs?: number) => (...args: readonly unknown[]) => Promise<never>

function workBy(call: Caller): DatabaseWork {
  return {
    admit: call('admit'),
    beginSend: call('beginSend'),
    setProvider: call('setProvider'),
    reschedule: call('reschedule'),
    giveBack: call('giveBack'),
    abandonSend: call('abandonSend'),
    guess: call('guess'),
    write: call('write'),
    saveEntries: call('saveEntries'),
    saveReports: call('saveReports'),
    sweep: call('sweep'),
    checkDatabase: call('checkDatabase', checkTimeoutMs),
    stats: call('stats', checkTimeoutMs),
  }
}

function thrown(error: unknown): ThrownError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), stack: undefined }
  const { name, message, stack } = error
  return { name, message, stack, ...('code' in error ? { code: error.code } : {}) }
}
