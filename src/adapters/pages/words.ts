const secondMs = 1000
const minuteMs = 60 * secondMs

/** How long something took: `842 ms`, `4.0 s`, `1 min 5 s`. */
export function elapsed(ms: number): string {
  if (ms < secondMs) return `${ms} ms`
  if (ms < minuteMs - 50) return `${(ms / secondMs).toFixed(1)} s`
  const seconds = Math.round(ms / secondMs)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

export function shellWord(word: string): string {
  return /^[\w./:@=,+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
