import { counted } from '../../../domain/ground/format.ts'
import { cancelJobs, listJobs, retryJobs } from '../../../domain/operator/queue.ts'
import { done, html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageHandler } from '../page-handler.ts'
import { queuePage } from './page.tsx'

export function queueRoutes({ get, post, ports }: PageHandler): void {
  const { jobs, secrets } = ports
  get('/admin/queue', async ({ url }, pageContext) => {
    const appId = url.searchParams.get('app') || undefined
    return html(queuePage(pageContext, { jobs: await listJobs(ports, { appId }), appId }))
  })
  post('/admin/queue/retry', async ({ visit, form, by }) => {
    const includesUnknown = field(form, 'unknown') === 'yes'
    const retried = await retryJobs({ ...by, jobs }, field(form, 'requestId'), { includesUnknown })
    return done(visit, '/admin/queue', `${counted(retried, 'job')} queued again.`)
  })
  post('/admin/queue/cancel', async ({ visit, form, by }) => {
    const cancelled = await cancelJobs({ ...by, secrets, jobs }, field(form, 'requestId'))
    return done(visit, '/admin/queue', `${counted(cancelled, 'job')} cancelled.`)
  })
}
