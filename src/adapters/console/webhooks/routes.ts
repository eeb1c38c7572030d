import { eventTypes } from '../../../domain/ground/webhook-events.ts'
import { appWebhook } from '../../../domain/operator/webhooks.ts'
import { done, html } from '../answers.ts'
import type { PageHandler } from '../page-handler.ts'
import { webhookPage, webhookSecretPage } from './page.tsx'

const latestEvents = 20

export function webhookRoutes({ get, after, ports, missing }: PageHandler): void {
  const { apps, events } = ports

  get('/admin/apps/webhook', async ({ url }, pageContext) => {
    const appId = url.searchParams.get('app') ?? ''
    const [issued, { scopes, webhooks }, latest, failing] = await Promise.all([
      apps.list(),
      ports.policy.rows(),
      events.latest(appId, latestEvents),
      events.failing(),
    ])
    const known = [...issued, ...scopes, ...webhooks].map((app) => app.appId)
    if (![...known, ...apps.configured].includes(appId)) return missing(pageContext, 'App not found')
    const webhook = webhooks.find((each) => each.appId === appId) ?? null
    const start = {
      // A query may contain a secret of the receiver.
      url: webhook?.url.includes('?') ? '' : webhook?.url,
      events: webhook?.eventTypes.length ? webhook.eventTypes : eventTypes,
    }
    return html(
      webhookPage(pageContext, { appId, webhook, failing: failing.get(appId), start, events: latest }),
    )
  })
  after(appWebhook, ({ secret, text }, { appId }, { visit }, pageContext) =>
    secret === undefined
      ? done(visit, '/admin/apps', text)
      : html(webhookSecretPage(pageContext, { appId: String(appId), secret })),
  )
}
