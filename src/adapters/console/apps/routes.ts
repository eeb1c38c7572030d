import type { EpochMs } from '../../../domain/ground/time.ts'
import { type AppScope, unscoped } from '../../../domain/limits/scope.ts'
import { noTraffic } from '../../../domain/log/app-traffic.ts'
import { appIssue, appRotate } from '../../../domain/operator/apps.ts'
import { html } from '../answers.ts'
import type { PageHandler, ShownAfter } from '../page-handler.ts'
import { appPage, appsPage, type ListedApp } from './page.tsx'

const latestRevocations = 1000

export function appRoutes({
  get,
  after,
  ports,
  settings,
  pageContextOf,
  showKey,
  missing,
}: PageHandler): void {
  get('/admin/apps', async (_, pageContext) => {
    const [{ apps }, brands] = await Promise.all([listedApps(pageContext.now), ports.brands.list()])
    const inOrder = apps.toSorted(
      (one, other) => Number(one.isRevoked) - Number(other.isRevoked) || (one.appId < other.appId ? -1 : 1),
    )
    return html(appsPage(pageContext, { apps: inOrder, brands }))
  })
  get('/admin/apps/app', async ({ url }, pageContext) => {
    const appId = url.searchParams.get('app') ?? ''
    const [{ apps, issued, scopes }, brands, revocations] = await Promise.all([
      listedApps(pageContext.now),
      ports.brands.list(),
      ports.audit.list({ actions: ['app.revoked'], limit: latestRevocations }),
    ])
    const app = apps.find((each) => each.appId === appId)
    if (!app) return missing(pageContext, 'App not found')
    const model = {
      ...app,
      issued: issued.find((each) => each.appId === appId),
      scope: scopeIn(scopes, appId),
      brands,
      revoker: revocations.find(({ target }) => target === appId)?.actor.name,
    }
    return html(appPage(pageContext, model))
  })

  /** Those with a key here, those of APP_CREDENTIALS, and those that have only a scope or a webhook. */
  async function listedApps(now: EpochMs) {
    const [issued, { scopes, webhooks }, traffic, failing] = await Promise.all([
      ports.apps.list(),
      ports.policy.rows(),
      ports.eventLog.appTraffic(now),
      ports.events.failing(),
    ])
    const { configured } = ports.apps
    const ids = new Set([...issued, ...scopes, ...webhooks].map(({ appId }) => appId))
    const apps = [...ids.union(new Set(configured))].map((appId): ListedApp => {
      const app = issued.find((each) => each.appId === appId)
      const isConfigured = configured.includes(appId)
      const webhook = webhooks.find((each) => each.appId === appId)
      const used = app?.keys.toSorted((one, other) => (other.lastUsedAt ?? 0) - (one.lastUsedAt ?? 0))[0]
      return {
        appId,
        isConfigured,
        isRevoked: !isConfigured && app?.revokedAt !== null,
        traffic: traffic.get(appId) ?? noTraffic,
        perMinute: scopeIn(scopes, appId).perMinute ?? settings.limits.globalPerMinute,
        lastUsedAt: used?.lastUsedAt ?? null,
        lastUsedFrom: used?.lastUsedFrom ?? null,
        webhook: webhook && { webhook, failing: failing.get(appId) },
      }
    })
    return { apps, issued, scopes }
  }

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
