import { createHmac } from 'node:crypto'
import { type ConsolePorts, type CurrentSession, currentSession } from '../../domain/accounts/sessions.ts'
import { cookieIn, isSame, usesTls } from '../pages/cookies.ts'
import type { Flash } from './page-context.ts'

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

export interface Visit extends CurrentSession {
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
  const current = await currentSession(ports, token, isUse)
  if (!current || token === undefined) return undefined
  const flash = cookieOf(request, publicUrl, 'flash')
  return {
    ...current,
    csrfToken: createHmac('sha256', token).update('form').digest('base64url'),
    flash: flash === undefined ? null : flashIn(ports, token, flash),
    flashCookie: (flash) => flashCookie(ports, publicUrl, token, flash),
  }
}

/** Only the session with this token shows it. */
export function flashCookie(
  { consoleSecrets }: ConsolePorts,
  publicUrl: string | undefined,
  token: string,
  { tone, text }: Flash,
): string {
  const value = Buffer.from(JSON.stringify([tone, text])).toString('base64url')
  return cookie(publicUrl, 'flash', consoleSecrets.sign(`flash ${token}`, value), 30)
}

/** Also of an expired session. */
export function sessionToken(request: Request, publicUrl: string | undefined): string | undefined {
  return cookieOf(request, publicUrl, 'session')
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

/** `device`: marks the browser as known. Undefined: it signed in without an account. */
export function signedInCookies(
  publicUrl: string | undefined,
  token: string,
  device: string | undefined,
): readonly string[] {
  const session = cookie(publicUrl, 'session', token)
  return device === undefined ? [session] : [session, cookie(publicUrl, 'device', device, deviceSeconds)]
}

const deviceSeconds = 180 * 86_400

/** The signed cookie of a browser that signed in before. */
export function deviceCookie(request: Request, publicUrl: string | undefined): string | undefined {
  return cookieOf(request, publicUrl, 'device')
}

/** Such as `Firefox on Linux`, for people who recognize their sessions by it. Browsers send what they like. */
export function deviceName({ headers }: Request): string {
  const agent = headers.get('user-agent') ?? ''
  const named = (names: readonly (readonly [RegExp, string])[]) =>
    names.find(([pattern]) => pattern.test(agent))?.[1]
  const [browser, system] = [named(browsers), named(systems)]
  return browser && system ? `${browser} on ${system}` : (browser ?? system ?? '')
}

// Most browsers also name the ones after them.
const browsers = [
  [/Edg/, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\/|FxiOS/, 'Firefox'],
  [/Chrom(e|ium)\/|CriOS/, 'Chrome'],
  [/Safari\//, 'Safari'],
] as const

const systems = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
] as const

function flashIn({ consoleSecrets }: ConsolePorts, token: string, cookieValue: string): Flash | null {
  const value = consoleSecrets.signedText(`flash ${token}`, cookieValue)
  if (value === undefined) return null
  const [tone, text]: unknown[] = JSON.parse(Buffer.from(value, 'base64url').toString())
  return (tone === 'good' || tone === 'bad') && typeof text === 'string' ? { tone, text } : null
}
