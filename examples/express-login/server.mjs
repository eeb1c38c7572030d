// @ts-check

import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { createClient } from 'otpost/client'
import { codePage, contactPage, homePage, plainPage, style } from './pages.mjs'

// Signing in with a code, by SMS or e-mail, without a password. See the README beside this file.

const otpost = createClient({
  url: required('OTPOST_URL'),
  apiKey: required('OTPOST_API_KEY'),
  brandId: required('OTPOST_BRAND_ID'),
  // A visitor is waiting, so the page shows how long to wait instead.
  retry: { maxWaitMs: 2000 },
})

// --- Sessions -------------------------------------------------------------------------------------------------------

/**
 * The recipient of a code, in the form that identifies an account.
 *
 * @typedef {{ phone: string } | { email: string }} Recipient
 *
 * A visitor: first a code was sent to them, then they entered it. The next page shows the notice once.
 *
 * @typedef {{ recipient: Recipient, isSignedIn: boolean, ways: readonly import('./pages.mjs').Way[], expiresAt: number, notice?: import('./pages.mjs').Notice | undefined }} Session
 */

/**
 * Sessions by the token in the cookie, in memory. Store them in your database instead, by the SHA-256 of the token.
 *
 * @type {Map<string, Session>}
 */
const sessions = new Map()

const lifetimeMs = { codeSent: 15 * 60_000, signedIn: 8 * 3_600_000, device: 365 * 86_400_000 }

/** With TLS, the prefix __Host- makes the browser reject such a cookie from any other host. */
const isBehindTls = process.env.NODE_ENV === 'production'
const cookiePrefix = isBehindTls ? '__Host-' : ''
const [sessionCookie, deviceCookie] = [`${cookiePrefix}session`, `${cookiePrefix}device`]
const cookieOptions = /** @type {const} */ ({
  httpOnly: true,
  sameSite: 'lax',
  secure: isBehindTls,
  path: '/',
})

/** @param {express.Request} req @param {string} name */
function cookieOf(req, name) {
  const pairs = (req.headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='))
  return pairs.find(([key]) => key === name)?.[1] ?? ''
}

/**
 * The IP address of a visitor, and the random id of their browser, which otpost counts like an IP address.
 *
 * @param {express.Request} req
 */
function userOf(req) {
  const known = cookieOf(req, deviceCookie)
  const deviceId = /^[\w-]{22}$/.test(known) ? known : randomBytes(16).toString('base64url')
  return { clientIp: req.ip ?? '', deviceId }
}

/** @param {express.Request} req */
function sessionOf(req) {
  const session = sessions.get(cookieOf(req, sessionCookie))
  return session && session.expiresAt > Date.now() ? session : undefined
}

/**
 * Starts a session with a new token, so that an earlier token is worthless.
 *
 * @param {express.Request} req
 * @param {express.Response} res
 * @param {Omit<Session, 'expiresAt'>} session
 */
function beginSession(req, res, session) {
  const maxAge = session.isSignedIn ? lifetimeMs.signedIn : lifetimeMs.codeSent
  const token = randomBytes(32).toString('base64url')
  sessions.delete(cookieOf(req, sessionCookie))
  sessions.set(token, { ...session, expiresAt: Date.now() + maxAge })
  res.cookie(sessionCookie, token, { ...cookieOptions, maxAge })
}

// --- Limits ---------------------------------------------------------------------------------------------------------

/** The maximum number of calls of one visitor in a window. Each call can cost an SMS or be a guess. */
class Limit {
  /** @type {Map<string, { count: number, endsAt: number }>} */
  #windows = new Map()
  #calls
  #seconds

  /** @param {number} calls @param {number} seconds */
  constructor(calls, seconds) {
    this.#calls = calls
    this.#seconds = seconds
  }

  /**
   * Counts a call. Returns 0 if it is allowed, otherwise the seconds until the next one is.
   *
   * @param {string} caller
   */
  take(caller) {
    const now = Date.now()
    const window = this.#windows.get(caller)
    if (!window || window.endsAt <= now) {
      this.#windows.set(caller, { count: 1, endsAt: now + this.#seconds * 1000 })
      return 0
    }
    window.count++
    return window.count > this.#calls ? Math.ceil((window.endsAt - now) / 1000) : 0
  }

  /** @param {number} now */
  forgetPast(now) {
    for (const [caller, { endsAt }] of this.#windows) if (endsAt <= now) this.#windows.delete(caller)
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

const unavailable = 'We can not send or check codes at the moment. Please try again later.'
/** One message and status for all codes that are not right: others must not learn whether a code was sent. */
const wrongCode = 'That code is wrong or has expired. Please check it, or request another one.'
/**
 * The server's SMS_COOLDOWN_SECONDS, also where no code was sent.
 *
 * @type {import('./pages.mjs').Notice}
 */
const onItsWay = {
  text: 'If this number or mailbox can receive codes, a code is on its way. Only the latest one works.',
  waitSeconds: 30,
}

/**
 * @typedef {Extract<import('otpost/client').SendResult | import('otpost/client').VerifyResult, { success: false }>} Failure
 *
 * A message for each error code of otpost. If a new version has another code, the type check reports it here.
 *
 * @type {Readonly<Record<Failure['error'], string>>}
 */
const sentences = {
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

/** @param {Failure} failure */
function noticeOf(failure) {
  const text = sentences[failure.error]
  // The operator finds the request in otpost's log by its requestId. Do not log the recipient.
  if (text === unavailable) console.error('otpost:', failure.error, failure.message, failure.requestId ?? '')
  return { text, waitSeconds: text === wrongCode ? undefined : failure.retryAfterSeconds }
}

/**
 * The typed phone number or e-mail address in its normal form; undefined if it is neither.
 *
 * @param {string} typed
 * @returns {Recipient | undefined}
 */
function recipientOf(typed) {
  const contact = typed.trim()
  if (contact.includes('@')) return { email: contact.normalize('NFC').toLowerCase() }
  return /^\+[0-9 ().-]{7,30}$/.test(contact) ? { phone: `+${contact.replace(/[^0-9]/g, '')}` } : undefined
}

/** @param {Recipient} recipient */
function nameOf(recipient) {
  return 'email' in recipient ? recipient.email : recipient.phone
}

/** @param {Recipient} recipient */
function sendRequest(recipient) {
  return 'email' in recipient ? { channel: /** @type {const} */ ('EMAIL'), ...recipient } : recipient
}

/** @param {Recipient} recipient @param {import('./pages.mjs').Way} [via] another way to a phone */
function resendRequest(recipient, via) {
  return 'phone' in recipient && via ? { ...recipient, via } : sendRequest(recipient)
}

/** Longer than a provider takes to accept a message. */
const sendAnswerMs = Number(process.env.SEND_ANSWER_MS ?? 2000)

/**
 * Returns the failure to show, or undefined for the page of the code. That is also the page of every 429, after the same time:
 * while the guard of otpost denies codes, it still sends them to numbers that are known, and no page may show which these are.
 *
 * @param {'send' | 'resend'} operation
 * @param {Recipient} recipient
 * @param {{ clientIp: string, deviceId: string }} user
 * @param {import('./pages.mjs').Way} [via]
 */
async function requestCode(operation, recipient, user, via) {
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

/**
 * The ways to a phone besides the usual one, such as WhatsApp: otpost lists them for the country of the number.
 *
 * @param {Recipient} recipient
 */
async function otherWaysTo(recipient) {
  if ('email' in recipient) return []
  const result = await otpost.catalog({ country: recipient.phone.slice(1, 5), retry: false })
  return result.success ? (result.ways ?? []).slice(1) : []
}

// --- Pages ----------------------------------------------------------------------------------------------------------

const app = express()
app.disable('x-powered-by')
// Behind a proxy: app.set('trust proxy', 1), so that req.ip is the visitor's IP address and not the proxy's.

app.use((_req, res, next) => {
  res.set({
    'content-security-policy':
      "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
    // Not no-referrer: the browser would hide the Origin, which isOwnForm needs.
    'referrer-policy': 'same-origin',
    'cache-control': 'no-store',
  })
  next()
})

app.use((req, res, next) => {
  if (req.method !== 'POST' || isOwnForm(req)) return next()
  res.status(403).send(plainPage('Rejected', 'This form was not sent from a page of this site.'))
})

app.use(express.urlencoded({ extended: false, limit: '16kb' }))

app.get('/style.css', (_req, res) => void res.type('css').send(style))
app.get('/page.js', (_req, res) => res.sendFile(fileURLToPath(new URL('page.js', import.meta.url))))

app.get('/', (req, res) => {
  const session = sessionOf(req)
  if (!session?.isSignedIn) return res.redirect(303, '/login')
  res.send(homePage(nameOf(session.recipient)))
})

app.get('/login', (_req, res) => void res.send(contactPage()))

app.post('/login', async (req, res) => {
  const contact = field(req, 'contact', 254)
  /** @param {import('./pages.mjs').Notice} notice @param {number} status */
  const again = (notice, status) => res.status(status).send(contactPage({ contact, notice }))
  const recipient = recipientOf(contact)
  if (!recipient) return again({ text: sentences.invalid_contact }, 400)
  const waitSeconds = sends.take(req.ip ?? '')
  if (waitSeconds > 0) return again({ text: sentences.rate_limited, waitSeconds }, 429)
  const user = userOf(req)
  const [failure, ways] = await Promise.all([requestCode('send', recipient, user), otherWaysTo(recipient)])
  if (failure) return again(noticeOf(failure), failure.status ?? 503)
  beginSession(req, res, { recipient, isSignedIn: false, ways, notice: onItsWay })
  res.cookie(deviceCookie, user.deviceId, { ...cookieOptions, maxAge: lifetimeMs.device })
  res.redirect(303, '/code')
})

app.get('/code', (req, res) => {
  const session = sessionOf(req)
  if (!session || session.isSignedIn) return res.redirect(303, '/')
  const { notice, recipient, ways } = session
  session.notice = undefined
  res.send(codePage({ contact: nameOf(recipient), notice, ways }))
})

app.post('/code/resend', async (req, res) => {
  const session = sessionOf(req)
  if (!session || session.isSignedIn) return res.redirect(303, '/')
  const waitSeconds = sends.take(req.ip ?? '')
  if (waitSeconds > 0) {
    session.notice = { text: sentences.rate_limited, waitSeconds }
    return res.redirect(303, '/code')
  }
  const via = session.ways.find((way) => way === req.body?.via)
  const failure = await requestCode('resend', session.recipient, userOf(req), via)
  session.notice = failure ? noticeOf(failure) : onItsWay
  res.redirect(303, '/code')
})

app.post('/code', async (req, res) => {
  const session = sessionOf(req)
  if (!session || session.isSignedIn) return res.redirect(303, '/')
  const { recipient, ways } = session
  /** @param {import('./pages.mjs').Notice} notice @param {number} status */
  const again = (notice, status) =>
    res.status(status).send(codePage({ contact: nameOf(recipient), notice, ways }))
  const waitSeconds = guesses.take(req.ip ?? '')
  if (waitSeconds > 0) return again({ text: sentences.rate_limited, waitSeconds }, 429)
  const result = await otpost.verify({ ...recipient, otp: field(req, 'otp', 20).replace(/\s/g, '') })
  if (!result.success) {
    const notice = noticeOf(result)
    return again(notice, notice.text === wrongCode ? 401 : (result.status ?? 503))
  }
  // Find or create the account of this person here. No earlier answer reveals whether it exists.
  beginSession(req, res, { recipient, ways: [], isSignedIn: true })
  res.redirect(303, '/')
})

app.post('/logout', (req, res) => {
  sessions.delete(cookieOf(req, sessionCookie))
  res.clearCookie(sessionCookie, cookieOptions)
  res.redirect(303, '/login')
})

app.use((_req, res) => void res.status(404).send(plainPage('Not found', 'This page does not exist.')))

/** @type {express.ErrorRequestHandler} */
const answerError = (error, _req, res, _next) => {
  const isTheirs = error.status >= 400 && error.status < 500
  if (!isTheirs) console.error(error)
  const page = isTheirs
    ? plainPage('Invalid form', 'A field of the form is missing or too long.')
    : plainPage('Sorry', 'Something went wrong. Please try again.')
  res.status(isTheirs ? error.status : 500).send(page)
}
app.use(answerError)

const server = app.listen(Number(process.env.PORT ?? 3001), '127.0.0.1', (error) => {
  if (error) throw error
  const address = server.address()
  if (typeof address === 'object') console.log(`http://localhost:${address?.port}/login`)
})

/**
 * Whether a form was sent from a page of this site. Another site could sign a visitor in as another person.
 *
 * @param {express.Request} req
 */
function isOwnForm(req) {
  const site = req.headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  const { origin, host } = req.headers
  return origin !== undefined && (origin === `http://${host}` || origin === `https://${host}`)
}

/**
 * A field of the form as text.
 *
 * @param {express.Request} req
 * @param {string} name
 * @param {number} maxLength
 */
function field(req, name, maxLength) {
  const value = req.body?.[name]
  if (typeof value === 'string' && value.length <= maxLength) return value
  throw Object.assign(new Error(`${name} is missing or too long`), { status: 400 })
}

/** @param {string} name */
function required(name) {
  const value = process.env[name]
  if (value) return value
  console.error(`${name} is not set: see the README`)
  process.exit(1)
}
