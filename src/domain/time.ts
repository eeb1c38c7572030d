/** An instant in milliseconds since 1970-01-01 UTC. */
export type EpochMs = number

export type Clock = () => EpochMs

/** Monotonic milliseconds, for durations. */
export type Stopwatch = () => number

const unitMs: ReadonlyMap<string, number> = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** Reads a duration such as `30m`, `12h` or `7d`, in milliseconds. Otherwise undefined. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text.trim()) ?? []
  const ms = unitMs.get(unit)
  return ms === undefined ? undefined : Number(count) * ms
}
