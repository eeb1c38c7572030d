import { createHash, timingSafeEqual } from 'node:crypto'
import { type ConsolePorts, type ConsoleSession, currentSession } from '../../domain/operator/sessions.ts'
import type { Flash } from './models.ts'

// Who asks, and whether a page of the console made them ask: cookies, and what keeps other sites' forms out.

/** Names of the cookie: by TLS the browser itself sees to it that none but this host has set it. */
const names = { secure: '__Host-otpost', plain: 'otpost_console' } as const

/** A session with the token that the browser holds. */
export interface Visit {
  readonly session: ConsoleSession
  /** What each form of the session's pages carries, and no other site can know. */
  readonly csrfToken: string
}

/** The session that a request belongs to; undefined where there is none, or it is over. */
export async function visitOf(ports: ConsolePorts, request: Request): Promise<Visit | undefined> {
  const cookies = cookiesOf(request)
  // A browser may hold both: cookies ignore ports, and another console's stays when that is gone.
  for (const name of [names.secure, names.plain]) {
    const token = cookies.get(name)
    const session = await currentSession(ports, token, !request.headers.has('x-otpost-refresh'))
    if (session && token !== undefined) return { session, csrfToken: csrfTokenOf(token) }
  }
  return undefined
}

/** Whether a browser holds the token of a session, be that over or not. */
export function hasCookie(request: Request): boolean {
  const cookies = cookiesOf(request)
  return cookies.has(names.secure) || cookies.has(names.plain)
}

/** Whether a form comes from a page of this session. */
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

/** Whether a browser says that another site made it ask (W3C Fetch Metadata; before that, Origin). */
export function isFromElsewhere({ headers }: Request, publicUrl: string | undefined): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site !== 'same-origin' && site !== 'none'
  const origin = headers.get('origin')
  if (origin === null) return false
  // A proxy need not hand on the name by which the browser called it.
  const own = [headers.get('host'), publicUrl === undefined ? undefined : new URL(publicUrl).host]
  return !(URL.canParse(origin) && own.includes(new URL(origin).host))
}

/** What begins a session in the browser: hidden from scripts and from other sites' requests, and ended with the browser. */
export function sessionCookie(request: Request, publicUrl: string | undefined, token: string): string {
  return isSecure(request, publicUrl)
    ? `${names.secure}=${token}; Path=/; Secure; HttpOnly; SameSite=Strict`
    : `${names.plain}=${token}; Path=/admin; HttpOnly; SameSite=Strict`
}

/** What ends it there. */
export const endedCookies = [
  `${names.secure}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0`,
  `${names.plain}=; Path=/admin; HttpOnly; SameSite=Strict; Max-Age=0`,
]

/** Tells the next page what has been done. */
export function flashCookie(flash: Flash | null): string {
  const value = flash ? encodeURIComponent(JSON.stringify([flash.tone, flash.text])) : ''
  return `${flashName}=${value}; Path=/admin; HttpOnly; SameSite=Strict; Max-Age=${flash ? 30 : 0}`
}

/** What a page before this one has left to say. */
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
 * Whether the browser comes by TLS: the public address says so, or the proxy, whose word can do no more than keep a
 * browser from sending its own cookie. Browsers take such a cookie from this machine without TLS too, as by a tunnel.
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
