import { isLoopback } from '../../../config/settings.ts'
import {
  inviteOperator,
  removeOperator,
  resetOperator,
  roleIn,
  setRole,
} from '../../../domain/accounts/account-changes.ts'
import { done, html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler, type PageRequest } from '../page-handler.ts'
import { invitationPage, operatorsPage } from './page.tsx'

export function operatorRoutes({ get, post, ports, settings: { contacts, ownUrl } }: PageHandler): void {
  const portsOf = ({ by }: PageRequest) => ({ ...ports, contacts, actor: by.actor })
  /** Through an SSH tunnel, the proxy may not forward /admin. */
  const linkOf = ({ url }: PageRequest, token: string) =>
    `${isLoopback(url.hostname) ? url.origin : ownUrl()}/admin/link#${token}`

  get('/admin/operators', (_, pageContext) => shown(pageContext))
  post('/admin/operators', (pageRequest, pageContext) => {
    const [asked, role] = [field(pageRequest.form, 'email'), field(pageRequest.form, 'role')]
    return orAgain(
      async () => {
        const { email, token } = await inviteOperator(portsOf(pageRequest), asked, roleIn(role))
        return html(invitationPage(pageContext, { email, link: linkOf(pageRequest, token) }))
      },
      (problem) => shown(pageContext, { email: asked, role, problem }),
    )
  })
  post('/admin/operators/role', async (pageRequest) => {
    const { form, visit } = pageRequest
    const [email, role] = [field(form, 'email'), roleIn(field(form, 'role'))]
    await setRole(portsOf(pageRequest), email, role)
    return done(visit, '/admin/operators', `${email} has the role ${role}. Takes effect immediately.`)
  })
  post('/admin/operators/reset', async (pageRequest, pageContext) => {
    const email = field(pageRequest.form, 'email')
    const token = await resetOperator(portsOf(pageRequest), email)
    return html(invitationPage(pageContext, { email, link: linkOf(pageRequest, token) }))
  })
  post('/admin/operators/remove', async (pageRequest) => {
    const email = field(pageRequest.form, 'email')
    await removeOperator(portsOf(pageRequest), email)
    return done(pageRequest.visit, '/admin/operators', `Removed ${email}. Its sessions have ended.`)
  })

  async function shown(
    pageContext: PageContext,
    form: { email: string; role: string; problem: string | null } = {
      email: '',
      role: 'operator',
      problem: null,
    },
  ): Promise<Response> {
    const accounts = await ports.sessions.accounts()
    return html(operatorsPage(pageContext, { accounts, ...form }), form.problem === null ? 200 : 409)
  }
}
