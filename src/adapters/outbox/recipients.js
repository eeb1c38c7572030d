// @ts-check

// The list of recipients, the last one written to on top.

import { fill, find, make, setIcon, spelled } from './dom.js'
import { byLastMessage, conversations, state } from './store.js'

/** @typedef {import('./store.js').Conversation} Conversation */

export const list = find('#recipients')
export const filter = /** @type {HTMLInputElement} */ (find('#filter'))
/** @type {Map<string, HTMLElement>} */
const items = new Map()

/** @param {string} to */
export const recipientButton = (to) => items.get(to)?.querySelector('button')

export const clearRecipients = () => items.clear()

/** @param {Conversation} conversation */
const passesFilter = ({ to, sent }) => {
  const wanted = filter.value.trim().toLowerCase()
  const digits = /^[\d\s+().-]+$/.test(wanted) ? wanted.replace(/\D/g, '') : wanted
  return to.toLowerCase().includes(digits) || sent.some(({ sender }) => sender.toLowerCase().includes(wanted))
}

/** @param {Conversation} conversation */
const itemFor = (conversation) => {
  const { to, channel, sent, last, unread } = conversation
  const item = items.get(to) ?? find('li', make('recipient', {}))
  items.set(to, item)
  const button = find('button', item)
  button.dataset.to = to
  button.toggleAttribute('data-unread', unread > 0)
  button.setAttribute('aria-current', String(to === state.selected))
  setIcon(item, channel === 'SMS' ? 'sms' : 'mail')
  return fill(item, {
    channel: channel === 'SMS' ? 'SMS ' : 'E-mail ',
    to: spelled(to),
    at: last.at ?? '',
    preview: (channel === 'SMS' ? last.text : last.subject).slice(0, 120),
    count: String(sent.length),
    unread: unread > 0 ? ` messages, ${unread} new` : ' messages',
  })
}

const listButtons = () => [...list.querySelectorAll('button')]

/** One tab stop for the whole list; arrow keys move it. @param {Element | null} preferred */
const setTabStop = (preferred) => {
  const buttons = listButtons()
  const stop = buttons.find((button) => button === preferred) ?? buttons[0]
  for (const button of buttons) button.tabIndex = button === stop ? 0 : -1
}

export const renderRecipients = () => {
  const wanted = byLastMessage().filter(passesFilter).map(itemFor)
  const focused = listButtons().find((button) => button === document.activeElement)
  if (wanted.length !== list.children.length || wanted.some((item, index) => item !== list.children[index])) {
    list.replaceChildren(...wanted)
    focused?.focus({ preventScroll: true })
  }
  setTabStop(focused ?? list.querySelector('[aria-current="true"]'))
  find('#no-recipients').hidden = wanted.length > 0
  find('#no-recipients').textContent = filter.value ? 'No recipient matches' : 'No recipients yet'
  document.body.toggleAttribute('data-empty', conversations.size === 0)
  const unread = [...conversations.values()].reduce((sum, conversation) => sum + conversation.unread, 0)
  document.title = `${unread > 0 ? `(${unread}) ` : ''}Outbox · otpost`
}

/** @param {KeyboardEvent} event */
export const moveInList = (event) => {
  const buttons = listButtons()
  const at = buttons.findIndex((button) => button.matches(':focus'))
  const moves = Object.entries({ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 })
  const target = buttons[moves.find(([key]) => key === event.key)?.[1] ?? -1]
  if (!target) return
  event.preventDefault()
  setTabStop(target)
  target.focus()
}
