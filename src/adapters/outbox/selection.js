// @ts-check

// Which conversation is chosen: the address says so (#to=…), else the page chooses where it has the room.

import { renderConversation, stage } from './conversation.js'
import { find } from './dom.js'
import { attempt } from './reading.js'
import { list, recipientButton, renderRecipients } from './recipients.js'
import { byLastMessage, conversations, recipientKey, selected, state } from './store.js'

/** Whether the list and the messages fit beside each other. */
export const wide = matchMedia('(width >= 68rem)')

const linked = () => {
  const to = attempt(() => decodeURIComponent(/^#to=(.+)$/.exec(location.hash)?.[1] ?? '')) ?? ''
  return (conversations.has(to) ? to : recipientKey(to)) || null
}

/** @param {string} to */
export const goTo = (to) => {
  location.hash = `to=${encodeURIComponent(to)}`
}

/** With room for both, something is always chosen, and stays so however many others arrive. */
export const choose = () => {
  const before = state.selected
  const link = linked()
  const byDefault = wide.matches ? (before ?? byLastMessage()[0]?.to ?? null) : null
  state.selected = link ?? byDefault
  document.body.dataset.view = link ? 'messages' : 'list'
  const conversation = selected()
  if (conversation) conversation.unread = 0
  renderRecipients()
  if (state.selected !== before || !stage.hasChildNodes()) renderConversation()
}

/** @param {MouseEvent} event */
export const pressedInList = ({ target }) => {
  const to = target instanceof Element ? target.closest('button')?.dataset.to : undefined
  if (to) goTo(to)
}

export const goBack = () => {
  const left = recipientButton(state.selected ?? '')
  history.pushState(null, '', location.pathname)
  choose()
  left?.focus()
}

export const followLink = () => {
  const fromList = list.contains(document.activeElement)
  choose()
  // On a small screen the list has just gone, and the focus with it.
  if (fromList && !wide.matches) find('#back').focus()
}
