const firstPauseMs = 100
const longestPauseMs = 2000

/** After a failure, permits one attempt at a time after a growing, randomized pause. */
export class ReconnectBackoff {
  private failures = 0
  private shutUntil = Number.NEGATIVE_INFINITY
  private isTried = false

  /** @param chance returns 0 to 1 */
  constructor(private readonly chance: () => number) {}

  /** `now` is in monotonic milliseconds. */
  isShut(now: number): boolean {
    return this.failures > 0 && (this.isTried || now < this.shutUntil)
  }

  enter(): void {
    this.isTried = true
  }

  /** Returns whether there were failures before. */
  succeeded(): boolean {
    const wasFailing = this.failures > 0
    this.failures = 0
    this.isTried = false
    return wasFailing
  }

  failed(now: number): void {
    this.isTried = false
    // Of several concurrent attempts only the first failure counts.
    if (now < this.shutUntil) return
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** this.failures)
    this.failures++
    this.shutUntil = now + pauseMs * (0.5 + this.chance() / 2)
  }
}
