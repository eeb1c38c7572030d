import { type StatKey, statSteps } from '../../domain/events/stats.ts'

/** How often what happened in which minute: plain data, by position, for a step of the writer. */
export type StatCount = readonly [
  at: number,
  kind: string,
  channel: string,
  brand: string,
  provider: string,
  detail: string,
  count: number,
]

/** Gathers tallies until they are written, so that those of a moment cost one row each. */
export class StatBuffer {
  private counts = new Map<string, { readonly at: number; readonly statKey: StatKey; count: number }>()

  /**
   * @param at when it happened, epoch milliseconds
   * @param times how often; -1 takes back what was counted before
   */
  add(at: number, statKey: StatKey, times = 1): void {
    const minute = at - (at % statSteps[0].stepMs)
    // A few with every request: this is a third of the time of a JSON array, and none of the parts has a line break.
    const { kind, channel, brand, provider, detail } = statKey
    const key = `${minute}\n${kind}\n${channel}\n${brand}\n${provider}\n${detail}`
    const known = this.counts.get(key)
    if (known) known.count += times
    else this.counts.set(key, { at: minute, statKey, count: times })
  }

  get isEmpty(): boolean {
    return this.counts.size === 0
  }

  /** What has gathered; begins anew. */
  take(): StatCount[] {
    const { counts } = this
    if (counts.size === 0) return []
    this.counts = new Map()
    return Array.from(
      counts.values(),
      ({ at, statKey: { kind, channel, brand, provider, detail }, count }): StatCount => [
        at,
        kind,
        channel,
        brand,
        provider,
        detail,
        count,
      ],
    )
  }
}
