import type { Actor } from '../../../domain/ground/audit.ts'
import { OperatorError } from '../../../domain/ground/operator-error.ts'
import {
  type ApprovalLimits,
  changesAfterApproval,
  noApprovalLimits,
  resemblances,
  setLimits,
} from '../../../domain/operator/approval-limits.ts'
import {
  checkRequestMail,
  defaultRequestMail,
  lastRequestMail,
  type RequestMail,
} from '../../../domain/operator/request-mail.ts'
import { approveRequest, rejectRequest, suggestedSlug } from '../../../domain/operator/requests.ts'
import { done, html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler, pageLength } from '../page-handler.ts'
import {
  type ChosenMail,
  type RequestMailModel,
  type RequestModel,
  requestPage,
  requestsPage,
} from './page.tsx'

export function requestRoutes({
  get,
  post,
  ports,
  pageContextOf,
  actionPorts,
  showKey,
  settings,
  missing,
  contextOf,
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
  post('/admin/requests/:id/approve', async ({ visit, request, form, params, by }, pageContext) => {
    const { id = '' } = params
    const asked = { appId: field(form, 'appId'), brandSlug: field(form, 'brandSlug') }
    const limits = {
      perMinute: field(form, 'perMinute'),
      countries: field(form, 'countries'),
      budget: field(form, 'budget'),
      period: field(form, 'period'),
    }
    const mail = mailIn(form)
    return orAgain(
      async () => {
        if (mail.isChosen) checkRequestMail(mail)
        const known = await ports.brands.list()
        const changes = changesAfterApproval(limits, asked, known, settings.numbers.isCountry)
        const { key, brand, brandExisted } = await approveRequest(by, id, asked)
        const unset = await setLimits(actionPorts(by), changes)
        const sent = mail.isChosen ? await mailed(request, by.actor, id, mail) : null
        const existed = `The brand ${brand.slug} already existed and was not changed. Its status is ${brand.status}.`
        const notes = [brandExisted && existed, unset, sent?.isSent && sent.text].filter(Boolean)
        const tone = brand.status === 'active' && !unset ? 'good' : 'bad'
        const after = await pageContextOf(visit, notes.length > 0 ? { tone, text: notes.join(' ') } : null)
        const failed = sent && !sent.isSent ? await mailModel(id, mail, sent.text) : null
        return showKey(after, { appId: asked.appId, apiKey: key, brandSlug: brand.slug, mail: failed })
      },
      (text) => requestForm(pageContext, id, { ...asked, limits, mails: { approved: mail }, problem: text }),
    )
  })
  post('/admin/requests/:id/reject', async ({ visit, request, form, params, by }, pageContext) => {
    const { id = '' } = params
    const reason = field(form, 'reason')
    const mail = mailIn(form)
    return orAgain(
      async () => {
        if (mail.isChosen) checkRequestMail(mail)
        await rejectRequest(by, id, reason)
        if (!mail.isChosen) return done(visit, '/admin/requests', 'Rejected the request.')
        const sent = await mailed(request, by.actor, id, mail)
        if (sent.isSent) return done(visit, '/admin/requests', `Rejected the request. ${sent.text}`)
        return requestForm(pageContext, id, { mail, mailProblem: `The request is rejected. ${sent.text}` })
      },
      (text) => requestForm(pageContext, id, { reason, mails: { rejected: mail }, problem: text }),
    )
  })
  post('/admin/requests/:id/mail', async ({ visit, form, params: { id = '' }, by }, pageContext) => {
    const mail = mailIn(form)
    const after = Number(field(form, 'after')) || null
    return orAgain(
      async () => {
        const text = await ports.mailRequester(by.actor, id, mail, after)
        return done(visit, `/admin/requests/${encodeURIComponent(id)}`, text)
      },
      (text) => requestForm(pageContext, id, { mail, mailProblem: text }),
    )
  })

  /** The decision is stored, so nothing is thrown. */
  async function mailed(
    request: Request,
    actor: Actor,
    id: string,
    mail: RequestMail,
  ): Promise<{ readonly isSent: boolean; readonly text: string }> {
    try {
      return { isSent: true, text: await ports.mailRequester(actor, id, mail, null) }
    } catch (error) {
      if (error instanceof OperatorError) return { isSent: false, text: error.message }
      const { requestId } = contextOf(request)
      settings.log.error({ err: error, requestId }, 'an e-mail to a requester failed')
      return {
        isSent: false,
        text: `The e-mail failed. The server log has the cause under the request ID ${requestId}.`,
      }
    }
  }

  async function mailModel(
    id: string,
    mail?: RequestMail,
    problem: string | null = null,
  ): Promise<RequestMailModel | null> {
    const request = await ports.requests.get(id)
    if (!request || request.status === 'pending') return null
    const last = (await lastRequestMail(ports.audit, id)) ?? null
    const { subject, text } = mail ?? defaultRequestMail(request.status, request, settings.ownUrl())
    return { request, mailerName: settings.mailerName, last, problem, subject, text }
  }

  async function requestForm(
    pageContext: PageContext,
    id = '',
    entered: {
      appId?: string
      brandSlug?: string
      limits?: ApprovalLimits
      reason?: string
      mails?: Partial<RequestModel['mails']>
      problem?: string
      /** Of a decided request. */
      mail?: RequestMail
      mailProblem?: string
    } = {},
  ): Promise<Response> {
    const request = await ports.requests.get(id)
    if (!request) return missing(pageContext, 'Request not found')
    const [brands, { currency }] = await Promise.all([ports.brands.list(), ports.priceList()])
    const { appId, brandSlug, reason = '', mails, problem = null, mail, mailProblem = null } = entered
    const defaultMail = (status: 'approved' | 'rejected') =>
      defaultRequestMail(status, request, settings.ownUrl())
    const model = {
      request,
      appId: appId ?? suggestedSlug(request.companyName),
      brandSlug: brandSlug ?? suggestedSlug(request.brandName),
      limits: entered.limits ?? noApprovalLimits,
      currency,
      resemblances: request.status === 'pending' ? resemblances(request, brands) : [],
      reason,
      mails: {
        approved: { ...defaultMail('approved'), isChosen: settings.mailerName !== 'outbox' },
        // Spam gets no answer unless the operator wants one.
        rejected: { ...defaultMail('rejected'), isChosen: false },
        ...mails,
      },
      mailerName: settings.mailerName,
      problem,
      mail: await mailModel(id, mail, mailProblem),
    }
    return html(requestPage(pageContext, model), problem === null && mailProblem === null ? 200 : 409)
  }
}

function mailIn(form: URLSearchParams): ChosenMail {
  return { isChosen: form.has('mail'), subject: field(form, 'subject'), text: field(form, 'text') }
}
