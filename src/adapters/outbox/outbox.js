// @ts-check

// Adds new messages, changes the recipient without a reload, and calls the API from the form. The server renders the
// messages: this script loads the page again and takes the new ones.

import { announce, find, showTimes } from '/outbox/page.js'

/** @typedef {{ id: number, to: string, channel: string, createdAt: string, requestId: string }} Message */

const pollSeconds = 25
const longestPauseMs = 15_000
const highlightMs = 2_500
const patienceMs = 8_000

const outbox = find('#outbox')
const list = find('#recipients')
const stage = find('.stage')
const filter = /** @type {HTMLInputElement} */ (find('#filter'))
const wide = matchMedia('(width >= 68rem)')

/** New messages by recipient. @type {Map<string, number>} */
const unread = new Map()

const links = () => [...list.querySelectorAll('a')]
/** @param {string | undefined} to */
const linkTo = (to) => links().find(({ dataset }) => dataset.to === to)
/** @param {string} to */
const recipientKey = (to) => (to.includes('@') ? to.trim().toLowerCase() : to.replace(/\D/g, '') || to)
const isVisible = () => wide.matches || outbox.dataset.view === 'messages'

/** Applies the filter, the counts of new messages and the tab stop. */
function updateList() {
  const wanted = filter.value.trim().toLowerCase()
  const digits = /^[\d\s+().-]+$/.test(wanted) ? wanted.replace(/\D/g, '') : wanted
  for (const item of list.children) {
    const text = (item instanceof HTMLElement && item.dataset.search) || ''
    item.toggleAttribute('hidden', !text.includes(wanted) && !text.includes(digits))
  }
  if (isVisible()) unread.delete(outbox.dataset.shown ?? '')
  for (const link of links()) {
    const count = unread.get(link.dataset.to ?? '') ?? 0
    link.toggleAttribute('data-unread', count > 0)
    find('[data-unread-words]', link).textContent = count > 0 ? ` messages, ${count} new` : ' messages'
  }
  const sum = [...unread.values()].reduce((total, count) => total + count, 0)
  document.title = `${sum > 0 ? `(${sum}) ` : ''}Outbox · otpost`
  find('#clear').hidden = links().length === 0
  const isEmpty = !list.querySelector('li:not([hidden])')
  find('#no-recipients').hidden = !isEmpty
  find('#no-recipients').textContent = filter.value ? 'No matching recipients' : 'No recipients'
  setTabStop(document.activeElement, list.querySelector('[aria-current]'))
}

/** The list has one tab stop: the first candidate that is in it. @param {(Element | null)[]} candidates */
function setTabStop(...candidates) {
  const shown = links().filter((link) => !link.closest('[hidden]'))
  const stop = candidates.find((candidate) => shown.some((link) => link === candidate)) ?? shown[0]
  for (const link of links()) link.tabIndex = link === stop ? 0 : -1
}

list.addEventListener('keydown', (event) => {
  const shown = links().filter((link) => !link.closest('[hidden]'))
  const at = shown.findIndex((link) => link.matches(':focus'))
  const target =
    shown[{ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key] ?? -1]
  if (!target) return
  event.preventDefault()
  setTabStop(target)
  target.focus()
})
filter.addEventListener('input', updateList)
wide.addEventListener('change', updateList)

let turn = 0

/** @param {boolean} [isOther] replaces all messages */
async function refresh(isOther = false) {
  const mine = ++turn
  const chosen = new URL(location.href).searchParams.get('to')
  const to = chosen ?? (isOther ? undefined : outbox.dataset.shown)
  const response = await fetch(to ? `/outbox?to=${encodeURIComponent(to)}` : '/outbox')
  if (!response.ok) throw new Error(`The outbox returned ${response.status}`)
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  // A later call replaces this one.
  if (mine !== turn) return
  const fresh = find('#outbox', page)
  showTimes(fresh)
  const isSame = !isOther && fresh.dataset.shown === outbox.dataset.shown
  delete outbox.dataset.shown
  Object.assign(outbox.dataset, fresh.dataset, { view: chosen ? 'messages' : 'list' })
  const focused =
    document.activeElement instanceof HTMLElement ? document.activeElement.dataset.to : undefined
  list.replaceChildren(...find('#recipients', fresh).children)
  if (focused) linkTo(focused)?.focus({ preventScroll: true })
  if (!isSame || !addArticles(find('.stage', fresh))) {
    stage.replaceChildren(...find('.stage', fresh).childNodes)
    showMessages()
  }
  updateList()
}

/** Keeps the open mail, the focus and the scroll position.
 * @param {HTMLElement} fresh @returns {boolean} false if no article is shown */
function addArticles(fresh) {
  const first = stage.querySelector('article')
  const place = first?.parentElement
  if (!first || !place) return false
  find('#stage-note').replaceChildren(...find('#stage-note', fresh).childNodes)
  const added = [...fresh.querySelectorAll('article')].filter(
    ({ dataset }) => !stage.querySelector(`[data-id="${dataset.id}"]`),
  )
  const open = stage.querySelector('details[open]')
  if (first.matches('.mail')) {
    // The latest mail opens, unless an older one is open.
    const isReading = open !== null && !first.contains(open)
    if (added.length > 0 && !isReading) open?.removeAttribute('open')
    if (isReading) for (const article of added) find('details', article).removeAttribute('open')
    place.prepend(...added)
    showPart(part)
  } else {
    const isAtEnd = place.scrollHeight - place.scrollTop - place.clientHeight < 80
    place.append(...added)
    if (isAtEnd) place.scrollTop = place.scrollHeight
  }
  return true
}

function showMessages() {
  const screen = stage.querySelector('.screen')
  if (screen instanceof HTMLElement) {
    screen.tabIndex = 0
    screen.scrollTop = screen.scrollHeight
  }
  showPart(part)
  if (stage.querySelector('#first-curl')) showFirstCurl()
}

let part = 'HTML'

/** @param {string} chosen */
function showPart(chosen) {
  part = chosen
  for (const radio of stage.querySelectorAll('input')) radio.checked = radio.value === part
}

stage.addEventListener('change', ({ target }) => {
  if (target instanceof HTMLInputElement) showPart(target.value)
})

/** @param {string} url */
async function goTo(url) {
  const before = outbox.dataset.shown
  history.pushState(null, '', url)
  await refresh().catch(() => location.reload())
  return before
}

document.addEventListener('click', async (event) => {
  const link = event.target instanceof Element ? event.target.closest('a') : null
  if (!link?.matches('#back, [data-to]') || event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  const before = await goTo(link.href)
  // A small screen shows either the list or the messages.
  if (link.id === 'back') linkTo(before)?.focus()
  else if (!wide.matches) find('#back').focus()
})
addEventListener('popstate', () => refresh().catch(() => location.reload()))

/** Links of early versions have the recipient in the fragment. */
function followHash() {
  const to = /^#to=(.+)$/.exec(location.hash)?.[1]
  if (to) location.replace(`/outbox?to=${to}`)
}
addEventListener('hashchange', followHash)

/** The last received message. @type {{ id: number, createdAt?: string | undefined }} */
let last

function resetLast() {
  last = { id: Number(outbox.dataset.last), createdAt: outbox.dataset.lastAt }
}

/** @param {boolean} connected */
function setLive(connected) {
  const live = find('#live')
  const text = connected ? 'Live' : 'Disconnected. Retrying.'
  live.hidden = false
  live.dataset.state = connected ? 'connected' : 'disconnected'
  live.toggleAttribute('data-failed', !connected)
  if (live.textContent !== text) live.textContent = text
}

/** @param {number} after @param {number} waitS @returns {Promise<Message[]>} */
async function fetchMessages(after, waitS) {
  const signal = AbortSignal.timeout((waitS + 10) * 1_000)
  const response = await fetch(`/outbox/messages?after=${after}&wait=${waitS}`, { signal, cache: 'no-store' })
  if (!response.ok) throw new Error(`The outbox returned ${response.status}`)
  return (await response.json()).messages
}

/** @param {Message[]} messages */
async function receive(messages) {
  const [latest] = messages.slice(-1)
  if (!latest) return
  await refresh()
  last = latest
  for (const { to } of messages) {
    const key = recipientKey(to)
    if (key !== outbox.dataset.shown || !isVisible()) unread.set(key, (unread.get(key) ?? 0) + 1)
    await offerCode(linkTo(key))
  }
  updateList()
  for (const { id, to } of messages) {
    highlight(linkTo(recipientKey(to)))
    highlight(stage.querySelector(`[data-id="${id}"]`))
  }
  announce(`New ${latest.channel === 'SMS' ? `SMS to +${latest.to}` : `e-mail to ${latest.to}`}`)
}

/** @param {Element | null | undefined} node */
function highlight(node) {
  node?.classList.add('fresh')
  setTimeout(() => node?.classList.remove('fresh'), highlightMs)
}

async function listen() {
  for (let failures = 0, isConnected = false; ; ) {
    const began = performance.now()
    try {
      if (isConnected) {
        const messages = await fetchMessages(last.id, pollSeconds)
        await receive(messages)
        // Limits the rate if the server does not wait.
        if (messages.length === 0 && performance.now() - began < 1_000) await pause(1_000)
      } else {
        // After an outage the server may have another database, with IDs from 1.
        const [known, ...messages] = await fetchMessages(Math.max(0, last.id - 1), 0)
        if (last.id === 0 && known) await receive([known, ...messages])
        else if (known?.id === last.id && known.createdAt === last.createdAt) await receive(messages)
        else if (known || last.id > 0) {
          unread.clear()
          await refresh(true)
          resetLast()
        }
      }
      setLive(true)
      failures = 0
      isConnected = true
    } catch {
      setLive(false)
      isConnected = false
      await pause(Math.min(longestPauseMs, 500 * 2 ** failures++))
    }
  }
}

/** @param {number} ms */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const form = /** @type {HTMLFormElement} */ (find('#try'))
const result = find('#result')

/** @param {string} name */
const field = (name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name))
const channel = () => String(new FormData(form).get('channel'))
const isKeyShown = () => field('apiKey').type === 'text'
const demoKey = form.dataset.demoKey

/** By channel. @type {Record<string, string>} */
const recipients = demoKey ? { SMS: '+1 202 555 0143', EMAIL: 'ada@example.com' } : { SMS: '', EMAIL: '' }

/** Adds to the API's messages. @type {Record<string, string>} */
const hints = {
  forbidden: 'Check the app ID and the API key. The console’s Apps page creates new keys.',
  brand_not_approved: 'The console’s Brands page shows all brands with their status.',
  cooldown_active: 'The previous code is still valid.',
  mismatch: 'After three wrong attempts the code is locked.',
  max_attempts: 'This code is locked. Resend sends a new code.',
  not_found: 'The code has expired, was used, or was replaced by a newer code.',
  sms_failed:
    'The provider did not accept the message, so the code was revoked. The console’s Deliveries page has the reason.',
}

/** @param {string} path @returns {Record<string, string>} */
function bodyFor(path) {
  /** @param {string} name */
  const typed = (name) => field(name).value.trim()
  const app = { appId: typed('appId'), apiKey: typed('apiKey'), brandId: typed('brandId') }
  const contact = { [channel() === 'SMS' ? 'phone' : 'email']: typed('recipient') }
  return path === '/otp/verify'
    ? { ...app, ...contact, otp: typed('otp') }
    : { ...app, channel: channel(), ...contact }
}

/** @param {string} path @param {Record<string, string>} body @param {boolean} hasKey */
function curlLine(path, body, hasKey) {
  const json = JSON.stringify(hasKey ? body : { ...body, apiKey: '$API_KEY' }).replaceAll("'", `'\\''`)
  // Outside the single quotes, so that the shell expands the variable.
  const data = hasKey ? json : json.replace('"apiKey":"$API_KEY"', () => `"apiKey":"'"$API_KEY"'"`)
  return `curl -i ${location.origin}${path} -H 'content-type: application/json' -d '${data}'`
}

/** @param {ParentNode} place @param {string} text */
function fillSnippet(place, text) {
  find('pre', place).textContent = text
  find('[data-copy]', place).dataset.copy = text
}

function showFirstCurl() {
  const body = bodyFor('/otp/send')
  body.appId ||= 'APPID'
  body.brandId ||= 'BRAND'
  if (body.phone === '') body.phone = '+1 202 555 0143'
  if (body.email === '') body.email = 'ada@example.com'
  // The demo's key is not secret.
  fillSnippet(find('#first-curl'), curlLine('/otp/send', body, !!demoKey && body.apiKey === demoKey))
}

function showChannel() {
  const isSms = channel() === 'SMS'
  find('#recipient-label').textContent = isSms ? 'Phone' : 'E-mail'
  field('recipient').type = isSms ? 'tel' : 'email'
  field('recipient').value = recipients[channel()] ?? ''
}

/** Until the tab is closed. Never the key or the code. */
function remember() {
  recipients[channel()] = field('recipient').value
  const [appId, brandId] = [field('appId').value, field('brandId').value]
  try {
    sessionStorage.setItem('otpost-try', JSON.stringify({ appId, brandId, channel: channel(), recipients }))
  } catch {
    // The browser allows no storage.
  }
}

function restore() {
  try {
    const stored = JSON.parse(sessionStorage.getItem('otpost-try') ?? '{}')
    Object.assign(recipients, stored.recipients)
    // The demo's app and key belong together.
    if (!demoKey) for (const name of ['appId', 'brandId']) field(name).value = stored[name] ?? ''
    for (const radio of form.querySelectorAll('input[name="channel"]')) {
      if (radio instanceof HTMLInputElement) radio.checked = radio.value === (stored.channel ?? 'SMS')
    }
  } catch {}
  showChannel()
}

/** The requestId of a message that has not arrived. @type {string | null} */
let awaited = null
let isBusy = false
/** Shows the last response again, with or without the key. */
let showResponse = () => {}

/** @param {string | null} text @param {string} [code] */
function setArrival(text, code) {
  find('#arrival').hidden = text === null
  const [before, ...after] = code ? (text ?? '').split(code) : [text ?? '']
  const mark = document.createElement('mark')
  mark.textContent = code ?? ''
  find('#arrival-text').replaceChildren(before ?? '', ...(code ? [mark, after.join(code)] : []))
  find('#use-code').hidden = code === undefined
  find('#use-code').dataset.code = code ?? ''
}

/** Offers the code if it was awaited or is for the form's recipient.
 * @param {HTMLAnchorElement | undefined} link */
async function offerCode(link) {
  const { to, code, request } = link?.dataset ?? {}
  const isAwaited = request !== undefined && request === awaited
  if (isAwaited) awaited = null
  if (code && (isAwaited || to === recipientKey(field('recipient').value)))
    setArrival(`${code} arrived`, code)
  if (isAwaited && link) await goTo(link.href)
}

/** The message may arrive before or after the response. @param {string} requestId */
async function awaitMessage(requestId) {
  awaited = requestId
  field('otp').value = ''
  setArrival('Waiting for the message…')
  setTimeout(() => {
    if (awaited === requestId)
      setArrival('No message has arrived. Check that the outbox is the provider of this channel.')
  }, patienceMs)
  await offerCode(links().find(({ dataset }) => dataset.request === requestId))
}

/** @param {number} ms */
const elapsed = (ms) => (ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`)

/** @param {string} path @param {Record<string, string>} body */
async function post(path, body) {
  const began = performance.now()
  const headers = { 'content-type': 'application/json' }
  try {
    const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
    const json = parsed(await response.text())
    const line = `${response.status} ${response.statusText}`.trim()
    return {
      status: response.status,
      line: `${line} · ${elapsed(performance.now() - began)}`,
      retryAfter: response.headers.get('retry-after'),
      json,
    }
  } catch {
    const json = { message: 'The server is not reachable.' }
    return { status: 0, line: 'no response', retryAfter: null, json }
  }
}

/** A proxy may answer with something other than JSON. @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return { message: text || 'The request failed.' }
  }
}

/** @param {string} retryAfter seconds */
function waitInWords(retryAfter) {
  const seconds = Number(retryAfter)
  const [unit, size] = seconds < 120 ? ['second', 1] : seconds < 7_200 ? ['minute', 60] : ['hour', 3_600]
  const count = Math.ceil(seconds / Number(size))
  const at = new Date(Date.now() + seconds * 1_000).toLocaleTimeString()
  return `Retry-After ${retryAfter}: retry in ${count} ${unit}${count === 1 ? '' : 's'}, at ${at}`
}

/** @param {'/otp/send' | '/otp/resend' | '/otp/verify'} path */
async function call(path) {
  if (isBusy) return
  if (path !== '/otp/verify') {
    awaited = null
    if (find('#use-code').hidden) setArrival(null)
  }
  const buttons = ['#send', '#resend', '#verify'].map((id) => find(id))
  isBusy = true
  for (const button of buttons) button.setAttribute('aria-disabled', 'true')
  const body = bodyFor(path)
  const { status, line, retryAfter, json } = await post(path, body)
  isBusy = false
  for (const button of buttons) button.removeAttribute('aria-disabled')
  const isGood = status >= 200 && status < 300
  const title = isGood && path === '/otp/verify' ? 'Verified' : json.message
  const hint = hints[json.error] ?? (title === json.message ? '' : json.message)
  const retry = retryAfter === null ? '' : waitInWords(retryAfter)
  const words = { title, error: json.error ?? '', status: `POST ${path} · ${line}`, hint, retry }
  showResponse = () => {
    for (const [slot, text] of Object.entries(words)) {
      find(`[data-slot="${slot}"]`, result).textContent = text
      find(`[data-slot="${slot}"]`, result).hidden = text === ''
    }
    find('[data-slot="json"]', result).hidden = status === 0
    fillSnippet(find('[data-slot="json"]', result), status === 0 ? '' : JSON.stringify(json, null, 2))
    fillSnippet(find('[data-slot="curl"]', result), curlLine(path, body, isKeyShown()))
    result.dataset.tone = isGood ? 'good' : 'bad'
    result.hidden = false
  }
  showResponse()
  announce(`${title}, ${line}`)
  if (isGood && path !== '/otp/verify') await awaitMessage(json.requestId)
  else if (isGood || json.error === 'sms_failed') setArrival(null)
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  call('/otp/send')
})
find('#resend').addEventListener('click', () => call('/otp/resend'))
find('#verify').addEventListener('click', () => call('/otp/verify'))
field('otp').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return
  event.preventDefault()
  call('/otp/verify')
})
find('#use-code').addEventListener('click', ({ currentTarget }) => {
  field('otp').value = (currentTarget instanceof HTMLElement && currentTarget.dataset.code) || ''
  find('#verify').focus()
})
find('#show-key').addEventListener('click', () => {
  const isShown = !isKeyShown()
  field('apiKey').type = isShown ? 'text' : 'password'
  find('#show-key').textContent = isShown ? 'Hide' : 'Show'
  find('#show-key').setAttribute('aria-pressed', String(isShown))
  showResponse()
})
form.addEventListener('input', ({ target }) => {
  if (target instanceof HTMLInputElement && target.name === 'channel') {
    showChannel()
    setArrival(null)
  }
  remember()
  if (stage.querySelector('#first-curl')) showFirstCurl()
})

find('#clear').addEventListener('submit', (event) => {
  if (!confirm('Delete all messages of the outbox?')) event.preventDefault()
})

resetLast()
followHash()
restore()
showMessages()
updateList()
listen()
