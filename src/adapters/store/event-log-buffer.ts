import type { SavedRequest, SaveRequest } from '../../domain/log/event-log.ts'
import type { StatKey } from '../../domain/log/stats.ts'
import type { EventLogStore } from './event-log.ts'
import { type EventLogEntry, eventLogEntry } from './event-rows.ts'
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
  /** In order of arrival, each with its number of rows. */
  const waiting = new Map<SavedRequest, number>()
  /** The sum of these rows. */
  let size = 0
  let isWriting = false
  /** False while a step gathers its requests. */
  let isSaving = false
  /** Resolves after the current or next step. */
  let round = Promise.withResolvers<void>()
  let endDelay = () => {}
  let lost = 0

  function reportLost(error: unknown, requests: number): void {
    lost += requests
    failed(error, requests)
  }

  function take(request: SavedRequest): EventLogEntry {
    size -= waiting.get(request) ?? 0
    waiting.delete(request)
    const entry = eventLogEntry(request)
    request.savedAttempts = request.attempts.length
    return entry
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
      const entries = Array.from(waiting.keys().take(batch), take)
      isSaving = true
      try {
        await save(entries, statCounts.take())
      } catch (error) {
        reportLost(error, entries.length)
      }
      isSaving = false
      round.resolve()
      round = Promise.withResolvers()
    }
    // In the same turn, so that the next entry starts a new round.
    isWriting = false
  }

  return {
    add: ((request) => {
      const rows = 1 + request.attempts.length - request.savedAttempts
      size += rows - (waiting.get(request) ?? 0)
      waiting.set(request, rows)
      if (size > mostWaiting) {
        const [oldest = request] = waiting.keys()
        take(oldest)
        reportLost(new Error('The database is too slow for the event log.'), 1)
      }
      if (!isWriting) void write()
    }) satisfies SaveRequest,
    /** @param times how many events, or millionths */
    count(at: number, statKey: StatKey, times = 1): void {
      statCounts.add(at, statKey, times)
      if (!isWriting) void write()
    },
    stats: () => ({ waiting: size, lost }),
    /** Resolves when all entries so far are written or lost; later entries do not delay it. */
    async flush(): Promise<void> {
      const waitingSteps = Math.ceil(waiting.size / batch) || (statCounts.isEmpty ? 0 : 1)
      for (let steps = waitingSteps + (isSaving ? 1 : 0); isWriting && steps > 0; steps--) {
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
