import { createHash } from 'node:crypto'
import { Failure } from '../../domain/ground/failures.ts'
import { showsToken } from '../pages/bearer.ts'
import { cookieIn, isSame, usesTls } from '../pages/cookies.ts'

export interface OutboxAccess {
  readonly token: string | undefined
  /** A server that listens beyond this machine requires a token. */
  readonly isOpen: boolean
  readonly publicUrl: string | undefined
}

/** Accepts a bearer token or a cookie. `?token=` answers with a redirect that sets the cookie. */
export function authorize(
  { token, isOpen, publicUrl }: OutboxAccess,
  request: Request,
): Response | undefined {
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

/** Expires when the browser closes. */
function cookieFor(token: string, publicUrl: string | undefined): string {
  const secure = usesTls(publicUrl) ? 'Secure; ' : ''
  return `${cookieName}=${cookieValue(token)}; Path=/outbox; ${secure}HttpOnly; SameSite=Strict`
}

const cookieName = 'otpost_outbox'

/** The browser does not store the token itself. */
function cookieValue(token: string): string {
  return createHash('sha256').update(`otpost outbox cookie ${token}`).digest('base64url')
}
