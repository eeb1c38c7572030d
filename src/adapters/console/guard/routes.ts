import { latestChanges } from '../../../domain/operator/destinations.ts'
import { readGuardStatus } from '../../../domain/operator/guard.ts'
import { html } from '../answers.ts'
import type { PageHandler } from '../page-handler.ts'
import { guardPage } from './page.tsx'

const mostRequests = 20

export function guardRoutes({ get, ports, settings }: PageHandler): void {
  get('/admin/guard', async (_, pageContext) => {
    const { countryOfPrefix, formatPrefix } = settings.numbers
    const [status, requests, changes] = await Promise.all([
      readGuardStatus({ ...ports, countryOfPrefix }, settings),
      ports.eventLog.guarded(mostRequests),
      ports.audit.list({ actions: ['guard.set'], limit: latestChanges }),
    ])
    return html(guardPage(pageContext, { status, requests, changes, formatPrefix }))
  })
}
