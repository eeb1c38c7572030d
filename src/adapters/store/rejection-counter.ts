import { rejectedStat, type StatKey } from '../../domain/events/stats.ts'
import type { ReportChange, ReportedMessage } from '../../domain/messages/delivery-reports.ts'

/** How long reports wait to be counted together. A crash can lose these counts. */
const gatherMs = 5000

/** Bounds memory while the database does not answer. */
const mostWaiting = 10_000

/** Parameters of a statement. */
const batch = 200

/** A provider's different reasons in this process. Further ones count without a reason. */
const mostReasons = 100

/**
 * Counts failed delivery reports by brand and template, after the answer to the report: its attempt may not be saved yet,
 * and the event log has no index by report key.
 */
export function createRejectionCounter(
  messagesOf: (keys: readonly string[], until: number) => Promise<ReadonlyMap<string, ReportedMessage>>,
  count: (at: number, statKey: StatKey, times: number) => void,
  failed: (error: unknown) => void,
) {
  const reasons = new Map<string, Set<string>>()
  let waiting: { readonly provider: string; readonly change: ReportChange }[] = []
  let timer: Timer | undefined
  let counting = Promise.resolve()

  function known(provider: string, reason: string | null): string | null {
    const all = reasons.getOrInsertComputed(provider, () => new Set())
    if (reason === null || all.has(reason)) return reason
    return all.size < mostReasons && all.add(reason) ? reason : null
  }

  async function countWaiting(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const all = waiting
    waiting = []
    for (let done = 0; done < all.length; done += batch) {
      const some = all.slice(done, done + batch)
      const keys = some.map(({ change }) => change.key)
      const messages = await messagesOf(keys, Math.max(...some.map(({ change }) => change.at)))
      for (const { provider, change } of some) {
        const message = messages.get(change.key)
        const stat = message && rejectedStat(message, provider, known(provider, change.reason))
        if (stat) count(change.at, stat, change.times)
      }
    }
  }

  /** Resolves when all changes so far are counted or lost. */
  function flush(): Promise<void> {
    counting = counting.then(countWaiting).catch(failed)
    return counting
  }

  return {
    add(provider: string, changes: readonly ReportChange[]): void {
      for (const change of changes.slice(0, mostWaiting - waiting.length)) waiting.push({ provider, change })
      if (waiting.length > 0) timer ??= setTimeout(flush, gatherMs).unref()
    },
    flush,
  }
}
