import { type Counted, type StatKey, statSteps } from '../../domain/log/stats.ts'
import type { Row } from './database.ts'

/** Equal events of a minute share a row. */
export class StatBuffer {
  private counts = new Map<string, { readonly at: number; readonly statKey: StatKey; count: number }>()

  /** @param times -1 undoes an earlier count */
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

  take(): readonly Counted[] {
    const { counts } = this
    if (counts.size === 0) return []
    this.counts = new Map()
    return Array.from(counts.values(), ({ at, statKey, count }) => ({ ...statKey, at, count }))
  }
}

/** Takes a third of the time of a JSON array. No part contains a line break. */
function textOf({ kind, channel, brand, provider, detail, app = '' }: StatKey): string {
  return `${kind}\n${channel}\n${brand}\n${provider}\n${detail}\n${app}`
}

export function statRows(counts: readonly Counted[]): readonly Row<'stats'>[] {
  const rows = new Map<string, Row<'stats'>>()
  for (const counted of counts) {
    const text = textOf(counted)
    for (const { stepMs } of statSteps) {
      const at = counted.at - (counted.at % stepMs)
      const key = `${stepMs}\n${at}\n${text}`
      rows.set(key, {
        ...counted,
        app: counted.app ?? '',
        stepMs,
        at,
        count: counted.count + (rows.get(key)?.count ?? 0),
      })
    }
  }
  return [...rows.values()]
}
