/** An instant in milliseconds since 1970-01-01 UTC. */
export type EpochMs = number

export type Clock = () => EpochMs

/** Monotonic milliseconds, for durations. */
export type Stopwatch = () => number

export type CalendarPeriod = 'day' | 'month'

/** The start and the end (exclusive) of the period in UTC that contains `now`. */
export function periodOf(period: CalendarPeriod, now: number): { start: EpochMs; end: EpochMs } {
  if (period === 'day') {
    const start = Math.floor(now / dayMs) * dayMs
    return { start, end: start + dayMs }
  }
  const date = new Date(now)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) }
}

export const minuteMs = 60_000
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs

const unitMs: ReadonlyMap<string, number> = new Map([
  ['s', 1000],
  ['m', minuteMs],
  ['h', hourMs],
  ['d', dayMs],
])

/** Reads a duration such as `30m`, `12h` or `7d`, in milliseconds. Otherwise undefined. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text.trim()) ?? []
  const ms = unitMs.get(unit)
  return ms === undefined ? undefined : Number(count) * ms
}

/** ISO 8601, in UTC. */
export function isoTime(at: EpochMs): string {
  return new Date(at).toISOString()
}

/** Null is none. */
export function isoTimeOr(at: EpochMs | null): string | null {
  return at === null ? null : isoTime(at)
}
