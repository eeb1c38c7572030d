import { OperatorError } from '../../../domain/ground/operator-error.ts'
import { type AppScope, appOperations, operationsOf, unscoped } from '../../../domain/limits/scope.ts'
import {
  issueApp,
  revokeApp,
  revokeKey,
  rotateApp,
  type ScopeChange,
  scopeSentence,
  setApp,
} from '../../../domain/operator/apps.ts'
import { done, html } from '../answers.ts'
import { field, shownIn } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler } from '../page-handler.ts'
import { appScopePage, appsPage, type ScopeForm, type ScopeModel } from './page.tsx'

const latestRevocations = 1000

export function appRoutes({ get, post, ports, pageContextOf, showKey, missing }: PageHandler): void {
  get('/admin/apps', (_, pageContext) => appsShown(pageContext))
  get('/admin/apps/scope', ({ url }, pageContext) =>
    scopeShown(pageContext, url.searchParams.get('app') ?? ''),
  )
  post('/admin/apps/scope', async ({ visit, form, by }, pageContext) => {
    const appId = field(form, 'appId')
    return orAgain(
      async () => {
        const scope = await setApp(by, appId, scopeChange(form), ports.apps.configured)
        return done(visit, '/admin/apps', `Saved. Takes effect immediately. ${scopeSentence(scope)}`)
      },
      (text) => scopeShown(pageContext, appId, { form, problem: text }),
    )
  })
  post('/admin/apps/issue', async ({ visit, form, by }, pageContext) => {
    const appId = field(form, 'appId')
    return orAgain(
      async () => {
        const { key, scope, hadScope } = await issueApp(by, appId, scopeChange(form))
        const text = `${appId} had a scope before. ${scopeSentence(scope)}`
        const after = await pageContextOf(visit, hadScope ? { tone: 'good', text } : null)
        return showKey(after, { appId, apiKey: key, brandSlug: null })
      },
      (text) => appsShown(pageContext, { appId, form, problem: text }),
    )
  })
  post('/admin/apps/rotate', async ({ form, by }, pageContext) => {
    const appId = field(form, 'appId')
    return orAgain(
      async () => showKey(pageContext, { appId, apiKey: await rotateApp(by, appId), brandSlug: null }),
      (text) => appsShown(pageContext, { problem: text }),
    )
  })
  post('/admin/apps/revoke-key', async ({ visit, form, by }) => {
    const [appId, key] = [field(form, 'appId'), field(form, 'key')]
    await revokeKey(by, appId, key)
    return done(visit, '/admin/apps', `Revoked the key …${key} of ${appId}.`)
  })
  post('/admin/apps/revoke', async ({ visit, form, by }) => {
    const appId = field(form, 'appId')
    const warning = await revokeApp(by, appId, ports.apps.configured)
    return done(visit, '/admin/apps', [`Revoked ${appId}.`, warning].filter(Boolean).join(' '))
  })

  interface Entered {
    readonly appId?: string
    readonly form?: URLSearchParams
    readonly problem?: string | null
  }

  async function appsShown(
    pageContext: PageContext,
    { appId = '', form, problem: text = null }: Entered = {},
  ): Promise<Response> {
    const [apps, { scopes, webhooks }, revocations] = await Promise.all([
      ports.apps.list(),
      ports.policy.rows(),
      ports.audit.list({ actions: ['app.revoked'], limit: latestRevocations }),
    ])
    const model = {
      apps,
      configured: ports.apps.configured,
      scopeOf: (appId: string) => scopeIn(scopes, appId),
      webhookOf: (appId: string) => webhooks.find((webhook) => webhook.appId === appId),
      revokerOf: (appId: string) => revocations.find(({ target }) => target === appId)?.actor.name,
      appId,
      scope: await scopeModel(unscoped(appId), form),
      problem: text,
    }
    return html(appsPage(pageContext, model), text === null ? 200 : 409)
  }

  async function scopeShown(
    pageContext: PageContext,
    appId: string,
    { form, problem: text = null }: Entered = {},
  ): Promise<Response> {
    const [apps, { scopes }] = await Promise.all([ports.apps.list(), ports.policy.rows()])
    const known = [...apps, ...scopes].map((app) => app.appId)
    if (![...known, ...ports.apps.configured].includes(appId)) return missing(pageContext, 'App not found')
    const scope = await scopeModel(scopeIn(scopes, appId), form)
    return html(appScopePage(pageContext, { appId, scope, problem: text }), text === null ? 200 : 409)
  }

  async function scopeModel(scope: AppScope, form: URLSearchParams | undefined): Promise<ScopeModel> {
    const current = formOf(scope)
    return {
      form: form?.has('was') ? scopeAsked(form) : current,
      was: form?.get('was') ?? JSON.stringify(current),
      brands: await ports.brands.list(),
    }
  }
}

function scopeIn(scopes: readonly AppScope[], appId: string): AppScope {
  return scopes.find((scope) => scope.appId === appId) ?? unscoped(appId)
}

function formOf(scope: AppScope): ScopeForm {
  const { brands, perMinute } = scope
  return {
    anyBrand: brands.length === 0,
    brands,
    operations: operationsOf(scope),
    perMinute: perMinute === null ? '' : String(perMinute),
  }
}

function scopeAsked(form: URLSearchParams): ScopeForm {
  return {
    anyBrand: form.has('anyBrand'),
    brands: form.getAll('brands'),
    operations: form.getAll('operations'),
    perMinute: field(form, 'perMinute'),
  }
}

/** Only the fields changed in this form, so that a concurrent change of other fields is kept. */
function scopeChange(form: URLSearchParams): ScopeChange {
  if (!form.has('was')) return {}
  const asked = scopeAsked(form)
  const shown = shownIn<ScopeForm>(form)
  const isSame = (...fields: (keyof ScopeForm)[]) =>
    fields.every((name) => JSON.stringify(asked[name]) === JSON.stringify(shown[name]))
  return {
    brands: isSame('anyBrand', 'brands') ? undefined : brandsAsked(asked),
    operations: isSame('operations')
      ? undefined
      : appOperations.filter((operation) => asked.operations.includes(operation)),
    perMinute: isSame('perMinute') ? undefined : perMinuteAsked(asked),
  }
}

/** No selected brand must not mean every brand, which would give the app more than before. */
function brandsAsked({ anyBrand, brands }: ScopeForm): readonly string[] {
  if (anyBrand === brands.length > 0) throw new OperatorError('Select either every brand or single brands.')
  return brands
}

function perMinuteAsked({ perMinute }: ScopeForm): number | null {
  return perMinute === '' ? null : Number(perMinute)
}
