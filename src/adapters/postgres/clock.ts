import { sql } from 'drizzle-orm'

/** The server's time in a statement, epoch milliseconds: that of the moment, and not of the transaction's begin. */
export const serverTime = sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`

/**
 * The clock of the database server, as one of its clients knows it: by what every answer says of the time, and between
 * answers by a stopwatch of this machine, whose clock is asked nothing. So servers whose clocks differ go by the same time.
 */
export class DatabaseClock {
  /** What the server's clock is ahead of the stopwatch; its true value lies within what the last answers leave. */
  private aheadMs: number

  /**
   * @param stopwatch monotonic milliseconds
   * @param guess the time until the first answer, epoch milliseconds
   */
  constructor(
    private readonly stopwatch: () => number,
    guess: number,
  ) {
    this.aheadMs = guess - stopwatch()
  }

  /** Epoch milliseconds. */
  readonly now = (): number => Math.floor(this.aheadMs + this.stopwatch())

  /** What is to be told of an answer that is asked for now. */
  hearing(): (at: number) => void {
    const asked = this.stopwatch()
    return (at) => {
      // The server looked at its clock between question and answer: what fits stays, so that time runs evenly.
      const [least, most] = [at - this.stopwatch(), at + 1 - asked]
      this.aheadMs = Math.min(Math.max(this.aheadMs, least), most)
    }
  }
}
