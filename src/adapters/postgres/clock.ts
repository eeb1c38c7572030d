import { sql } from 'drizzle-orm'

/** Epoch milliseconds; the current time, not that of the transaction's start. */
export const serverTime = sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`

export class DatabaseClock {
  private aheadMs: number

  /** `guess` is the time until the first reply. */
  constructor(
    private readonly stopwatch: () => number,
    guess: number,
  ) {
    this.aheadMs = guess - stopwatch()
  }

  readonly now = (): number => Math.floor(this.aheadMs + this.stopwatch())

  /** Call before a query; call the result with the server's time in the reply. */
  startReading(): (at: number) => void {
    const sentAt = this.stopwatch()
    return (at) => {
      // The server read its clock between query and reply. A value within these bounds stays.
      const [least, most] = [at - this.stopwatch(), at + 1 - sentAt]
      this.aheadMs = Math.min(Math.max(this.aheadMs, least), most)
    }
  }
}
