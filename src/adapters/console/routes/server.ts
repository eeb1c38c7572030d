import { endSession, sessionId } from '../../../domain/operator/sessions.ts'
import { done, html } from '../answers.ts'
import { type PageHandler, pageLength } from '../page-handler.ts'
import { auditPage } from '../pages/audit.tsx'
import { settingsPage } from '../pages/settings.tsx'

export function serverRoutes({ get, post, ports, settings, missing }: PageHandler): void {
  get('/admin/audit', async ({ url }, pageContext) => {
    const text = url.searchParams.get('before')
    const before = text !== null && /^[1-9][0-9]{0,14}$/.test(text) ? { before: Number(text) } : {}
    const records = await ports.audit.list({ ...before, limit: pageLength + 1 })
    const shown = records.slice(0, pageLength)
    const next = records.length > pageLength ? (shown.at(-1)?.id ?? null) : null
    return html(auditPage(pageContext, { records: shown, next }))
  })
  get('/admin/settings', async ({ visit }, pageContext) => {
    const sessions = (await ports.sessions.list(pageContext.now)).map(({ tokenSha256, ...session }) => ({
      ...session,
      id: sessionId({ tokenSha256 }),
      isOwn: tokenSha256 === visit.session.tokenSha256,
    }))
    const { inForce, databaseName, bun } = settings
    return html(settingsPage(pageContext, { settings: inForce, sessions, databaseName, bun }))
  })
  post('/admin/sessions/:id/revoke', async ({ visit, params: { id = '' } }, pageContext) => {
    if (!(await endSession(ports, visit.session, id))) return missing(pageContext, 'There is no such session')
    return done('/admin/settings', `The session ${id} is ended.`)
  })
}
