import type { RequestContext } from '../../../domain/events/request-context.ts'
import { Failure } from '../../../domain/failures.ts'
import {
  type ConsoleSession,
  endSession,
  enterByLink,
  enterByPassword,
  sessionId,
} from '../../../domain/operator/sessions.ts'
import { cookie, deviceOf, isFromElsewhere, signedInCookies, visitOf } from '../access.ts'
import { done, html, seeOther } from '../answers.ts'
import type { PageHandler } from '../page-handler.ts'
import { linkPage, loginPage } from '../pages/login.tsx'
import { problemPage } from '../pages/problem.tsx'

type By = ConsoleSession['by']

export function sessionRoutes({
  routes,
  post,
  ports,
  settings: { publicUrl, log },
  contextOf,
  problem,
  missing,
  off,
  broken,
  hasLogin,
}: PageHandler): void {
  const { passwordHash } = ports

  routes.get('/admin/login', async ({ request }) => {
    if (await visitOf(ports, request, publicUrl)) return seeOther('/admin')
    return hasLogin ? html(loginPage(null)) : off(request)
  })
  routes.post('/admin/login', ({ request, body }) => {
    if (passwordHash === undefined) return off(request)
    const password = (body as URLSearchParams).get('password') ?? ''
    const device = deviceOf(request, publicUrl, passwordHash)
    return signIn(request, 'password', {
      enter: (context) => enterByPassword(ports, context, password, device),
      wrong: () => html(loginPage('Wrong password.'), 401),
      limited: (wait) => html(loginPage(`Too many attempts. Try again in ${wait}, or ${linkAdvice}.`), 429),
    })
  })
  // Checks that the browser accepted the cookie.
  routes.get('/admin/entered', async ({ request }) => {
    if (await visitOf(ports, request, publicUrl)) return seeOther('/admin')
    const text = publicUrl?.startsWith('https:')
      ? `The session cookie requires https. Open ${publicUrl}/admin, or use http://localhost through a tunnel.`
      : 'Allow cookies for this site, then sign in again.'
    return problem(null, 401, 'Your browser did not store the session cookie', text)
  })
  // The same response whether or not a link is active.
  routes.get('/admin/link', () => html(linkPage()))
  routes.post('/admin/link', ({ request, body }) => {
    const token = (body as URLSearchParams).get('token') ?? ''
    return signIn(request, 'link', {
      enter: (context) => enterByLink(ports, context, token),
      wrong: () => {
        const text =
          'A sign-in link works once and expires after 10 minutes. To create another, run `otpost admin link` on the server.'
        return problem(null, 401, 'This link is not valid', text)
      },
      limited: (wait) => problem(null, 429, 'Too many attempts', `Try again in ${wait}, or ${linkAdvice}.`),
    })
  })
  post('/admin/logout', async ({ request, visit: { session } }) => {
    const context = contextOf(request)
    await endSession(ports, context, session, sessionId(session))
    note(context, 'console.signed-out', { by: session.by })
    const cookies = (['session', 'flash'] as const).map((name) => cookie(publicUrl, name, '', 0))
    if (hasLogin) return seeOther('/admin/login', cookies)
    const text = 'To sign in again, run `otpost admin link` on the server and open the link that it prints.'
    return html(problemPage(null, { status: 200, title: 'You are signed out', text }), 200, cookies)
  })

  post('/admin/sessions/:id/revoke', async ({ request, visit, params: { id = '' } }, pageContext) => {
    const context = contextOf(request)
    const { session } = visit
    if (!(await endSession(ports, context, session, id))) return missing(pageContext, 'Session not found')
    if (id === sessionId(session)) note(context, 'console.signed-out', { by: session.by })
    else note(context, 'console.session-revoked', { session: id })
    return done(visit, '/admin/settings', `Ended the session ${id}.`)
  })

  const linkAdvice = 'sign in with a new link from `otpost admin link`'

  async function signIn(
    request: Request,
    by: By,
    {
      enter,
      wrong,
      limited,
    }: {
      readonly enter: (context: RequestContext) => Promise<string | undefined>
      readonly wrong: () => Response
      readonly limited: (wait: string) => Response
    },
  ): Promise<Response> {
    if (isFromElsewhere(request, publicUrl))
      throw new Failure('forbidden', 'This form was sent by another site.')
    const context = contextOf(request)
    try {
      const token = await enter(context)
      note(context, token === undefined ? 'console.sign-in-failed' : 'console.signed-in', { by })
      if (token === undefined) return wrong()
      const previous = await visitOf(ports, request, publicUrl)
      if (previous) await endSession(ports, context, previous.session, sessionId(previous.session))
      return seeOther('/admin/entered', signedInCookies(publicUrl, token, passwordHash))
    } catch (error) {
      if (!(error instanceof Failure) || error.kind !== 'rate_limited') return broken(request, error)
      note(context, 'console.sign-in-limited', { by })
      const { retryAfterSeconds = 1 } = error.details
      const minutes = Math.ceil(retryAfterSeconds / 60)
      const answer = limited(minutes === 1 ? '1 minute' : `${minutes} minutes`)
      answer.headers.set('retry-after', String(retryAfterSeconds))
      return answer
    }
  }

  /** Never logs the password or a token. */
  function note(
    { requestId, clientIp }: RequestContext,
    event: SessionEvent,
    about: { readonly by: By } | { readonly session: string },
  ): void {
    const { level, message } = sessionEvents[event]
    log[level]({ event, ...about, clientIp, requestId }, message)
  }
}

const sessionEvents = {
  'console.signed-in': { level: 'info', message: 'an operator signed in to the console' },
  'console.signed-out': { level: 'info', message: 'an operator signed out of the console' },
  'console.session-revoked': { level: 'info', message: 'an operator ended a console session' },
  'console.sign-in-failed': { level: 'warn', message: 'a sign-in to the console failed' },
  'console.sign-in-limited': { level: 'warn', message: 'a sign-in to the console was rate-limited' },
} as const

type SessionEvent = keyof typeof sessionEvents
