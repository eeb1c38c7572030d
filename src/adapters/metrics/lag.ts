/** How often the event loop is asked: a stall is seen with its whole length but for as much. */
const periodMs = 20

/**
 * Watches how much later than it should the event loop comes to what is due: what every request waits on top of its own
 * work. By a timer of our own: `monitorEventLoopDelay` tells quantiles since it was begun, of which none can be had of the
 * last minutes, or over several servers.
 *
 * @param observe is told each delay, in seconds
 * @returns ends it
 */
export function watchLag(observe: (seconds: number) => void): () => void {
  let dueAt = performance.now() + periodMs
  let timer = setTimeout(measure, periodMs)
  timer.unref()
  return () => clearTimeout(timer)

  function measure(): void {
    const now = performance.now()
    observe(Math.max(0, now - dueAt) / 1000)
    dueAt = now + periodMs
    timer = setTimeout(measure, periodMs)
    timer.unref()
  }
}
