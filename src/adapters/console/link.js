// @ts-check

// Signs in with the token in the URL's fragment, and removes it from the browser's history.

const token = location.hash.slice(1)
history.replaceState(null, '', location.pathname)
// Pasting another link into this tab changes only the fragment.
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
  throw new Error('The page has no sign-in form')
}

if (token === '') {
  words.textContent = 'The link is incomplete. Copy the whole link, and open it again.'
} else {
  field.value = token
  words.textContent = 'Signing in…'
  button.disabled = false
  form.submit()
}
