/** How long a server does nothing before its memory counts as idle. */
export const idleMs = 2000

/** How much is measured. */
export interface Scale {
  readonly rounds: number
  /** Of one measurement. */
  readonly seconds: number
  /** Of load before the first measurement of a server. */
  readonly warmupSeconds: number
  /** The same as a number, where the time of single answers is measured. */
  readonly warmupRequests: number
  /** Recipients in the tables. */
  readonly rows: readonly [few: number, many: number]
  /** After how many sends the memory is looked at. */
  readonly memorySends: readonly number[]
  /** Recipients in the database of the upkeep and of a start. */
  readonly filledRows: number
  /** Requests in the event log while an operator is at work. */
  readonly loggedRequests: number
  /** Sends whose system calls are counted. */
  readonly tracedSends: number
  readonly starts: number
}

export const full: Scale = {
  rounds: 4,
  seconds: 3,
  // Compiling JavaScript takes a part of the first seconds.
  warmupSeconds: 8,
  warmupRequests: 1e5,
  rows: [1e3, 1e7],
  memorySends: [1e5, 1e6],
  filledRows: 1e6,
  loggedRequests: 5e5,
  tracedSends: 5000,
  starts: 7,
}

/** For developers: a short run that shows whether a change made the program slower. */
export const quick: Scale = {
  rounds: 3,
  seconds: 1,
  warmupSeconds: 1,
  warmupRequests: 1e4,
  rows: [1e3, 1e5],
  memorySends: [1e4, 3e4],
  filledRows: 1e5,
  loggedRequests: 5e4,
  tracedSends: 500,
  starts: 3,
}
