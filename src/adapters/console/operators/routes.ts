import { isLoopback } from '../../../config/settings.ts'
import { operatorInvite, operatorReset } from '../../../domain/operator/accounts.ts'
import { html } from '../answers.ts'
import type { PageHandler, ShownAfter } from '../page-handler.ts'
import { invitationPage, operatorsPage } from './page.tsx'

export function operatorRoutes({ get, after, ports, settings: { ownUrl } }: PageHandler): void {
  get('/admin/operators', async (_, pageContext) =>
    html(operatorsPage(pageContext, { accounts: await ports.sessions.accounts() })),
  )
  const shownLink: ShownAfter = ({ text: email, secret = '' }, _, { url }, pageContext) => {
    // Through an SSH tunnel, the proxy may not forward /admin.
    const origin = isLoopback(url.hostname) ? url.origin : ownUrl()
    return html(invitationPage(pageContext, { email, link: `${origin}/admin/link#${secret}` }))
  }
  after(operatorInvite, shownLink)
  after(operatorReset, shownLink)
}
