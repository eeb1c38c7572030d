import { isSetUp } from '../../domain/accounts/accounts.ts'
import { visitOf } from './access.ts'
import { eventStream } from './answers.ts'
import type { PageHandler } from './page-handler.ts'

export function liveRoutes({ routes, ports, settings: { publicUrl }, withoutSession }: PageHandler): void {
  routes.get('/admin/live', async ({ request, server }) => {
    const visit = () => visitOf(ports, request, publicUrl, false)
    const current = await visit()
    if (!current || (current.account && !isSetUp(current.account))) return withoutSession(request)
    server?.timeout(request, 0)
    const isSignedIn = async () => (await visit()) !== undefined
    return eventStream(ports.live.open(current.session.tokenSha256, isSignedIn))
  })
}
