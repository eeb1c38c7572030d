// How the console says times and numbers. In English, and in UTC: what an operator reads out to a colleague means the
// same to both.

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** How far a time lies from now, such as `3 min ago` or `in 2 h`. `ago.js` says the same in the browser. */
export function ago(at: number, now: number): string {
  const ms = Math.abs(now - at)
  if (ms < 10 * secondMs) return 'just now'
  const words = duration(ms)
  return at > now ? `in ${words}` : `${words} ago`
}

/** A length of time in its largest unit, such as `48 s`, `3 min`, `5 h`, `12 d`. */
export function duration(ms: number): string {
  if (ms < minuteMs) return `${Math.floor(ms / secondMs)} s`
  if (ms < hourMs) return `${Math.floor(ms / minuteMs)} min`
  if (ms < 2 * dayMs) return `${Math.floor(ms / hourMs)} h`
  return `${Math.floor(ms / dayMs)} d`
}

/** A time to the second, such as `2026-03-01 14:05:09 UTC`. */
export function utc(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

const numbers = new Intl.NumberFormat('en')

/** A whole number, such as `12,345`. */
export function count(value: number): string {
  return numbers.format(value)
}

/** A share from 0 to 1 in percent, such as `98.2 %`; `–` where there is none. */
export function percent(share: number | null): string {
  if (share === null) return '–'
  // Rounded down: 100 % is said of all, and of nothing less.
  const tenths = Math.floor(share * 1000 + 1e-9)
  return `${tenths % 10 === 0 ? tenths / 10 : (tenths / 10).toFixed(1)} %`
}

/** A number with its noun, such as `1 request`, `3 requests`. */
export function counted(value: number, noun: string, plural = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : plural}`
}
