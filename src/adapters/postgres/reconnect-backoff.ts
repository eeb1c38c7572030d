const firstPauseMs = 100
const longestPauseMs = 2000

export class ReconnectBackoff {
  private failures = 0
  private shutUntil = Number.NEGATIVE_INFINITY
  private isTried = false

  constructor(private readonly chance: () => number) {}

  /** `now` is in monotonic milliseconds. */
  isShut(now: number): boolean {
    return this.failures > 0 && (this.isTried || now < this.shutUntil)
  }

  enter(): void {
    this.isTried = true
  }

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
