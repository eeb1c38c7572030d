import { explain } from '../../../domain/events/explain.ts'
import { isRequestId } from '../../../domain/events/request-context.ts'
import { html, seeOther } from '../answers.ts'
import { field, type PageHandler, pageLength } from '../page-handler.ts'
import { deliveriesPage, tracePage } from '../pages/deliveries.tsx'

export function deliveryRoutes({ get, post, ports, settings, missing }: PageHandler): void {
  get('/admin/deliveries', async ({ url }, pageContext) => {
    const { searchParams } = url
    const requestId = searchParams.get('request')
    const hashes = searchParams.get('recipient')?.split('.') ?? []
    const before = cursorOf(searchParams.get('before'))
    const rows = await ports.eventLog.deliveries({
      ...(requestId === null ? {} : { requestId }),
      ...(hashes.length === 0 ? {} : { recipientSubjects: hashes }),
      ...(before ? { before } : {}),
      limit: pageLength + 1,
    })
    // Rows come oldest first, with one more than the page shows.
    const latest = [...rows].reverse()
    const shown = latest.slice(0, pageLength)
    const last = latest.length > pageLength ? shown.at(-1) : undefined
    const masked = shown[0]?.recipient ?? 'this recipient'
    const recipient = hashes.length === 0 ? null : { hash: hashes.join('.'), masked }
    return html(
      deliveriesPage(pageContext, {
        rows: shown,
        search: { requestId, recipient },
        next: last ? `${last.requestId}.${last.attempt}` : null,
        isLater: before !== undefined,
        problem: null,
      }),
    )
  })
  post('/admin/deliveries/search', async ({ form }, pageContext) => {
    const q = field(form, 'q')
    if (q === '') return seeOther('/admin/deliveries')
    const requestId = q.toLowerCase()
    if (isRequestId(requestId)) return seeOther(`/admin/deliveries?request=${requestId}`)
    const recipient = settings.contacts.phone(q) ?? settings.contacts.email(q)
    if (!recipient) {
      const search = { requestId: null, recipient: null }
      const text = 'Enter a request ID, a phone number or an e-mail address.'
      return html(
        deliveriesPage(pageContext, { rows: [], search, next: null, isLater: false, problem: text }),
        400,
      )
    }
    // Hashed, since proxies log URLs.
    const subjects = ports.secrets.subjects(recipient.channel, recipient.identity)
    const hashes = subjects.join('.')
    return seeOther(`/admin/deliveries?recipient=${hashes}`)
  })
  get('/admin/deliveries/:requestId', async ({ params: { requestId = '' } }, pageContext) => {
    const [trace, deliveries, jobs] = await Promise.all([
      ports.eventLog.trace(requestId),
      ports.eventLog.deliveries({ requestId, limit: 1000 }),
      ports.jobs.ofRequest(requestId),
    ])
    if (!trace) {
      return missing(
        pageContext,
        'Request not found',
        'The event log has requests with valid credentials from the last `DELIVERY_LOG_DAYS` days.',
      )
    }
    return html(tracePage(pageContext, { trace, deliveries, lines: explain(trace, deliveries, jobs) }))
  })
}

function cursorOf(text: string | null): { requestId: string; attempt: number } | undefined {
  const [, requestId = '', attempt = ''] = /^([0-9a-f-]{36})\.([0-9]{1,7})$/.exec(text ?? '') ?? []
  return requestId === '' ? undefined : { requestId, attempt: Number(attempt) }
}
