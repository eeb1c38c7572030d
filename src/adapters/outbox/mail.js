// @ts-check

// Mails: a row each, of which one is open with its HTML and its text.

import { fill, find, make, marked, offerCopy } from './dom.js'
import { messages, state } from './store.js'
import { fullTime } from './words.js'

/** @typedef {import('./store.js').Message} Message */

const stage = find('#messages')

/** @param {Message} message */
export const mailArticle = ({ id, at, sender, subject }) => {
  const piece = make('mail', { subject, sender, at: at ?? '' })
  find('article', piece).dataset.id = String(id)
  return piece
}

/** @param {Message} message */
const mailFrame = ({ id, subject }) => {
  const frame = document.createElement('iframe')
  // An empty sandbox: no scripts, no forms, no way to reach this page. It has to be set before the source.
  frame.setAttribute('sandbox', '')
  frame.referrerPolicy = 'no-referrer'
  frame.title = `HTML of “${subject}”`
  frame.src = `/outbox/messages/${id}/html`
  return frame
}

/** @param {ParentNode} root @param {Message} message */
const showTab = (root, message) => {
  const shown = message.hasHtml ? state.tab : 'Text'
  for (const tab of root.querySelectorAll('[role="tab"]')) {
    tab.toggleAttribute('hidden', tab.textContent === 'HTML' && !message.hasHtml)
    tab.setAttribute('aria-selected', String(tab.textContent === shown))
    tab.setAttribute('tabindex', tab.textContent === shown ? '0' : '-1')
  }
  const sheet = find('.sheet', root)
  sheet.setAttribute('aria-label', shown)
  sheet.classList.toggle('text', shown === 'Text')
  sheet.dir = 'auto'
  const text = marked(message.text || 'This mail has no text part.', message.code)
  sheet.replaceChildren(shown === 'Text' ? text : mailFrame(message))
}

/** @param {Message} message */
const mailBody = (message) => {
  const { at, code, sender, to } = message
  const piece = make('opened', { from: sender, to, date: at ? fullTime(at) : 'unknown' })
  if (code) offerCopy(code, fill(piece, { code }), `Copy ${code}`)
  else fill(piece, { strip: null })
  showTab(piece, message)
  return piece
}

/** Opens one mail and closes the others. @param {number | null} id */
export const openMail = (id) => {
  state.openMail = id
  for (const article of stage.querySelectorAll('article')) {
    const message = messages.get(Number(article.dataset.id))
    const open = message?.id === id
    if (!message || article.hasAttribute('data-open') === open) continue
    article.toggleAttribute('data-open', open)
    find('.row', article).setAttribute('aria-expanded', String(open))
    if (open) article.append(mailBody(message))
    else find('.opened', article).remove()
  }
}

/** @param {MouseEvent} event */
export const pressedInMails = ({ target }) => {
  const article = target instanceof Element ? target.closest('article') : null
  const message = messages.get(Number(article?.dataset.id))
  if (!article || !message || !(target instanceof Element)) return
  if (target.closest('.row')) openMail(state.openMail === message.id ? null : message.id)
  if (!target.matches('[role="tab"]')) return
  state.tab = target.textContent ?? ''
  showTab(article, message)
}

/** @param {KeyboardEvent} event */
export const moveInTabs = ({ target, key }) => {
  if (!(target instanceof HTMLElement && target.matches('[role="tab"]'))) return
  const next = { ArrowLeft: target.previousElementSibling, ArrowRight: target.nextElementSibling }[key]
  if (!(next instanceof HTMLElement) || next.hidden) return
  next.click()
  next.focus()
}
