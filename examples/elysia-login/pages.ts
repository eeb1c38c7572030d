// What visitors see. Everything from visitors is escaped. No page contains a key or a code.

/** A message for the visitor, and the seconds until another attempt is allowed. */
export interface Notice {
  readonly text: string
  readonly waitSeconds?: number | undefined
}

/** Asks where to send a code. */
export function contactPage({ contact = '', notice }: { contact?: string; notice?: Notice } = {}): string {
  return page(
    'Sign in',
    `${alert(notice)}
<form method="post" action="/login">
  <label for="contact">Phone number, with + and its country code, or e-mail address</label>
  <input id="contact" name="contact" value="${escapeHtml(contact)}" autocomplete="username" maxlength="254" required autofocus>
  <button>Send me a code</button>
</form>`,
  )
}

/** A way to a phone, as `via` of a resend has it. */
export type Way = keyof typeof wayLabels

const wayLabels = {
  sms: 'Send it by SMS',
  whatsapp: 'Send it by WhatsApp',
  telegram: 'Send it by Telegram',
  voice: 'Call me',
} as const

/** Asks for the code. `ways`: other ways to send it. */
export function codePage({
  contact,
  notice,
  ways,
}: {
  contact: string
  notice?: Notice | undefined
  ways: readonly Way[]
}): string {
  const others = ways.map(
    (way) => `<button class="quiet" name="via" value="${way}">${wayLabels[way]}</button>`,
  )
  return page(
    'Enter your code',
    `<p>Enter the six digits from the message to <strong>${escapeHtml(contact)}</strong>.</p>
${alert(notice)}
<form method="post" action="/code">
  <label for="otp">Code</label>
  <input id="otp" name="otp" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9 ]{6,8}" maxlength="8" title="six digits" required autofocus>
  <button>Sign in</button>
</form>
<p>Did not get it?</p>
<form method="post" action="/code/resend"><button class="quiet">Send another code</button>${others.join('')}</form>
<p>No message? <a href="/login">Use another phone number or your e-mail address</a></p>`,
  )
}

/** The page for signed-in visitors. */
export function homePage(user: string): string {
  return page(
    'Welcome',
    `<p>You are signed in as <strong>${escapeHtml(user)}</strong>.</p>
<form method="post" action="/logout"><button>Sign out</button></form>`,
  )
}

/** A page with one message. */
export function plainPage(title: string, text: string): string {
  return page(title, `<p>${escapeHtml(text)}</p>\n<p><a href="/">Start again</a></p>`)
}

function alert(notice: Notice | undefined): string {
  if (!notice) return ''
  const { text, waitSeconds } = notice
  const wait =
    waitSeconds === undefined
      ? ''
      : ` <span data-until>You can try again in <time data-seconds="${waitSeconds}">${duration(waitSeconds)}</time>.</span>`
  return `<p role="alert">${escapeHtml(text)}${wait}</p>`
}

function duration(seconds: number): string {
  const [count, unit] = seconds < 120 ? [seconds, 'second'] : [Math.ceil(seconds / 60), 'minute']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

function page(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<link rel="stylesheet" href="/style.css">
<script type="module" src="/page.js"></script>
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

export const style = `
:root { color-scheme: light dark; font: 100%/1.5 system-ui, sans-serif }
main { max-width: 24rem; margin: 12vh auto; padding: 0 1rem }
label, input, button { display: block; width: 100%; box-sizing: border-box; font: inherit }
input { margin: .25rem 0 1rem; padding: .6rem; border: 1px solid #8888; border-radius: .5rem }
input[autocomplete='one-time-code'] { letter-spacing: .3em; font-variant-numeric: tabular-nums }
button { padding: .6rem; border: 0; border-radius: .5rem; background: #1d4ed8; color: #fff; cursor: pointer }
button.quiet { margin-top: .75rem; background: none; color: inherit; text-decoration: underline }
[role='alert'] { padding: .6rem .8rem; border-left: .25rem solid #d97706; background: #d977061a }
`
