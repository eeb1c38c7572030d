import { createHmac, randomBytes } from 'node:crypto'
import { type ConsolePorts, type ConsoleSession, currentSession } from '../../domain/operator/sessions.ts'
import { cookieIn, isSame, usesTls } from '../pages/cookies.ts'
import type { Flash } from './models.ts'

type CookieName = 'session' | 'flash' | 'device'

/** Browsers accept the prefix `__Host-` only with TLS and for this host. */
const cookieNames = {
  secure: { session: '__Host-otpost', flash: '__Host-otpost_flash', device: '__Host-otpost_device' },
  plain: { session: 'otpost_console', flash: 'otpost_flash', device: 'otpost_device' },
} as const

/** Without a maximum age the cookie expires when the browser closes. */
export function cookie(
  publicUrl: string | undefined,
  name: CookieName,
  value: string,
  maxAgeSeconds?: number,
): string {
  const start = usesTls(publicUrl)
    ? `${cookieNames.secure[name]}=${value}; Path=/; Secure; HttpOnly; SameSite=Strict`
    : `${cookieNames.plain[name]}=${value}; Path=/admin; HttpOnly; SameSite=Strict`
  return maxAgeSeconds === undefined ? start : `${start}; Max-Age=${maxAgeSeconds}`
}

function cookieOf(request: Request, publicUrl: string | undefined, name: CookieName): string | undefined {
  return cookieIn(request, cookieNames[usesTls(publicUrl) ? 'secure' : 'plain'][name])
}

export interface Visit {
  readonly session: ConsoleSession
  readonly csrfToken: string
  readonly flash: Flash | null
  flashCookie(flash: Flash): string
}

export async function visitOf(
  ports: ConsolePorts,
  request: Request,
  publicUrl: string | undefined,
  isUse = !request.headers.has('x-otpost-refresh'),
): Promise<Visit | undefined> {
  const token = cookieOf(request, publicUrl, 'session')
  const session = await currentSession(ports, token, isUse)
  if (!session || token === undefined) return undefined
  const flash = cookieOf(request, publicUrl, 'flash')
  return {
    session,
    csrfToken: hmac(token, 'form'),
    flash: flash === undefined ? null : flashIn(token, flash),
    flashCookie: ({ tone, text }) => {
      const value = Buffer.from(JSON.stringify([tone, text])).toString('base64url')
      return cookie(publicUrl, 'flash', signed(token, 'flash', value), 30)
    },
  }
}

/** Also for an expired session. */
export function hasCookie(request: Request, publicUrl: string | undefined): boolean {
  return cookieOf(request, publicUrl, 'session') !== undefined
}

export function isOwnForm(
  request: Request,
  publicUrl: string | undefined,
  visit: Visit,
  form: URLSearchParams,
): boolean {
  return !isFromElsewhere(request, publicUrl) && isSame(form.get('csrf') ?? '', visit.csrfToken)
}

/** By Fetch Metadata, or by Origin in older browsers. */
export function isFromElsewhere({ headers }: Request, publicUrl: string | undefined): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site !== 'same-origin' && site !== 'none'
  const origin = headers.get('origin')
  if (origin === null) return false
  // A proxy may change the Host header.
  const own = [headers.get('host'), publicUrl === undefined ? undefined : new URL(publicUrl).host]
  return !(URL.canParse(origin) && own.includes(new URL(origin).host))
}

/** With a password, also a cookie that marks the browser as known. */
export function signedInCookies(
  publicUrl: string | undefined,
  token: string,
  passwordHash: string | undefined,
): readonly string[] {
  const session = cookie(publicUrl, 'session', token)
  if (passwordHash === undefined) return [session]
  const device = signed(passwordHash, 'device', randomBytes(16).toString('base64url'))
  return [session, cookie(publicUrl, 'device', device, deviceSeconds)]
}

const deviceSeconds = 180 * 86_400

/** The ID of a browser that signed in before. Its cookie is signed with the current password's hash. */
export function deviceOf(
  request: Request,
  publicUrl: string | undefined,
  passwordHash: string,
): string | undefined {
  return verified(passwordHash, 'device', cookieOf(request, publicUrl, 'device') ?? '')
}

function flashIn(token: string, cookieValue: string): Flash | null {
  const value = verified(token, 'flash', cookieValue)
  if (value === undefined) return null
  const [tone, text]: unknown[] = JSON.parse(Buffer.from(value, 'base64url').toString())
  return (tone === 'good' || tone === 'bad') && typeof text === 'string' ? { tone, text } : null
}

function signed(key: string, purpose: string, value: string): string {
  return `${value}.${hmac(key, `${purpose} ${value}`)}`
}

/** Undefined if the signature is wrong. */
function verified(key: string, purpose: string, text: string): string | undefined {
  const [value = ''] = text.split('.', 1)
  return isSame(text, signed(key, purpose, value)) ? value : undefined
}

function hmac(key: string, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url')
}
