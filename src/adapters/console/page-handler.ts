import { setTimeout as pause } from 'node:timers/promises'
import { Elysia } from 'elysia'
import type { SettingInForce } from '../../config/settings.ts'
import { isSetUp } from '../../domain/accounts/accounts.ts'
import { type LoginPorts, roleOf, sessionActor, type Visitor } from '../../domain/accounts/sessions.ts'
import type { Numbers } from '../../domain/delivery/destination.ts'
import type { ProviderCodes } from '../../domain/delivery/provider-codes.ts'
import type { Actor } from '../../domain/ground/audit.ts'
import type { Contacts } from '../../domain/ground/contact.ts'
import { Failure } from '../../domain/ground/failures.ts'
import { OperatorError } from '../../domain/ground/operator-error.ts'
import type { Log, Secrets } from '../../domain/ground/ports.ts'
import { hasRole } from '../../domain/ground/role.ts'
import type { EpochMs } from '../../domain/ground/time.ts'
import type { CountryCodes, CountrySms } from '../../domain/guard/counts.ts'
import type { GuardReader } from '../../domain/guard/status.ts'
import type { AlertStore } from '../../domain/health/alerts.ts'
import {
  type DatabaseFault,
  databaseFault,
  UnusableDatabase,
  unreadableWords,
  unsavedWords,
} from '../../domain/health/database-fault.ts'
import type { HealthPorts, HealthSettings, ServerPorts } from '../../domain/health/facts.ts'
import type { HistoryPorts } from '../../domain/health/history.ts'
import type { ImpactPorts } from '../../domain/health/incidents.ts'
import type { Finding } from '../../domain/health/problem.ts'
import type { HostKindOf } from '../../domain/integration/webhook-url.ts'
import type { LimitSettings } from '../../domain/limits/limits.ts'
import type { AppTraffic } from '../../domain/log/app-traffic.ts'
import type { EventLogReader } from '../../domain/log/event-log.ts'
import type { Range } from '../../domain/log/ranges.ts'
import type { Statistics } from '../../domain/log/statistics.ts'
import type { BudgetCounters } from '../../domain/money/budgets.ts'
import type { PriceList } from '../../domain/money/prices.ts'
import type { Said } from '../../domain/operator/action.ts'
import type { ActionPorts } from '../../domain/operator/actions.ts'
import type { KeyOwners } from '../../domain/operator/changes.ts'
import type { RouteSettings } from '../../domain/operator/destinations.ts'
import type { StoredPorts } from '../../domain/operator/dry-run.ts'
import type { Entered } from '../../domain/operator/fields.ts'
import type { TestSend, TestSent } from '../../domain/operator/test-send.ts'
import type { WhatIfPorts } from '../../domain/operator/whatif.ts'
import type { ReviewNumber } from '../../domain/policy/review-number.ts'
import type { ContextOf } from '../../domain/request/request-context.ts'
import type { PreviewSettings } from '../../domain/texts/preview.ts'
import { compressed } from '../pages/compression.ts'
import { staticRoutes } from '../pages/static.ts'
import { cookie, deviceCookie, deviceName, isOwnForm, sessionToken, type Visit, visitOf } from './access.ts'
import { done, html, seeOther } from './answers.ts'
import { type KeyModel, keyPage } from './apps/key.tsx'
import { consoleFiles } from './assets.ts'
import { confirmPage } from './confirm.tsx'
import { createConfirmation } from './confirmation.ts'
import {
  accessTo,
  actionIn,
  actionsByPath,
  type CodeForm,
  changedIn,
  enteredIn,
  type FormAccess,
  filled,
  isQuestion,
  isUnchanged,
  patternOf,
} from './form-access.ts'
import type { HealthModel } from './health/page.tsx'
import type { LiveStreams } from './live.ts'
import { PageChanges } from './page-changes.ts'
import type { PageContext, Rejected } from './page-context.ts'
import { problemPage } from './problem.tsx'
import type { ProviderFiles } from './providers/page.tsx'

export interface ConsoleRoutePorts
  extends Omit<LoginPorts, 'secrets'>,
    Pick<HealthPorts, 'providerStates'>,
    Pick<ServerPorts, 'databaseTrouble' | 'databaseOutage' | 'limited'>,
    Pick<ActionPorts, 'audit' | 'brands' | 'events' | 'jobs' | 'operator' | 'policy' | 'prices' | 'requests'>,
    Pick<ActionPorts, 'isVerifiedNumber' | 'mailRequester' | 'parsePrices' | 'requireSecret' | 'sealing'> {
  readonly apps: ActionPorts['apps'] & KeyOwners
  /** With the request ID, for what the log has of a failure. */
  readonly actionPorts: (actor: Actor, requestId: string) => ActionPorts & StoredPorts
  readonly guard: GuardReader
  readonly secrets: Secrets
  readonly eventLog: Pick<
    EventLogReader,
    'trace' | 'deliveries' | 'findDeliveries' | 'findCalls' | 'countFound' | 'named' | 'guarded'
  > &
    HealthPorts['eventLog'] &
    Pick<ImpactPorts, 'spentLately' | 'spending'> &
    ServerPorts['eventLog'] &
    HistoryPorts['eventLog'] &
    WhatIfPorts['eventLog'] & {
      statisticsIn(range: Range): Promise<Statistics>
      countries(now: number): Promise<readonly CountryCodes[]>
      appTraffic(now: number): Promise<ReadonlyMap<string, AppTraffic>>
      /** By provider: when the latest delivery report came. */
      lastReports(now: number): Promise<ReadonlyMap<string, number>>
      smsOfWeek(now: number): Promise<readonly CountrySms[]>
      /** By template. */
      acceptedSms(brand: string, from: number): Promise<ReadonlyMap<string, number>>
    }
  readonly sendTest: (actor: Actor, test: TestSend) => Promise<TestSent>
  readonly priceList: () => Promise<PriceList>
  readonly activeReviewNumbers: () => Promise<readonly ReviewNumber[]>
  readonly budgets: BudgetCounters
  readonly alerts: HealthPorts['alerts'] & Pick<AlertStore, 'latest'>
  readonly refused: NonNullable<HealthPorts['refused']>
  readonly stats: ServerPorts['stats'] & {
    /** Of the database, in bytes. */
    size(): Promise<number>
    /** Of PostgreSQL: who has connections. */
    nodes(): Promise<HealthModel['nodes']>
  }
  /** The checks of `otpost doctor`, on another thread. Undefined: this process has no settings of a server. */
  readonly runChecks: (() => Promise<readonly Finding[]>) | undefined
  readonly live: LiveStreams
}

export interface ConsoleSettings extends PreviewSettings, HealthSettings {
  readonly version: string
  readonly bun: string
  /** Such as `SQLite 3.51.3`. */
  readonly database: string
  readonly databaseName: string
  readonly publicUrl: string | undefined
  /** PUBLIC_URL, else the URL on which the server listens. Never from the Host header. */
  readonly ownUrl: () => string
  readonly isProduction: boolean
  readonly hostKind: HostKindOf
  readonly hasOutbox: boolean
  /** GLOBAL_LIMIT_PER_MINUTE and PHONE_LIMIT_PER_HOUR. */
  readonly limits: Pick<LimitSettings, 'globalPerMinute' | 'phonePerHour'>
  readonly mailerName: string
  readonly inForce: readonly SettingInForce[]
  readonly providerNames: readonly string[]
  readonly providerFiles: ProviderFiles
  readonly providerCodes: ReadonlyMap<string, ProviderCodes>
  readonly contacts: Contacts
  readonly routes: RouteSettings
  readonly smsCountries: readonly string[]
  readonly numbers: Numbers
  readonly log: Log
}

export const pageLength = 50

/** A page that takes longer may wait for a database that does not answer. */
const slowPageMs = 100
/** Bounds memory. */
const mostContexts = 100
/** With the check of the database that the overview makes. */
const longestReadMs = 900
/** For the form of a change that failed. */
const longestPageMs = 600

/** What a person sees until their account is set up. */
const setUpPaths = ['/admin/account', '/admin/account/app', '/admin/account/passkey', '/admin/logout']

export interface PageRequest {
  readonly request: Request
  readonly visit: Visit
  readonly url: URL
  readonly form: URLSearchParams
  readonly params: Readonly<Record<string, string>>
  readonly actor: Actor
}

type FormActions = Parameters<typeof actionIn>[0]

/** The page that follows a change. */
export type ShownAfter = (
  said: Said,
  entered: Entered,
  pageRequest: PageRequest,
  pageContext: PageContext,
) => Promise<Response> | Response

type Page = (pageRequest: PageRequest, pageContext: PageContext) => Promise<Response> | Response

export type PageHandler = ReturnType<typeof createPageHandler>

export function createPageHandler(ports: ConsoleRoutePorts, settings: ConsoleSettings, contextOf: ContextOf) {
  const { publicUrl, ownUrl, version, hasOutbox } = settings
  const { now } = ports
  const changes = new PageChanges()
  const unconfirmed = createConfirmation(ports, settings.log)
  /** By session, for a database that cannot be read. */
  const lastContexts = new Map<string, { readonly pageContext: PageContext; readonly expiresAt: EpochMs }>()
  const pages = new Map<string, Page>()
  const shown = new Map<string, ShownAfter>()
  const routes = new Elysia({ strictPath: true, normalize: false }).use(staticRoutes(consoleFiles))

  async function pageContextOf(visit: Visit, flash = visit.flash): Promise<PageContext> {
    const [pendingRequests, { length: reviewNumbers }, trouble] = await Promise.all([
      ports.requests.pendingCount(),
      ports.activeReviewNumbers(),
      ports.databaseTrouble(),
    ])
    const { csrfToken, account } = visit
    const person = {
      email: account?.email ?? null,
      role: roleOf(visit),
      isSetUp: !account || isSetUp(account),
    }
    const fault = databaseFault(trouble) ?? null
    return { version, csrfToken, person, pendingRequests, hasOutbox, reviewNumbers, fault, now: now(), flash }
  }

  /** Within a second, also while the database does not answer. A change is waited for, since its result matters. */
  async function answer(page: Page, handled: Handled, access?: FormAccess): Promise<Response> {
    const startedAt = performance.now()
    let pageContext: PageContext | null = null
    const answered = answerOf(page, handled, access, (seen) => {
      pageContext = seen
    })
    if (access) return answered
    answered.catch(() => undefined)
    const isLate = await Promise.race([answered.then(() => false), pause(slowPageMs, true, { ref: false })])
    if (!isLate) return answered
    const trouble = await Promise.race([answered.then(() => undefined), ports.databaseTrouble(true)])
    const fault = databaseFault(trouble)
    // Most pages can be read while nothing can be written.
    const leftMs = Math.max(0, startedAt + longestReadMs - performance.now())
    const isUnreadable =
      fault && (await Promise.race([answered.then(() => false), pause(leftMs, true, { ref: false })]))
    return isUnreadable ? unusable(handled.request, pageContext, fault) : answered
  }

  async function answerOf(
    page: Page,
    { request, body, params }: Handled,
    access: FormAccess | undefined,
    seen: (pageContext: PageContext) => void,
  ): Promise<Response> {
    let pageContext: PageContext | null = null
    try {
      const visit = await visitOf(ports, request, publicUrl)
      if (!visit) return await withoutSession(request)
      pageContext = await pageContextOf(visit)
      seen(pageContext)
      const form = body instanceof URLSearchParams ? body : new URLSearchParams()
      const url = new URL(request.url, ownUrl())
      const { session, account } = visit
      if (access && !isOwnForm(request, publicUrl, visit, form)) {
        const text =
          'The form belongs to another session, or another site sent it. Go back, reload the page and submit the form again.'
        return problem(pageContext, 403, 'The form was rejected', text)
      }
      if (account && !isSetUp(account)) {
        if (!setUpPaths.includes(url.pathname)) return seeOther('/admin/account')
      } else if (access) {
        const role = roleOf(visit)
        if (!hasRole(role, access.role)) {
          const text = `Your role is ${role}. This change requires the role ${access.role}. An owner can change your role.`
          return problem(pageContext, 403, 'Your role does not allow this change', text)
        }
        const asked = access.isSensitive(form)
          ? await unconfirmed(visitorOf(request), url, visit, form)
          : null
        if (asked)
          return html(confirmPage({ ...pageContext, flash: null }, asked), asked.problem === null ? 403 : 401)
      }
      const actor = sessionActor(session, account)
      const response = await page({ request, visit, url, form, params, actor }, pageContext)
      // A change may end sessions.
      if (access || lastContexts.size >= mostContexts) lastContexts.clear()
      else lastContexts.set(session.tokenSha256, { pageContext, expiresAt: session.expiresAt })
      if (pageContext.flash && request.method === 'GET')
        response.headers.append('set-cookie', cookie(publicUrl, 'flash', '', 0))
      return await compressed(request, await changes.since(request, response))
    } catch (error) {
      if (pageContext && error instanceof OperatorError)
        return problem(pageContext, 409, 'The change was rejected', error.message)
      if (error instanceof Failure) throw error
      return broken(request, error, pageContext)
    }
  }

  function visitorOf(request: Request): Visitor {
    return {
      context: contextOf(request),
      device: deviceName(request),
      known: deviceCookie(request, publicUrl),
    }
  }

  /** Whether anyone can sign in at the form. */
  async function hasLogin(): Promise<boolean> {
    return (await ports.sessions.accounts()).some(isSetUp)
  }

  function broken(request: Request, error: unknown, pageContext: PageContext | null = null): Response {
    const { requestId } = contextOf(request)
    settings.log.error({ err: error, requestId }, 'a page of the console failed')
    const fault = databaseFault(error)
    if (fault) return unusable(request, pageContext, fault)
    const text = `The server log has the cause under the request ID ${requestId}. \`otpost doctor\`, run on the server, may report it too.`
    return problem(pageContext, 500, 'Internal error', text)
  }

  function lastContextOf(request: Request): PageContext | null {
    const last = lastContexts.get(ports.consoleSecrets.sha256(sessionToken(request, publicUrl) ?? ''))
    return last && last.expiresAt > now() ? { ...last.pageContext, now: now() } : null
  }

  function unusable(request: Request, seen: PageContext | null, fault: DatabaseFault): Response {
    const isChange = request.method === 'POST'
    const pageContext = seen ?? lastContextOf(request)
    const words = pageContext
      ? unreadableWords(fault, ports.databaseOutage())
      : `${fault.text} The server log has the cause.`
    const text = isChange ? unsavedWords(fault) : words
    // The page says it once.
    const around = pageContext && { ...pageContext, fault: null }
    return problem(around, 503, isChange ? 'Not saved' : 'The database cannot be used', text)
  }

  async function withoutSession(request: Request): Promise<Response> {
    const hasHad = sessionToken(request, publicUrl) !== undefined
    const isLogin = await hasLogin()
    if (!isLogin && !hasHad) return off(request)
    if (isLogin && (request.method === 'GET' || request.method === 'HEAD')) return seeOther('/admin/login')
    const text = isLogin
      ? 'Sign in again, then submit the form again.'
      : 'To sign in again, run `otpost admin link` on the server and open the link that it prints.'
    return problem(null, 401, 'Your session has expired', text, isLogin)
  }

  /** Browsers see how to sign in. Other clients get 404. */
  function off({ headers }: Request): Response {
    if (!headers.get('accept')?.includes('text/html')) throw new Failure('route_not_found')
    const text =
      'To sign in, run `otpost admin link` on the server and open the link that it prints. Then invite operators, who sign in with their own accounts.'
    return problem(null, 404, 'The console has no accounts', text)
  }

  function problem(
    pageContext: PageContext | null,
    status: number,
    title: string,
    text: string,
    hasLogin = false,
  ): Response {
    const around = pageContext && { ...pageContext, flash: null }
    return html(problemPage(around, { status, title, text, hasLogin }), status)
  }

  function missing(pageContext: PageContext, title: string, text = 'It was deleted, or the URL is wrong.') {
    return problem(pageContext, 404, title, text)
  }

  function portsOf({ actor, request }: PageRequest) {
    return ports.actionPorts(actor, contextOf(request).requestId)
  }

  /** After a rejection, the page of the form is shown again, with what was entered. */
  async function act(
    sharing: FormActions,
    pageRequest: PageRequest,
    pageContext: PageContext,
  ): Promise<Response> {
    const { form, params, visit, url } = pageRequest
    const action = actionIn(sharing, form)
    if (!action) throw new OperatorError('Choose an action.')
    const entered = enteredIn(action, form, params)
    const { path = '', page: own = path.split('/')[0] ?? '' } = action.form ?? {}
    const again = pages.get(patternOf(own).replace(/\?.*/, ''))
    const showAgain = (about: Partial<Rejected>) => {
      const was = form.get('was')
      const rejected = { action: action.name, values: entered, was, problem: null, foretold: [], ...about }
      const named = [...own.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, String(entered[name])])
      return again?.(
        { ...pageRequest, params: Object.fromEntries(named), url: new URL(filled(own, entered), url) },
        { ...pageContext, rejected },
      )
    }
    try {
      if (pageContext.fault) throw new UnusableDatabase(pageContext.fault)
      if (isQuestion(form)) {
        const answer = await showAgain({ foretold: await foretold(action, entered, pageRequest) })
        return answer ?? problem(pageContext, 409, 'The change was not tried', 'It has no page.')
      }
      const changed = changedIn(action, entered, form)
      if (isUnchanged(action, changed, form))
        return done(visit, filled(own, entered), 'Nothing was changed, so nothing was saved.')
      const said = await action.perform(portsOf(pageRequest), changed)
      const after = shown.get(action.name)
      if (after) return await after(said, entered, pageRequest, pageContext)
      return done(
        visit,
        filled(own, action.read(entered)),
        [said, ...(said.warnings ?? [])].map(({ text }) => text.replaceAll('\n', ' ')).join(' '),
      )
    } catch (error) {
      const [status, problem] = rejectionOf(error)
      if (problem === undefined || !again) throw error
      const answer = await Promise.race([
        showAgain({ problem }),
        pause(longestPageMs, undefined, { ref: false }),
      ])
      // Such as the page of an app that does not exist.
      if (!answer?.ok) throw error
      return new Response(answer.body, { status, headers: answer.headers })
    }
  }

  /** What the action would do. @throws OperatorError if it would be rejected */
  async function foretold(
    action: FormActions[number],
    entered: Entered,
    pageRequest: PageRequest,
  ): Promise<readonly string[]> {
    if (!action.hasDryRun) throw new OperatorError('This change cannot be tried.')
    const changed = changedIn(action, entered, pageRequest.form)
    const { text, warnings = [] } = await action.perform(portsOf(pageRequest), changed, {
      isDryRun: true,
    })
    return [...text.split('\n'), ...warnings.map((warning) => warning.text)]
  }

  async function showKey(
    pageContext: PageContext,
    key: Pick<KeyModel, 'appId' | 'apiKey' | 'brandSlug'> & Partial<Pick<KeyModel, 'mail'>>,
  ): Promise<Response> {
    const app = (await ports.apps.list()).find(({ appId }) => appId === key.appId)
    const live = app?.keys.filter(({ revokedAt }) => revokedAt === null) ?? []
    const { scopes } = await ports.policy.rows()
    const active = (await ports.brands.list()).filter(({ status }) => status === 'active')
    const usable = scopes.find(({ appId }) => appId === key.appId)?.brands ?? active.map(({ slug }) => slug)
    const [brandId = null, ...others] = usable
    return html(
      keyPage(pageContext, {
        mail: null,
        ...key,
        brandId: others.length === 0 ? brandId : null,
        hasOther: live.length > 1,
        origin: ownUrl(),
      }),
    )
  }

  function post(path: string, page: Page): void {
    routes.post(path, (handled) => answer(page, handled, accessTo(path)))
  }

  return {
    routes,
    get: (path: string, page: Page) => {
      pages.set(path, page)
      routes.get(path, (handled) => answer(page, handled))
    },
    post: (path: CodeForm, page: Page) => post(path, page),
    /** What follows a change, if not the page of its form. */
    after: (action: { readonly name: string }, page: ShownAfter) => void shown.set(action.name, page),
    /** The forms of the declared actions. */
    postActions: () => {
      for (const [path, sharing] of actionsByPath) {
        post(path, (pageRequest, pageContext) => act(sharing, pageRequest, pageContext))
      }
    },
    visitorOf,
    ports,
    settings,
    contextOf,
    pageContextOf,
    showKey,
    missing,
    problem,
    off,
    withoutSession,
    broken,
    hasLogin,
  }
}

interface Handled {
  readonly request: Request
  readonly body?: unknown
  readonly params: Readonly<Record<string, string>>
}

/** The status, and what the page of the form says. Undefined: another error. */
function rejectionOf(error: unknown): readonly [status: number, problem: string | undefined] {
  if (error instanceof OperatorError) return [409, error.message]
  const fault = databaseFault(error)
  return [503, fault && unsavedWords(fault)]
}

/** If a change is rejected or cannot be stored, shows the form again with the reason. */
export async function orAgain(
  act: () => Promise<Response>,
  again: (problem: string) => Promise<Response> | Response,
): Promise<Response> {
  try {
    return await act()
  } catch (error) {
    const [, problem] = rejectionOf(error)
    if (problem === undefined) throw error
    const answer = await again(problem)
    return error instanceof OperatorError
      ? answer
      : new Response(answer.body, { status: 503, headers: answer.headers })
  }
}
