// @ts-check

// Optional: the pages also work without scripts.

// Counts down the seconds in a message, then removes the message.
for (const time of document.querySelectorAll('time[data-seconds]')) {
  const until = Date.now() + Number(time.getAttribute('data-seconds')) * 1000
  const timer = setInterval(() => {
    const seconds = Math.ceil((until - Date.now()) / 1000)
    // The server's text has minutes; count down only the last 120 seconds.
    if (seconds < 120) time.textContent = seconds === 1 ? '1 second' : `${seconds} seconds`
    if (seconds > 0) return
    clearInterval(timer)
    time.closest('[data-until]')?.remove()
  }, 250)
}

// Fills in the code from the link of an e-mail: PAGE#code=123456&email=…. The fragment never reaches a server, and the code is
// checked only when the visitor submits it, so that a scanner that opens the link uses up nothing.
function fillFromLink() {
  const linked = new URLSearchParams(location.hash.slice(1)).get('code')
  if (linked === null) return
  history.replaceState(null, '', location.pathname)
  const field = document.querySelector('input[name="otp"]')
  if (field instanceof HTMLInputElement) field.value = linked
  else document.querySelector('main')?.append('Open the link in the browser in which you asked for the code.')
}
fillFromLink()
addEventListener('hashchange', fillFromLink)

// Fills in the code from the SMS, if the browser supports WebOTP and the SMS ends with `@host #code`.
const input = document.querySelector('input[autocomplete="one-time-code"]')
if (input instanceof HTMLInputElement && 'OTPCredential' in window) {
  const waiting = new AbortController()
  input.form?.addEventListener('submit', () => waiting.abort())
  navigator.credentials
    .get(/** @type {CredentialRequestOptions} */ ({ otp: { transport: ['sms'] }, signal: waiting.signal }))
    .then((/** @type {any} */ credential) => {
      input.value = credential.code
      input.form?.requestSubmit()
    })
    // The visitor declined, or typed the code.
    .catch(() => {})
}
