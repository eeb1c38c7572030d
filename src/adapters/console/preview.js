// @ts-check

// Updates the message previews of a brand while the operator types. The server renders them.

import { find } from '/admin/page.js'

const pauseMs = 200

const brandNames = ['slug', 'displayName', 'domain', 'loginIdEnabled', 'lang', 'androidHash']

/** The brand as entered. @param {HTMLFormElement} brand */
const brandFields = (brand) => {
  const form = new FormData(brand)
  const fields = new URLSearchParams()
  for (const name of ['csrf', ...brandNames]) {
    const value = form.get(name)
    if (typeof value === 'string') fields.set(name, value)
  }
  return fields
}

/** @param {HTMLElement} tryout @param {HTMLFormElement} brand */
const watch = (tryout, brand) => {
  const place = find('[data-preview-place]', tryout)
  const said = find('[data-preview-said]', tryout)
  const values = find('fieldset', tryout)
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  /** @type {AbortController | undefined} */
  let pending

  /** @param {boolean} aloud for screen readers; one of several changing previews is enough */
  const refresh = async (aloud) => {
    pending?.abort()
    pending = new AbortController()
    const fields = brandFields(brand)
    fields.set('templateKey', tryout.dataset.preview ?? '')
    for (const input of values.querySelectorAll('input')) fields.set(input.name, input.value)
    try {
      const { signal } = pending
      const answer = await fetch('/admin/preview', { method: 'POST', body: fields, signal })
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
    return reading.dataset.summary ?? ''
  }

  /** @param {boolean} aloud */
  const refreshSoon = (aloud) => {
    clearTimeout(timer)
    timer = setTimeout(() => void refresh(aloud), pauseMs)
  }
  const followsBrand = 'followsBrand' in tryout.dataset
  values.hidden = followsBrand
  tryout.addEventListener('input', () => refreshSoon(true))
  brand.addEventListener('input', ({ target }) => {
    if (target instanceof HTMLInputElement && brandNames.includes(target.name)) refreshSoon(followsBrand)
  })
}

const brand = document.querySelector('form#brand')
if (brand instanceof HTMLFormElement) {
  for (const tryout of document.querySelectorAll('[data-preview]')) {
    if (tryout instanceof HTMLElement) watch(tryout, brand)
  }
}
