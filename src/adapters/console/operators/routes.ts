import { isLoopback } from '../../../config/settings.ts'
import { operatorInvite, operatorReset } from '../../../domain/operator/accounts.ts'
import { tokenCreate } from '../../../domain/operator/manage-tokens.ts'
import { html } from '../answers.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler, ShownAfter } from '../page-handler.ts'
import { invitationPage, type OperatorsModel, operatorsPage } from './page.tsx'

export function operatorRoutes({ get, after, ports, settings: { ownUrl } }: PageHandler): void {
  get('/admin/operators', (_, pageContext) => shown(pageContext))
  after(tokenCreate, ({ text, secret = '' }, _, __, pageContext) =>
    shown(pageContext, { title: text, token: secret }),
  )
  const shownLink: ShownAfter = ({ text: email, secret = '' }, _, { url }, pageContext) => {
    // Through an SSH tunnel, the proxy may not forward /admin.
    const link = isLoopback(url.hostname) ? secret.replace(ownUrl(), url.origin) : secret
    return html(invitationPage(pageContext, { email, link }))
  }
  after(operatorInvite, shownLink)
  after(operatorReset, shownLink)

  async function shown(pageContext: PageContext, created?: OperatorsModel['created']): Promise<Response> {
    const [accounts, { manageTokens: tokens }] = await Promise.all([
      ports.sessions.accounts(),
      ports.policy.rows(),
    ])
    return html(operatorsPage(pageContext, { accounts, tokens, ...(created && { created }) }))
  }
}
