/** An instant in milliseconds since 1970-01-01 UTC. */
export type EpochMs = number

export type Clock = () => EpochMs

/** Monotonic milliseconds, for durations. */
export type Stopwatch = () => number
