// @ts-check

// Confirmation dialogs, times in fields, and live pages. The pages work without it.

import { announce, element, find, localTimes, setClock, showTimes } from '/admin/page.js'
import { difference } from '/admin/times.js'

const retryMs = 3_000
const fullMs = 30_000
/** More than a page takes to arrive. */
const clocksMs = 10_000

const confirmed = new WeakSet()
let sent = new WeakSet()

document.addEventListener('submit', (event) => {
  const form = event.target
  if (!(form instanceof HTMLFormElement) || event.defaultPrevented) return
  const question = form.dataset.confirm
  if (!question || confirmed.has(form)) {
    if (form.method !== 'post' || event.submitter?.hasAttribute('formtarget')) return
    // The answer to a second submission would replace that to the first, which may have an API key.
    if (sent.has(form)) event.preventDefault()
    sent.add(form)
    return
  }
  event.preventDefault()
  openDialog(question, event.submitter, () => {
    confirmed.add(form)
    form.requestSubmit(event.submitter)
  })
})

// The browser may show a left page again as it was.
addEventListener('pageshow', () => {
  sent = new WeakSet()
})

/** @param {string} question @param {HTMLElement | null} button @param {() => void} agreed */
function openDialog(question, button, agreed) {
  const yes = button?.textContent ?? 'OK'
  const kind = button?.classList.contains('danger') ? 'danger' : 'primary'

  const dialog = element('dialog', { 'aria-labelledby': 'question' })
  const buttons = element('form', { method: 'dialog', class: 'actions' }, [
    element('button', { class: 'button plain', value: 'no' }, ['Cancel']),
    element('button', { class: `button ${kind}`, value: 'yes' }, [yes]),
  ])
  dialog.append(element('p', { id: 'question' }, [question]), buttons)
  dialog.addEventListener('close', () => {
    dialog.remove()
    if (dialog.returnValue === 'yes') agreed()
  })
  document.body.append(dialog)
  dialog.showModal()
}

document.addEventListener('keydown', (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event
  const isTyping = target instanceof Element && target.closest('input, textarea, select, [contenteditable]')
  const isSlash = key === '/' && !isTyping && !ctrlKey && !metaKey && !altKey
  if (!isSlash && !((ctrlKey || metaKey) && key.toLowerCase() === 'k')) return
  if (openSearch()) event.preventDefault()
})

/** The results of the search page in a dialog. False: this page has no search. */
function openSearch() {
  const own = document.querySelector('.find form')
  if (!(own instanceof HTMLFormElement) || document.querySelector('dialog[open]')) return false
  const form = /** @type {HTMLFormElement} */ (own.cloneNode(true))
  const [label, input] = [find('label', form), find('input[name=q]', form)]
  label.setAttribute('for', 'find-in-dialog')
  input.id = 'find-in-dialog'
  const results = element('div', { role: 'status' })
  const dialog = element('dialog', { class: 'search', 'aria-label': 'Search' }, [form, results])
  const links = () => [...results.querySelectorAll('a')]
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    event.stopPropagation()
    const fields = new URLSearchParams()
    for (const [name, value] of new FormData(form)) fields.set(name, String(value))
    const headers = { 'x-otpost-dialog': '1' }
    const response = await fetch(form.action, { method: 'POST', body: fields, headers, redirect: 'manual' })
    // Such as an expired session: its page says what to do.
    if (!response.ok) return form.submit()
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    results.replaceChildren(...page.querySelectorAll('.search-results'))
    showTimes(results)
    const [first, second] = links()
    if (first && !second && first.target === '') first.click()
    else first?.focus()
  })
  dialog.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined) return
    const stops = [input, ...links()]
    const at = stops.findIndex((stop) => stop.matches(':focus'))
    stops[(at + step + stops.length) % stops.length]?.focus()
    event.preventDefault()
  })
  dialog.addEventListener('close', () => dialog.remove())
  document.body.append(dialog)
  dialog.showModal()
  input.focus()
  return true
}

for (const button of document.querySelectorAll('button[data-shows]')) {
  if (!(button instanceof HTMLButtonElement)) continue
  const input = document.getElementById(button.dataset.shows ?? '')
  if (!(input instanceof HTMLInputElement)) continue
  const show = (/** @type {boolean} */ isShown) => {
    input.type = isShown ? 'text' : 'password'
    button.setAttribute('aria-pressed', String(isShown))
  }
  button.addEventListener('click', () => show(input.type === 'password'))
  // Browsers store the values of text fields.
  input.form?.addEventListener('submit', () => show(false))
  button.hidden = false
}

// The text of a chosen file goes where it can also be pasted.
for (const place of document.querySelectorAll('[data-file-of]')) {
  const input = place.querySelector('input')
  const text = document.getElementById(place instanceof HTMLElement ? (place.dataset.fileOf ?? '') : '')
  if (!input || !(text instanceof HTMLTextAreaElement)) continue
  input.addEventListener('change', async () => {
    text.value = (await input.files?.[0]?.text()) ?? ''
  })
  place.removeAttribute('hidden')
}

/** @param {HTMLElement} bar */
function startLive(bar) {
  const status = find('p', bar)
  const button = find('button', bar)
  let updatedAt = timeOf(document)
  let isPaused = false
  let isAsking = false
  let isStale = false
  /** @type {EventSource | undefined} */
  let source
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let retry

  function open() {
    close()
    if (isPaused || document.hidden) return
    source = new EventSource('/admin/live')
    source.addEventListener('open', () => say('Live'))
    source.addEventListener('message', ({ data }) => {
      if (data === 'changed') update()
      else if (data === 'renew') open()
      else reopen('Too many live pages are open', fullMs)
    })
    source.addEventListener('error', async () => {
      close()
      const page = await get()
      if (page === signedOut) say(page, 'failed')
      else reopen('Connection lost, retrying', retryMs)
    })
  }

  function close() {
    source?.close()
    clearTimeout(retry)
  }

  /** @param {string} words @param {number} ms */
  function reopen(words, ms) {
    close()
    if (!isPaused) say(words, 'failed')
    retry = setTimeout(open, ms)
  }

  async function update() {
    isStale = true
    if (isAsking) return
    isAsking = true
    while (isStale && !isPaused) {
      isStale = false
      const page = await get()
      if (isPaused) break
      if (page === signedOut) close()
      if (typeof page === 'string') say(page, 'failed')
      else {
        swap(page)
        updatedAt = timeOf(page)
        say('Live')
      }
    }
    isAsking = false
  }

  /** @param {string} words @param {'' | 'failed' | 'paused'} [state] */
  function say(words, state = '') {
    const isNews = bar.dataset.words !== undefined && bar.dataset.words !== words
    bar.dataset.words = words
    status.toggleAttribute('data-failed', state === 'failed')
    // What the page says may no longer be so.
    document.body.toggleAttribute('data-stale', state === 'failed')
    status.toggleAttribute('data-paused', state === 'paused')
    status.textContent = `${words} · updated ${updatedAt}`
    if (isNews) announce(words)
    bar.hidden = false
  }

  button.addEventListener('click', () => {
    isPaused = !isPaused
    find('span', button).textContent = isPaused ? 'Resume' : 'Pause'
    if (isPaused) {
      close()
      say('Paused', 'paused')
    } else open()
  })
  document.addEventListener('visibilitychange', open)
  open()
}

/** When the server rendered the page, in the viewer's time zone. @param {Document} page */
function timeOf(page) {
  return localTimes.read(Number(find('[data-now]', page).dataset.now)).time
}

const signedOut = 'Signed out. Reload the page'

/** The page as the last update had it. The server then sends what changed. */
let known = { digest: '', html: '' }

/** The page, or the reason for its absence. */
async function get() {
  try {
    const response = await fetch(location.href, {
      // The first header keeps an update from extending the session.
      headers: { accept: 'text/html', 'x-otpost-refresh': '1', 'x-otpost-page': known.digest },
      redirect: 'manual',
    })
    if (response.type === 'opaqueredirect' || response.status === 401) return signedOut
    if (!response.ok) return `Update failed (${response.status}), retrying`
    const html = response.headers.get('content-type')?.includes('json')
      ? pageOf(await response.json())
      : await response.text()
    known = { digest: response.headers.get('x-otpost-page') ?? '', html }
    return new DOMParser().parseFromString(html, 'text/html')
  } catch {
    return 'Server not reachable, retrying'
  }
}

/** @param {(string | [number, number])[]} parts text, or where the known page has it and how long it is */
function pageOf(parts) {
  return parts
    .map((part) => (typeof part === 'string' ? part : known.html.slice(part[0], part[0] + part[1])))
    .join('')
}

/** Updates the live parts. @param {Document} page */
function swap(page) {
  const focused = document.activeElement
  for (const old of document.querySelectorAll('[data-live]')) {
    const fresh = page.querySelector(`[data-live="${old.getAttribute('data-live')}"]`)
    if (!fresh) continue
    setClock(fresh)
    showTimes(fresh)
    morph(old, fresh)
  }
  // A row that moved has lost it.
  if (focused instanceof HTMLElement && focused !== document.activeElement) focused.focus()
  document.dispatchEvent(new CustomEvent('otpost:refreshed'))
}

/**
 * Changes only what differs, so that focus, selection, scroll position and open details stay.
 *
 * @param {Element} old @param {Element} fresh
 */
function morph(old, fresh) {
  // charts.js draws it.
  if (old.hasAttribute('data-plot')) return
  for (const { name } of [...old.attributes]) {
    if (name !== 'open' && !fresh.hasAttribute(name)) old.removeAttribute(name)
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value)
  }
  const wanted = new Set(Array.from(fresh.children, keyOf))
  const kept = new Map(Array.from(old.children, (child) => [keyOf(child), child]))
  const isGone = (/** @type {Node} */ node) => keyOf(node) !== undefined && !wanted.has(keyOf(node))
  for (const child of [...old.children]) if (isGone(child) && !isHeld(child)) child.remove()
  let place = old.firstChild
  for (const child of [...fresh.childNodes]) {
    while (place && isGone(place)) place = place.nextSibling
    const key = keyOf(child)
    const isAlike = place && keyOf(place) === undefined && place.nodeName === child.nodeName
    const match = key === undefined ? isAlike && place : kept.get(key)
    if (!match) {
      old.insertBefore(document.adoptNode(child), place)
      continue
    }
    if (match === place) place = place.nextSibling
    else old.insertBefore(match, place)
    if (match instanceof Element && child instanceof Element) morph(match, child)
    else if (match.nodeValue !== child.nodeValue && !isHeld(match)) match.nodeValue = child.nodeValue
  }
  while (place) {
    const { nextSibling } = place
    if (!isHeld(place)) place.remove()
    place = nextSibling
  }
}

/** @param {Node} node */
const keyOf = (node) => (node instanceof HTMLElement ? node.dataset.key : undefined)

/** Whether it has the focus or selected text. @param {Node} node */
function isHeld(node) {
  const selection = getSelection()
  return (
    node.contains(document.activeElement) ||
    (!!selection && !selection.isCollapsed && selection.containsNode(node, true))
  )
}

// Times in fields are in the time zone of the page. URLs have UTC.
for (const input of document.querySelectorAll('input[data-utc]')) {
  if (!(input instanceof HTMLInputElement) || localTimes.isUtc) continue
  if (input.value !== '') {
    const { date, time } = localTimes.read(Date.parse(`${input.value}Z`))
    input.value = `${date}T${time}`
  }
  input.form?.addEventListener('formdata', ({ formData }) => {
    if (input.value !== '') formData.set(input.name, new Date(input.value).toISOString())
  })
}
/** Of the browser before that of the server, when this page arrived. Null: the page has no time. */
function clockAheadMs() {
  const marked = document.querySelector('[data-now]')
  const serverAt = marked instanceof HTMLElement ? Number(marked.dataset.now) : 0
  const [arrival] = performance.getEntriesByType('navigation')
  const sinceMs =
    arrival instanceof PerformanceNavigationTiming ? performance.now() - arrival.responseStart : 0
  return serverAt === 0 ? null : Date.now() - sinceMs - serverAt
}

const clockAhead = clockAheadMs()
if (clockAhead !== null && Math.abs(clockAhead) > clocksMs) {
  const direction = clockAhead > 0 ? 'ahead of' : 'behind'
  const words = `The clock of your browser is ${difference(Math.abs(clockAhead))} ${direction} the clock of the server. Times on these pages are by the server, so check both clocks.`
  document.getElementById('content')?.prepend(element('p', { class: 'notice warn', role: 'status' }, [words]))
}
const focus = document.querySelector('[data-focus]')
if (focus instanceof HTMLElement) focus.focus()
const bar = document.querySelector('[data-live-bar]')
if (bar instanceof HTMLElement) startLive(bar)
