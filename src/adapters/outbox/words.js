// @ts-check

// Times and numbers as a reader sees them.

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' })
const preciseClock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })
const shortDate = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const fullDate = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' })

/** @param {Date} at */
export const shortTime = (at) => {
  const today = at.toDateString() === new Date().toDateString()
  return today ? clock.format(at) : `${shortDate.format(at)}, ${clock.format(at)}`
}

/** @param {Date} at */
export const fullTime = (at) => fullDate.format(at)

/** @param {number} count @param {string} noun */
export const plural = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`

/** @param {string} retryAfter a number of seconds or a date */
export const waitInWords = (retryAfter) => {
  const seconds = Math.ceil(Number(retryAfter) || (Date.parse(retryAfter) - Date.now()) / 1_000)
  if (Number.isNaN(seconds)) return `Retry-After: ${retryAfter}`
  const [unit, size] = seconds < 120 ? ['second', 1] : seconds < 7_200 ? ['minute', 60] : ['hour', 3_600]
  const until = preciseClock.format(Date.now() + seconds * 1_000)
  return `Retry-After ${retryAfter}: again in ${plural(Math.ceil(seconds / Number(size)), String(unit))}, at ${until}`
}
