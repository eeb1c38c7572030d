import { Failure } from '../../../domain/failures.ts'
import { endSession, enterByLink, enterByPassword, sessionId } from '../../../domain/operator/sessions.ts'
import { endedCookies, isFromElsewhere, sessionCookie, visitOf } from '../access.ts'
import { html, seeOther } from '../answers.ts'
import type { PageHandler } from '../page-handler.ts'
import { linkPage, loginPage } from '../pages/login.tsx'
import { problemPage } from '../pages/problem.tsx'

export function sessionRoutes({
  routes,
  post,
  ports,
  settings: { publicUrl, log },
  contextOf,
  problem,
  off,
  broken,
  hasLogin,
}: PageHandler): void {
  routes.get('/admin/login', async ({ request }) => {
    if (await visitOf(ports, request)) return seeOther('/admin')
    return hasLogin ? html(loginPage(null)) : off(request)
  })
  routes.post('/admin/login', async ({ request, body }) => {
    if (!hasLogin) return off(request)
    if (isFromElsewhere(request, publicUrl)) throw new Failure('forbidden', 'another site has sent this form')
    const password = (body as URLSearchParams).get('password') ?? ''
    try {
      const token = await enterByPassword(ports, contextOf(request), password)
      if (token !== undefined) return seeOther('/admin/entered', [sessionCookie(request, publicUrl, token)])
      log.warn({ requestId: contextOf(request).requestId }, 'a wrong password for the console')
      return html(loginPage('That is not the password.'), 401)
    } catch (error) {
      if (!(error instanceof Failure) || error.kind !== 'rate_limited') return broken(request, error)
      const { retryAfterSeconds = 1 } = error.details
      const minutes = Math.ceil(retryAfterSeconds / 60)
      const wait = minutes === 1 ? 'a minute' : `${minutes} minutes`
      const answer = html(loginPage(`Too many tries. Wait ${wait}, or use a link of otpost admin link.`), 429)
      answer.headers.set('retry-after', String(retryAfterSeconds))
      return answer
    }
  })
  // After signing in: checks that the browser accepted the cookie.
  routes.get('/admin/entered', async ({ request }) => {
    if (await visitOf(ports, request)) return seeOther('/admin')
    const text = publicUrl?.startsWith('https:')
      ? `Its cookie is kept only where the address begins with https: go by ${publicUrl}/admin, or through a tunnel by http://localhost.`
      : 'Allow this site to keep cookies, and sign in again.'
    return problem(null, 401, 'Your browser did not keep the session', text)
  })
  routes.get('/admin/link', async ({ request }) =>
    hasLogin || (await ports.sessions.hasLink(ports.now())) ? html(linkPage()) : off(request),
  )
  routes.post('/admin/link', async ({ request, body }) => {
    if (isFromElsewhere(request, publicUrl)) throw new Failure('forbidden', 'another site has sent this form')
    const token = await enterByLink(ports, (body as URLSearchParams).get('token') ?? '')
    if (token !== undefined) return seeOther('/admin/entered', [sessionCookie(request, publicUrl, token)])
    const text = 'It works once, and for ten minutes. Make another with: otpost admin link'
    return problem(null, 401, 'This link does not work any more', text)
  })
  post('/admin/logout', async ({ visit }) => {
    await endSession(ports, visit.session, sessionId(visit.session))
    if (hasLogin) return seeOther('/admin/login', endedCookies)
    const text = 'To come back, make a link with: otpost admin link'
    return html(problemPage(null, { status: 200, title: 'You are signed out', text }), 200, endedCookies)
  })
}
