// @ts-check

// Updates the message previews of a form while the operator types. The server renders them.

import { element, find } from '/admin/page.js'

const pauseMs = 200

/**
 * @param {HTMLElement} tryout
 * @param {HTMLFormElement} form whose message it shows
 * @param {boolean} isFirst
 */
const watch = (tryout, form, isFirst) => {
  const place = find('[data-preview-place]', tryout)
  const said = find('[data-preview-said]', tryout)
  const values = tryout.querySelector('fieldset')
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  /** @type {AbortController | undefined} */
  let pending

  /** @param {boolean} aloud for screen readers; one of several changing previews is enough */
  const refresh = async (aloud) => {
    pending?.abort()
    pending = new AbortController()
    const fields = new URLSearchParams()
    for (const [name, value] of unlocked(form, () => new FormData(form)))
      if (typeof value === 'string') fields.append(name, value)
    for (const input of values?.querySelectorAll('input') ?? []) fields.set(input.name, input.value)
    try {
      const { signal } = pending
      const answer = await fetch(form.dataset.previewAt ?? '', { method: 'POST', body: fields, signal })
      // A redirect leads to the sign-in page.
      if (!answer.ok || answer.redirected) throw new Error(`${answer.status} for a preview`)
      const summary = show(await answer.text())
      if (aloud && said.textContent !== summary) said.textContent = summary
    } catch (error) {
      if (error instanceof DOMException && error.name === 'AbortError') return
      place.dataset.stale = ''
      if (aloud) said.textContent = 'The preview is not up to date. Reload the page.'
    }
  }

  /** @param {string} html from this server */
  const show = (html) => {
    const reading = find('.reading', new DOMParser().parseFromString(html, 'text/html'))
    delete place.dataset.stale
    place.replaceChildren(document.adoptNode(reading))
    if ('isMail' in reading.dataset) showMail(form)
    return reading.dataset.summary ?? ''
  }

  /** @param {boolean} aloud */
  const refreshSoon = (aloud) => {
    clearTimeout(timer)
    timer = setTimeout(() => void refresh(aloud), pauseMs)
  }
  if (values) values.hidden = false
  tryout.addEventListener('input', () => refreshSoon(true))
  form.addEventListener('input', () => refreshSoon(isFirst))
}

/**
 * Viewers see previews of the fields that they cannot change.
 *
 * @template Result @param {HTMLFormElement} form @param {() => Result} read
 */
const unlocked = (form, read) => {
  const fields = form.querySelector('fieldset.locked')
  fields?.removeAttribute('disabled')
  const result = read()
  fields?.setAttribute('disabled', '')
  return result
}

let mails = 0

/**
 * Loads the HTML of the e-mail into a new frame: each navigation of an old one would add to the history.
 * @param {HTMLFormElement} form
 */
const showMail = (form) => {
  const button = document.querySelector('button[formtarget]')
  const shown = document.querySelector('iframe.mail:not([data-loading])')
  if (!(button instanceof HTMLButtonElement) || !(shown instanceof HTMLIFrameElement)) return
  button.hidden = true
  document.querySelector('iframe[data-loading]')?.remove()
  const next = shown.cloneNode()
  if (!(next instanceof HTMLIFrameElement)) return
  next.dataset.loading = ''
  // A frame keeps the name that it began with.
  next.name = button.formTarget = `mail-${++mails}`
  shown.after(next)
  next.addEventListener('load', () => {
    shown.remove()
    delete next.dataset.loading
  })
  unlocked(form, () => form.requestSubmit(button))
}

const form = document.querySelector('form[data-preview-at]')
if (form instanceof HTMLFormElement) {
  for (const [index, tryout] of document.querySelectorAll('[data-preview]').entries()) {
    if (tryout instanceof HTMLElement) watch(tryout, form, index === 0)
  }
}

// A session may end while an operator writes. The browser keeps the text in this tab, until the server has stored it.
const unsaved = document.querySelector('[data-unsaved]')
if (form instanceof HTMLFormElement && unsaved instanceof HTMLElement) {
  const fields = Array.from(form.querySelectorAll('textarea, input[type=text]')).filter(
    (field) => field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement,
  )
  const given = (/** @type {string} */ name) => new FormData(form).get(name) ?? ''
  const place = ['otpost text', form.action, ...['key', 'email', 'lang'].map(given)].join(' ')
  const values = () => JSON.stringify(fields.map(({ value }) => value))
  const stored = values()
  const submitted = sessionStorage.getItem('otpost submitted')
  if (submitted !== null && document.querySelector('.notice.good')) sessionStorage.removeItem(submitted)
  sessionStorage.removeItem('otpost submitted')
  const kept = sessionStorage.getItem(place)
  /** @param {string} json */
  const fill = (json) => {
    for (const [index, value] of JSON.parse(json).entries()) {
      const field = fields[index]
      if (field) field.value = value
    }
  }
  if (kept !== null && kept !== stored) {
    fill(kept)
    const discard = element('button', { type: 'button', class: 'button plain small' }, ['Discard them'])
    unsaved.append('Your unsaved changes are back. ', discard)
    unsaved.hidden = false
    discard.addEventListener('click', () => {
      fill(stored)
      unsaved.hidden = true
      form.dispatchEvent(new Event('input', { bubbles: true }))
      fields.at(-1)?.focus()
    })
    form.dispatchEvent(new Event('input', { bubbles: true }))
  }
  form.addEventListener('input', () => {
    if (values() === stored) sessionStorage.removeItem(place)
    else sessionStorage.setItem(place, values())
  })
  form.addEventListener('submit', ({ submitter }) => {
    if (!submitter?.hasAttribute('formtarget')) sessionStorage.setItem('otpost submitted', place)
  })
}

if (form instanceof HTMLFormElement) showMail(form)

// Buttons insert placeholders where the operator last wrote.
const placeholders = document.querySelector('[data-placeholders]')
if (placeholders && form instanceof HTMLFormElement) {
  let field = form.querySelector('textarea[name=text]')
  form.addEventListener('focusin', ({ target }) => {
    if (target instanceof HTMLElement && target.matches('[name=subject], [name=text], [name=html]'))
      field = target
  })
  for (const item of placeholders.children) {
    const words = item.textContent ?? ''
    const button = element('button', { type: 'button' }, [words])
    button.addEventListener('click', () => {
      if (!(field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement)) return
      field.setRangeText(words, field.selectionStart ?? 0, field.selectionEnd ?? 0, 'end')
      field.focus()
      field.dispatchEvent(new Event('input', { bubbles: true }))
    })
    item.replaceChildren(button)
  }
}
