// @ts-check

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/**
 * A relative time, the same as `ago` of words.ts.
 *
 * @param {number} at epoch milliseconds
 * @param {number} now
 */
export function ago(at, now) {
  const ms = Math.abs(now - at)
  if (ms < 10 * secondMs) return 'just now'
  const words = duration(ms)
  return at > now ? `${words} in the future` : `${words} ago`
}

/** The same as `upcoming` of words.ts. @param {number} at @param {number} now */
export function upcoming(at, now) {
  return at > now ? `in ${duration(at - now)}` : ago(at, now)
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < minuteMs) return `${Math.floor(ms / secondMs)} s`
  if (ms < hourMs) return `${Math.floor(ms / minuteMs)} min`
  if (ms < 2 * dayMs) return `${Math.floor(ms / hourMs)} h`
  return `${Math.floor(ms / dayMs)} d`
}

/** Of two clocks, which may differ by the offset of a time zone: hours have minutes. @param {number} ms */
export function difference(ms) {
  const hours = Math.floor(Math.round(ms / minuteMs) / 60)
  const rest = Math.round(ms / minuteMs) % 60
  return hours < 1 || ms > 2 * dayMs ? duration(ms) : `${hours} h${rest === 0 ? '' : ` ${rest} min`}`
}

/** Names that browsers keep although the cities have others. @type {Record<string, string>} */
const renamed = {
  'Asia/Calcutta': 'Asia/Kolkata',
  'Asia/Katmandu': 'Asia/Kathmandu',
  'Asia/Rangoon': 'Asia/Yangon',
  'Asia/Saigon': 'Asia/Ho_Chi_Minh',
  'Europe/Kiev': 'Europe/Kyiv',
  'Etc/UTC': 'UTC',
}

/**
 * Formats times of one time zone as words.ts formats UTC.
 *
 * @param {string} [timeZone] default: the browser's
 */
export function timesIn(timeZone) {
  const format = new Intl.DateTimeFormat('en-US', {
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'shortOffset',
    ...(timeZone ? { timeZone } : {}),
  })
  /** @param {number} at epoch milliseconds */
  const read = (at) => {
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]))
    return {
      date: `${part.year}-${part.month}-${part.day}`,
      time: `${part.hour}:${part.minute}:${part.second}`,
      zone: (part.timeZoneName ?? '').replace(/^GMT(?:\+0$)?/, 'UTC'),
    }
  }
  const known = format.resolvedOptions().timeZone
  const name = renamed[known] ?? known
  return {
    name,
    isUtc: name === 'UTC',
    read,
    /** Such as `2026-03-01 15:05:09 UTC+1`. @param {number} at */
    full: (at) => {
      const { date, time, zone } = read(at)
      return `${date} ${time} ${zone}`
    },
  }
}
