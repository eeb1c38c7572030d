import type { Account } from '../../../domain/accounts/accounts.ts'
import {
  type ConsoleSession,
  endSession,
  enterByCode,
  enterByLink,
  enterByPasskey,
  enterByPassword,
  newChallenge,
  newKnownBrowser,
  type SignedIn,
  sessionId,
} from '../../../domain/accounts/sessions.ts'
import { Failure } from '../../../domain/ground/failures.ts'
import { counted, utc } from '../../../domain/ground/format.ts'
import type { RequestContext } from '../../../domain/request/request-context.ts'
import { cookie, flashCookie, isFromElsewhere, signedInCookies, visitOf } from '../access.ts'
import { done, html, seeOther } from '../answers.ts'
import { waitOf } from '../confirmation.ts'
import { field } from '../form-fields.ts'
import type { PageHandler } from '../page-handler.ts'
import { problemPage } from '../problem.tsx'
import { codePage, linkPage, loginPage } from './page.tsx'

type By = ConsoleSession['by']

export function sessionRoutes({
  routes,
  post,
  ports,
  settings: { publicUrl, log, contacts },
  contextOf,
  visitorOf,
  problem,
  missing,
  off,
  broken,
  hasLogin,
}: PageHandler): void {
  routes.get('/admin/login', async ({ request }) => {
    if (await visitOf(ports, request, publicUrl)) return seeOther('/admin')
    return (await hasLogin()) ? login() : off(request)
  })
  routes.post('/admin/login', ({ request, body }) => {
    const form = body as URLSearchParams
    const email = field(form, 'email')
    const given = { email: contacts.email(email)?.to ?? email, password: form.get('password') ?? '' }
    return signIn(request, 'password', {
      enter: async () => {
        const next = await enterByPassword(ports, visitorOf(request), given)
        return next === undefined ? undefined : html(codePage({ next, problem: null }))
      },
      wrong: () => login('Wrong e-mail address or password.', 401, email),
      limited: (wait) => login(tooMany(wait), 429, email),
    })
  })
  routes.post('/admin/login/code', ({ request, body }) => {
    const form = body as URLSearchParams
    const [next, code] = [field(form, 'next'), field(form, 'code')]
    const again = (problem: string, status: number) => html(codePage({ next, problem }), status)
    return signIn(request, 'password', {
      enter: async () => {
        const result = await enterByCode(ports, visitorOf(request), { next, code })
        return result === 'wrong' ? again('Wrong code. Each code works once.', 401) : result
      },
      wrong: () =>
        login('The password was entered more than 10 minutes ago, or it changed. Enter it again.', 401),
      limited: (wait) => again(tooMany(wait), 429),
    })
  })
  routes.post('/admin/login/passkey', ({ request, body }) => {
    const response = field(body as URLSearchParams, 'passkey')
    return signIn(request, 'passkey', {
      enter: () => enterByPasskey(ports, visitorOf(request), response),
      wrong: () =>
        login('This passkey is not registered here, or the page was open for too long. Try again.', 401),
      limited: (wait) => login(tooMany(wait), 429),
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
      enter: () => enterByLink(ports, visitorOf(request), token),
      wrong: () => {
        const text =
          'A sign-in link works once. Links of `otpost admin link` expire after 10 minutes, and invitations after 72 hours. Run the command again, or ask an owner for a new link.'
        return problem(null, 401, 'This link is not valid', text)
      },
      limited: (wait) => problem(null, 429, 'Too many attempts', `Try again in ${wait}.`),
    })
  })
  post('/admin/logout', async ({ request, visit }) => {
    const { session } = visit
    const context = contextOf(request)
    await endSession(ports, context, visit, sessionId(session))
    note(context, 'console.signed-out', { by: session.by })
    const cookies = (['session', 'flash'] as const).map((name) => cookie(publicUrl, name, '', 0))
    if (await hasLogin()) return seeOther('/admin/login', cookies)
    const text = 'To sign in again, run `otpost admin link` on the server and open the link that it prints.'
    return html(problemPage(null, { status: 200, title: 'You are signed out', text }), 200, cookies)
  })
  post('/admin/sessions/:id/revoke', async ({ request, visit, params: { id = '' } }, pageContext) => {
    const context = contextOf(request)
    const { session } = visit
    if (!(await endSession(ports, context, visit, id))) return missing(pageContext, 'Session not found')
    if (id === sessionId(session)) note(context, 'console.signed-out', { by: session.by })
    else note(context, 'console.session-revoked', { session: id })
    return done(visit, '/admin/settings', `Ended the session ${id}.`)
  })

  const tooMany = (wait: string) =>
    `Too many attempts. Try again in ${wait}, or use a passkey, a browser that signed in before, or a link from \`otpost admin link\`.`

  async function login(problem: string | null = null, status = 200, email = ''): Promise<Response> {
    const accounts = await ports.sessions.accounts()
    const isPasskey = accounts.some(({ passkeys }) => passkeys.length > 0)
    const model = {
      passkey: isPasskey ? ports.passkeys.forUse(newChallenge(ports, 'sign-in')) : null,
      email,
      problem,
    }
    return html(loginPage(model), status)
  }

  async function signIn(
    request: Request,
    by: By,
    {
      enter,
      wrong,
      limited,
    }: {
      /** A response is that of the next step. */
      readonly enter: () => Promise<SignedIn | Response | undefined>
      readonly wrong: () => Promise<Response> | Response
      readonly limited: (wait: string) => Promise<Response> | Response
    },
  ): Promise<Response> {
    if (isFromElsewhere(request, publicUrl))
      throw new Failure('forbidden', 'This form was sent by another site.')
    const context = contextOf(request)
    try {
      if (by !== 'link' && !(await hasLogin())) return off(request)
      const entered = await enter()
      if (entered instanceof Response) {
        if (!entered.ok) note(context, 'console.sign-in-failed', { by })
        return entered
      }
      note(context, entered ? 'console.signed-in' : 'console.sign-in-failed', { by })
      if (!entered) return await wrong()
      const previous = await visitOf(ports, request, publicUrl)
      if (previous) await endSession(ports, context, previous, sessionId(previous.session))
      return seeOther('/admin/entered', cookiesOf(entered))
    } catch (error) {
      if (error instanceof Failure && error.kind === 'route_not_found') throw error
      if (!(error instanceof Failure) || error.kind !== 'rate_limited') return broken(request, error)
      note(context, 'console.sign-in-limited', { by })
      const answer = await limited(waitOf(error))
      answer.headers.set('retry-after', String(error.details.retryAfterSeconds ?? 1))
      return answer
    }
  }

  function cookiesOf({ token, account }: SignedIn): readonly string[] {
    const cookies = signedInCookies(publicUrl, token, account && newKnownBrowser(ports, account.id))
    const warning = account && failedBefore(account)
    return warning
      ? [...cookies, flashCookie(ports, publicUrl, token, { tone: 'bad', text: warning })]
      : cookies
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

function failedBefore({ failedSignIns, signedInAt }: Account): string | undefined {
  if (failedSignIns === 0) return undefined
  const since = signedInAt === null ? '' : ` since ${utc(signedInAt)}`
  return `${counted(failedSignIns, 'attempt')} to sign in to your account failed${since}. If they were not yours, change your password.`
}

const sessionEvents = {
  'console.signed-in': { level: 'info', message: 'an operator signed in to the console' },
  'console.signed-out': { level: 'info', message: 'an operator signed out of the console' },
  'console.session-revoked': { level: 'info', message: 'an operator ended a console session' },
  'console.sign-in-failed': { level: 'warn', message: 'a sign-in to the console failed' },
  'console.sign-in-limited': { level: 'warn', message: 'a sign-in to the console was rate-limited' },
} as const

type SessionEvent = keyof typeof sessionEvents
