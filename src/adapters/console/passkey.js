// @ts-check

// Adds and uses passkeys. `form[data-passkey]` has the options in `data-options`. The response of the browser goes to
// `input[data-response]`. The button is hidden without this script.

import { find } from '/admin/page.js'

const isSupported =
  typeof PublicKeyCredential === 'function' &&
  'parseCreationOptionsFromJSON' in PublicKeyCredential &&
  'parseRequestOptionsFromJSON' in PublicKeyCredential

/** @param {HTMLFormElement} form */
function enhance(form) {
  const button = find('button', form)
  const words = find('[role=status]', form)
  const field = form.querySelector('input[data-response]')
  if (!(field instanceof HTMLInputElement)) throw new Error('The form has no field for a passkey')
  if (!isSupported) {
    words.textContent = isSecureContext
      ? 'This browser is too old for passkeys. Update it.'
      : 'Browsers allow passkeys only with HTTPS, or on localhost.'
    return
  }
  button.hidden = false
  // Browsers restore fields when people go back.
  addEventListener('pageshow', () => {
    field.value = ''
  })
  let isAsking = false
  form.addEventListener('submit', async (event) => {
    if (field.value !== '') return
    event.preventDefault()
    if (isAsking) return
    isAsking = true
    words.textContent = 'Follow the instructions of your browser.'
    const options = JSON.parse(form.dataset.options ?? '')
    try {
      field.value = JSON.stringify(await ask(form.dataset.passkey, options))
      words.textContent = ''
      form.requestSubmit(event.submitter)
    } catch (error) {
      words.textContent = problem(error)
    } finally {
      isAsking = false
    }
  })
}

/** @param {string | undefined} kind @param {any} options */
function ask(kind, options) {
  return kind === 'create'
    ? navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
    : navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })
}

/** @param {unknown} error */
function problem(error) {
  const name = error instanceof DOMException ? error.name : 'Error'
  // For privacy, browsers have one error for these cases.
  if (name === 'NotAllowedError') return 'Cancelled, timed out, or no matching passkey. Try again.'
  if (name === 'InvalidStateError') return 'This device already has a passkey of your account.'
  if (name === 'SecurityError')
    return `Passkeys need a host name, and ${location.hostname} is an IP address. Open the console at its public URL, or at http://localhost through a tunnel.`
  if (name === 'NotSupportedError' || name === 'ConstraintError')
    return 'This device cannot verify who you are. Set up a screen lock or a PIN, or use another device.'
  return `The browser refused (${name}). Try again.`
}

for (const form of document.querySelectorAll('form[data-passkey]')) {
  if (form instanceof HTMLFormElement) enhance(form)
}
