/** The first pause after a failure, and the longest that it grows to. */
const firstPauseMs = 100
const longestPauseMs = 2000

/**
 * Lets everyone through while all is well. After a failure nobody passes until a pause is over, and then one at a time,
 * until one has succeeded; each failure of such a one makes the next pause longer. Pauses differ by chance, so that many
 * servers don't come back to a database that has just started all at once.
 */
export class ReconnectBackoff {
  private failures = 0
  private shutUntil = Number.NEGATIVE_INFINITY
  private isTried = false

  /** @param chance from 0 to 1, evenly */
  constructor(private readonly chance: () => number) {}

  /** Whether nobody else may try now. `now` is in milliseconds of a clock that only goes on. */
  isShut(now: number): boolean {
    return this.failures > 0 && (this.isTried || now < this.shutUntil)
  }

  /** Somebody tries, and will say how it ended. */
  enter(): void {
    this.isTried = true
  }

  /** Returns whether that ends a time of failures. */
  succeeded(): boolean {
    const wasFailing = this.failures > 0
    this.failures = 0
    this.isTried = false
    return wasFailing
  }

  failed(now: number): void {
    this.isTried = false
    // Of several that tried at once when all was well, the first has told it.
    if (now < this.shutUntil) return
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** this.failures)
    this.failures++
    this.shutUntil = now + pauseMs * (0.5 + this.chance() / 2)
  }
}
