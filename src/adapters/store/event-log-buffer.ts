import type { RequestTrace, SaveTrace } from '../../domain/events/event-log.ts'
import type { Attempt } from '../../domain/events/request-context.ts'
import type { StatKey } from '../../domain/events/stats.ts'
import type { EventLogStore } from './event-log.ts'
import { eventLogEntry } from './event-rows.ts'
import { StatBuffer } from './stat-buffer.ts'

/** How long entries wait to be written together. A crash can lose this much of the event log. */
const gatherMs = 25

/** Bounds memory while the database accepts no writes. */
const mostWaiting = 20_000

/** Small, so that concurrent requests do not wait noticeably. */
const batch = 200

/**
 * A write per request would cost as much as the request itself.
 * @param failed receives the error and the number of lost requests
 */
export function createEventLogBuffer(
  save: EventLogStore['saveEntries'],
  failed: (error: unknown, requests: number) => void,
) {
  const statCounts = new StatBuffer()
  /** By request, in order of arrival; `number` is the value of `added` at that time. */
  const waiting = new Map<string, { number: number; trace: RequestTrace; attempts: readonly Attempt[] }>()
  let size = 0
  /** Requests and counts so far, and how many of them are written or lost. */
  let added = 0
  let written = 0
  let isWriting = false
  /** Resolves after the current or next step. */
  let round = Promise.withResolvers<void>()
  let endDelay = () => {}
  let lost = 0

  function reportLost(error: unknown, requests: number): void {
    lost += requests
    failed(error, requests)
  }

  function forget(requestId: string): void {
    size -= 1 + (waiting.get(requestId)?.attempts.length ?? 0)
    waiting.delete(requestId)
  }

  /** Resolves after `gatherMs`, or at once if a caller waits in `flush`. */
  function batchDelay(): Promise<void> {
    return new Promise((resolve) => {
      endDelay = resolve
      setTimeout(resolve, gatherMs)
    })
  }

  async function write(): Promise<void> {
    isWriting = true
    while (waiting.size > 0 || !statCounts.isEmpty) {
      if (waiting.size < batch) await batchDelay()
      const some = Array.from(waiting.values().take(batch))
      for (const { trace } of some) forget(trace.requestId)
      const [next] = waiting.values()
      const upTo = next ? next.number - 1 : added
      const counts = statCounts.take()
      try {
        await save(
          some.map(({ trace, attempts }) => eventLogEntry(trace, attempts)),
          counts,
        )
      } catch (error) {
        reportLost(error, some.length)
      }
      written = upTo
      round.resolve()
      round = Promise.withResolvers()
    }
    // In the same turn, so that the next entry starts a new round.
    isWriting = false
  }

  return {
    add: ((trace, attempts) => {
      const { requestId } = trace
      const before = waiting.get(requestId)
      waiting.set(requestId, {
        number: before?.number ?? ++added,
        trace,
        attempts: before ? [...before.attempts, ...attempts] : attempts,
      })
      size += (before ? 0 : 1) + attempts.length
      if (size > mostWaiting) {
        const [oldest = ''] = waiting.keys()
        forget(oldest)
        reportLost(new Error('The database is too slow for the event log.'), 1)
      }
      if (!isWriting) void write()
    }) satisfies SaveTrace,
    count(at: number, statKey: StatKey): void {
      added++
      statCounts.add(at, statKey)
      if (!isWriting) void write()
    },
    stats: () => ({ waiting: size, lost }),
    /** Resolves when all entries so far are written or lost; later entries do not delay it. */
    async flush(): Promise<void> {
      const upTo = added
      while (isWriting && written < upTo) {
        endDelay()
        await round.promise
      }
    },
    /** Resolves when nothing is left to write; for closing the store. */
    async drain(): Promise<void> {
      while (isWriting) {
        endDelay()
        await round.promise
      }
    },
  }
}
