// @ts-check

// Search within the reference. Without it, links show one call at a time.

import { find } from '/docs/page.js'

const search = find('search')
const input = find('input', search)
const count = find('p', search)
const main = find('main')
const menu = find('#menu')

/** What a link of the contents leads to. @type {{ link: HTMLElement, part: Element, text: string }[]} */
const parts = []
for (const link of document.querySelectorAll('.contents a')) {
  const part = document.getElementById(link.getAttribute('href')?.slice(1) ?? '')
  // A group is found by its calls.
  if (link instanceof HTMLElement && part && !part.querySelector('article'))
    parts.push({ link, part, text: part.textContent?.toLowerCase() ?? '' })
}

function show() {
  const words =
    input instanceof HTMLInputElement ? input.value.toLowerCase().split(/\s+/).filter(Boolean) : []
  const found = parts.filter(({ text }) => words.every((word) => text.includes(word)))
  for (const each of parts) {
    const isFound = found.includes(each)
    each.part.toggleAttribute('data-found', words.length > 0 && isFound)
    each.link.parentElement?.toggleAttribute('hidden', !isFound)
  }
  for (const group of document.querySelectorAll('.contents > li:has(.calls)'))
    group.toggleAttribute('hidden', !group.querySelector('.calls > li:not([hidden])'))
  main.toggleAttribute('data-search', words.length > 0)
  count.textContent = words.length === 0 ? '' : `${found.length} of ${parts.length} sections`
  scrollTo(0, 0)
}

/** The link that was followed shows its part alone. */
function follow() {
  main.removeAttribute('data-search')
  if (menu.matches(':popover-open')) menu.hidePopover()
  for (const { link } of parts) {
    const isHere = link.getAttribute('href') === (location.hash || '#start')
    if (isHere) link.setAttribute('aria-current', 'true')
    else link.removeAttribute('aria-current')
  }
}

search.hidden = false
input.addEventListener('input', show)
input.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return
  const call = document.querySelector('.calls > li:not([hidden]) > a')
  if (call instanceof HTMLElement) call.click()
  else parts.find(({ part }) => part.matches('[data-found]'))?.link.click()
})
document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLInputElement
  const isAsked = (event.key === '/' && !isTyping) || (event.key === 'k' && (event.ctrlKey || event.metaKey))
  if (!isAsked) return
  event.preventDefault()
  input.focus()
})
addEventListener('hashchange', follow)
follow()
