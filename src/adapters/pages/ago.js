// @ts-check

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/**
 * How far a time lies from now, as `ago` of words.ts has said it in the page.
 *
 * @param {number} at epoch milliseconds
 * @param {number} now
 */
export function ago(at, now) {
  const ms = Math.abs(now - at)
  if (ms < 10 * secondMs) return 'just now'
  const words = duration(ms)
  return at > now ? `in ${words}` : `${words} ago`
}

/** @param {number} ms */
function duration(ms) {
  if (ms < minuteMs) return `${Math.floor(ms / secondMs)} s`
  if (ms < hourMs) return `${Math.floor(ms / minuteMs)} min`
  if (ms < 2 * dayMs) return `${Math.floor(ms / hourMs)} h`
  return `${Math.floor(ms / dayMs)} d`
}
