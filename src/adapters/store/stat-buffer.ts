import { type Counted, type StatKey, statSteps } from '../../domain/events/stats.ts'

/** Gathers what was counted until it is written, so that what is the same in a minute costs one row. */
export class StatBuffer {
  private counts = new Map<string, { readonly at: number; readonly statKey: StatKey; count: number }>()

  /**
   * @param at when it happened, epoch milliseconds
   * @param times how often; -1 takes back what was counted before
   */
  add(at: number, statKey: StatKey, times = 1): void {
    const minute = at - (at % statSteps[0].stepMs)
    const key = `${minute}\n${textOf(statKey)}`
    const known = this.counts.get(key)
    if (known) known.count += times
    else this.counts.set(key, { at: minute, statKey, count: times })
  }

  get isEmpty(): boolean {
    return this.counts.size === 0
  }

  /** What has gathered; begins anew. */
  take(): readonly Counted[] {
    const { counts } = this
    if (counts.size === 0) return []
    this.counts = new Map()
    return Array.from(counts.values(), ({ at, statKey, count }) => ({ ...statKey, at, count }))
  }
}

/** A few with every request: this takes a third of the time of a JSON array, and no part has a line break. */
function textOf({ kind, channel, brand, provider, detail }: StatKey): string {
  return `${kind}\n${channel}\n${brand}\n${provider}\n${detail}`
}

/** A row of `stats`, to be added to the one that is there. */
export interface StatRow extends Counted {
  readonly stepMs: number
}

/** The rows for what was counted, of each step of time, each key once. */
export function statRows(counts: readonly Counted[]): readonly StatRow[] {
  const rows = new Map<string, StatRow>()
  for (const counted of counts) {
    const text = textOf(counted)
    for (const { stepMs } of statSteps) {
      const at = counted.at - (counted.at % stepMs)
      const key = `${stepMs}\n${at}\n${text}`
      rows.set(key, { ...counted, stepMs, at, count: counted.count + (rows.get(key)?.count ?? 0) })
    }
  }
  return [...rows.values()]
}
