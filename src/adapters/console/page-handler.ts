import type { SettingInForce } from '../../config/settings.ts'
import type { Nationalize } from '../../domain/contact.ts'
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
import { type ConsoleSession, type LoginPorts, sessionActor } from '../../domain/operator/sessions.ts'
import type { Log, Secrets } from '../../domain/ports.ts'
import { flashCookie, flashOf, hasCookie, isOwnForm, type Visit, visitOf } from './access.ts'
import { html, seeOther } from './answers.ts'
import type { PageContext } from './models.ts'
import { keyPage } from './pages/key.tsx'
import { problemPage } from './pages/problem.tsx'

/** What the console reads and changes; each change is a use case that the commands have too. */
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
  /** Rejects when the database can't be read or written. */
  readonly checkDatabase: () => Promise<void>
  /** Requests that could not be written to the journal since this server began, and when the last was. */
  readonly stats: { eventLog(): { readonly lost: number; readonly lastLostAt: number | null } }
  /** How the providers in use fare; what they did is added here. */
  readonly providerStates: () => readonly Omit<ProviderHealth, 'lastHour'>[]
}

export interface ConsoleSettings extends PreviewSettings {
  readonly version: string
  readonly bun: string
  readonly databaseName: string
  /** Where vendors and applications reach this server; undefined: as the browser does. */
  readonly publicUrl: string | undefined
  readonly hasOutbox: boolean
  readonly inForce: readonly SettingInForce[]
  readonly providerNames: readonly string[]
  readonly nationalize: Nationalize | undefined
  readonly log: Log
}

/** How many rows a page of a list has. */
export const pageLength = 50

/** One request of a session, and what it may use. */
export interface PageRequest {
  readonly request: Request
  readonly visit: Visit
  readonly url: URL
  readonly form: URLSearchParams
  readonly params: Readonly<Record<string, string>>
  /** The use cases, in the name of this session. */
  readonly by: OperatorPorts
}

export type Page = (pageRequest: PageRequest, pageContext: PageContext) => Promise<Response> | Response

/** What a route of the framework is given. */
interface Handled {
  readonly request: Request
  readonly body?: unknown
  readonly params: Readonly<Record<string, string>>
}

export type PageHandler = ReturnType<typeof createPageHandler>

/** What the routes of the console have in common: who asks, what every page shows, and what becomes of what fails. */
export function createPageHandler(ports: ConsoleRoutePorts, settings: ConsoleSettings, contextOf: ContextOf) {
  const { publicUrl } = settings
  /** Whether there is a password; else the console opens by links alone. */
  const hasLogin = ports.passwordHash !== undefined

  const operatorOf = (session: ConsoleSession): OperatorPorts => ({
    operator: ports.operator,
    secrets: ports.secrets,
    now: ports.now,
    actor: sessionActor(session),
  })

  async function pageContextOf(
    request: Request,
    visit: Visit,
    said = flashOf(request),
  ): Promise<PageContext> {
    return {
      version: settings.version,
      csrfToken: visit.csrfToken,
      pendingRequests: await ports.requests.pendingCount(),
      hasOutbox: settings.hasOutbox,
      now: ports.now(),
      flash: said,
    }
  }

  /** A page of a session; whoever has none is led to where they can begin one, if there is such a place. */
  function page(make: Page) {
    return async ({ request, body, params }: Handled): Promise<Response> => {
      let pageContext: PageContext | null = null
      try {
        const visit = await visitOf(ports, request)
        if (!visit) return stranger(request)
        pageContext = await pageContextOf(request, visit)
        const form = body instanceof URLSearchParams ? body : new URLSearchParams()
        if (request.method === 'POST' && !isOwnForm(request, publicUrl, visit, form)) {
          return problem(pageContext, 403, 'This form is not of this session', {
            text: 'It may have been open for long, or another site has sent it. Go back, load the page again and send it once more.',
          })
        }
        const by = operatorOf(visit.session)
        const answer = await make({ request, visit, url: urlOf(request), form, params, by }, pageContext)
        // What was to be said has been said, unless this answer itself leaves something to say.
        if (pageContext.flash && request.method === 'GET')
          answer.headers.append('set-cookie', flashCookie(null))
        return answer
      } catch (error) {
        if (pageContext && error instanceof OperatorError) {
          return problem(pageContext, 409, 'That can not be done', { text: error.message })
        }
        if (error instanceof Failure) throw error
        return broken(request, error, pageContext)
      }
    }
  }

  /** What nobody has foreseen, such as a database that can not be used. */
  function broken(request: Request, error: unknown, pageContext: PageContext | null = null): Response {
    const { requestId } = contextOf(request)
    settings.log.error({ err: error, requestId }, 'a page of the console failed')
    const text = `The log of the server has the cause, with the id ${requestId}; otpost doctor may know it too.`
    const model = { status: 500, title: 'Something went wrong', text, hasLogin }
    return html(problemPage(pageContext && { ...pageContext, flash: null }, model), 500)
  }

  function stranger(request: Request): Response {
    // Whoever has had a session knows that there is a console.
    if (!hasLogin && hasCookie(request)) {
      const text = 'To come back, make a link on the server with: otpost admin link'
      return html(problemPage(null, { status: 401, title: 'The session is over', text }), 401)
    }
    if (!hasLogin) return off(request)
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return html(
        problemPage(null, {
          status: 401,
          title: 'The session is over',
          text: 'Sign in again, and send the form once more.',
          hasLogin,
        }),
        401,
      )
    }
    return seeOther('/admin/login')
  }

  /** There is no console for this visitor; a person is told how to open it, and a program that there is no such path. */
  function off({ headers }: Request): Response {
    if (!headers.get('accept')?.includes('text/html')) throw new Failure('route_not_found')
    const text =
      'Open it once with a link, which otpost admin link prints on the server. Or set ADMIN_PASSWORD_HASH, which otpost admin password makes, to sign in here.'
    return html(problemPage(null, { status: 404, title: 'The console is off', text, hasLogin }), 404)
  }

  function problem(
    pageContext: PageContext,
    status: number,
    title: string,
    { text }: { text: string },
  ): Response {
    return html(problemPage({ ...pageContext, flash: null }, { status, title, text }), status)
  }

  async function keyShown(
    request: Request,
    pageContext: PageContext,
    key: { appId: string; apiKey: string; brandSlug: string | null },
  ): Promise<Response> {
    const app = (await ports.apps.list()).find(({ appId }) => appId === key.appId)
    const live = app?.keys.filter(({ revokedAt }) => revokedAt === null) ?? []
    return html(keyPage(pageContext, { ...key, hasOther: live.length > 1, origin: originOf(request) }))
  }

  /** Where applications reach this server. */
  function originOf(request: Request): string {
    return publicUrl ?? urlOf(request).origin
  }

  function missing(
    pageContext: PageContext,
    title: string,
    text = 'It may be gone, or the address is wrong.',
  ): Response {
    return problem(pageContext, 404, title, { text })
  }

  return { page, pageContextOf, keyShown, originOf, missing, off, broken, hasLogin }
}

/** Does what a form asks for; where that can not be done, the form is shown again with the reason. */
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

/** The address that a browser asked for; Bun gives a path alone where the Host is odd. */
function urlOf({ url }: Request): URL {
  return new URL(url, 'http://localhost')
}
