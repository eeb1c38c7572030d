// @ts-check

// Signs in with the token of a link. Browsers send no server what stands behind the `#`; it leaves the address at once,
// so that neither the history nor a shared screen keeps it.

const token = location.hash.slice(1)
history.replaceState(null, '', location.pathname)
// A link that is pasted where another was opened changes no more than what stands behind the `#`.
addEventListener('hashchange', () => location.reload())

const form = document.querySelector('form#link')
const field = form?.querySelector('input[name="token"]')
const button = form?.querySelector('button')
const words = document.querySelector('#link-words')
if (
  !(form instanceof HTMLFormElement) ||
  !(field instanceof HTMLInputElement) ||
  !(button instanceof HTMLButtonElement) ||
  !words
) {
  throw new Error('The page has no form for a link')
}

if (token === '') {
  words.textContent = 'This address has no token. Open the link just as the command printed it.'
} else {
  field.value = token
  words.textContent = 'Signing in…'
  // The button is there for when the answer does not come.
  button.disabled = false
  form.submit()
}
