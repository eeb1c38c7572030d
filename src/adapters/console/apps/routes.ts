import { type AppScope, unscoped } from '../../../domain/limits/scope.ts'
import { appIssue, appRotate, scopeEntries } from '../../../domain/operator/apps.ts'
import { html } from '../answers.ts'
import type { PageHandler, ShownAfter } from '../page-handler.ts'
import { appScopePage, appsPage } from './page.tsx'

const latestRevocations = 1000

export function appRoutes({ get, after, ports, pageContextOf, showKey, missing }: PageHandler): void {
  get('/admin/apps', async (_, pageContext) => {
    const [apps, { scopes, webhooks }, revocations, brands, failing] = await Promise.all([
      ports.apps.list(),
      ports.policy.rows(),
      ports.audit.list({ actions: ['app.revoked'], limit: latestRevocations }),
      ports.brands.list(),
      ports.events.failing(),
    ])
    const model = {
      apps,
      configured: ports.apps.configured,
      scopeOf: (appId: string) => scopeIn(scopes, appId),
      webhookOf: (appId: string) => {
        const webhook = webhooks.find((each) => each.appId === appId)
        return webhook && { webhook, failing: failing.get(appId) }
      },
      revokerOf: (appId: string) => revocations.find(({ target }) => target === appId)?.actor.name,
      brands,
    }
    return html(appsPage(pageContext, model))
  })
  get('/admin/apps/scope', async ({ url }, pageContext) => {
    const appId = url.searchParams.get('app') ?? ''
    const [apps, { scopes }, brands] = await Promise.all([
      ports.apps.list(),
      ports.policy.rows(),
      ports.brands.list(),
    ])
    const known = [...apps, ...scopes].map((app) => app.appId)
    if (![...known, ...ports.apps.configured].includes(appId)) return missing(pageContext, 'App not found')
    return html(appScopePage(pageContext, { appId, start: scopeEntries(scopeIn(scopes, appId)), brands }))
  })
  const shownKey: ShownAfter = async ({ secret = '', warnings = [] }, { appId }, { visit }) => {
    const [warning] = warnings
    const around = await pageContextOf(visit, warning ? { tone: 'good', text: warning.text } : null)
    return showKey(around, { appId: String(appId), apiKey: secret, brandSlug: null })
  }
  after(appIssue, shownKey)
  after(appRotate, shownKey)
}

function scopeIn(scopes: readonly AppScope[], appId: string): AppScope {
  return scopes.find((scope) => scope.appId === appId) ?? unscoped(appId)
}
