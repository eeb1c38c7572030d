/**
 * Loaded into the server before its program (`bun --preload`), where a measurement needs to look inside or to move time.
 * It gets commands over Bun's channel between processes, and does nothing without one.
 */

/** A command of the bench to the probe. */
export type ProbeCommand = { readonly stalls: 'read' } | { readonly advanceMs: number }

/** The probe's answer to either. */
export interface ProbeAnswer {
  /** The longest time the event loop did not turn since the last answer. */
  readonly longestStallMs: number
}

const tickMs = 1

// Threads of the program load this too; only the main thread answers.
if (Bun.isMainThread) {
  const systemNow = Date.now
  let aheadMs = 0
  Date.now = () => systemNow() + aheadMs

  let lastTick = performance.now()
  let longestGapMs = 0
  setInterval(() => {
    const now = performance.now()
    longestGapMs = Math.max(longestGapMs, now - lastTick)
    lastTick = now
  }, tickMs)

  process.on('message', (command: ProbeCommand) => {
    if ('advanceMs' in command) aheadMs += command.advanceMs
    process.send?.({ longestStallMs: Math.max(0, longestGapMs - tickMs) } satisfies ProbeAnswer)
    longestGapMs = 0
  })
}
