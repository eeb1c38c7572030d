import { resemblances } from '../../../domain/operator/approval-limits.ts'
import type { Entered } from '../../../domain/operator/fields.ts'
import { defaultRequestMail, lastRequestMail } from '../../../domain/operator/request-mail.ts'
import { requestApprove, requestReject, suggestedSlug } from '../../../domain/operator/requests.ts'
import { nameKey } from '../../../domain/texts/brand.ts'
import { done, html } from '../answers.ts'
import type { PageContext } from '../page-context.ts'
import { type PageHandler, pageLength } from '../page-handler.ts'
import { type RequestMailModel, requestPage, requestsPage } from './page.tsx'

export function requestRoutes(handler: PageHandler): void {
  const { get, after, ports, pageContextOf, showKey, settings, missing } = handler
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
  after(requestApprove, async (said, entered, { visit, params: { id = '' } }) => {
    const { secret = '', text, warnings = [], failure } = said
    const notes = [...warnings.map((warning) => warning.text), text].filter(Boolean)
    const tone = warnings.length === 0 ? 'good' : 'bad'
    const around = await pageContextOf(visit, notes.length > 0 ? { tone, text: notes.join(' ') } : null)
    const mail = failure instanceof Error ? await mailModel(id, entered, failure.message) : null
    const brandSlug = nameKey(String(entered.brandSlug))
    return showKey(around, { appId: String(entered.appId), apiKey: secret, brandSlug, mail })
  })
  after(requestReject, ({ warnings = [], failure }, entered, { visit, params: { id } }, pageContext) => {
    if (failure instanceof Error) return requestForm(pageContext, id, entered, failure.message)
    const text = ['Rejected the request.', ...warnings.map((warning) => warning.text)].join(' ')
    return done(visit, '/admin/requests', text)
  })

  async function mailModel(
    id: string,
    entered: Entered = {},
    problem: string | null = null,
  ): Promise<RequestMailModel | null> {
    const request = await ports.requests.get(id)
    if (!request || request.status === 'pending') return null
    const last = (await lastRequestMail(ports.audit, id)) ?? null
    const mail = { ...defaultRequestMail(request.status, request, settings.ownUrl()), ...entered }
    return { request, mailerName: settings.mailerName, last, problem, mail }
  }

  /** @param mailProblem why the e-mail with what was entered was not sent, after the decision */
  async function requestForm(
    pageContext: PageContext,
    id = '',
    entered?: Entered,
    mailProblem: string | null = null,
  ): Promise<Response> {
    const request = await ports.requests.get(id)
    if (!request) return missing(pageContext, 'Request not found')
    const [brands, { currency }] = await Promise.all([ports.brands.list(), ports.priceList()])
    const defaultMail = (status: 'approved' | 'rejected') =>
      defaultRequestMail(status, request, settings.ownUrl())
    const model = {
      request,
      start: { appId: suggestedSlug(request.companyName), brandSlug: suggestedSlug(request.brandName) },
      currency,
      resemblances: request.status === 'pending' ? resemblances(request, brands) : [],
      mails: {
        approved: { ...defaultMail('approved'), mail: settings.mailerName !== 'outbox' },
        // Spam gets no answer unless the operator wants one.
        rejected: { ...defaultMail('rejected'), mail: false },
      },
      mailerName: settings.mailerName,
      mail: await mailModel(id, entered, mailProblem),
    }
    return html(requestPage(pageContext, model), mailProblem === null ? 200 : 409)
  }
}
