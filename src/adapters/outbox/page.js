// @ts-check

// The outbox page: what happens where, and the start.

import { renderConversation, stage } from './conversation.js'
import { copy, find } from './dom.js'
import { field, form, prefill, remember, showChannel } from './form.js'
import { startListening, stopListening } from './live.js'
import { moveInTabs, pressedInMails } from './mail.js'
import { filter, list, moveInList, renderRecipients } from './recipients.js'
import { choose, followLink, goBack, pressedInList, wide } from './selection.js'
import { selected } from './store.js'
import { call, clearArrival, toggleKey, useCode } from './try.js'

list.addEventListener('click', pressedInList)
list.addEventListener('keydown', moveInList)
filter.addEventListener('input', renderRecipients)
stage.addEventListener('click', pressedInMails)
stage.addEventListener('keydown', moveInTabs)
find('#back').addEventListener('click', goBack)
document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest('button') : null
  if (button?.dataset.copy) copy(button)
})

find('#resend').addEventListener('click', () => call('/otp/resend'))
find('#verify').addEventListener('click', () => call('/otp/verify'))
find('#use-code').addEventListener('click', useCode)
find('#show-key').addEventListener('click', toggleKey)
form.addEventListener('submit', (event) => {
  event.preventDefault()
  call('/otp/send')
})
field('otp').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return
  event.preventDefault()
  call('/otp/verify')
})
form.addEventListener('change', ({ target }) => {
  if (target instanceof HTMLInputElement && target.name === 'channel') {
    showChannel()
    clearArrival()
  }
  typed()
})
form.addEventListener('input', ({ target }) => {
  if (target instanceof HTMLInputElement && target.name !== 'channel') typed()
})

/** The empty view shows a line to paste, made of what the form holds. */
function typed() {
  remember()
  if (!selected()) renderConversation()
}

wide.addEventListener('change', choose)
addEventListener('hashchange', followLink)
addEventListener('popstate', followLink)
addEventListener('pagehide', stopListening)
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) startListening()
})

prefill()
startListening()
