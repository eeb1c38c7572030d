import { roleOf, sessionId } from '../../../domain/accounts/sessions.ts'
import { html } from '../answers.ts'
import type { PageHandler } from '../page-handler.ts'
import { settingsPage } from './page.tsx'

export function settingsRoutes({ get, ports, settings }: PageHandler): void {
  get('/admin/settings', async ({ visit }, pageContext) => {
    const [all, accounts] = await Promise.all([
      ports.sessions.list(pageContext.now),
      ports.sessions.accounts(),
    ])
    const isOwner = roleOf(visit) === 'owner'
    const sessions = all.map(({ tokenSha256, ...session }) => ({
      ...session,
      id: sessionId({ tokenSha256 }),
      person: accounts.find(({ id }) => id === session.operatorId)?.email ?? null,
      isOwn: tokenSha256 === visit.session.tokenSha256,
      mayEnd: isOwner || session.operatorId === visit.session.operatorId,
    }))
    return html(settingsPage(pageContext, { settings: settings.inForce, sessions }))
  })
}
