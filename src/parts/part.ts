/** What a server starts and stops. Parts start in the order of their list. */
export interface Part {
  readonly start?: () => void
  /** Takes no more work, and resolves when its work has ended. All parts finish at the same time. */
  readonly finish?: () => Promise<void>
  /** Releases what it has. Parts stop in reverse order, once all have finished. */
  readonly stop?: () => Promise<void> | void
}

export function startParts(parts: readonly Part[]): void {
  for (const { start } of parts) start?.()
}

/** @throws the first error, after all parts have stopped */
export async function stopParts(parts: readonly Part[]): Promise<void> {
  const errors: unknown[] = []
  const attempt = async (work: Part['stop']) => {
    try {
      await work?.()
    } catch (error) {
      errors.push(error)
    }
  }
  await Promise.all(parts.map(({ finish }) => attempt(finish)))
  for (const { stop } of parts.toReversed()) await attempt(stop)
  if (errors.length > 0) throw errors[0]
}

export function everySecond(ticking: readonly { tick(): unknown }[], stopping: AbortSignal): Part {
  return {
    start() {
      const timer = setInterval(() => {
        for (const part of ticking) part.tick()
      }, 1000)
      stopping.addEventListener('abort', () => clearInterval(timer))
    },
  }
}
