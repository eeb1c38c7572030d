import { sql } from 'drizzle-orm'

/** The server's present time in epoch milliseconds; not that of the transaction's begin. */
export const serverTime = sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`

/**
 * The database server's clock: corrected by each answer, and between answers advanced by a local stopwatch.
 * So servers with different clocks use the same time.
 */
export class DatabaseClock {
  private aheadMs: number

  /** `stopwatch` returns monotonic milliseconds; `guess` is the time until the first answer, epoch milliseconds. */
  constructor(
    private readonly stopwatch: () => number,
    guess: number,
  ) {
    this.aheadMs = guess - stopwatch()
  }

  readonly now = (): number => Math.floor(this.aheadMs + this.stopwatch())

  /** To be called before a query; call the result with the server's time in the answer. */
  hearing(): (at: number) => void {
    const asked = this.stopwatch()
    return (at) => {
      // The server read its clock between query and answer. A value within these bounds stays, so that time runs evenly.
      const [least, most] = [at - this.stopwatch(), at + 1 - asked]
      this.aheadMs = Math.min(Math.max(this.aheadMs, least), most)
    }
  }
}
