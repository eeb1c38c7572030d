import { approveRequest, rejectRequest, suggestedSlug } from '../../../domain/operator/operator.ts'
import { done, html } from '../answers.ts'
import type { PageContext } from '../models.ts'
import { field, orAgain, type PageHandler, pageLength } from '../page-handler.ts'
import { requestPage, requestsPage } from '../pages/requests.tsx'

export function requestRoutes({
  get,
  post,
  ports,
  pageContextOf,
  showKey,
  settings,
  missing,
}: PageHandler): void {
  get('/admin/requests', async ({ url }, pageContext) => {
    const number = Number(/^[1-9][0-9]{0,5}$/.exec(url.searchParams.get('page') ?? '')?.[0] ?? 1)
    const query = { limit: pageLength + 1, offset: (number - 1) * pageLength }
    const [pending, decided] = await Promise.all([
      ports.requests.list({ isPending: true, ...query }),
      ports.requests.list({ isPending: false, ...query }),
    ])
    const hasMore = Math.max(pending.length, decided.length) > pageLength
    const model = {
      pending: pending.slice(0, pageLength),
      decided: decided.slice(0, pageLength),
      origin: settings.ownUrl(),
      isLater: number > 1,
      next: hasMore ? number + 1 : null,
    }
    return html(requestsPage(pageContext, model))
  })
  get('/admin/requests/:id', async ({ params }, pageContext) => requestForm(pageContext, params.id))
  post('/admin/requests/:id/approve', async ({ visit, form, params: { id = '' }, by }, pageContext) => {
    const asked = { appId: field(form, 'appId'), brandSlug: field(form, 'brandSlug') }
    return orAgain(
      async () => {
        const { key, brand, brandExisted } = await approveRequest(by, id, asked)
        const text = `The brand ${brand.slug} already existed and was not changed. Its status is ${brand.status}.`
        const tone = brand.status === 'active' ? 'good' : 'bad'
        const after = await pageContextOf(visit, brandExisted ? { tone, text } : null)
        return showKey(after, { appId: asked.appId, apiKey: key, brandSlug: brand.slug })
      },
      (text) => requestForm(pageContext, id, { ...asked, problem: text }),
    )
  })
  post('/admin/requests/:id/reject', async ({ visit, form, params: { id = '' }, by }, pageContext) =>
    orAgain(
      async () => {
        await rejectRequest(by, id, field(form, 'reason'))
        return done(visit, '/admin/requests', 'Rejected the request.')
      },
      (text) => requestForm(pageContext, id, { reason: field(form, 'reason'), problem: text }),
    ),
  )

  async function requestForm(
    pageContext: PageContext,
    id = '',
    entered: { appId?: string; brandSlug?: string; reason?: string; problem?: string } = {},
  ): Promise<Response> {
    const request = await ports.requests.get(id)
    if (!request) return missing(pageContext, 'Request not found')
    const { appId, brandSlug, reason = '', problem: text = null } = entered
    const model = {
      request,
      appId: appId ?? suggestedSlug(request.companyName),
      brandSlug: brandSlug ?? suggestedSlug(request.brandName),
      reason,
      problem: text,
    }
    return html(requestPage(pageContext, model), text === null ? 200 : 409)
  }
}
