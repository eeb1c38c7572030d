// @ts-check

// Small tools for the page. Text only ever becomes text nodes: nothing here reads a string as HTML.

import { fullTime, shortTime } from './words.js'

/** @param {string} selector @param {ParentNode} [root] */
export const find = (selector, root = document) => {
  const node = root.querySelector(selector)
  if (node instanceof HTMLElement) return node
  throw new Error(`The page has no ${selector}`)
}

/** Fills the slots of a piece of the page; null takes a slot out.
 * @template {ParentNode} T @param {T} root @param {Record<string, string | Node | Date | null>} slots */
export const fill = (root, slots) => {
  for (const [name, value] of Object.entries(slots)) {
    const slot = find(`[data-slot="${name}"]`, root)
    if (value === null) slot.remove()
    else if (value instanceof Date) {
      slot.setAttribute('datetime', value.toISOString())
      slot.title = fullTime(value)
      slot.textContent = shortTime(value)
    } else slot.replaceChildren(value)
  }
  return root
}

/** A filled copy of one of the page's templates. @param {string} name @param {Parameters<typeof fill>[1]} slots */
export const make = (name, slots) => {
  const template = find(`template#${name}`)
  if (!(template instanceof HTMLTemplateElement)) throw new Error(`#${name} is no template`)
  return fill(/** @type {DocumentFragment} */ (template.content.cloneNode(true)), slots)
}

/** @param {string} tag @param {string} text */
const element = (tag, text) => {
  const node = document.createElement(tag)
  node.textContent = text
  return node
}

/** @param {ParentNode} root @param {string} name */
export const setIcon = (root, name) => root.querySelector('use')?.setAttribute('href', `#icon-${name}`)

/** Gaps come from style alone, so that searching and copying give the plain digits. @param {string} to */
export const spelled = (to) => {
  const line = element('span', to)
  if (!/^\d{7,15}$/.test(to)) return line
  const groups = [to.slice(-4)]
  for (let end = to.length - 4; end > 0; end -= 3) groups.unshift(to.slice(Math.max(0, end - 3), end))
  line.replaceChildren(...groups.map((group) => element('span', group)))
  line.className = 'digits'
  return line
}

/** A text with the code in it marked. @param {string} text @param {string | null} code */
export const marked = (text, code) => {
  const line = document.createDocumentFragment()
  const start = code ? text.indexOf(code) : -1
  if (code && start >= 0)
    line.append(text.slice(0, start), element('mark', code), text.slice(start + code.length))
  else line.append(text)
  return line
}

/** Says something to whoever listens to the page. @param {string} text */
export const announce = (text) => {
  find('#announce').textContent = text
}

/** @param {string} text @param {ParentNode} root @param {string} label */
export const offerCopy = (text, root, label) => {
  const button = find('button[data-slot="copy"]', root)
  button.dataset.copy = text
  button.textContent = label
}

/** @param {HTMLElement} button */
export const copy = async (button) => {
  const label = button.textContent
  // Browsers keep the clipboard from pages that came over plain http from another machine.
  const written = navigator.clipboard?.writeText(button.dataset.copy ?? '') ?? Promise.reject()
  button.textContent = await written.then(
    () => 'Copied',
    () => 'Copying is blocked here',
  )
  announce(button.textContent)
  setTimeout(() => {
    button.textContent = label
  }, 1_600)
}

/** A text to look at and to copy. @param {string} title @param {string} text */
export const snippet = (title, text) => {
  const piece = make('snippet', { title, text })
  offerCopy(text, piece, 'Copy')
  find('button', piece).setAttribute('aria-label', `Copy ${title}`)
  return piece
}

/** @param {Element | null | undefined} node */
export const highlight = (node) => {
  node?.classList.add('fresh')
  setTimeout(() => node?.classList.remove('fresh'), 2_500)
}
