import { createHash, timingSafeEqual } from 'node:crypto'
import { type ConsolePorts, type ConsoleSession, currentSession } from '../../domain/operator/sessions.ts'
import type { Flash } from './models.ts'

// Sessions in cookies, and protection against forms of other sites (CSRF).

/** Browsers accept the prefix `__Host-` only with TLS and for this host alone. */
const names = { secure: '__Host-otpost', plain: 'otpost_console' } as const

export interface Visit {
  readonly session: ConsoleSession
  /** Sent with each form of the session's pages; other sites can't read it. */
  readonly csrfToken: string
}

/** The request's session; undefined if there is none or it has expired. */
export async function visitOf(ports: ConsolePorts, request: Request): Promise<Visit | undefined> {
  const cookies = cookiesOf(request)
  // A browser may send both, as cookies ignore ports: another console's may remain.
  for (const name of [names.secure, names.plain]) {
    const token = cookies.get(name)
    const session = await currentSession(ports, token, !request.headers.has('x-otpost-refresh'))
    if (session && token !== undefined) return { session, csrfToken: csrfTokenOf(token) }
  }
  return undefined
}

/** Whether the browser has the cookie of a session, possibly an expired one. */
export function hasCookie(request: Request): boolean {
  const cookies = cookiesOf(request)
  return cookies.has(names.secure) || cookies.has(names.plain)
}

/** Whether a form was sent by a page of this session. */
export function isOwnForm(
  request: Request,
  publicUrl: string | undefined,
  visit: Visit,
  form: URLSearchParams,
): boolean {
  const [given, expected] = [Buffer.from(form.get('csrf') ?? ''), Buffer.from(visit.csrfToken)]
  return (
    !isFromElsewhere(request, publicUrl) &&
    given.length === expected.length &&
    timingSafeEqual(given, expected)
  )
}

/** Whether another site sent the request (W3C Fetch Metadata; in older browsers, Origin). */
export function isFromElsewhere({ headers }: Request, publicUrl: string | undefined): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site !== 'same-origin' && site !== 'none'
  const origin = headers.get('origin')
  if (origin === null) return false
  // A proxy may change the Host header.
  const own = [headers.get('host'), publicUrl === undefined ? undefined : new URL(publicUrl).host]
  return !(URL.canParse(origin) && own.includes(new URL(origin).host))
}

/** Hidden from scripts and from requests of other sites; ends with the browser. */
export function sessionCookie(request: Request, publicUrl: string | undefined, token: string): string {
  return isSecure(request, publicUrl)
    ? `${names.secure}=${token}; Path=/; Secure; HttpOnly; SameSite=Strict`
    : `${names.plain}=${token}; Path=/admin; HttpOnly; SameSite=Strict`
}

export const endedCookies = [
  `${names.secure}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0`,
  `${names.plain}=; Path=/admin; HttpOnly; SameSite=Strict; Max-Age=0`,
]

/** A message for the next page; null deletes it. */
export function flashCookie(flash: Flash | null): string {
  const value = flash ? encodeURIComponent(JSON.stringify([flash.tone, flash.text])) : ''
  return `${flashName}=${value}; Path=/admin; HttpOnly; SameSite=Strict; Max-Age=${flash ? 30 : 0}`
}

export function flashOf(request: Request): Flash | null {
  const value = cookiesOf(request).get(flashName)
  if (!value) return null
  try {
    const [tone, text]: unknown[] = JSON.parse(decodeURIComponent(value))
    return (tone === 'good' || tone === 'bad') && typeof text === 'string' ? { tone, text } : null
  } catch {
    return null
  }
}

const flashName = 'otpost_said'

function csrfTokenOf(token: string): string {
  return createHash('sha256').update(`form ${token}`).digest('base64url')
}

/**
 * Whether the browser uses TLS, by the public URL or the proxy's header. A forged header can only make a browser drop its own
 * cookie.
 */
function isSecure({ headers }: Request, publicUrl: string | undefined): boolean {
  return (
    publicUrl?.startsWith('https:') === true ||
    headers.get('x-forwarded-proto')?.split(',')[0]?.trim().toLowerCase() === 'https'
  )
}

function cookiesOf({ headers }: Request): Map<string, string> {
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => {
    const at = pair.indexOf('=')
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()] as const
  })
  return new Map(pairs)
}
