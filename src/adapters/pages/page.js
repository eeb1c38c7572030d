// @ts-check

// Copy buttons, and times in the time zone of the viewer's choice. The pages work without it.

import { ago, timesIn, upcoming } from './times.js'

const browserTimes = timesIn()
const utcTimes = timesIn('UTC')
const zoneKey = 'otpost-zone'

/** Of the time zone of all pages: the browser's, or UTC if the viewer chose it. */
export const localTimes = localStorage.getItem(zoneKey) === 'utc' ? utcTimes : browserTimes

const copiedMs = 2_000
const timesMs = 10_000

/** The first match; throws if there is none. @param {string} selector @param {ParentNode} [root] */
export function find(selector, root = document) {
  const node = root.querySelector(selector)
  if (node instanceof HTMLElement) return node
  throw new Error(`The page has no ${selector}`)
}

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name @param {Record<string, string>} attributes @param {(Node | string)[]} [children]
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function element(name, attributes, children = []) {
  const node = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value)
  node.append(...children)
  return node
}

document.addEventListener('click', async (event) => {
  const button = event.target instanceof Element ? event.target.closest('[data-copy]') : null
  if (!(button instanceof HTMLElement)) return
  const words = button.querySelector('span') ?? button
  const before = button.dataset.words ?? words.textContent ?? ''
  button.dataset.words = before
  words.textContent = (await copied(button.dataset.copy ?? '')) ? 'Copied' : 'Not copied'
  announce(words.textContent)
  setTimeout(() => {
    words.textContent = before
  }, copiedMs)
})

/** navigator.clipboard requires HTTPS or localhost; execCommand does not.
 * @param {string} text */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = element('textarea', { class: 'sr-only', 'aria-hidden': 'true' })
    area.value = text
    const focused = document.activeElement
    document.body.append(area)
    area.select()
    const done = document.execCommand('copy')
    area.remove()
    if (focused instanceof HTMLElement) focused.focus()
    return done
  }
}

const speaker = element('p', { class: 'sr-only', 'aria-live': 'polite' })

/** For screen readers. @param {string} text */
export function announce(text) {
  speaker.textContent = text
}

/** Server clock minus browser clock. */
let aheadMs = 0

/** @param {Element | null} marked has the server's time in `data-now` */
export function setClock(marked) {
  if (marked instanceof HTMLElement && marked.dataset.now) aheadMs = Number(marked.dataset.now) - Date.now()
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The content of an exact time. @type {Record<string, (at: number, now: number) => (Node | string)[]>} */
const localContent = {
  full: (at) => [localTimes.full(at)],
  minute: (at) => [localTimes.full(at).slice(0, 16)],
  short: (at) => [localTimes.full(at).slice(5, 16)],
  zoned: (at) => [localTimes.full(at).replace(/:\d\d /, ' ')],
  // Today the time alone.
  since: (at, now) => {
    const { date, time } = localTimes.read(at)
    return [date === localTimes.read(now).date ? time.slice(0, 5) : `${date} ${time.slice(0, 5)}`]
  },
  // As `Instant` of the console renders it.
  clock: (at, now) => {
    const { date, time } = localTimes.read(at)
    if (date === localTimes.read(now).date) return [time]
    const [, month, day] = date.split('-').map(Number)
    return [element('span', { class: 'hint' }, [`${day} ${months[Number(month) - 1]} `]), time]
  },
}

/** Updates relative times, and shows exact ones in the viewer's time zone. @param {ParentNode} [root] */
export function showTimes(root = document) {
  const now = Date.now() + aheadMs
  for (const time of root.querySelectorAll('time')) {
    const at = Date.parse(time.dateTime)
    const { local, relative } = time.dataset
    if (relative !== undefined) {
      const words = relative === 'upcoming' ? upcoming(at, now) : ago(at, now)
      if (time.textContent !== words) time.textContent = words
      if (!localTimes.isUtc && !time.title.includes('\n'))
        time.title = `${localTimes.full(at)}\n${time.title}`
    } else if (local !== undefined && !localTimes.isUtc) {
      time.replaceChildren(...(localContent[local]?.(at, now) ?? []))
      delete time.dataset.local
    }
  }
  for (const note of root.querySelectorAll('[data-zone]')) nameZone(note)
  if (localTimes.isUtc) return
  for (const note of root.querySelectorAll('[data-utc-note]')) note.remove()
  for (const cell of root.querySelectorAll('td[data-label$=" (UTC)"]')) {
    if (cell instanceof HTMLElement) cell.dataset.label = cell.dataset.label?.replace(' (UTC)', '')
  }
}

/** Names the time zone, with a button for the other one. @param {Element} note */
function nameZone(note) {
  if (browserTimes.isUtc || note.querySelector('button')) return
  const zone = localTimes.isUtc ? 'UTC' : `${localTimes.name} (${localTimes.read(Date.now() + aheadMs).zone})`
  const other = localTimes.isUtc ? browserTimes.name : 'UTC'
  const button = element('button', { type: 'button' }, [`Use ${other}`])
  button.addEventListener('click', () => {
    localStorage.setItem(zoneKey, localTimes.isUtc ? 'browser' : 'utc')
    location.reload()
  })
  note.replaceChildren(`Times in ${zone} `, button)
}

document.body.append(speaker)
setClock(document.querySelector('[data-now]'))
showTimes()
setInterval(showTimes, timesMs)
