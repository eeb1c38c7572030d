/** How long a server does nothing before its memory counts as idle. */
export const idleMs = 2000

/** How much is measured. */
export interface Scale {
  readonly rounds: number
  /** Of one measurement. */
  readonly seconds: number
  /** Of load before the first measurement of a server. */
  readonly warmupSeconds: number
  /** Recipients in the tables. */
  readonly rows: readonly [few: number, many: number]
  /** After how many sends the memory is looked at. */
  readonly memorySends: readonly number[]
  /** Recipients in the database of the upkeep and of a start. */
  readonly filledRows: number
  readonly starts: number
}

export const full: Scale = {
  rounds: 4,
  seconds: 3,
  // Compiling JavaScript takes a part of the first seconds.
  warmupSeconds: 8,
  rows: [1e3, 1e7],
  memorySends: [1e5, 1e6],
  filledRows: 1e6,
  starts: 7,
}

/** For developers: a short run that shows whether a change made the program slower. */
export const quick: Scale = {
  rounds: 3,
  seconds: 1,
  warmupSeconds: 1,
  rows: [1e3, 1e5],
  memorySends: [1e4, 3e4],
  filledRows: 1e5,
  starts: 3,
}
