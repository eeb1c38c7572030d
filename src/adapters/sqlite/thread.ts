import type { OtpStore } from '../../domain/otp.ts'
import type { IntegrationRequest } from '../../domain/platform.ts'
import type { OutboxMessage } from '../../domain/ports.ts'
import type { SweepStep } from './sweep.ts'

/** Everything that requests write, as a thread can do it: arguments and results are plain data. */
export interface DatabaseWork extends Omit<OtpStore, 'check'> {
  keepMessage(message: OutboxMessage): Promise<void>
  keepRequest(request: IntegrationRequest): Promise<void>
  sweep(now: number): Promise<SweepStep>
  checkDatabase(): Promise<void>
}

// Calls and answers cross as JSON text, many at a time: that costs a fraction of what as many objects do.

type Call = readonly [id: number, name: keyof DatabaseWork, args: readonly unknown[]]
type Answer = readonly [id: number, value: unknown, error?: ThrownError]

/** An error as it crosses. */
interface ThrownError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code?: unknown
}

/** How a thread is asked to end. */
const farewell = 'end'

/**
 * The side of the thread: answers calls until it is asked to end.
 *
 * @param open makes the work on the database of this file, and what ends it; the other side waits for that
 */
export function serveThread(
  port: Pick<Worker, 'postMessage' | 'onmessage'>,
  open: (databaseFile: string) => { work: DatabaseWork; close: () => Promise<void> },
): void {
  port.onmessage = ({ data: databaseFile }: MessageEvent<string>) => {
    const { work, close } = open(databaseFile)
    const answer = gathered<Answer>((answers) => port.postMessage(JSON.stringify(answers)))
    port.onmessage = ({ data }: MessageEvent<string>) => {
      if (data === farewell) {
        // The last answers are on their way in this turn.
        void close().finally(() => setImmediate(() => port.postMessage(farewell)))
        return
      }
      for (const [id, name, args] of JSON.parse(data) as readonly Call[]) {
        const doing = (work[name] as (...given: readonly unknown[]) => Promise<unknown>)(...args)
        doing.then(
          (value) => answer([id, value ?? null]),
          (error: unknown) => answer([id, null, thrown(error)]),
        )
      }
    }
  }
}

/** How many calls or answers are handed on at once: a turn that brings more lets the other thread begin meanwhile. */
const enough = 16

/** Hands on what one turn of the event loop brings, a few together. */
function gathered<T>(handOn: (together: readonly T[]) => void): (one: T) => void {
  let together: T[] = []
  const handOnNow = () => {
    if (together.length === 0) return
    const ready = together
    together = []
    handOn(ready)
  }
  return (one) => {
    if (together.length === 0) setImmediate(handOnNow)
    together.push(one)
    if (together.length === enough) handOnNow()
  }
}

/**
 * The side of the server: lets another thread do the work, so that neither waiting for the disk nor copying pages holds
 * up the event loop.
 *
 * @param start starts the thread; done with the first call, and again after a thread has failed
 * @param answered is called when work has been done
 */
export function startThread(databaseFile: string, start: () => Worker, answered: () => void) {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let lastId = 0
  let thread: Worker | undefined
  let ended = () => {}

  const send = gathered<Call>((calls) => {
    thread ??= begin()
    thread.postMessage(JSON.stringify(calls))
  })
  const call =
    <Name extends keyof DatabaseWork>(name: Name) =>
    (...args: readonly unknown[]): Promise<never> => {
      lastId++
      send([lastId, name, args])
      const answer = Promise.withResolvers<unknown>()
      waiting.set(lastId, answer)
      return answer.promise as Promise<never>
    }

  const work: DatabaseWork = {
    admit: call('admit'),
    beginSend: call('beginSend'),
    moveEnd: call('moveEnd'),
    abandonSend: call('abandonSend'),
    guess: call('guess'),
    adopt: call('adopt'),
    keepMessage: call('keepMessage'),
    keepRequest: call('keepRequest'),
    sweep: call('sweep'),
    checkDatabase: call('checkDatabase'),
  }
  return {
    work,
    /** Lets the work under way end, and then the thread. */
    async close(): Promise<void> {
      if (!thread) return
      const { promise, resolve } = Promise.withResolvers<void>()
      ended = resolve
      setImmediate(() => thread?.postMessage(farewell))
      await promise
      thread?.terminate()
    },
  }

  function begin(): Worker {
    const begun = start()
    begun.postMessage(databaseFile)
    begun.onmessage = ({ data }: MessageEvent<string>) => {
      if (data === farewell) ended()
      else receive(JSON.parse(data) as readonly Answer[])
    }
    begun.onerror = ({ message }) => {
      thread = undefined
      begun.terminate()
      // What was asked of it may have been done or not, as `OtpStore` says of a store that is lost.
      const lost = new Error(
        `the thread of the database has failed, the next call starts another: ${message}`,
      )
      for (const { reject } of waiting.values()) reject(lost)
      waiting.clear()
      ended()
    }
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
}

function thrown(error: unknown): ThrownError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), stack: undefined }
  const { name, message, stack } = error
  return { name, message, stack, ...('code' in error ? { code: error.code } : {}) }
}
