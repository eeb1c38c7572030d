// @ts-check

// Confirmation dialogs, times in fields, and an overview that refreshes itself. The pages work without it.

import { announce, element, setClock, showTimes } from '/admin/page.js'
import { localTimes } from '/admin/times.js'

const refreshMs = 10_000

const confirmed = new WeakSet()

document.addEventListener('submit', (event) => {
  const form = event.target
  if (!(form instanceof HTMLFormElement)) return
  const question = form.dataset.confirm
  if (!question || confirmed.has(form)) return
  event.preventDefault()
  openDialog(question, event.submitter, () => {
    confirmed.add(form)
    form.requestSubmit(event.submitter)
  })
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

/** @param {HTMLElement} pulse */
function startRefreshing(pulse) {
  let isAsking = false
  say('Live')

  setInterval(async () => {
    if (isAsking || document.hidden) return
    if (isInUse()) return say('Paused while in use')
    isAsking = true
    try {
      await refresh()
    } finally {
      isAsking = false
    }
  }, refreshMs)

  document.addEventListener('visibilitychange', async () => {
    if (!document.hidden && !isAsking && !isInUse()) await refresh()
  })

  async function refresh() {
    const page = await get()
    if (typeof page === 'string') return say(page, true)
    if (!isInUse()) swap(page)
    say('Live')
  }

  /** @param {string} words */
  function say(words, isFailed = false) {
    pulse.hidden = false
    pulse.toggleAttribute('data-failed', isFailed)
    if (pulse.textContent === words) return
    pulse.textContent = words
    if (isFailed) announce(words)
  }
}

/** The page, or the reason for its absence. */
async function get() {
  try {
    const response = await fetch(location.href, {
      // The header keeps a refresh from extending the session.
      headers: { accept: 'text/html', 'x-otpost-refresh': '1' },
      redirect: 'manual',
    })
    if (response.type === 'opaqueredirect' || response.status === 401) return 'Signed out. Reload the page.'
    if (!response.ok) return `Refresh failed (${response.status}). Retrying.`
    return new DOMParser().parseFromString(await response.text(), 'text/html')
  } catch {
    return 'Server not reachable. Retrying.'
  }
}

function isInUse() {
  const active = document.activeElement
  if (active instanceof Element && active.closest('[data-live]')) return true
  const selection = getSelection()
  if (!selection || selection.isCollapsed) return false
  const { commonAncestorContainer: node } = selection.getRangeAt(0)
  const selected = node instanceof Element ? node : node.parentElement
  return !!selected?.closest('[data-live]')
}

/** Replaces the live parts. @param {Document} page */
function swap(page) {
  for (const old of document.querySelectorAll('[data-live]')) {
    const fresh = page.querySelector(`[data-live="${old.getAttribute('data-live')}"]`)
    if (!fresh) continue
    const taken = document.adoptNode(fresh)
    for (const details of old.querySelectorAll('details[open]')) {
      taken.querySelector(`#${details.id}`)?.setAttribute('open', '')
    }
    // Charts stay. charts.js updates their figures.
    for (const plot of old.querySelectorAll('[data-plot]')) {
      const id = plot.closest('figure')?.id
      if (id) taken.querySelector(`#${id} [data-plot]`)?.replaceWith(plot)
    }
    setClock(taken)
    showTimes(taken)
    old.replaceWith(taken)
  }
  document.dispatchEvent(new CustomEvent('otpost:refreshed'))
}

// In fields, too, times are the viewer's. URLs have UTC.
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
const focus = document.querySelector('[data-focus]')
if (focus instanceof HTMLElement) focus.focus()
const pulse = document.querySelector('[data-pulse]')
if (pulse instanceof HTMLElement) startRefreshing(pulse)
