import { listJobs } from '../../../domain/operator/queue.ts'
import { html } from '../answers.ts'
import type { PageHandler } from '../page-handler.ts'
import { queuePage } from './page.tsx'

export function queueRoutes({ get, ports }: PageHandler): void {
  get('/admin/queue', async ({ url }, pageContext) => {
    const appId = url.searchParams.get('app') || undefined
    return html(queuePage(pageContext, { jobs: await listJobs(ports, { appId }), appId }))
  })
}
