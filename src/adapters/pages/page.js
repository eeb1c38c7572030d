// @ts-check

// What every page has beyond its HTML: copying, and relative times that stay true. The pages work without it.

import { ago } from './ago.js'

const copiedMs = 2_000
const timesMs = 10_000

/** The first element that a selector finds; throws where there is none. @param {string} selector @param {ParentNode} [root] */
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

// Copying

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

/** Browsers let a page write to the clipboard on HTTPS and localhost; the old way works elsewhere too.
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

/** Says something to screen readers. @param {string} text */
export function announce(text) {
  speaker.textContent = text
}

// Times

/** By how much the clock of the server is ahead of the browser's. */
let aheadMs = 0

/** @param {Element | null} marked what says when the server wrote it */
export function setClock(marked) {
  if (marked instanceof HTMLElement && marked.dataset.now) aheadMs = Number(marked.dataset.now) - Date.now()
}

function updateTimes() {
  const now = Date.now() + aheadMs
  for (const time of document.querySelectorAll('time[data-relative]')) {
    const words = ago(Date.parse(time.getAttribute('datetime') ?? ''), now)
    if (time.textContent !== words) time.textContent = words
  }
}

// Begin

document.body.append(speaker)
setClock(document.querySelector('[data-now]'))
updateTimes()
setInterval(updateTimes, timesMs)
