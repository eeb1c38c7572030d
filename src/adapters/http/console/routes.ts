import { Elysia } from 'elysia'
import type { AuditReader } from '../../../domain/audit.ts'
import {
  type Brand,
  type BrandStatus,
  brandStatuses,
  mayBecome,
  type TemplateRegistration,
} from '../../../domain/brand.ts'
import {
  type ConsoleSession,
  endSession,
  enterByLink,
  enterByPassword,
  type LoginPorts,
  sessionActor,
  sessionId,
} from '../../../domain/console.ts'
import { email, type Nationalize, phone } from '../../../domain/contact.ts'
import { explain } from '../../../domain/explain.ts'
import { Failure } from '../../../domain/failures.ts'
import type { JournalReader } from '../../../domain/journal.ts'
import {
  type AppBook,
  approveRequest,
  type BrandBook,
  brandStatus,
  issueApp,
  type OperatorBook,
  OperatorError,
  type OperatorPorts,
  putBrand,
  type RequestBook,
  registerTemplate,
  rejectRequest,
  revokeApp,
  revokeKey,
  rotateApp,
  setBrandStatus,
  suggestedSlug,
} from '../../../domain/operator.ts'
import type { Secrets } from '../../../domain/ports.ts'
import { type PreviewSettings, previewOf, previewsOf } from '../../../domain/preview.ts'
import {
  type Limited,
  type Period,
  type ProviderHealth,
  periods,
  type Statistics,
} from '../../../domain/statistics.ts'
import { wayName } from '../../../domain/tallies.ts'
import { templateOf } from '../../../domain/templates.ts'
import type { SettingInForce } from '../../../settings.ts'
import { errorAnswer } from '../errors.ts'
import type { Exchanges, Log } from '../exchange.ts'
import { staticRoutes } from '../static.ts'
import {
  endedCookies,
  flashCookie,
  flashOf,
  isFromElsewhere,
  isOwnForm,
  sessionCookie,
  type Visit,
  visitOf,
} from './access.ts'
import { consoleFiles } from './assets.ts'
import type { BrandForm, Flash, Shell } from './models.ts'
import { appsPage } from './pages/apps.tsx'
import { auditPage } from './pages/audit.tsx'
import { brandPage, brandsPage, previewFragment } from './pages/brands.tsx'
import { deliveriesPage, storyPage } from './pages/deliveries.tsx'
import { keyPage } from './pages/key.tsx'
import { linkPage, loginPage } from './pages/login.tsx'
import { overviewPage } from './pages/overview.tsx'
import { problemPage } from './pages/problem.tsx'
import { requestPage, requestsPage } from './pages/requests.tsx'
import { settingsPage } from './pages/settings.tsx'

/** What the console reads and changes; each change is a use case that the commands have too. */
export interface ConsoleRoutePorts extends Omit<LoginPorts, 'secrets'> {
  readonly brands: BrandBook
  readonly apps: AppBook & { readonly configured: readonly string[] }
  readonly requests: RequestBook
  readonly audit: AuditReader
  readonly operator: OperatorBook
  readonly secrets: Secrets
  readonly journal: Pick<JournalReader, 'story' | 'deliveries'> & {
    statistics(period: Period, now: number): Promise<Statistics>
  }
  readonly limited: { list(now: number): readonly Limited[] }
  /** How the providers in use fare; what they did is added here. */
  readonly providerStates: () => readonly Omit<ProviderHealth, 'lastHour'>[]
}

export interface ConsoleSettings extends PreviewSettings {
  readonly version: string
  readonly bun: string
  readonly databaseFile: string
  /** Undefined: the console opens by links alone. */
  readonly passwordHash: string | undefined
  /** Where vendors and applications reach this server; undefined: as the browser does. */
  readonly publicUrl: string | undefined
  readonly hasOutbox: boolean
  readonly inForce: readonly SettingInForce[]
  readonly providerNames: readonly string[]
  readonly nationalize: Nationalize | undefined
  readonly log: Log
}

/** What a page of the console may load and do: its own files, forms to this server, and nothing else. */
export const consolePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** How many rows a page of a list has. */
const pageLength = 50

/** Whether a request is for the console, whose forms are no JSON. */
export function isConsole(path: string): boolean {
  return path === '/admin' || path.startsWith('/admin/')
}

/**
 * The operator's console: pages made here, and forms. It is there for whoever knows the password, once there is one, or
 * holds a link of `otpost admin link`; for others it does not exist.
 */
export function consoleRoutes(ports: ConsoleRoutePorts, settings: ConsoleSettings, exchanges: Exchanges) {
  const { publicUrl, passwordHash } = settings
  const hasLogin = passwordHash !== undefined

  /** One request of a session, and what it may use. */
  interface Ask {
    readonly request: Request
    readonly visit: Visit
    readonly url: URL
    readonly form: URLSearchParams
    readonly params: Readonly<Record<string, string>>
    /** The use cases, in the name of this session. */
    readonly by: OperatorPorts
  }

  type Page = (ask: Ask, shell: Shell) => Promise<Response> | Response
  interface Handled {
    readonly request: Request
    readonly body?: unknown
    readonly params: Readonly<Record<string, string>>
  }

  const operatorOf = (session: ConsoleSession): OperatorPorts => ({
    operator: ports.operator,
    secrets: ports.secrets,
    now: ports.now,
    actor: sessionActor(session),
  })

  async function shellOf(request: Request, visit: Visit, said = flashOf(request)): Promise<Shell> {
    const requests = await ports.requests.list()
    return {
      version: settings.version,
      csrfToken: visit.csrfToken,
      pendingRequests: requests.filter(({ status }) => status === 'pending').length,
      hasOutbox: settings.hasOutbox,
      now: ports.now(),
      flash: said,
    }
  }

  /** A page of a session; whoever has none is led to where they can begin one, if there is such a place. */
  function page(make: Page) {
    return async ({ request, body, params }: Handled): Promise<Response> => {
      const visit = await visitOf(ports, request)
      const url = urlOf(request)
      if (!visit) return stranger(request)
      const form = body instanceof URLSearchParams ? body : new URLSearchParams()
      if (request.method === 'POST' && !isOwnForm(request, visit, form)) {
        return problem(await shellOf(request, visit, null), 403, 'This form is not of this session', {
          text: 'It may have been open for long, or another site has sent it. Go back, load the page again and send it once more.',
        })
      }
      const by = operatorOf(visit.session)
      const shell = await shellOf(request, visit)
      try {
        const answer = await make({ request, visit, url, form, params, by }, shell)
        // What was to be said has been said, unless this answer itself leaves something to say.
        if (shell.flash && request.method === 'GET') answer.headers.append('set-cookie', flashCookie(null))
        return answer
      } catch (error) {
        if (error instanceof OperatorError) {
          return problem(shell, 409, 'That can not be done', { text: error.message })
        }
        if (error instanceof Failure) throw error
        const { requestId } = exchanges.of(request)
        settings.log.error({ err: error, requestId }, 'a page of the console failed')
        return problem(shell, 500, 'Something went wrong', {
          text: `The log of the server has the cause, with the id ${requestId}.`,
        })
      }
    }
  }

  async function stranger(request: Request): Promise<Response> {
    if (passwordHash === undefined) throw new Failure('route_not_found')
    if (request.method !== 'GET') {
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

  function problem(shell: Shell, status: number, title: string, { text }: { text: string }): Response {
    return html(problemPage({ ...shell, flash: null }, { status, title, text }), status)
  }

  /** After a form: says what was done on the page that comes next. */
  function done(location: string, text: string): Response {
    const flash: Flash = { tone: 'good', text }
    return seeOther(location, [flashCookie(flash)])
  }

  const routes = new Elysia({ strictPath: true, normalize: false }).use(staticRoutes(consoleFiles))

  // Beginning a session

  routes.get('/admin/login', async ({ request }) => {
    if (await visitOf(ports, request)) return seeOther('/admin')
    if (passwordHash === undefined) throw new Failure('route_not_found')
    return html(loginPage({ problem: null }))
  })
  routes.post('/admin/login', async ({ request, body }) => {
    if (passwordHash === undefined) throw new Failure('route_not_found')
    if (isFromElsewhere(request)) throw new Failure('forbidden', 'another site has sent this form')
    const password = (body as URLSearchParams).get('password') ?? ''
    try {
      const token = await enterByPassword(ports, exchanges.of(request), password, passwordHash)
      if (token !== undefined) return seeOther('/admin', [sessionCookie(request, publicUrl, token)])
      settings.log.warn({ requestId: exchanges.of(request).requestId }, 'a wrong password for the console')
      return html(loginPage({ problem: 'That is not the password.' }), 401)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      const { status, headers } = errorAnswer(error, '')
      const minutes = Math.ceil((error.details.retryAfterSeconds ?? 0) / 60)
      const words =
        error.kind === 'rate_limited'
          ? `Too many tries. Wait ${minutes === 1 ? 'a minute' : `${minutes} minutes`}, or use a link of otpost admin link.`
          : error.message
      const answer = html(loginPage({ problem: words }), status)
      for (const [name, value] of Object.entries(headers)) answer.headers.set(name, value)
      return answer
    }
  })
  routes.get('/admin/link', async () => {
    if (passwordHash === undefined && !(await ports.sessions.hasLink(ports.now()))) {
      throw new Failure('route_not_found')
    }
    return html(linkPage())
  })
  routes.post('/admin/link', async ({ request, body }) => {
    if (isFromElsewhere(request)) throw new Failure('forbidden', 'another site has sent this form')
    const token = await enterByLink(ports, (body as URLSearchParams).get('token') ?? '')
    if (token !== undefined) return seeOther('/admin', [sessionCookie(request, publicUrl, token)])
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
      return passwordHash === undefined
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

  // What is going on

  routes.get(
    '/admin',
    page(async ({ url }, shell) => {
      const period = periods.find((known) => known === url.searchParams.get('period')) ?? 'day'
      const { now } = shell
      const [statistics, hour] = await Promise.all([
        ports.journal.statistics(period, now),
        ports.journal.statistics('hour', now),
      ])
      const providers = ports.providerStates().map((state): ProviderHealth => {
        const {
          accepted = 0,
          failed = 0,
          unknown = 0,
        } = hour.byWay.find(({ name }) => name === wayName(state.channel, state.name)) ?? {}
        return { ...state, lastHour: { accepted, failed, unknown } }
      })
      return html(overviewPage(shell, { statistics, limited: ports.limited.list(now), providers }))
    }),
  )

  // Integration requests

  routes.get(
    '/admin/requests',
    page(async ({ request }, shell) => {
      const all = await ports.requests.list()
      const pending = all.filter(({ status }) => status === 'pending').reverse()
      const decided = all.filter(({ status }) => status !== 'pending')
      return html(requestsPage(shell, { pending, decided, origin: originOf(request) }))
    }),
  )
  routes.get(
    '/admin/requests/:id',
    page(async ({ params }, shell) => requestForm(shell, params.id)),
  )
  routes.post(
    '/admin/requests/:id/approve',
    page(async ({ request, visit, form, params: { id = '' }, by }, shell) => {
      const asked = { appId: field(form, 'appId'), brandSlug: field(form, 'brandSlug') }
      return orAgain(
        async () => {
          const { key, brand, brandExisted } = await approveRequest(by, id, asked)
          const text = `The brand ${brand.slug} was there already, and was left as it was.`
          // There is one request less to decide than before.
          const after = await shellOf(request, visit, brandExisted ? { tone: 'good', text } : null)
          return keyShown(request, after, { appId: asked.appId, apiKey: key, brandSlug: brand.slug })
        },
        (text) => requestForm(shell, id, { ...asked, problem: text }),
      )
    }),
  )
  routes.post(
    '/admin/requests/:id/reject',
    page(async ({ form, params: { id = '' }, by }, shell) =>
      orAgain(
        async () => {
          await rejectRequest(by, id, field(form, 'reason'))
          return done('/admin/requests', 'The request is rejected.')
        },
        (text) => requestForm(shell, id, { reason: field(form, 'reason'), problem: text }),
      ),
    ),
  )

  async function requestForm(
    shell: Shell,
    id = '',
    entered: { appId?: string; brandSlug?: string; reason?: string; problem?: string } = {},
  ): Promise<Response> {
    const request = await ports.requests.get(id)
    if (!request) return missing(shell, 'There is no such request')
    const { appId, brandSlug, reason = '', problem: text = null } = entered
    const model = {
      request,
      appId: appId ?? suggestedSlug(request.companyName),
      brandSlug: brandSlug ?? suggestedSlug(request.brandName),
      reason,
      problem: text,
    }
    return html(requestPage(shell, model), text === null ? 200 : 409)
  }

  async function keyShown(
    request: Request,
    shell: Shell,
    key: { appId: string; apiKey: string; brandSlug: string | null },
  ): Promise<Response> {
    const app = (await ports.apps.list()).find(({ appId }) => appId === key.appId)
    const live = app?.keys.filter(({ revokedAt }) => revokedAt === null) ?? []
    return html(keyPage(shell, { ...key, hasOther: live.length > 1, origin: originOf(request) }))
  }

  // Brands

  routes.get(
    '/admin/brands',
    page(async (_, shell) => html(brandsPage(shell, { brands: await ports.brands.list() }))),
  )
  routes.get(
    '/admin/brands/new',
    page((_, shell) => brandForm(shell, null, emptyBrand)),
  )
  routes.post(
    '/admin/brands',
    page(async ({ form, by }, shell) => {
      const asked = brandAsked(form, field(form, 'slug'))
      return orAgain(
        async () => {
          const { slug } = await putBrand(by, asked.slug, changeOf(asked), { mustBeNew: true })
          return done(`/admin/brands/${slug}`, `The brand ${slug} is made, and active.`)
        },
        (text) => brandForm(shell, null, asked, text),
      )
    }),
  )
  routes.get(
    '/admin/brands/:slug',
    page(async ({ params: { slug = '' } }, shell) => {
      const brand = await ports.brands.bySlug(slug)
      return brand ? brandForm(shell, brand, formOf(brand)) : missing(shell, 'There is no such brand')
    }),
  )
  routes.post(
    '/admin/brands/:slug',
    page(async ({ form, params: { slug = '' }, by }, shell) => {
      const brand = await ports.brands.bySlug(slug)
      if (!brand) return missing(shell, 'There is no such brand')
      const asked = brandAsked(form, slug)
      return orAgain(
        async () => {
          await putBrand(by, slug, changeOf(asked))
          return done(`/admin/brands/${slug}`, 'Saved. It holds for the next request.')
        },
        (text) => brandForm(shell, brand, asked, text),
      )
    }),
  )
  routes.post(
    '/admin/brands/:slug/status',
    page(async ({ form, params: { slug = '' }, by }) => {
      const { status } = await setBrandStatus(by, slug, brandStatus(field(form, 'status')))
      return done(`/admin/brands/${slug}`, `${slug} is ${status}.`)
    }),
  )
  routes.post(
    '/admin/brands/:slug/templates/:key',
    page(async ({ form, params: { slug = '', key = '' }, by }) => {
      await registerTemplate(by, slug, key, form.get('remove') ? null : registrationAsked(form), {
        replaces: true,
      })
      return done(
        `/admin/brands/${slug}`,
        `The registration of ${key} is ${form.get('remove') ? 'removed' : 'saved'}.`,
      )
    }),
  )
  routes.post(
    '/admin/preview',
    page(({ form }, shell) => {
      const template = templateOf(field(form, 'templateKey'))
      if (!template) return missing(shell, 'There is no such template')
      const brand: Brand = { ...blankBrand, ...changeOf(brandAsked(form, 'preview')) }
      const values = Object.fromEntries(
        [...form].flatMap(([name, value]) => (name.startsWith('var.') ? [[name.slice(4), value]] : [])),
      )
      return html(previewFragment(previewOf(brand, template, values, settings)))
    }),
  )

  function brandForm(shell: Shell, brand: Brand | null, form: BrandForm, text?: string): Response {
    const shown: Brand = brand ?? { ...blankBrand, displayName: form.displayName || 'Your brand' }
    const model = {
      brand,
      form,
      problems: text?.split('\n') ?? [],
      nextStatuses: brandStatuses.filter((status: BrandStatus) => brand && mayBecome(brand.status, status)),
      previews: previewsOf(shown, settings),
      providers: settings.providerNames,
    }
    return html(brandPage(shell, model), text === undefined ? 200 : 409)
  }

  function registrationAsked(form: URLSearchParams): TemplateRegistration {
    const ids: Record<string, string> = {}
    for (const line of field(form, 'ids').split(/[\r\n]+/)) {
      if (line.trim() === '') continue
      const [name = '', id = ''] = line.split('=').map((part) => part.trim())
      if (!settings.providerNames.includes(name) || id === '') {
        throw new OperatorError(
          `"${line.trim()}" is no provider and id: write one of ${settings.providerNames.join(', ')}, then = and the id`,
        )
      }
      ids[name] = id
    }
    return { id: field(form, 'id') || null, ids, senderId: field(form, 'senderId') || null }
  }

  // Applications

  routes.get(
    '/admin/apps',
    page((_, shell) => appsShown(shell)),
  )
  routes.post(
    '/admin/apps/issue',
    page(async ({ request, form, by }, shell) => {
      const appId = field(form, 'appId')
      return orAgain(
        async () => keyShown(request, shell, { appId, apiKey: await issueApp(by, appId), brandSlug: null }),
        (text) => appsShown(shell, { appId, problem: text }),
      )
    }),
  )
  routes.post(
    '/admin/apps/rotate',
    page(async ({ request, form, by }, shell) => {
      const appId = field(form, 'appId')
      return orAgain(
        async () => keyShown(request, shell, { appId, apiKey: await rotateApp(by, appId), brandSlug: null }),
        (text) => appsShown(shell, { problem: text }),
      )
    }),
  )
  routes.post(
    '/admin/apps/revoke-key',
    page(async ({ form, by }) => {
      const [appId, key] = [field(form, 'appId'), field(form, 'key')]
      await revokeKey(by, appId, key)
      return done('/admin/apps', `The key …${key} of ${appId} is revoked.`)
    }),
  )
  routes.post(
    '/admin/apps/revoke',
    page(async ({ form, by }) => {
      const appId = field(form, 'appId')
      await revokeApp(by, appId)
      return done('/admin/apps', `${appId} is revoked.`)
    }),
  )

  async function appsShown(
    shell: Shell,
    { appId = '', problem: text = null }: { appId?: string; problem?: string | null } = {},
  ): Promise<Response> {
    const model = { apps: await ports.apps.list(), configured: ports.apps.configured, appId, problem: text }
    return html(appsPage(shell, model), text === null ? 200 : 409)
  }

  // Deliveries

  routes.get(
    '/admin/deliveries',
    page(async ({ url }, shell) => {
      const { searchParams } = url
      const requestId = searchParams.get('request')
      const hashes = searchParams.get('recipient')?.split('.') ?? []
      const before = cursorOf(searchParams.get('before'))
      const rows = await ports.journal.deliveries({
        ...(requestId === null ? {} : { requestId }),
        ...(hashes.length === 0 ? {} : { recipientSubjects: hashes }),
        ...(before ? { before } : {}),
        limit: pageLength + 1,
      })
      // The journal tells the oldest first, and one more than is shown.
      const latest = [...rows].reverse()
      const shown = latest.slice(0, pageLength)
      const last = latest.length > pageLength ? shown.at(-1) : undefined
      const masked = shown[0]?.recipient ?? 'this recipient'
      const recipient = hashes.length === 0 ? null : { hash: hashes.join('.'), masked }
      return html(
        deliveriesPage(shell, {
          rows: shown,
          search: { requestId, recipient },
          next: last ? `${last.requestId}.${last.attempt}` : null,
          isLater: before !== undefined,
          problem: null,
        }),
      )
    }),
  )
  routes.post(
    '/admin/deliveries/search',
    page(async ({ form }, shell) => {
      const q = field(form, 'q')
      if (q === '') return seeOther('/admin/deliveries')
      if (uuid.test(q)) return seeOther(`/admin/deliveries?request=${q.toLowerCase()}`)
      const recipient = phone(q, settings.nationalize) ?? email(q)
      if (!recipient) {
        const search = { requestId: null, recipient: null }
        const text = 'Search for a request id, a phone number or a mail address.'
        return html(
          deliveriesPage(shell, { rows: [], search, next: null, isLater: false, problem: text }),
          400,
        )
      }
      // No recipient is in a URL, nor in the logs of those who see it: what stands for it in the store is.
      const subjects = ports.secrets.subjects(recipient.channel, recipient.identity)
      const hashes = subjects.map((subject) => subject.slice(0, hashLength)).join('.')
      return seeOther(`/admin/deliveries?recipient=${hashes}`)
    }),
  )
  routes.get(
    '/admin/deliveries/:requestId',
    page(async ({ params: { requestId = '' } }, shell) => {
      const [story, deliveries] = await Promise.all([
        ports.journal.story(requestId),
        ports.journal.deliveries({ requestId, limit: 1000 }),
      ])
      if (!story) {
        return missing(
          shell,
          'Nothing is known of this request',
          'Requests are kept that came with right credentials, for as long as DELIVERY_LOG_DAYS says.',
        )
      }
      return html(storyPage(shell, { story, deliveries, lines: explain(story, deliveries) }))
    }),
  )

  // What was changed, and how this server is set

  routes.get(
    '/admin/audit',
    page(async ({ url }, shell) => {
      const text = url.searchParams.get('before')
      const before = text !== null && /^[1-9][0-9]{0,14}$/.test(text) ? { before: Number(text) } : {}
      const records = await ports.audit.list({ ...before, limit: pageLength + 1 })
      const shown = records.slice(0, pageLength)
      const next = records.length > pageLength ? (shown.at(-1)?.id ?? null) : null
      return html(auditPage(shell, { records: shown, next }))
    }),
  )
  routes.get(
    '/admin/settings',
    page(async ({ visit }, shell) => {
      const sessions = (await ports.sessions.list(shell.now)).map((session) => ({
        id: sessionId(session),
        startedAt: session.startedAt,
        lastSeenAt: session.lastSeenAt,
        expiresAt: session.expiresAt,
        by: session.by,
        isOwn: session.tokenSha256 === visit.session.tokenSha256,
      }))
      const { inForce, databaseFile, bun } = settings
      return html(settingsPage(shell, { settings: inForce, sessions, databaseFile, bun }))
    }),
  )
  routes.post(
    '/admin/sessions/:id/revoke',
    page(async ({ visit, params: { id = '' } }, shell) => {
      if (!(await endSession(ports, visit.session, id))) return missing(shell, 'There is no such session')
      return done('/admin/settings', `The session ${id} is ended.`)
    }),
  )
  routes.get(
    '/admin/*',
    page((_, shell) => missing(shell, 'There is no such page')),
  )

  /** Where applications reach this server. */
  function originOf(request: Request): string {
    return publicUrl ?? urlOf(request).origin
  }

  function missing(shell: Shell, title: string, text = 'It may be gone, or the address is wrong.'): Response {
    return problem(shell, 404, title, { text })
  }

  return routes
}

/** Does what a form asks for; where that can not be done, the form is shown again with the reason. */
async function orAgain(
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

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** How much of a keyed hash the journal keeps. */
const hashLength = 22

function cursorOf(text: string | null): { requestId: string; attempt: number } | undefined {
  const [, requestId = '', attempt = ''] = /^([0-9a-f-]{36})\.([0-9]{1,6})$/.exec(text ?? '') ?? []
  return requestId === '' ? undefined : { requestId, attempt: Number(attempt) }
}

const blankBrand: Brand = {
  slug: 'preview',
  displayName: '',
  status: 'active',
  notifyTemplates: [],
  dltEnabled: false,
  loginIdEnabled: true,
  domain: null,
  entityId: null,
  registrations: {},
}

const emptyBrand: BrandForm = {
  slug: '',
  displayName: '',
  notifyTemplates: [],
  dltEnabled: false,
  loginIdEnabled: false,
  domain: '',
  entityId: '',
}

function formOf(brand: Brand): BrandForm {
  return { ...brand, domain: brand.domain ?? '', entityId: brand.entityId ?? '' }
}

/** A brand as a form gives it: what is not ticked is not sent. */
function brandAsked(form: URLSearchParams, slug: string): BrandForm {
  return {
    slug,
    displayName: field(form, 'displayName'),
    notifyTemplates: form.getAll('notifyTemplates'),
    dltEnabled: form.has('dltEnabled'),
    loginIdEnabled: form.has('loginIdEnabled'),
    domain: field(form, 'domain').toLowerCase(),
    entityId: field(form, 'entityId'),
  }
}

function changeOf({ slug: _, domain, entityId, ...rest }: BrandForm) {
  return { ...rest, domain: domain || null, entityId: entityId || null }
}

function field(form: URLSearchParams, name: string): string {
  return (form.get(name) ?? '').trim()
}

/** The address that a browser asked for; Bun gives a path alone where the Host is odd. */
function urlOf({ url }: Request): URL {
  return new URL(url, 'http://localhost')
}

function seeOther(location: string, cookies: readonly string[] = []): Response {
  return withCookies(new Response(null, { status: 303, headers: { location, ...pageHeaders } }), cookies)
}

function html(page: string, status = 200, cookies: readonly string[] = []): Response {
  const headers = { 'content-type': 'text/html; charset=utf-8', ...pageHeaders }
  return withCookies(new Response(page, { status, headers }), cookies)
}

/** What a page shows is for the eyes of whoever is signed in, and for no cache. */
const pageHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': consolePolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}

function withCookies(response: Response, cookies: readonly string[]): Response {
  for (const cookie of cookies) response.headers.append('set-cookie', cookie)
  return response
}
