import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Elysia, t } from 'elysia'
import { createClient, type SendResult, type VerifyResult } from 'otpost/client'
import { codePage, contactPage, homePage, type Notice, plainPage, style, type Way } from './pages.ts'

// Signing in with a code, by SMS or e-mail, without a password. See the README beside this file.

const otpost = createClient({
  url: required('OTPOST_URL'),
  apiKey: required('OTPOST_API_KEY'),
  brandId: required('OTPOST_BRAND_ID'),
  // A visitor is waiting, so the page shows how long to wait instead.
  retry: { maxWaitMs: 2000 },
})

// --- Sessions -------------------------------------------------------------------------------------------------------

/** The recipient of a code, in the form that identifies an account. */
type Recipient = { readonly phone: string } | { readonly email: string }

/** A visitor: first a code was sent to them, then they entered it. */
interface Session {
  readonly recipient: Recipient
  readonly isSignedIn: boolean
  /** Other ways to send the code. */
  readonly ways: readonly Way[]
  readonly expiresAt: number
  /** The next page shows it once. */
  notice?: Notice | undefined
}

/** Sessions by the token in the cookie, in memory. Store them in your database instead, by the SHA-256 of the token. */
const sessions = new Map<string, Session>()

const lifetimeSeconds = { codeSent: 15 * 60, signedIn: 8 * 3600, device: 365 * 86_400 } as const

/** With TLS, the prefix __Host- makes the browser reject such a cookie from any other host. */
const isBehindTls = process.env.NODE_ENV === 'production'
const cookiePrefix = isBehindTls ? '__Host-' : ''

function cookie(name: 'session' | 'device', value: string, maxAgeSeconds: number): string {
  const secure = isBehindTls ? '; Secure' : ''
  return `${cookiePrefix}${name}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSeconds}${secure}`
}

function cookieOf(request: Request, name: 'session' | 'device'): string {
  const pairs = (request.headers.get('cookie') ?? '').split(';').map((pair) => pair.trim().split('='))
  return pairs.find(([key]) => key === cookiePrefix + name)?.[1] ?? ''
}

/** The random id of a browser, which otpost counts like an IP address. */
function deviceOf(request: Request): string {
  const known = cookieOf(request, 'device')
  return /^[\w-]{22}$/.test(known) ? known : randomBytes(16).toString('base64url')
}

function sessionOf(request: Request): Session | undefined {
  const session = sessions.get(cookieOf(request, 'session'))
  return session && session.expiresAt > Date.now() ? session : undefined
}

/** Starts a session with a new token, so that an earlier token is worthless. Returns its cookie. */
function beginSession(request: Request, session: Omit<Session, 'expiresAt'>): string {
  const seconds = session.isSignedIn ? lifetimeSeconds.signedIn : lifetimeSeconds.codeSent
  const token = randomBytes(32).toString('base64url')
  sessions.delete(cookieOf(request, 'session'))
  sessions.set(token, { ...session, expiresAt: Date.now() + seconds * 1000 })
  return cookie('session', token, seconds)
}

// --- Limits ---------------------------------------------------------------------------------------------------------

/** The maximum number of calls of one visitor in a window. Each call can cost an SMS or be a guess. */
class Limit {
  private readonly windows = new Map<string, { count: number; endsAt: number }>()

  constructor(
    private readonly calls: number,
    private readonly seconds: number,
  ) {}

  /** Counts a call. Returns 0 if it is allowed, otherwise the seconds until the next one is. */
  take(caller: string): number {
    const now = Date.now()
    const window = this.windows.get(caller)
    if (!window || window.endsAt <= now) {
      this.windows.set(caller, { count: 1, endsAt: now + this.seconds * 1000 })
      return 0
    }
    window.count++
    return window.count > this.calls ? Math.ceil((window.endsAt - now) / 1000) : 0
  }

  forgetPast(now: number): void {
    for (const [caller, { endsAt }] of this.windows) if (endsAt <= now) this.windows.delete(caller)
  }
}

/** otpost limits a phone, a mailbox and the app. These limit one visitor. */
const sends = new Limit(10, 600)
const guesses = new Limit(30, 600)

setInterval(() => {
  const now = Date.now()
  for (const [token, { expiresAt }] of sessions) if (expiresAt <= now) sessions.delete(token)
  for (const limit of [sends, guesses]) limit.forgetPast(now)
}, 60_000).unref()

// --- Messages for visitors ------------------------------------------------------------------------------------------

type Failure = Extract<SendResult | VerifyResult, { success: false }>

const unavailable = 'We can not send or check codes at the moment. Please try again later.'
/** One message and status for all codes that are not right: others must not learn whether a code was sent. */
const wrongCode = 'That code is wrong or has expired. Please check it, or request another one.'
/** The server's SMS_COOLDOWN_SECONDS, also where no code was sent. */
const onItsWay: Notice = {
  text: 'If this number or mailbox can receive codes, a code is on its way. Only the latest one works.',
  waitSeconds: 30,
}

/** A message for each error code of otpost. If a new version has another code, the compiler reports it here. */
const sentences: Readonly<Record<Failure['error'], string>> = {
  // Errors that the visitor can fix.
  validation_error: 'Please check the phone number or e-mail address.',
  invalid_contact: 'Please check the phone number or e-mail address.',
  invalid_otp_format: 'The code has six digits.',
  mismatch: wrongCode,
  not_found: wrongCode,
  max_attempts: wrongCode,
  // Temporary errors.
  cooldown_active: onItsWay.text,
  rate_limited: 'Too many attempts.',
  sms_failed: 'We could not send a code. Please try again.',
  timeout: 'The request timed out. Please try again.',
  unreachable: unavailable,
  internal_error: unavailable,
  unavailable,
  idempotency_in_progress: 'A code is being sent.',
  idempotency_key_reused: unavailable,
  unexpected_answer: unavailable,
  // Errors in the setup of this application.
  unauthorized: unavailable,
  forbidden: unavailable,
  invalid_app_id: unavailable,
  invalid_input: unavailable,
  brand_id_required: unavailable,
  brand_not_approved: unavailable,
  brand_suspended: unavailable,
}

function noticeOf(failure: Failure): Notice {
  const text = sentences[failure.error]
  // The operator finds the request in otpost's log by its requestId. Do not log the recipient.
  if (text === unavailable) console.error('otpost:', failure.error, failure.message, failure.requestId ?? '')
  return { text, waitSeconds: text === wrongCode ? undefined : failure.retryAfterSeconds }
}

/** The typed phone number or e-mail address in its normal form; undefined if it is neither. */
function recipientOf(typed: string): Recipient | undefined {
  const contact = typed.trim()
  if (contact.includes('@')) return { email: contact.normalize('NFC').toLowerCase() }
  return /^\+[0-9 ().-]{7,30}$/.test(contact) ? { phone: `+${contact.replace(/[^0-9]/g, '')}` } : undefined
}

function nameOf(recipient: Recipient): string {
  return 'email' in recipient ? recipient.email : recipient.phone
}

/** The fields that send and verify share. */
function sendRequest(recipient: Recipient) {
  return 'email' in recipient ? ({ channel: 'EMAIL', ...recipient } as const) : recipient
}

/** @param via another way to a phone */
function resendRequest(recipient: Recipient, via: Way | undefined) {
  return 'phone' in recipient && via ? { ...recipient, via } : sendRequest(recipient)
}

/** Longer than a provider takes to accept a message. */
const sendAnswerMs = Number(process.env.SEND_ANSWER_MS ?? 2000)

/**
 * Returns the failure to show, or undefined for the page of the code. That is also the page of every 429, after the same time:
 * while the guard of otpost denies codes, it still sends them to numbers that are known, and no page may show which these are.
 */
async function requestCode(
  operation: 'send' | 'resend',
  recipient: Recipient,
  user: { readonly clientIp: string; readonly deviceId: string },
  via?: Way,
) {
  const sending =
    operation === 'send'
      ? otpost.send({ ...sendRequest(recipient), ...user })
      : otpost.resend({ ...resendRequest(recipient, via), ...user })
  const [result] = await Promise.all([sending, setTimeout(sendAnswerMs)])
  if (result.success || result.error === 'cooldown_active' || result.error === 'timeout') return undefined
  if (result.error !== 'rate_limited') return result
  console.error('otpost:', result.error, result.reason ?? '', result.requestId)
  return undefined
}

/** The ways to a phone besides the usual one, such as WhatsApp: otpost lists them for the country of the number. */
async function otherWaysTo(recipient: Recipient): Promise<readonly Way[]> {
  if ('email' in recipient) return []
  const result = await otpost.catalog({ country: recipient.phone.slice(1, 5), retry: false })
  return result.success ? (result.ways ?? []).slice(1) : []
}

// --- Pages ----------------------------------------------------------------------------------------------------------

const headers = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  // Not no-referrer: the browser would hide the Origin, which isOwnForm needs.
  'referrer-policy': 'same-origin',
}

function html(content: string, status = 200): Response {
  const type = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }
  return new Response(content, { status, headers: { ...headers, ...type } })
}

/** Redirects, so that reloading the next page repeats nothing. */
function goTo(path: string, ...cookies: string[]): Response {
  const answer = new Response(null, { status: 303, headers: { ...headers, location: path } })
  for (const cookie of cookies) answer.headers.append('set-cookie', cookie)
  return answer
}

/** Whether a form was sent from a page of this site. Another site could sign a visitor in as another person. */
function isOwnForm({ headers }: Request): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  const origin = headers.get('origin') ?? ''
  return URL.canParse(origin) && new URL(origin).host === headers.get('host')
}

const app = new Elysia({ serve: { maxRequestBodySize: 16 * 1024 } })
  .onError(({ code }) => {
    if (code === 'NOT_FOUND') return html(plainPage('Not found', 'This page does not exist.'), 404)
    if (code === 'VALIDATION' || code === 'PARSE') {
      return html(plainPage('Invalid form', 'A field of the form is missing or too long.'), 400)
    }
    return html(plainPage('Sorry', 'Something went wrong. Please try again.'), 500)
  })
  .onRequest(({ request }) => {
    if (request.method === 'POST' && !isOwnForm(request)) {
      return html(plainPage('Rejected', 'This form was not sent from a page of this site.'), 403)
    }
  })
  .get('/style.css', () => new Response(style, { headers: { ...headers, 'content-type': 'text/css' } }))
  .get('/page.js', () => {
    const type = { 'content-type': 'text/javascript; charset=utf-8' }
    return new Response(Bun.file(join(import.meta.dir, 'page.js')), { headers: { ...headers, ...type } })
  })
  .get('/', ({ request }) => {
    const session = sessionOf(request)
    return session?.isSignedIn ? html(homePage(nameOf(session.recipient))) : goTo('/login')
  })
  .get('/login', () => html(contactPage()))
  .post(
    '/login',
    async ({ request, body: { contact }, server }) => {
      const again = (notice: Notice, status: number) => html(contactPage({ contact, notice }), status)
      const recipient = recipientOf(contact)
      if (!recipient) return again({ text: sentences.invalid_contact }, 400)
      const waitSeconds = sends.take(visitorOf(request, server))
      if (waitSeconds > 0) return again({ text: sentences.rate_limited, waitSeconds }, 429)
      const user = { clientIp: visitorOf(request, server), deviceId: deviceOf(request) }
      const [failure, ways] = await Promise.all([
        requestCode('send', recipient, user),
        otherWaysTo(recipient),
      ])
      if (failure) return again(noticeOf(failure), failure.status ?? 503)
      const session = beginSession(request, { recipient, isSignedIn: false, ways, notice: onItsWay })
      return goTo('/code', session, cookie('device', user.deviceId, lifetimeSeconds.device))
    },
    { body: t.Object({ contact: t.String({ maxLength: 254 }) }) },
  )
  .get('/code', ({ request }) => {
    const session = sessionOf(request)
    if (!session || session.isSignedIn) return goTo('/')
    const { notice, recipient, ways } = session
    session.notice = undefined
    return html(codePage({ contact: nameOf(recipient), notice, ways }))
  })
  .post('/code/resend', async ({ request, body, server }) => {
    const session = sessionOf(request)
    if (!session || session.isSignedIn) return goTo('/')
    const waitSeconds = sends.take(visitorOf(request, server))
    if (waitSeconds > 0) {
      session.notice = { text: sentences.rate_limited, waitSeconds }
      return goTo('/code')
    }
    const user = { clientIp: visitorOf(request, server), deviceId: deviceOf(request) }
    const via = session.ways.find((way) => way === (body as { via?: unknown } | undefined)?.via)
    const failure = await requestCode('resend', session.recipient, user, via)
    session.notice = failure ? noticeOf(failure) : onItsWay
    return goTo('/code')
  })
  .post(
    '/code',
    async ({ request, body, server }) => {
      const session = sessionOf(request)
      if (!session || session.isSignedIn) return goTo('/')
      const { recipient, ways } = session
      const again = (notice: Notice, status: number) =>
        html(codePage({ contact: nameOf(recipient), notice, ways }), status)
      const waitSeconds = guesses.take(visitorOf(request, server))
      if (waitSeconds > 0) return again({ text: sentences.rate_limited, waitSeconds }, 429)
      const result = await otpost.verify({ ...recipient, otp: body.otp.replace(/\s/g, '') })
      if (!result.success) {
        const notice = noticeOf(result)
        return again(notice, notice.text === wrongCode ? 401 : (result.status ?? 503))
      }
      // Find or create the account of this person here. No earlier answer reveals whether it exists.
      return goTo('/', beginSession(request, { recipient, ways: [], isSignedIn: true }))
    },
    { body: t.Object({ otp: t.String({ maxLength: 20 }) }) },
  )
  .post('/logout', ({ request }) => {
    sessions.delete(cookieOf(request, 'session'))
    return goTo('/login', cookie('session', '', 0))
  })

// Elysia's default is true: two started servers would share the port, but not the sessions in memory.
const listening = { port: Number(process.env.PORT ?? 3001), hostname: '127.0.0.1', reusePort: false }
app.listen(listening, ({ port }) => {
  console.log(`http://localhost:${port}/login`)
})

/** The visitor that limits count, also those of otpost. Behind a proxy, take the IP address from the header that the proxy sets. */
function visitorOf(request: Request, server: Bun.Server<unknown> | null): string {
  return server?.requestIP(request)?.address ?? ''
}

function required(name: string): string {
  const value = process.env[name]
  if (value) return value
  console.error(`${name} is not set: see the README`)
  process.exit(1)
}
