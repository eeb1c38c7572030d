// @ts-check

// What has been sent: the messages this page knows, by recipient, and what is chosen of them.

import { asRecord, asText } from './reading.js'

/** @typedef {'SMS' | 'EMAIL'} Channel */
/** @typedef {{ id: number, at: Date | null, channel: Channel, to: string, sender: string, text: string, subject: string, hasHtml: boolean, route: string | null, templateKey: string | null, code: string | null, requestId: string | null }} Message */
/** @typedef {{ to: string, channel: Channel, sent: Message[], last: Message, unread: number }} Conversation */

/** @type {Map<string, Conversation>} */
export const conversations = new Map()
/** @type {Map<number, Message>} */
export const messages = new Map()
/** @type {{ selected: string | null, openMail: number | null, tab: string, lastId: number }} */
export const state = { selected: null, openMail: null, tab: 'HTML', lastId: 0 }

export const byLastMessage = () => [...conversations.values()].sort((a, b) => b.last.id - a.last.id)
export const selected = () => conversations.get(state.selected ?? '')

/** @param {Message} message */
export const keep = (message) => {
  const { id, channel } = message
  const to = recipientKey(message.to)
  const conversation = conversations.get(to) ?? { to, channel, sent: [], last: message, unread: 0 }
  conversations.set(to, conversation)
  conversation.sent.push(message)
  conversation.last = message
  messages.set(id, message)
  state.lastId = Math.max(state.lastId, id)
  return conversation
}

export const forgetAll = () => {
  conversations.clear()
  messages.clear()
  Object.assign(state, { selected: null, lastId: 0 })
}

/** What a recipient is known by, however it was typed. @param {string} to */
export const recipientKey = (to) => (to.includes('@') ? to.trim().toLowerCase() : to.replace(/\D/g, '') || to)

/** @param {Record<string, unknown>} raw @returns {string | null} */
const findCode = (raw) => {
  const known = asText(asRecord(raw.variables).otp)
  // Other templates carry order numbers, which can look just like a code.
  if (known || asText(raw.templateKey)) return known
  return /(?<![\p{L}\p{N}])[0-9]{6}(?![\p{L}\p{N}])/u.exec(asText(raw.text) ?? '')?.[0] ?? null
}

/** One message as the server tells it. @param {unknown} value @returns {Message | null} */
export const readMessage = (value) => {
  const raw = asRecord(value)
  if (typeof raw.id !== 'number' || !Number.isSafeInteger(raw.id)) return null
  const at = new Date(asText(raw.createdAt) ?? Number.NaN)
  return {
    id: raw.id,
    at: Number.isNaN(at.getTime()) ? null : at,
    channel: raw.channel === 'EMAIL' ? 'EMAIL' : 'SMS',
    to: asText(raw.to) ?? 'unknown',
    sender: asText(raw.brandName) ?? asText(raw.brandId) ?? 'Unnamed sender',
    text: asText(raw.text) ?? '',
    subject: asText(raw.subject) ?? 'No subject',
    hasHtml: Boolean(raw.html),
    route: asText(raw.route),
    templateKey: asText(raw.templateKey),
    code: findCode(raw),
    requestId: asText(raw.requestId),
  }
}
