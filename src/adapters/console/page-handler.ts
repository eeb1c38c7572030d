import { Elysia } from 'elysia'
import type { SettingInForce } from '../../config/settings.ts'
import type { Contacts } from '../../domain/contact.ts'
import type { EventLogReader } from '../../domain/events/event-log.ts'
import type { ContextOf } from '../../domain/events/request-context.ts'
import type { LastHour, Limited, Period, ProviderHealth, Statistics } from '../../domain/events/statistics.ts'
import { Failure } from '../../domain/failures.ts'
import type { PreviewSettings } from '../../domain/messages/preview.ts'
import type { AuditReader } from '../../domain/operator/audit.ts'
import {
  type AppStore,
  type BrandStore,
  type IntegrationRequestStore,
  OperatorError,
  type OperatorPorts,
  type OperatorStore,
} from '../../domain/operator/operator.ts'
import { type LoginPorts, sessionActor } from '../../domain/operator/sessions.ts'
import type { Log, Secrets } from '../../domain/ports.ts'
import { staticRoutes } from '../pages/static.ts'
import { cookie, hasCookie, isOwnForm, type Visit, visitOf } from './access.ts'
import { html, seeOther } from './answers.ts'
import { consoleFiles } from './assets.ts'
import type { PageContext } from './models.ts'
import { keyPage } from './pages/key.tsx'
import { problemPage } from './pages/problem.tsx'

/** Changes are use cases, which the commands use too. */
export interface ConsoleRoutePorts extends Omit<LoginPorts, 'secrets'> {
  readonly brands: BrandStore
  readonly apps: AppStore & { readonly configured: readonly string[] }
  readonly requests: IntegrationRequestStore
  readonly audit: AuditReader
  readonly operator: OperatorStore
  readonly secrets: Secrets
  readonly eventLog: Pick<EventLogReader, 'trace' | 'deliveries'> & {
    statistics(period: Period, now: number): Promise<Statistics>
    /** By `wayName`. */
    lastHour(now: number): Promise<ReadonlyMap<string, LastHour>>
  }
  readonly limited: { list(now: number): readonly Limited[] }
  readonly checkDatabase: () => Promise<void>
  /** Requests not written to the event log since the start of this server, and the time of the last one. */
  readonly stats: { eventLog(): { readonly lost: number; readonly lastLostAt: number | null } }
  /** The providers in use; the console adds their last hour. */
  readonly providerStates: () => readonly Omit<ProviderHealth, 'lastHour'>[]
}

export interface ConsoleSettings extends PreviewSettings {
  readonly version: string
  readonly bun: string
  readonly databaseName: string
  readonly publicUrl: string | undefined
  /** PUBLIC_URL, else the URL at which the server listens; never from the Host header. */
  readonly ownUrl: () => string
  readonly hasOutbox: boolean
  readonly inForce: readonly SettingInForce[]
  readonly providerNames: readonly string[]
  readonly contacts: Contacts
  readonly log: Log
}

/** Rows per page. */
export const pageLength = 50

export interface PageRequest {
  readonly request: Request
  readonly visit: Visit
  readonly url: URL
  readonly form: URLSearchParams
  readonly params: Readonly<Record<string, string>>
  /** For use cases, with the session as actor. */
  readonly by: OperatorPorts
}

type Page = (pageRequest: PageRequest, pageContext: PageContext) => Promise<Response> | Response

export type PageHandler = ReturnType<typeof createPageHandler>

/** What all routes of the console share: sessions, page context, error pages. */
export function createPageHandler(ports: ConsoleRoutePorts, settings: ConsoleSettings, contextOf: ContextOf) {
  const { publicUrl, ownUrl, version, hasOutbox } = settings
  const { operator, secrets, now } = ports
  /** Without a password the console opens by sign-in links only. */
  const hasLogin = ports.passwordHash !== undefined
  const routes = new Elysia({ strictPath: true, normalize: false }).use(staticRoutes(consoleFiles))

  async function pageContextOf(visit: Visit, flash = visit.flash): Promise<PageContext> {
    const pendingRequests = await ports.requests.pendingCount()
    return { version, csrfToken: visit.csrfToken, pendingRequests, hasOutbox, now: now(), flash }
  }

  /** Answers a request of a session, or leads to the sign-in. */
  async function answer(
    page: Page,
    { request, body, params }: { request: Request; body?: unknown; params: Readonly<Record<string, string>> },
  ): Promise<Response> {
    let pageContext: PageContext | null = null
    try {
      const visit = await visitOf(ports, request, publicUrl)
      if (!visit) return withoutSession(request)
      pageContext = await pageContextOf(visit)
      const form = body instanceof URLSearchParams ? body : new URLSearchParams()
      if (request.method === 'POST' && !isOwnForm(request, publicUrl, visit, form)) {
        const text =
          'It may have been open for long, or another site has sent it. Go back, load the page again and send it once more.'
        return problem(pageContext, 403, 'This form is not of this session', text)
      }
      const by = { operator, secrets, now, actor: sessionActor(visit.session) }
      const url = new URL(request.url, ownUrl())
      const response = await page({ request, visit, url, form, params, by }, pageContext)
      // The flash message was shown, unless this answer sets a new one.
      if (pageContext.flash && request.method === 'GET')
        response.headers.append('set-cookie', cookie(publicUrl, 'flash', '', 0))
      return response
    } catch (error) {
      if (pageContext && error instanceof OperatorError)
        return problem(pageContext, 409, 'That can not be done', error.message)
      if (error instanceof Failure) throw error
      return broken(request, error, pageContext)
    }
  }

  /** An unexpected error, such as an unusable database. */
  function broken(request: Request, error: unknown, pageContext: PageContext | null = null): Response {
    const { requestId } = contextOf(request)
    settings.log.error({ err: error, requestId }, 'a page of the console failed')
    const text = `The log of the server has the cause, with the id ${requestId}; otpost doctor may know it too.`
    return problem(pageContext, 500, 'Something went wrong', text)
  }

  function withoutSession(request: Request): Response {
    const hasHad = hasCookie(request, publicUrl)
    if (!hasLogin && !hasHad) return off(request)
    if (hasLogin && (request.method === 'GET' || request.method === 'HEAD')) return seeOther('/admin/login')
    const text = hasLogin
      ? 'Sign in again, and send the form once more.'
      : 'To come back, make a link on the server with: otpost admin link'
    return problem(null, 401, 'The session is over', text)
  }

  /** No session is possible: a browser is told how to open the console, other clients get 404. */
  function off({ headers }: Request): Response {
    if (!headers.get('accept')?.includes('text/html')) throw new Failure('route_not_found')
    const text =
      'Open it once with a link, which otpost admin link prints on the server. Or set ADMIN_PASSWORD_HASH, which otpost admin password makes, to sign in here.'
    return problem(null, 404, 'The console is off', text)
  }

  function problem(pageContext: PageContext | null, status: number, title: string, text: string): Response {
    const around = pageContext && { ...pageContext, flash: null }
    return html(problemPage(around, { status, title, text, hasLogin }), status)
  }

  function missing(
    pageContext: PageContext,
    title: string,
    text = 'It may be gone, or the address is wrong.',
  ) {
    return problem(pageContext, 404, title, text)
  }

  async function showKey(
    pageContext: PageContext,
    key: { appId: string; apiKey: string; brandSlug: string | null },
  ): Promise<Response> {
    const app = (await ports.apps.list()).find(({ appId }) => appId === key.appId)
    const live = app?.keys.filter(({ revokedAt }) => revokedAt === null) ?? []
    return html(keyPage(pageContext, { ...key, hasOther: live.length > 1, origin: ownUrl() }))
  }

  return {
    routes,
    get: (path: string, page: Page) => void routes.get(path, (handled) => answer(page, handled)),
    post: (path: string, page: Page) => void routes.post(path, (handled) => answer(page, handled)),
    ports,
    settings,
    contextOf,
    pageContextOf,
    showKey,
    missing,
    problem,
    off,
    broken,
    hasLogin,
  }
}

/** Runs the action of a form; after an OperatorError, shows the form again with its message. */
export async function orAgain(
  act: () => Promise<Response>,
  again: (problem: string) => Promise<Response> | Response,
): Promise<Response> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof OperatorError) return again(error.message)
    throw error
  }
}

export function field(form: URLSearchParams, name: string): string {
  return (form.get(name) ?? '').trim()
}
