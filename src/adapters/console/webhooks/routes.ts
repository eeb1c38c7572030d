import { OperatorError } from '../../../domain/ground/operator-error.ts'
import { eventTypes } from '../../../domain/ground/webhook-events.ts'
import {
  removeWebhook,
  sendEventAgain,
  sendTestEvent,
  setWebhook,
} from '../../../domain/operator/webhooks.ts'
import { done, html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler } from '../page-handler.ts'
import { type WebhookModel, webhookPage, webhookPath, webhookSecretPage } from './page.tsx'

const latestEvents = 20

export function webhookRoutes({ get, post, ports, settings, missing }: PageHandler): void {
  const { apps, secrets, events } = ports

  get('/admin/apps/webhook', ({ url }, pageContext) => shown(pageContext, url.searchParams.get('app') ?? ''))
  post('/admin/apps/webhook', async ({ form, by }, pageContext) => {
    const appId = field(form, 'appId')
    const asked = { url: field(form, 'url'), eventTypes: form.getAll('events') }
    return orAgain(
      async () => {
        if (asked.eventTypes.length === 0) throw new OperatorError('Select at least one event.')
        const request = { appId, url: asked.url, eventTypes: withoutAll(asked.eventTypes) }
        const { webhook } = await setWebhook({ ...by, ...settings, apps, secrets }, request)
        return html(webhookSecretPage(pageContext, webhook))
      },
      (text) => shown(pageContext, appId, { form: asked, problem: text }),
    )
  })
  post('/admin/apps/webhook/off', async ({ visit, form, by }) => {
    const { appId } = await removeWebhook(by, field(form, 'appId'))
    return done(visit, '/admin/apps', `The webhook of ${appId} is ended.`)
  })
  post('/admin/apps/webhook/test', async ({ visit, form, by }) => {
    const appId = field(form, 'appId')
    await sendTestEvent({ ...by, events, secrets }, appId)
    return done(visit, webhookPath(appId), 'A test event is sent. Reload the page to see the answer.')
  })
  post('/admin/apps/webhook/resend', async ({ visit, form, by }) => {
    const [appId, id] = [field(form, 'appId'), field(form, 'id')]
    await sendEventAgain({ ...by, events }, { appId, id })
    return done(visit, webhookPath(appId), 'The event is sent again. Reload the page to see the answer.')
  })

  async function shown(
    pageContext: PageContext,
    appId: string,
    entered: Partial<Pick<WebhookModel, 'form' | 'problem'>> = {},
  ): Promise<Response> {
    const [issued, { scopes, webhooks }, latest] = await Promise.all([
      apps.list(),
      ports.policy.rows(),
      events.latest(appId, latestEvents),
    ])
    const known = [...issued, ...scopes, ...webhooks].map((app) => app.appId)
    if (![...known, ...apps.configured].includes(appId)) return missing(pageContext, 'App not found')
    const webhook = webhooks.find((each) => each.appId === appId) ?? null
    const form = {
      // A query may contain a secret of the receiver.
      url: webhook?.url.includes('?') ? '' : (webhook?.url ?? ''),
      eventTypes: webhook?.eventTypes.length ? webhook.eventTypes : eventTypes,
    }
    const model = { appId, webhook, form, events: latest, problem: null, ...entered }
    return html(webhookPage(pageContext, model), model.problem === null ? 200 : 409)
  }
}

/** Every event is selected: also those of later versions. */
function withoutAll(names: readonly string[]): readonly string[] {
  return eventTypes.every((type) => names.includes(type)) ? [] : names
}
