import type { Elysia } from 'elysia'
import type { ContextOf } from '../../../domain/events/request-context.ts'
import { Failure } from '../../../domain/failures.ts'
import { endSession, enterByLink, enterByPassword, sessionId } from '../../../domain/operator/sessions.ts'
import { endedCookies, isFromElsewhere, sessionCookie, visitOf } from '../access.ts'
import { html, seeOther } from '../answers.ts'
import type { ConsoleRoutePorts, ConsoleSettings, PageHandler } from '../page-handler.ts'
import { linkPage, loginPage } from '../pages/login.tsx'
import { problemPage } from '../pages/problem.tsx'

/** How a session begins and ends. */
export function sessionRoutes(
  routes: Elysia,
  ports: ConsoleRoutePorts,
  { publicUrl, log }: ConsoleSettings,
  { page, off, broken, hasLogin }: PageHandler,
  contextOf: ContextOf,
): void {
  routes.get('/admin/login', async ({ request }) => {
    if (await visitOf(ports, request)) return seeOther('/admin')
    if (!hasLogin) return off(request)
    return html(loginPage({ problem: null }))
  })
  routes.post('/admin/login', async ({ request, body }) => {
    if (!hasLogin) return off(request)
    if (isFromElsewhere(request, publicUrl)) throw new Failure('forbidden', 'another site has sent this form')
    const password = (body as URLSearchParams).get('password') ?? ''
    try {
      const token = await enterByPassword(ports, contextOf(request), password)
      if (token !== undefined) return seeOther('/admin/entered', [sessionCookie(request, publicUrl, token)])
      log.warn({ requestId: contextOf(request).requestId }, 'a wrong password for the console')
      return html(loginPage({ problem: 'That is not the password.' }), 401)
    } catch (error) {
      if (!(error instanceof Failure) || error.kind !== 'rate_limited') return broken(request, error)
      const { retryAfterSeconds = 1 } = error.details
      const minutes = Math.ceil(retryAfterSeconds / 60)
      const problem = `Too many tries. Wait ${minutes === 1 ? 'a minute' : `${minutes} minutes`}, or use a link of otpost admin link.`
      const answer = html(loginPage({ problem }), 429)
      answer.headers.set('retry-after', String(retryAfterSeconds))
      return answer
    }
  })
  // Where a browser comes that was let in: with its cookie, unless it did not take that.
  routes.get('/admin/entered', async ({ request }) => {
    if (await visitOf(ports, request)) return seeOther('/admin')
    const text = publicUrl?.startsWith('https:')
      ? `Its cookie is kept only where the address begins with https: go by ${publicUrl}/admin, or through a tunnel by http://localhost.`
      : 'Allow this site to keep cookies, and sign in again.'
    const title = 'Your browser did not keep the session'
    return html(problemPage(null, { status: 401, title, text, hasLogin }), 401)
  })
  routes.get('/admin/link', async ({ request }) => {
    if (!hasLogin && !(await ports.sessions.hasLink(ports.now()))) return off(request)
    return html(linkPage())
  })
  routes.post('/admin/link', async ({ request, body }) => {
    if (isFromElsewhere(request, publicUrl)) throw new Failure('forbidden', 'another site has sent this form')
    const token = await enterByLink(ports, (body as URLSearchParams).get('token') ?? '')
    if (token !== undefined) return seeOther('/admin/entered', [sessionCookie(request, publicUrl, token)])
    return html(
      problemPage(null, {
        status: 401,
        title: 'This link does not work any more',
        text: 'It works once, and for ten minutes. Make another with: otpost admin link',
        hasLogin,
      }),
      401,
    )
  })
  routes.post(
    '/admin/logout',
    page(async ({ visit }) => {
      await endSession(ports, visit.session, sessionId(visit.session))
      return !hasLogin
        ? html(
            problemPage(null, {
              status: 200,
              title: 'You are signed out',
              text: 'To come back, make a link with: otpost admin link',
            }),
            200,
            endedCookies,
          )
        : seeOther('/admin/login', endedCookies)
    }),
  )
}
