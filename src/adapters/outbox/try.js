// @ts-check

// Trying the API: the calls of the form, what they answered, and the code that comes in for them.

import { announce, find, make, marked, setIcon, snippet } from './dom.js'
import { bodyFor, curlLine, field, keyIsShown } from './form.js'
import { asRecord, asText, attempt } from './reading.js'
import { goTo } from './selection.js'
import { messages, recipientKey } from './store.js'
import { waitInWords } from './words.js'

/** @typedef {import('./store.js').Message} Message */
/** @typedef {{ status: number, line: string, json: Record<string, unknown>, body: string, retryAfter: string | null }} Answer */

/** What a code means at this form, where the service's own message leaves it open. */
const HINTS = new Map([
  ['forbidden', '“otpost app issue APPID” prints a new key.'],
  ['brand_not_approved', '“otpost brand list” shows the brands and their status.'],
  ['cooldown_active', 'The code sent a moment ago still works.'],
  ['mismatch', 'A code takes three wrong guesses, then it is locked.'],
  ['max_attempts', 'This code stays locked. Resend makes a new one.'],
  ['not_found', 'The code has expired, was used already, or was replaced.'],
  ['sms_failed', 'The provider did not take the message, so its code was revoked. The server log says why.'],
])

const result = find('#result')
/** @type {{ busy: boolean, waitingFor: string | null, showLast: () => void }} */
const trying = { busy: false, waitingFor: null, showLast: () => {} }

/** @param {string} path @param {Record<string, string>} body @returns {Promise<Answer>} */
const post = async (path, body) => {
  const started = performance.now()
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const text = await response.text()
  const line = `${response.status} ${response.statusText}`.trim()
  const took = `${Math.round(performance.now() - started)} ms`
  const answer = {
    status: response.status,
    line: `${line} · ${took}`,
    retryAfter: response.headers.get('retry-after'),
  }
  const json = attempt(() => JSON.parse(text))
  return { ...answer, json: asRecord(json), body: json === null ? text : JSON.stringify(json, null, 2) }
}

/** @param {string} path @param {Record<string, string>} body @param {Answer} answer */
const showAnswer = (path, body, { status, line, json, body: text, retryAfter }) => {
  const good = status >= 200 && status < 300
  const code = asText(json.error)
  const said = asText(json.message) ?? (good ? 'Done' : 'The request failed')
  const title = good && path === '/otp/verify' ? 'Verified' : said
  const piece = make('answer', {
    title,
    status: [`POST ${path}`, line].join(' · '),
    error: code,
    hint: HINTS.get(code ?? '') ?? (title === said ? null : said),
    retry: retryAfter === null ? null : waitInWords(retryAfter),
    json: text === '' ? null : snippet('JSON', text),
    curl: snippet('curl', curlLine(path, body, keyIsShown())),
  })
  setIcon(piece, good ? 'check' : 'alert')
  result.dataset.tone = good ? 'good' : 'bad'
  result.hidden = false
  result.replaceChildren(piece)
}

/** @param {string | null} text @param {string | null} [code] */
const setArrival = (text, code = null) => {
  find('#arrival').hidden = text === null
  find('#arrival-text').replaceChildren(marked(text ?? '', code))
  find('#use-code').hidden = code === null
  find('#use-code').dataset.code = code ?? ''
}

export const clearArrival = () => setArrival(null)

/** Offers the code of a message that was awaited or went to the recipient of the form. @param {Message} message */
export const offerCode = ({ requestId, to, code }) => {
  const awaited = requestId !== null && requestId === trying.waitingFor
  if (awaited) {
    trying.waitingFor = null
    goTo(to)
  }
  if (code && (awaited || to === recipientKey(field('recipient').value))) setArrival(`${code} arrived`, code)
}

/** The message may come in before the answer of the call that sent it, or after. @param {string | null} requestId */
const awaitMessage = (requestId) => {
  trying.waitingFor = requestId
  field('otp').value = ''
  setArrival('Waiting for the message…')
  const here = [...messages.values()].find((message) => requestId !== null && message.requestId === requestId)
  if (here) offerCode(here)
  setTimeout(() => {
    const text = 'Nothing has come in yet. Does this channel go to the outbox?'
    if (requestId !== null && trying.waitingFor === requestId) setArrival(text)
  }, 8_000)
}

const stopWaiting = () => {
  trying.waitingFor = null
  if (find('#use-code').hidden) clearArrival()
}

/** @param {'/otp/send' | '/otp/resend' | '/otp/verify'} path */
export const call = async (path) => {
  if (trying.busy) return
  if (path !== '/otp/verify') stopWaiting()
  const setBusy = (/** @type {boolean} */ busy) => {
    trying.busy = busy
    for (const id of ['#send', '#resend', '#verify']) find(id).setAttribute('aria-disabled', String(busy))
  }
  setBusy(true)
  const body = bodyFor(path)
  const message = 'No answer: the service cannot be reached'
  /** @type {Answer} */
  const unreachable = { status: 0, line: 'no answer', json: { message }, body: '', retryAfter: null }
  const answer = await post(path, body).catch(() => unreachable)
  setBusy(false)
  trying.showLast = () => showAnswer(path, body, answer)
  trying.showLast()
  announce(`${find('h3', result).textContent}, ${answer.line}`)
  if (answer.status === 200 && path === '/otp/verify') clearArrival()
  else if (answer.status === 200) awaitMessage(asText(answer.json.requestId))
  else if (answer.json.error === 'sms_failed') clearArrival()
}

export const useCode = () => {
  field('otp').value = find('#use-code').dataset.code ?? ''
  find('#verify').focus()
}

export const toggleKey = () => {
  const show = !keyIsShown()
  field('apiKey').type = show ? 'text' : 'password'
  find('#show-key').textContent = show ? 'Hide' : 'Show'
  find('#show-key').setAttribute('aria-pressed', String(show))
  trying.showLast()
}
