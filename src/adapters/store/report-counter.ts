import {
  type DeliveredMessage,
  type ReportChange,
  type ReportedMessage,
  requestIdOfKey,
} from '../../domain/delivery/delivery-reports.ts'
import { lateStat, rejectedStat, type StatKey } from '../../domain/log/stats.ts'

/** How long reports wait to be counted together. A crash can lose these counts. */
const gatherMs = 5000

/** Bounds memory while the database does not answer. */
const mostWaiting = 10_000

/** Parameters of a statement. */
const batch = 200

/** A provider's different reasons in this process. Further ones count without a reason. */
const mostReasons = 100

/** How often a delivered message is looked up until its request has ended: for a minute. */
const mostTries = 12

interface Waiting {
  readonly provider: string
  readonly change: ReportChange
  readonly tries: number
}

interface Messages {
  reportedMessages(keys: readonly string[], until: number): Promise<ReadonlyMap<string, ReportedMessage>>
  deliveredMessages(keys: readonly string[]): Promise<ReadonlyMap<string, DeliveredMessage>>
}

/**
 * Counts failed messages by brand and template, and delivered codes whose send has failed. It does so after the answer to the report:
 * its attempt may not be saved yet, and the event log has no index by report key.
 */
export function createReportCounter(
  messages: Messages,
  count: (at: number, statKey: StatKey, times: number) => void,
  failed: (error: unknown) => void,
) {
  const reasons = new Map<string, Set<string>>()
  const late = new Map<string, number>()
  let waiting: Waiting[] = []
  let timer: Timer | undefined
  let counting = Promise.resolve()

  function known(provider: string, reason: string | null): string | null {
    const all = reasons.getOrInsertComputed(provider, () => new Set())
    if (reason === null || all.has(reason)) return reason
    return all.size < mostReasons && all.add(reason) ? reason : null
  }

  async function countFailed(some: readonly Waiting[]): Promise<void> {
    const keys = some.map(({ change }) => change.key)
    const found = await messages.reportedMessages(keys, Math.max(...some.map(({ change }) => change.at)))
    for (const { provider, change } of some) {
      const message = found.get(change.key)
      if (message)
        count(change.at, rejectedStat(message, provider, known(provider, change.reason)), change.times)
    }
  }

  async function countLate(some: readonly Waiting[]): Promise<void> {
    const found = await messages.deliveredMessages(some.map(({ change }) => change.key))
    const again: Waiting[] = []
    for (const each of some) {
      const { provider, change } = each
      const message = found.get(change.key)
      const stat = message && lateStat(message, provider)
      if (stat) {
        count(change.at, stat, 1)
        late.set(provider, (late.get(provider) ?? 0) + 1)
      } else if (!message && each.tries < mostTries) again.push({ ...each, tries: each.tries + 1 })
    }
    wait(again)
  }

  async function countWaiting(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const all = waiting
    waiting = []
    for (const [status, work] of [
      ['failed', countFailed],
      ['delivered', countLate],
    ] as const) {
      const own = all.filter(({ change }) => change.status === status)
      for (let done = 0; done < own.length; done += batch) await work(own.slice(done, done + batch))
    }
  }

  function wait(more: readonly Waiting[]): void {
    waiting.push(...more.slice(0, mostWaiting - waiting.length))
    if (waiting.length > 0) timer ??= setTimeout(flush, gatherMs).unref()
  }

  /** Resolves when all changes so far are counted or lost, or wait for the end of their request. */
  function flush(): Promise<void> {
    counting = counting.then(countWaiting).catch(failed)
    return counting
  }

  return {
    add(provider: string, changes: readonly ReportChange[]): void {
      // Only a provider that gets our ID can report on a message of unknown result.
      const counted = changes.filter(({ status, key }) => status === 'failed' || requestIdOfKey(key))
      wait(counted.map((change) => ({ provider, change, tries: 1 })))
    },
    flush,
    /** Codes that were delivered although their send failed, by provider, as this process counted them. */
    late: late as ReadonlyMap<string, number>,
  }
}
