// @ts-check

// Messages as they come: one long poll after the other, for as long as the page is open.

import { highlightMessage, showArrival, stage } from './conversation.js'
import { announce, find, highlight } from './dom.js'
import { asRecord } from './reading.js'
import { clearRecipients, recipientButton } from './recipients.js'
import { choose } from './selection.js'
import { forgetAll, keep, messages, readMessage, state } from './store.js'
import { offerCode } from './try.js'

/** @typedef {import('./store.js').Message} Message */

const POLL_SECONDS = 25
const MAX_BACKOFF = 15_000

/** @param {string} query @param {AbortSignal} signal @returns {Promise<Message[]>} */
const fetchMessages = async (query, signal) => {
  const limit = AbortSignal.timeout((POLL_SECONDS + 10) * 1_000)
  const options = { signal: AbortSignal.any([signal, limit]), cache: /** @type {const} */ ('no-store') }
  const response = await fetch(`/outbox/messages?${query}`, options)
  const found = asRecord(await response.json()).messages
  if (!response.ok || !Array.isArray(found)) throw new Error(`The outbox answered ${response.status}`)
  const readable = found.map(readMessage).filter((message) => message !== null)
  return readable.sort((a, b) => a.id - b.id)
}

/** @param {Message[]} fetched */
const receive = (fetched) => {
  const arrived = fetched.filter(({ id }) => !messages.has(id))
  for (const message of arrived) {
    const conversation = keep(message)
    if (message.to === state.selected) showArrival(message, conversation)
    else conversation.unread += 1
    offerCode(message)
  }
  const last = arrived.at(-1)
  if (!last) return
  choose()
  for (const { id, to } of arrived) {
    highlight(recipientButton(to))
    highlightMessage(id)
  }
  announce(`New ${last.channel === 'SMS' ? 'SMS' : 'e-mail'} to ${last.to}`)
}

/** After an outage the server may have come back with another database. @param {Message[]} fetched */
const reload = (fetched) => {
  const last = messages.get(state.lastId)
  if (last && fetched.some(({ id, at }) => id === last.id && Number(at) === Number(last.at)))
    return receive(fetched)
  forgetAll()
  clearRecipients()
  stage.replaceChildren()
  for (const message of fetched) keep(message)
  choose()
}

/** @param {boolean} connected */
const setLive = (connected) => {
  const text = connected ? 'Live' : 'Disconnected, retrying'
  find('#live').dataset.state = connected ? 'connected' : 'disconnected'
  find('#live').toggleAttribute('data-failed', !connected)
  if (find('#live-text').textContent !== text) find('#live-text').textContent = text
}

/** @param {number} ms */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** @param {AbortSignal} signal */
const listen = async (signal) => {
  for (let failures = 0, known = false; !signal.aborted; ) {
    const [asked, lastId] = [performance.now(), state.lastId]
    try {
      const query = known ? `after=${state.lastId}&wait=${POLL_SECONDS}` : 'limit=500'
      const fetched = await fetchMessages(query, signal)
      if (known) receive(fetched)
      else reload(fetched)
      setLive(true)
      // A server that does not hold the poll open must not be flooded.
      if (known && state.lastId === lastId && performance.now() - asked < 1_000) await pause(1_000)
      failures = 0
      known = true
    } catch {
      if (signal.aborted) return
      setLive(false)
      known = false
      await pause(Math.min(MAX_BACKOFF, 500 * 2 ** failures++))
    }
  }
}

let leaving = new AbortController()

export const startListening = () => {
  leaving = new AbortController()
  listen(leaving.signal)
}

export const stopListening = () => leaving.abort()
