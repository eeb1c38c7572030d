// @ts-check

// The chosen conversation: text messages as on a phone, mails as in a mailbox.

import { fill, find, highlight, make, marked, offerCopy, snippet, spelled } from './dom.js'
import { firstCurl } from './form.js'
import { mailArticle, openMail } from './mail.js'
import { selected, state } from './store.js'
import { plural } from './words.js'

/** @typedef {import('./store.js').Message} Message */
/** @typedef {import('./store.js').Conversation} Conversation */

export const stage = find('#messages')

/** @param {Message} message @param {Message} [previous] */
const smsArticle = ({ id, at, code, text, sender, route, templateKey }, previous) => {
  const facts = [route, templateKey, plural([...text].length, 'character')].filter(Boolean).join(' · ')
  const piece = make('sms', {
    sender: previous?.sender === sender ? null : sender,
    text: marked(text, code),
    at: at ?? '',
    print: at ? ` · ${facts}` : facts,
  })
  if (code) offerCopy(code, piece, `Copy ${code}`)
  else fill(piece, { copy: null })
  find('article', piece).dataset.id = String(id)
  return piece
}

const renderHead = () => {
  find('#head').hidden = state.selected === null
  find('#stage-title').replaceChildren(state.selected ? spelled(state.selected) : 'Messages')
  const noun = selected()?.channel === 'EMAIL' ? 'mail' : 'message'
  find('#stage-note').textContent = plural(selected()?.sent.length ?? 0, noun)
}

export const renderConversation = () => {
  const conversation = selected()
  renderHead()
  if (!conversation) {
    const title = state.selected ? 'Nothing for this recipient yet' : 'Nothing has been sent yet'
    stage.replaceChildren(make('empty', { title, curl: snippet('curl', firstCurl()) }))
  } else if (conversation.channel === 'EMAIL') {
    stage.replaceChildren(...conversation.sent.map(mailArticle).reverse())
    stage.scrollTop = 0
    openMail(conversation.last.id)
  } else {
    stage.replaceChildren(make('phone', {}))
    const screen = find('.screen', stage)
    // Whatever scrolls has to be within reach of the keyboard.
    screen.tabIndex = 0
    screen.append(
      ...conversation.sent.map((message, index) => smsArticle(message, conversation.sent[index - 1])),
    )
    screen.scrollTop = screen.scrollHeight
  }
  stage.classList.toggle('mails', conversation?.channel === 'EMAIL')
}

/** Adds to what is on screen, so that an open mail, the focus and the scroll position stay.
 * @param {Message} message @param {Conversation} conversation */
export const showArrival = (message, { channel, sent }) => {
  const previous = sent[sent.length - 2]
  renderHead()
  if (!previous) renderConversation()
  else if (channel === 'EMAIL') {
    stage.prepend(mailArticle(message))
    if (state.openMail === null || state.openMail === previous.id) openMail(message.id)
  } else {
    const screen = find('.screen', stage)
    const atEnd = screen.scrollHeight - screen.scrollTop - screen.clientHeight < 80
    screen.append(smsArticle(message, previous))
    if (atEnd) screen.scrollTop = screen.scrollHeight
  }
}

/** @param {number} id */
export const highlightMessage = (id) => highlight(stage.querySelector(`[data-id="${id}"]`))
