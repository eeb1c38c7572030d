import { issueApp, revokeApp, revokeKey, rotateApp } from '../../../domain/operator/operator.ts'
import { done, html } from '../answers.ts'
import type { PageContext } from '../models.ts'
import { field, orAgain, type PageHandler } from '../page-handler.ts'
import { appsPage } from '../pages/apps.tsx'

export function appRoutes({ get, post, ports, showKey }: PageHandler): void {
  get('/admin/apps', (_, pageContext) => appsShown(pageContext))
  post('/admin/apps/issue', async ({ form, by }, pageContext) => {
    const appId = field(form, 'appId')
    return orAgain(
      async () => showKey(pageContext, { appId, apiKey: await issueApp(by, appId), brandSlug: null }),
      (text) => appsShown(pageContext, { appId, problem: text }),
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

  async function appsShown(
    pageContext: PageContext,
    { appId = '', problem: text = null }: { appId?: string; problem?: string | null } = {},
  ): Promise<Response> {
    const model = { apps: await ports.apps.list(), configured: ports.apps.configured, appId, problem: text }
    return html(appsPage(pageContext, model), text === null ? 200 : 409)
  }
}
