// @ts-check

// What makes the pages pleasant where scripts run; without it they work as well.

// Counts down what the server says in seconds, then takes the sentence away.
for (const time of document.querySelectorAll('time[data-seconds]')) {
  const until = Date.now() + Number(time.getAttribute('data-seconds')) * 1000
  const timer = setInterval(() => {
    const seconds = Math.ceil((until - Date.now()) / 1000)
    // Minutes stay as the server wrote them.
    if (seconds < 120) time.textContent = seconds === 1 ? '1 second' : `${seconds} seconds`
    if (seconds > 0) return
    clearInterval(timer)
    time.closest('[data-until]')?.remove()
  }, 250)
}

// Fills the code in from the SMS, where the browser can read it (WebOTP) and the SMS ends with `@host #code`.
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
    // Whoever would rather type it says no, or types it.
    .catch(() => {})
}
