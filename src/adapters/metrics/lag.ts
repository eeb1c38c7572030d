const periodMs = 20

/**
 * Observes the delay of timers, in seconds. The quantiles of `monitorEventLoopDelay`
 * cover the whole run, and can't be combined over servers.
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
