import { dayMs, hourMs, minuteMs } from './time.ts'

// Numbers and times as people read them, in all adapters.

const secondMs = 1000

/** Of what has happened, such as `3 min ago`. By a wrong clock: `2 h in the future`. times.js has the same function for browsers. */
export function ago(at: number, now: number): string {
  const ms = Math.abs(now - at)
  if (ms < 10 * secondMs) return 'just now'
  const words = duration(ms)
  return at > now ? `${words} in the future` : `${words} ago`
}

/** Of what is to happen, such as `in 2 h`. */
export function upcoming(at: number, now: number): string {
  return at > now ? `in ${duration(at - now)}` : ago(at, now)
}

/** In one unit: `48 s`, `3 min`, `5 h`, `12 d`. */
export function duration(ms: number): string {
  if (ms < minuteMs) return `${Math.floor(ms / secondMs)} s`
  if (ms < hourMs) return `${Math.floor(ms / minuteMs)} min`
  if (ms < 2 * dayMs) return `${Math.floor(ms / hourMs)} h`
  return `${Math.floor(ms / dayMs)} d`
}

export function utc(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** Such as `12.5 MiB`. */
export function bytesWords(bytes: number): string {
  const [unit, name] = bytes < 2 ** 30 ? [2 ** 20, 'MiB'] : [2 ** 30, 'GiB']
  return `${(bytes / unit).toFixed(1)} ${name}`
}

const numbers = new Intl.NumberFormat('en')

export function count(value: number): string {
  return numbers.format(value)
}

export function counted(value: number, noun: string, plural = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : plural}`
}

/** A share as `98.2%`; `–` for null. Rounded, but only none is 0%, and only all is 100%. */
export function percent(share: number | null): string {
  if (share === null) return '–'
  const rounded = Math.round(share * 1000)
  const tenths = share > 0 && share < 1 ? Math.min(999, Math.max(1, rounded)) : rounded
  return `${tenths % 10 === 0 ? tenths / 10 : (tenths / 10).toFixed(1)}%`
}

/** Such as `3 of 4 codes (75%)`. */
export function partOf(some: number, all: number, noun: string): string {
  return `${count(some)} of ${counted(all, noun)} (${percent(some / all)})`
}

/** With a capital first letter. */
export function capitalized(text: string): string {
  return text.replace(/^./, (first) => first.toUpperCase())
}

/** Titles are no sentences. */
export function withoutPoint(sentence: string): string {
  return sentence.replace(/\.$/, '')
}
