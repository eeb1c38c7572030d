import type { RequestTrace, SaveTrace } from '../../domain/events/event-log.ts'
import type { Attempt } from '../../domain/events/request-context.ts'
import type { StatKey } from '../../domain/events/stats.ts'
import type { EventLogStore } from './event-log.ts'
import { eventLogEntry } from './event-rows.ts'
import { StatBuffer } from './stat-buffer.ts'

/** How long an entry waits for others: what a crash may lose of the event log, beside the log's last lines. */
const gatherMs = 25

/** How many requests and attempts wait while the database does not take them. */
const mostWaiting = 20_000

/** How many are written in one step, so that requests beside it don't wait noticeably. */
const batch = 500

/**
 * Gathers what the requests of a moment leave for the event log and has it written in one step: alone, each would cost as
 * much as the request itself. Of a request that begins and ends within a moment the end alone is written. One step is
 * under way at a time, and entries go in their order.
 *
 * @param failed is told what could not be written, and of how many requests
 */
export function createEventLogBuffer(
  save: EventLogStore['saveEntries'],
  failed: (error: unknown, requests: number) => void,
) {
  const statCounts = new StatBuffer()
  /** By request, in the order in which they came; `number` is what `taken` was by then. */
  const waiting = new Map<string, { number: number; trace: RequestTrace; attempts: readonly Attempt[] }>()
  /** Requests and attempts in it. */
  let size = 0
  /** Requests and counts so far, and how many of the first of them have been written, or told as lost. */
  let taken = 0
  let written = 0
  let isWriting = false
  /** Resolves after the step that is under way or comes next. */
  let round = Promise.withResolvers<void>()
  /** Lets the next step begin at once. */
  let hurry = () => {}
  /** Requests whose entries could not be written. */
  let lost = 0

  function lose(error: unknown, requests: number): void {
    lost += requests
    failed(error, requests)
  }

  function forget(requestId: string): void {
    size -= 1 + (waiting.get(requestId)?.attempts.length ?? 0)
    waiting.delete(requestId)
  }

  /** Resolves when others have had time to come, or somebody waits for what is here. */
  function gathered(): Promise<void> {
    return new Promise((resolve) => {
      hurry = resolve
      setTimeout(resolve, gatherMs)
    })
  }

  async function write(): Promise<void> {
    isWriting = true
    while (waiting.size > 0 || !statCounts.isEmpty) {
      if (waiting.size < batch) await gathered()
      const some = Array.from(waiting.values().take(batch))
      for (const { trace } of some) forget(trace.requestId)
      const [next] = waiting.values()
      const upTo = next ? next.number - 1 : taken
      const counts = statCounts.take()
      try {
        await save(
          some.map(({ trace, attempts }) => eventLogEntry(trace, attempts)),
          counts,
        )
      } catch (error) {
        lose(error, some.length)
      }
      written = upTo
      round.resolve()
      round = Promise.withResolvers()
    }
    // In the turn in which nothing was left: what comes after it begins anew.
    isWriting = false
  }

  return {
    add: ((trace, attempts) => {
      const { requestId } = trace
      const before = waiting.get(requestId)
      waiting.set(requestId, {
        number: before?.number ?? ++taken,
        trace,
        attempts: before ? [...before.attempts, ...attempts] : attempts,
      })
      size += (before ? 0 : 1) + attempts.length
      if (size > mostWaiting) {
        const [oldest = ''] = waiting.keys()
        forget(oldest)
        lose(new Error('the database does not keep up with the journal'), 1)
      }
      if (!isWriting) void write()
    }) satisfies SaveTrace,
    /** Counts something that happened, to be written with the next entries. */
    count(at: number, statKey: StatKey): void {
      taken++
      statCounts.add(at, statKey)
      if (!isWriting) void write()
    },
    /** Requests and attempts that wait to be written, and requests whose were lost since the start. */
    stats: () => ({ waiting: size, lost }),
    /** Resolves when all that was taken so far has been written, or told as lost; what comes later does not hold it up. */
    async flush(): Promise<void> {
      const upTo = taken
      while (isWriting && written < upTo) {
        hurry()
        await round.promise
      }
    },
    /** Resolves when nothing is left to be written, for whoever closes the store then. */
    async drain(): Promise<void> {
      while (isWriting) {
        hurry()
        await round.promise
      }
    },
  }
}
