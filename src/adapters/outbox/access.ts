import { createHash } from 'node:crypto'
import { Failure } from '../../domain/failures.ts'
import { showsToken } from '../pages/bearer.ts'
import { cookieIn, isSame, usesTls } from '../pages/cookies.ts'

/** Who may read the outbox (design D29). */
export interface OutboxAccess {
  /** OUTBOX_TOKEN; undefined: none. */
  readonly token: string | undefined
  /** Whether it opens at all: a server that listens beyond this machine needs a token. */
  readonly isOpen: boolean
  readonly publicUrl: string | undefined
}

/**
 * Lets a request read the outbox: a bearer token, or the cookie of a browser that has shown the token as `?token=`.
 *
 * @returns the redirect that sets the cookie; undefined: the request may go on
 */
export function admit({ token, isOpen, publicUrl }: OutboxAccess, request: Request): Response | undefined {
  if (!isOpen) {
    throw new Failure(
      'route_not_found',
      'The outbox is closed, because this server listens beyond this machine. Set OUTBOX_TOKEN to open it.',
    )
  }
  if (token === undefined || showsToken(request, token)) return undefined
  const url = new URL(request.url)
  const given = url.searchParams.get('token')
  if (given !== null && isSame(given, token)) {
    url.searchParams.delete('token')
    const location = url.pathname + url.search
    const headers = {
      location,
      'set-cookie': cookieFor(token, publicUrl),
      'referrer-policy': 'no-referrer',
    }
    return new Response(null, { status: 303, headers })
  }
  const cookie = cookieIn(request, cookieName)
  if (given === null && cookie !== undefined && isSame(cookie, cookieValue(token))) return undefined
  throw new Failure(
    'unauthorized',
    'The outbox token is required. Send the header Authorization: Bearer OUTBOX_TOKEN, or open /outbox?token=OUTBOX_TOKEN once in a browser.',
  )
}

/** Hidden from scripts and from requests of other sites; ends with the browser. */
function cookieFor(token: string, publicUrl: string | undefined): string {
  const secure = usesTls(publicUrl) ? 'Secure; ' : ''
  return `${cookieName}=${cookieValue(token)}; Path=/outbox; ${secure}HttpOnly; SameSite=Strict`
}

const cookieName = 'otpost_outbox'

/** The token itself stays out of the browser's cookie store. */
function cookieValue(token: string): string {
  return createHash('sha256').update(`otpost outbox cookie ${token}`).digest('base64url')
}
